//! What the tests of the parts together share: a checkout with a notebook, and a host that can be made to crash.

pub mod checkout;
pub mod crash;
pub mod processes;
pub mod pull_request;

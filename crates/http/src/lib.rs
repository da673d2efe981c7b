//! Connections of an HTTP server, each with its limits.
//!
//! hyper and axum bound neither how many connections there are, nor how long a client may take to ask or to take its answer:
//! whoever is slow or silent would keep others out.

mod connections;

pub use connections::{Limits, serve};

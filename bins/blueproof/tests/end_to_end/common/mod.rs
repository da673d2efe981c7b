//! What the tests share: a home for whoever types, commands that go on, and checkouts to be tested.

mod checkout;
mod disk;
mod held;
mod home;
mod pty;
mod running;

pub(crate) use checkout::Checkout;
pub(crate) use disk::SmallDisk;
pub(crate) use held::Held;
pub(crate) use home::{Answer, Home};
pub(crate) use pty::Terminal;
pub(crate) use running::{Running, eventually};

//! The API as those who ask it find it: over real sockets.

mod access;
mod deliveries;
mod following;
mod misuse;
mod store;
mod support;

//! Whole stories of a listener and the service, under a paused clock: whatever fails, each job runs once and each event is handled.

mod random;
mod stories;
mod world;

//! From GitHub to the start of an attempt: a GitHub in memory, our intake, and the engine with its scheduler.

mod attacks;
mod conclude;
mod deliveries;
mod merge_groups;
mod orders;
mod redelivery;
mod starts;
mod stories;
mod world;

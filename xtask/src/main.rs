//! The project's chores, `cargo xtask ci` first among them.

fn main() {}

//! Machines and what is read of them, for the tests beside this; what must be true of them is in the modules.

mod autopilot;
mod checks;
mod judgements;
mod labels;
mod machine;
mod random;
mod stories;
mod texts;
mod unhealthy;

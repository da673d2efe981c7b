//! Runners of GitHub Actions, made when jobs need them.
//!
//! There are two ways to a runner. A **scale set** has a name and labels, as those of GitHub's own controller, and jobs ask for it; a shared
//! label binds no job to a commit, and so a job asks when it starts whether it may. A **unique label** names one commit, and a
//! runner with it is made for nobody else.
//!
//! - [`Fleet`] decides how many runners there are to be, and which of them go. It is a plain struct.
//! - [`Controller`] writes down what it comes to in a [`Ledger`], and carries it out by a [`Registrar`] and core's `RunnerProvider`.
//! - [`FleetHandler`] tells it what a scale set's messages say.
//!
//! Not here: whether a head is approved, which `core` alone decides; the machines of runners, which providers make; and GitHub's
//! REST API, which `crates/github` speaks.

pub mod arc;
mod controller;
mod fleet;
mod handler;
pub mod hook;
mod jobs;
mod label;
mod ledger;
pub mod metrics;
mod record;
mod registrar;
pub mod settings;

pub use controller::{Controller, ControllerHandle, ControllerPorts};
pub use fleet::{
    CallOutcome, Fleet, FleetAction, FleetFigures, FleetInput, FleetSettings, FleetStep, RunnerCall,
    RunnerCallKind,
};
pub use handler::{ControllerEnded, FleetHandler, JobObserver};
pub use jobs::{JobList, ListedJob, ListedState, SELF_HOSTED};
pub use label::{ParseLabelError, UniqueLabel};
pub use ledger::{Ledger, LedgerError};
pub use record::{Remains, Remnant, Rerun, RunnerEnd, RunnerJob, RunnerRecord, RunnerStage};
pub use registrar::{
    Deregistration, Registered, Registrar, RegistrarError, RerunAnswer, Reruns, ScaleSetRegistrar,
    WORK_FOLDER,
};

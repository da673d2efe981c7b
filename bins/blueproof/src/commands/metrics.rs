//! `blueproof metrics`.

use crate::{
    cli::Metrics,
    config::ConfigFlags,
    exit::{Exit, Problem},
    output,
    reading::{self, Reading},
};

pub(crate) fn metrics(arguments: &Metrics, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let reading = Reading::open(flags)?;
    let scheduler = reading::block_on(reading.scheduler_as_stored())?;
    output::print(&scheduler.metrics().render(arguments.output.into()))?;
    Ok(Exit::Ok)
}

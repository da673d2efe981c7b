//! `blueproof metrics`.

use crate::{
    cli::{Metrics, Place},
    exit::{Exit, Problem},
    output,
    reading::{self, Reading},
};

pub(crate) fn metrics(arguments: &Metrics, place: &Place) -> Result<Exit, Problem> {
    let reading = Reading::open(place)?;
    let scheduler = reading::block_on(reading.scheduler_as_stored())?;
    output::print(&scheduler.metrics().render(arguments.output.into()))?;
    Ok(Exit::Ok)
}

//! `blueproof get events`.

use blueproof_core::ports::LoggedEvent;

use crate::{
    cli::{EventFormat, GetEvents, Place},
    exit::{Exit, Problem},
    output::{self, Encoding},
    reading::{self, Reading},
    show,
};

pub(super) async fn get_events(arguments: &GetEvents, place: &Place) -> Result<Exit, Problem> {
    let Some(store) = Reading::open(place)?.store else {
        output::note("no events yet: `blueproof run BLUEPRINT` makes the first");
        return Ok(Exit::Ok);
    };
    match arguments.output {
        Some(EventFormat::Jsonl) => reading::events(&store, |events| print_lines(&events)).await?,
        None => {
            let mut table = show::events::Rows::default();
            reading::events(&store, |events| output::print(&table.render(&events))).await?;
        }
    }
    Ok(Exit::Ok)
}

fn print_lines(events: &[LoggedEvent]) -> Result<(), Problem> {
    let lines = events
        .iter()
        .map(|event| output::encode(event, Encoding::JsonLine));
    output::print(&lines.collect::<Result<String, _>>()?)
}

//! `blueproof get events`.

use blueproof_core::ports::LoggedFact;

use crate::{
    cli::{EventFormat, GetEvents},
    config::ConfigFlags,
    exit::{Exit, Problem},
    output::{self, Encoding},
    reading::{self, Reading},
    show,
};

pub(super) async fn get_events(arguments: &GetEvents, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let Some(store) = Reading::open(flags)?.store else {
        output::note("no events yet: `blueproof run BLUEPRINT` makes the first");
        return Ok(Exit::Ok);
    };
    match arguments.output {
        Some(EventFormat::Jsonl) => reading::facts(&store, |facts| print_lines(&facts)).await?,
        None => {
            let mut table = show::events::Rows::default();
            reading::facts(&store, |facts| output::print(&table.render(&facts))).await?;
        }
    }
    Ok(Exit::Ok)
}

fn print_lines(facts: &[LoggedFact]) -> Result<(), Problem> {
    let lines = facts.iter().map(|fact| output::encode(fact, Encoding::JsonLine));
    output::print(&lines.collect::<Result<String, _>>()?)
}

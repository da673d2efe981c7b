//! `blueproof config show` and `blueproof config path`.

use serde::Serialize;

use crate::{
    cli::{ConfigCommand, ConfigShow, Configuration, Place},
    config::{Config, Key, Origin, Presence, Surroundings},
    exit::{Exit, Problem},
    output::{self, Document, Encoding, Table, Width},
};

pub(crate) fn config(arguments: &Configuration, place: &Place) -> Result<Exit, Problem> {
    let config = Config::load(place, &Surroundings::of_this_process()?)?;
    let answer = match &arguments.command {
        ConfigCommand::Show(show) => shown(&config, show)?,
        ConfigCommand::Path => files(&config),
    };
    output::print(&answer)?;
    Ok(Exit::Ok)
}

fn shown(config: &Config, arguments: &ConfigShow) -> Result<String, Problem> {
    match (arguments.origin, arguments.output) {
        (true, None) => Ok(origins(config).render(Width::Unlimited)),
        (true, Some(format)) => {
            let values = config.entries().into_iter();
            let values = values
                .map(|(key, value, origin)| Setting { key, value, origin })
                .collect();
            let document = Document::new("ConfigOrigins", Origins { values });
            output::encode(&document, format.into())
        }
        (false, format) => {
            let document = Document::new("Config", config.as_file());
            output::encode(&document, format.map_or(Encoding::Yaml, Encoding::from))
        }
    }
}

fn origins(config: &Config) -> Table {
    let mut table = Table::new(["KEY", "VALUE", "ORIGIN"]);
    for (key, value, origin) in config.entries() {
        let value = value.map_or_else(|| format!("({})", key.unset()), |value| output::line(&value));
        table.row([
            key.name().into(),
            value.into(),
            output::line(&origin.to_string()).into(),
        ]);
    }
    table
}

fn files(config: &Config) -> String {
    let mut table = Table::new(["FILE", "WHOSE", "IS"]);
    for layer in &config.layers {
        let presence = match layer.presence {
            Presence::Read => "read",
            Presence::Missing => "not there",
        };
        let path = output::line(&layer.path.display().to_string());
        table.row([path.into(), layer.owner.word().into(), presence.into()]);
    }
    table.render(Width::Unlimited)
}

/// Every value with its origin, for programs.
#[derive(Serialize)]
struct Origins<'a> {
    values: Vec<Setting<'a>>,
}

#[derive(Serialize)]
struct Setting<'a> {
    key: Key,
    value: Option<String>,
    origin: &'a Origin,
}

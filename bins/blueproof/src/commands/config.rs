//! `blueproof config`: what is configured, in which files, and the contexts.

use blueproof_diagnostic::{Code, Diagnostic};
use serde::Serialize;

use crate::{
    cli::{ConfigCommand, ConfigGetContexts, ConfigShow, Configuration, ContextFormat},
    config::{Config, ConfigFlags, Context, Key, Origin, Presence, ProcessEnv},
    exit::{Exit, Problem},
    output::{self, Document, Encoding, Table, Width},
};

pub(crate) fn config(arguments: &Configuration, flags: &ConfigFlags) -> Result<Exit, Problem> {
    // Whichever is current now may be gone: another can still be chosen.
    if let ConfigCommand::UseContext(chosen) = &arguments.command {
        return use_context(&chosen.name, flags);
    }
    let config = Config::load(flags, &ProcessEnv::of_this_process()?)?;
    let answer = match &arguments.command {
        ConfigCommand::Show(show) => shown(&config, show)?,
        ConfigCommand::Path => files(&config),
        ConfigCommand::GetContexts(get) => contexts(&config, get)?,
        ConfigCommand::CurrentContext => current_context(&config)?,
        ConfigCommand::UseContext(_) => String::new(),
    };
    output::print(&answer)?;
    Ok(Exit::Ok)
}

fn contexts(config: &Config, arguments: &ConfigGetContexts) -> Result<String, Problem> {
    let current = config.context.value.as_deref();
    let listed = || {
        let contexts = config.contexts.iter().map(|context| ListedContext {
            name: &context.name,
            is_current: current == Some(context.name.as_str()),
            context,
        });
        Document::<ListedContext<'_>>::list("ContextList", "Context", contexts)
    };
    match arguments.output {
        Some(ContextFormat::Json) => return output::encode(&listed(), Encoding::Json),
        Some(ContextFormat::Yaml) => return output::encode(&listed(), Encoding::Yaml),
        Some(ContextFormat::Name) => {
            let names = config.contexts.iter();
            return Ok(names.map(|context| output::line(&context.name) + "\n").collect());
        }
        None => {}
    }
    let mut table = Table::new(["CURRENT", "NAME", "SERVER", "STORE", "TOKENFILE"]);
    for context in &config.contexts {
        let is_current = current == Some(context.name.as_str());
        let cell = |value: &Option<String>| output::line(value.as_deref().unwrap_or_default()).into();
        table.row([
            if is_current { "*" } else { "" }.into(),
            output::line(&context.name).into(),
            cell(&context.server),
            cell(&context.store),
            cell(&context.token_file),
        ]);
    }
    Ok(table.render(Width::Unlimited))
}

fn current_context(config: &Config) -> Result<String, Problem> {
    let not_set = || {
        let diagnostic = Diagnostic::error(Code::ConfigValue, "the current context is not set");
        Problem::usage(diagnostic.hint("`blueproof config use-context NAME` sets it"))
    };
    let name = config.context.value.as_deref().ok_or_else(not_set)?;
    Ok(output::line(name) + "\n")
}

fn use_context(name: &str, flags: &ConfigFlags) -> Result<Exit, Problem> {
    Config::use_context(name, flags, &ProcessEnv::of_this_process()?)?;
    output::print(&format!("Switched to context \"{}\".\n", output::line(name)))?;
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

/// A context, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedContext<'a> {
    name: &'a str,
    is_current: bool,
    #[serde(flatten)]
    context: &'a Context,
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

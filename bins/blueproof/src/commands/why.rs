//! `blueproof why RUN`.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::{
    cli::Why,
    config::ConfigFlags,
    exit::{Exit, Problem},
    output::{self, Document},
    reading::{self, Reading},
    show::explanation::{self, Explanation},
};

pub(crate) fn why(arguments: &Why, flags: &ConfigFlags) -> Result<Exit, Problem> {
    reading::block_on(explain(arguments, flags))
}

async fn explain(arguments: &Why, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let reading = Reading::open(flags)?;
    let store = reading.store_with(&arguments.run)?;
    let view = arguments.run.resolve(&**store).await?;
    let mut others = BTreeMap::new();
    for run in explanation::awaited(&view) {
        others.extend(store.run(run).await?.map(|other| (run, other.state)));
    }
    let explanation = Explanation::of(&view, &others, Timestamp::now());
    let answer = match arguments.output {
        Some(format) => output::encode(&Document::new("RunExplanation", &explanation), format.into())?,
        None => explanation.to_string(),
    };
    output::print(&answer)?;
    reading::say_who_is_left_alone(store, std::slice::from_ref(&view))?;
    Ok(Exit::Ok)
}

//! `blueproof backtest`.

use blueproof_core::backtest::Backtest;

use super::recorded;
use crate::{
    cli::{self},
    config::ConfigFlags,
    exit::{Exit, Problem},
    output::{self, Document},
    show::backtest::Answer,
};

pub(crate) fn backtest(arguments: &cli::Backtest, flags: &ConfigFlags) -> Result<Exit, Problem> {
    let (log, mut backtest) = (arguments.log.as_deref(), Backtest::default());
    recorded::facts(log, flags, |fact| backtest.take_in(fact))?;
    let scores = backtest.finish(arguments.since);
    if scores.runs == 0 {
        return Err(recorded::nothing_to_replay(log));
    }
    let answer = Answer(scores);
    let text = match arguments.output {
        Some(format) => output::encode(&Document::new("BacktestReport", &answer), format.into())?,
        None => answer.to_string(),
    };
    output::print(&text)?;
    Ok(Exit::Ok)
}

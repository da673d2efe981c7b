//! Events of the log as rows of a table.

use blueproof_core::{
    event::{Call, Event},
    ports::LoggedEvent,
};

use crate::output::{self, Cell, Table};

/// Rows of events that come one part after the other.
#[derive(Default)]
pub(crate) struct Rows {
    /// How wide the columns are, once there is a header.
    widths: Option<Vec<usize>>,
}

impl Rows {
    /// Returns the next rows, under a header if they are the first.
    pub(crate) fn render(&mut self, events: &[LoggedEvent]) -> String {
        let mut table = Table::new(["EVENT", "AT", "KIND", "OF"]);
        for logged in events {
            table.row(row(logged));
        }
        let limit = output::width();
        if let Some(widths) = &self.widths {
            return table.render_rows(widths, limit);
        }
        self.widths = Some(table.widths());
        table.render(limit)
    }
}

fn row(logged: &LoggedEvent) -> [Cell; 4] {
    [
        logged.seq.0.to_string().into(),
        output::absolute(logged.at).into(),
        logged.event.kind().into(),
        of(&logged.event).into(),
    ]
}

/// Returns whom or what an event is about.
fn of(event: &Event) -> String {
    match event {
        Event::Configured { .. } | Event::Tick => String::new(),
        Event::QuotaApplied { by, .. } => by.to_string(),
        Event::Requested { request } => request.subject.blueprint.to_string(),
        Event::Approved { approval } => approval.subject.blueprint.to_string(),
        Event::HeadMoved { change, .. } => format!("#{change}"),
        Event::CancelRequested { run, .. }
        | Event::RetryRequested { run, .. }
        | Event::Reported { run, .. } => run.to_string(),
        Event::Reserved { attempt, .. }
        | Event::Started { attempt }
        | Event::Finished { attempt, .. }
        | Event::Released { attempt } => attempt.to_string(),
        Event::CallFailed { call, .. } => called(*call),
    }
}

fn called(call: Call) -> String {
    let attempt = call.attempt();
    attempt.map_or_else(|| call.run().to_string(), |attempt| attempt.to_string())
}

//! What every reporter promises.

use crate::ports::{Reporter, RunStatus};

/// Puts a reporter to what the port promises, with the status of a run that has ended.
///
/// # Panics
/// When a promise is not kept.
pub async fn reporter_keeps_its_promises(reporter: &dyn Reporter, status: &RunStatus) {
    assert!(!reporter.name().is_empty(), "it is told apart by its name");
    assert_eq!(reporter.name(), reporter.name(), "its name stays");
    for time in ["told", "told twice", "told after a restart"] {
        assert_eq!(reporter.report(status).await, Ok(()), "{time}");
    }
    let later = RunStatus {
        revision: status.revision + 1,
        ..status.clone()
    };
    assert_eq!(
        reporter.report(&later).await,
        Ok(()),
        "a later revision replaces an earlier one"
    );
}

//! A reporter of the program that embeds us.

use std::fmt;

use async_trait::async_trait;

use super::{CallError, Reporter, RunStatus};

type Callback = dyn Fn(&RunStatus) -> Result<(), CallError> + Send + Sync;

/// Calls a function with each status; what it returns is the answer. It must not block.
///
/// ```
/// use blueproof_core::ports::CallbackReporter;
///
/// let (statuses, told) = std::sync::mpsc::channel();
/// let reporter = CallbackReporter::new("mine", move |status| {
///     let _ = statuses.send(status.clone());
///     Ok(())
/// });
/// ```
pub struct CallbackReporter {
    name: String,
    call: Box<Callback>,
}

impl CallbackReporter {
    /// Returns a reporter of that name.
    pub fn new(
        name: impl Into<String>,
        call: impl Fn(&RunStatus) -> Result<(), CallError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            call: Box::new(call),
        }
    }
}

impl fmt::Debug for CallbackReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackReporter")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Reporter for CallbackReporter {
    fn name(&self) -> &str {
        &self.name
    }

    async fn report(&self, status: &RunStatus) -> Result<(), CallError> {
        (self.call)(status)
    }
}

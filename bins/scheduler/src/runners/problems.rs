//! Why a scale set cannot be used, as it is told.

use blueproof_diagnostic::{Code, Diagnostic};

pub(super) fn no_group(name: &str) -> Diagnostic {
    let message = format!("there is no runner group `{name}`");
    Diagnostic::error(Code::ScaleSetUnusable, message)
        .hint("make it under Settings → Actions → Runner groups, or name another in `spec.runnerGroup`")
}

pub(super) fn unusable(why: &str, error: &(dyn std::error::Error + 'static)) -> Diagnostic {
    let message = format!("the scale set cannot be used: {why}");
    Diagnostic::error(Code::ScaleSetUnusable, message).caused_by(error)
}

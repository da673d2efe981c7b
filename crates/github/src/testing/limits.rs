//! Limits of GitHub's that the fake keeps: whoever exceeds one sees it here first.

use crate::api::{ApiError, CheckOutput};

/// Refuses what GitHub would refuse.
pub(super) fn judge(check: &CheckOutput) -> Result<(), ApiError> {
    let length = |text: &str| text.chars().count();
    let rules = [
        (check.name.is_empty(), "a name"),
        (
            check.title.is_empty() != check.summary.is_empty(),
            "a title with a summary",
        ),
        (check.title.contains('\n'), "a title of one line"),
        (
            length(&check.title) > CheckOutput::TITLE_AT_MOST,
            "a shorter title",
        ),
        (
            length(&check.summary) > CheckOutput::TEXT_AT_MOST,
            "a shorter summary",
        ),
        (length(&check.text) > CheckOutput::TEXT_AT_MOST, "a shorter text"),
        (
            check.annotations.len() > CheckOutput::ANNOTATIONS_AT_MOST,
            "fewer annotations",
        ),
        (
            check.actions.len() > CheckOutput::ACTIONS_AT_MOST,
            "fewer buttons",
        ),
    ];
    match rules.into_iter().find(|(is_broken, _)| *is_broken) {
        Some((_, wanted)) => Err(ApiError {
            status: Some(422),
            ..ApiError::never(format!("write a check run: GitHub wants {wanted}"))
        }),
        None => Ok(()),
    }
}

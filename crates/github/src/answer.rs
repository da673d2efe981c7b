//! Why something that somebody asked for on a pull request was not done.

use crate::{budget::BudgetProblem, comment::CommentProblem, payload::CommitSha};

/// Why a wish was not fulfilled, as it is told to whoever had it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Answer {
    /// The line is no command.
    #[error(transparent)]
    Comment(#[from] CommentProblem),
    /// The word approves nothing.
    #[error(transparent)]
    Approval(#[from] ApprovalProblem),
    /// A budget is used up.
    #[error(transparent)]
    Budget(#[from] BudgetProblem),
    /// They may not.
    #[error("only whoever opened the pull request, or may approve it, can do this")]
    MayNot,
    /// There is no such run.
    #[error("there is no run that this is about")]
    NoRun,
}

/// Why somebody's word approves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApprovalProblem {
    /// Programs approve nothing.
    #[error("only a person can approve")]
    NoPerson,
    /// They may not approve it.
    #[error("this account may not approve it: the policy of the default branch says who may")]
    NotEntitled,
    /// They opened it.
    #[error("nobody approves their own pull request")]
    Own,
    /// A budget is used up.
    #[error(transparent)]
    Budget(#[from] BudgetProblem),
    /// It is closed.
    #[error("the pull request is closed")]
    Closed,
    /// It has another head by now.
    #[error("the pull request has another head now: {0}")]
    HeadChanged(CommitSha),
    /// The words name no commit, and were written too soon after the head came.
    #[error(
        "the head came when this was written, or later: name the commit that you have read, `/gpu-test {0}`"
    )]
    WhichHead(CommitSha),
    /// Nothing of the pull request waits for it.
    #[error("nothing that this names is tested in this pull request")]
    Nothing,
}

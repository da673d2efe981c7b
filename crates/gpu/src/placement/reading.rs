//! What a published score counts for when clusters are compared.
//!
//! OCM's own reading is `open-cluster-management-io/ocm:pkg/placement/plugins/addon/addon.go`. It cannot be mended from
//! here: whoever leaves the choice to OCM's Placement gets 0 for a cluster without a score in either mode, and should
//! keep such clusters out by a predicate. Adding up, and choosing, is the caller's matter.

use jiff::Timestamp;

use super::{Mode, PlacementScores, ScoreName, UnknownScore, normalise::MAX_SCORE};

/// One wish of a placement: a score by name, and how much it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prioritizer {
    /// The score's name.
    pub score_name: String,
    /// What the score is multiplied by; OCM allows -10 to 10. Below 0, clusters with a lower score are preferred.
    pub weight: i32,
}

impl Mode {
    /// Returns what a cluster gets for one wish at a time: its weight times its score.
    ///
    /// In [`Mode::Compat`] a score that is absent, expired or unknown counts as 0, so that a cluster nobody measured
    /// beats one with 9 of 20 GPUs free. In [`Mode::Correct`] a score that is absent or expired counts as the worst
    /// that a cluster could have: -100 times the weight, or 100 times a weight below 0.
    ///
    /// A score is good at the very time until which it is valid.
    ///
    /// # Errors
    ///
    /// Returns an error, in [`Mode::Correct`], for a name that no score has.
    pub fn weighted(
        &self,
        published: Option<&PlacementScores>,
        wish: &Prioritizer,
        at: Timestamp,
    ) -> Result<i64, UnknownScore> {
        let name = wish.score_name.parse::<ScoreName>();
        let weight = i64::from(wish.weight);
        let good = published.filter(|published| published.is_good(at));
        let score = |name| good.and_then(|good| good.scores.get(&name)).copied();
        match self {
            Self::Compat => Ok(weight * i64::from(name.ok().and_then(score).unwrap_or(0))),
            Self::Correct(_) => {
                let worst = -i64::from(MAX_SCORE) * weight.abs();
                Ok(score(name?).map_or(worst, |score| weight * i64::from(score)))
            }
        }
    }
}

impl PlacementScores {
    fn is_good(&self, at: Timestamp) -> bool {
        self.valid_until.is_none_or(|until| at <= until)
    }
}

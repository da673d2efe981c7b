//! What a sentence of a case says, told by its words.

use blueproof_simulation::retry::DesiredState;

/// The words of a sentence, in small letters.
#[derive(Debug)]
pub(super) struct Words(Vec<String>);

/// How many words before another one a `not` still belongs to it: `not yet deleted`, `is not listed as retryable`.
const REACH: usize = 4;

/// The words that deny; `n't` leaves a word such as `isn`.
const DENIALS: &[&str] = &[
    "not", "cannot", "never", "non", "without", "outside", "other", "missing", "absent", "isn", "doesn",
    "don",
];

impl Words {
    pub(super) fn of(sentence: &str) -> Self {
        let words = sentence.split(|c: char| !c.is_alphanumeric());
        let words = words.filter(|word| !word.is_empty());
        Self(words.map(str::to_lowercase).collect())
    }

    /// Returns where the first word stands that begins with one of these.
    pub(super) fn find(&self, beginnings: &[&str]) -> Option<usize> {
        let begins = |word: &String| beginnings.iter().any(|beginning| word.starts_with(beginning));
        self.0.iter().position(begins)
    }

    pub(super) fn any(&self, beginnings: &[&str]) -> bool {
        self.find(beginnings).is_some()
    }

    fn has(&self, words: &[&str]) -> bool {
        self.0.iter().any(|word| words.contains(&word.as_str()))
    }

    /// Returns whether the sentence denies something.
    pub(super) fn denies(&self) -> bool {
        self.has(DENIALS)
    }

    /// Returns whether it says of something that there is none.
    pub(super) fn says_none(&self) -> bool {
        self.has(&["none", "no", "without", "nothing"])
    }

    /// Returns whether it says something beginning like this, and does not deny it.
    pub(super) fn affirms(&self, beginnings: &[&str]) -> bool {
        self.find(beginnings).is_some_and(|at| {
            let before = &self.0[at.saturating_sub(REACH)..at];
            let negations = [
                "not", "cannot", "no", "without", "being", "still", "less", "fewer",
            ];
            !before.iter().any(|word| negations.contains(&word.as_str()))
        })
    }

    /// Returns whether the first word that begins like one of these stands before the first of those.
    pub(super) fn is_before(&self, these: &[&str], those: &[&str]) -> bool {
        match (self.find(these), self.find(those)) {
            (Some(this), Some(that)) => this < that,
            (this, None) => this.is_some(),
            (None, Some(_)) => false,
        }
    }

    /// Returns what is asked for, by what suspend is said to be.
    pub(super) fn wanted(&self) -> Option<DesiredState> {
        let at = self.find(&["suspend"])?;
        self.0[at..].iter().find_map(|word| match word.as_str() {
            "true" => Some(DesiredState::Suspended),
            "false" => Some(DesiredState::Running),
            _ => None,
        })
    }

    /// Returns the number of seconds that is named: `90 s`, `90s`, `90 seconds`.
    pub(super) fn seconds(&self) -> Option<i64> {
        self.0.iter().enumerate().find_map(|(at, word)| {
            let digits = word.trim_end_matches(|c: char| c.is_alphabetic());
            let unit = match &word[digits.len()..] {
                "" => self.0.get(at + 1)?,
                unit => unit,
            };
            matches!(unit, "s" | "sec" | "second" | "seconds").then(|| digits.parse().ok())?
        })
    }

    /// Returns whether retries are said to be used up, where they are spoken of.
    pub(super) fn has_reached_limit(&self) -> Option<bool> {
        if self.any(&["limit"]) {
            return Some(self.affirms(&["reached", "used", "exhausted", "exceeded", "spent"]));
        }
        let left = self.any(&["retries"]) && self.any(&["left", "remain"]);
        (left && self.says_none()).then_some(true)
    }
}

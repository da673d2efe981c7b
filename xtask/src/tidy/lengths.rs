//! Files stay short enough to read in one go.

use super::{Complaint, Source};

/// The most lines that a file may have. Beyond it a file has had more than one job in every case so far.
const LIMIT: usize = 600;

pub(super) fn check(source: &Source) -> Option<Complaint> {
    let lines = source.text.lines().count();
    let complaint = || source.complaint(None, format!("{lines} lines; split it, {LIMIT} are the most"));
    (lines > LIMIT).then(complaint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_at_most_the_limit_of_lines() {
        assert_eq!(check(&Source::of("a.rs", "x\n".repeat(LIMIT))), None);
        let complaint = check(&Source::of("a.rs", "x\n".repeat(LIMIT + 1))).expect("one line too many");
        assert_eq!(
            complaint.to_string(),
            "a.rs: 601 lines; split it, 600 are the most"
        );
    }
}

//! Keys of commands: what GitHub's numbers and commits make of a wish, so that it is the same one when it comes again.

use blueproof_core::{
    domain::{Repository, RequestKey},
    hex::hex,
};
use sha2::{Digest as _, Sha256};

/// How many characters of a key are shown as they are.
const SHOWN: usize = 120;

/// Returns the key of a command that is told from others by these parts. It begins with them, as far as there is room, and ends
/// with a digest of all of them.
pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a str>) -> RequestKey {
    let mut digest = Sha256::new();
    let mut shown = "github".to_owned();
    for part in parts {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
        shown.push('/');
        shown.push_str(part);
    }
    let shown: String = shown.chars().take(SHOWN).collect();
    let digest = hex(&digest.finalize()[..16]);
    RequestKey(format!("{shown}/{digest}"))
}

/// Returns a repository as part of a key.
pub(crate) fn repository(repository: &Repository) -> String {
    match repository {
        Repository::GitHub(id) => id.to_string(),
        Repository::Local(folder) => folder.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_run_together_are_told_apart() {
        assert_ne!(of(["a", "b/c"]), of(["a/b", "c"]));
        assert_ne!(of(["a", ""]), of(["a"]));
        assert_eq!(of(["a", "b"]), of(["a", "b"]));
        let long = of([&*"ü".repeat(5000)]);
        assert!(long.is_valid() && long.0.starts_with("github/üü"));
    }
}

//! Paths in commands that are shown to be pasted into a shell.

use std::path::Path;

/// Returns a path as one word of a shell's command, quoted where a shell would take it for something else.
pub fn shell_word(path: &Path) -> String {
    let shown = path.display().to_string();
    match shlex::try_quote(&shown) {
        Ok(quoted) => quoted.into_owned(),
        // A NUL byte is in no path.
        Err(_) => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_shell_would_take_apart_is_quoted() {
        for (path, word) in [
            ("examples/nano-lm/nb.ipynb", "examples/nano-lm/nb.ipynb"),
            ("my notebooks/a.ipynb", "'my notebooks/a.ipynb'"),
            ("it's $HOME", "\"it's \"'$HOME'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(Path::new(path)), word);
        }
    }
}

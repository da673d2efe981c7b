//! What policies of one's own are called where several are beside each other.

use std::path::{Path, PathBuf};

/// Returns a name for each file: without folder and ending, unless two would be called the same.
pub(super) fn names(paths: &[PathBuf]) -> Vec<String> {
    let stems: Vec<String> = paths.iter().map(|path| stem(path)).collect();
    let names = paths.iter().zip(&stems).map(|(path, stem)| {
        let is_only = stems.iter().filter(|other| *other == stem).count() == 1;
        if is_only {
            stem.clone()
        } else {
            path.display().to_string()
        }
    });
    names.collect()
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_called_as_their_files_and_by_path_where_that_is_not_enough() {
        let names = |paths: &[&str]| names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(names(&["a/fair.yaml", "strict.yml"]), ["fair", "strict"]);
        assert_eq!(
            names(&["a/q.yaml", "b/q.yaml", "c.yaml"]),
            ["a/q.yaml", "b/q.yaml", "c"]
        );
    }
}

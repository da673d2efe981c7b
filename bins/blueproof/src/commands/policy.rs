//! What policies of one's own are called where several are beside each other.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

/// Returns a name for each file: without folder and ending, unless another would be called the same; `taken` are the names
/// of what stands beside them. A file that is given twice has a number.
pub(super) fn names(paths: &[PathBuf], taken: &[&str]) -> Vec<String> {
    let stems: Vec<String> = paths.iter().map(|path| stem(path)).collect();
    let names = paths.iter().zip(&stems).map(|(path, stem)| {
        let is_only = stems.iter().filter(|other| *other == stem).count() == 1;
        if is_only && !taken.contains(&stem.as_str()) {
            stem.clone()
        } else {
            path.display().to_string()
        }
    });
    let mut known: BTreeSet<String> = taken.iter().map(|name| (*name).to_owned()).collect();
    names.map(|name| numbered(&name, &mut known)).collect()
}

/// Returns a name as nothing else is called.
fn numbered(name: &str, known: &mut BTreeSet<String>) -> String {
    let mut own = name.to_owned();
    for number in 2.. {
        if known.insert(own.clone()) {
            break;
        }
        own = format!("{name} ({number})");
    }
    own
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
        let names = |paths: &[&str]| {
            names(
                &paths.iter().map(PathBuf::from).collect::<Vec<_>>(),
                &["given", "fifo"],
            )
        };
        assert_eq!(names(&["a/fair.yaml", "strict.yml"]), ["fair", "strict"]);
        assert_eq!(
            names(&["a/q.yaml", "b/q.yaml", "c.yaml"]),
            ["a/q.yaml", "b/q.yaml", "c"]
        );
    }

    #[test]
    fn no_two_columns_have_one_name() {
        let paths = ["given.yaml", "fifo.yaml", "given", "a.yaml", "a.yaml"].map(PathBuf::from);
        let names = names(&paths, &["given", "fifo"]);
        assert_eq!(names[1], "fifo.yaml");
        let all: BTreeSet<&str> = names
            .iter()
            .map(String::as_str)
            .chain(["given", "fifo"])
            .collect();
        assert_eq!(all.len(), 7, "{names:?}");
    }
}

//! Plays every story in `scenarios/`.

use std::{fs, path::Path};

use blueproof_core::testing::scenario;

#[test]
fn every_story_comes_out_as_it_is_told() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let (mut played, mut otherwise) = (0, Vec::new());
    for entry in fs::read_dir(folder).expect("the folder of stories") {
        let path = entry.expect("an entry").path();
        let story = fs::read_to_string(&path).expect("a story");
        if let Err(why) = scenario::play(&story) {
            otherwise.push(format!("{}: {why}", path.display()));
        }
        played += 1;
    }
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n"));
    assert!(played > 0, "there are stories");
}

/// Stories that are told for a cluster that decides, or come out otherwise there: what could ever fit only the cluster knows,
/// so that nothing is refused for that.
const UNSUITABLE: [&str; 5] = [
    "attack-a19-asks-for-more-than-there-is",
    "closed-pull-request",
    "external-admission",
    "external-eviction",
    "queue",
];

#[test]
fn every_story_comes_to_the_same_end_where_its_cluster_decides() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut otherwise = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder of stories") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        if UNSUITABLE.contains(&name) {
            continue;
        }
        let story = fs::read_to_string(&path).expect("a story");
        if let Err(why) = scenario::play_externally(&story) {
            otherwise.push(format!("{}: {why}", path.display()));
        }
    }
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n"));
}

#[test]
fn a_story_that_comes_out_otherwise_is_told() {
    let wrong = "00:00  policy cpu 1\n00:00  run a cpu 1  => start r-1.1";
    let why = scenario::play(wrong).expect_err("it is reserved first");
    assert!(
        why.contains("line 2") && why.contains("actual: reserve r-1.1"),
        "{why}"
    );
}

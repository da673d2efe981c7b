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

#[test]
fn a_story_that_comes_out_otherwise_is_told() {
    let wrong = "00:00  policy cpu 1\n00:00  run a cpu 1  => start r-1.1";
    let why = scenario::play(wrong).expect_err("it is reserved first");
    assert!(
        why.contains("line 2") && why.contains("actual: reserve r-1.1"),
        "{why}"
    );
}

//! Plays every story in `scenarios/`.

use std::{fs, path::Path};

use blueproof_core::testing::scenario;

#[test]
fn every_story_comes_out_as_it_is_told() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut played = 0;
    for entry in fs::read_dir(folder).expect("the folder of stories") {
        let path = entry.expect("an entry").path();
        let story = fs::read_to_string(&path).expect("a story");
        scenario::play(&story).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        played += 1;
    }
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

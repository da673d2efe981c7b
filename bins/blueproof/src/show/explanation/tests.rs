//! Why runs stand where they stand.

use blueproof_core::domain::RunId;

use super::*;
use crate::show::samples::{at, scheduler};

#[test]
fn every_run_is_explained_in_a_sentence_and_what_comes_next() {
    let scheduler = scheduler();
    let texts: Vec<String> = (1..=6)
        .map(|run| {
            let view = scheduler.view(RunId(run)).expect("a run of the story");
            Explanation::of(&view, &scheduler, at(60)).to_string()
        })
        .collect();
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn a_program_gets_the_reason_with_its_figures() {
    let scheduler = scheduler();
    let view = scheduler.view(RunId(4)).expect("a run of the story");
    let explanation = Explanation::of(&view, &scheduler, at(60));
    let json = serde_json::to_string_pretty(&explanation).expect("it is plain data");
    insta::assert_snapshot!(json);
}

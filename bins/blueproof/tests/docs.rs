//! What the pages under `docs/` show is what the program answers.
//!
//! `TRYCMD=overwrite cargo test -p blueproof --test docs` writes the answers anew; read the difference.

mod told;

use std::path::Path;

use blueproof_core::{
    ports::{Batch, Seq, Store},
    sqlite::SqliteStore,
    testing::busy_log,
};
use trycmd::TestCases;

#[tokio::test]
async fn the_pages_show_what_the_program_answers() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("blueproof.db");
    drop(told::store(&path).await);
    let cases = cases(home.path());
    cases.env("BLUEPROOF_STORE", path.display().to_string());
    for page in [
        "docs/queues.md",
        "docs/simulate.md",
        "docs/metrics.md",
        "docs/why.md",
    ] {
        cases.case(page);
    }
    cases.run();
}

#[tokio::test]
async fn the_page_on_estimates_shows_how_often_they_hold() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("blueproof.db");
    let log = busy_log(5, told::story::at(0), 100).into_iter();
    let batch = Batch {
        facts: log.map(|logged| (logged.at, logged.fact)).collect(),
        ..Batch::default()
    };
    let store = SqliteStore::open(&path).expect("a store");
    store.append(Seq(0), batch).await.expect("it takes facts");
    drop(store);
    let cases = cases(home.path());
    cases.env("BLUEPROOF_STORE", path.display().to_string());
    cases.case("docs/estimates.md").run();
}

/// Returns test cases whose examples are named from the root of the repository.
fn cases(home: &Path) -> TestCases {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::set_current_dir(root).expect("it is there");
    let cases = TestCases::new();
    cases.env("HOME", home.display().to_string());
    cases.env("NO_COLOR", "1");
    cases
}

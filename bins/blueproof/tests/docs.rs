//! What the pages under `docs/` show is what the program answers.
//!
//! `TRYCMD=overwrite cargo test -p blueproof --test docs` writes the answers anew; read the difference.

mod told;

use std::path::Path;

use trycmd::TestCases;

#[tokio::test]
async fn the_pages_show_what_the_program_answers() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("blueproof.db");
    drop(told::store(&path).await);
    // Examples are named from the root of the repository.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::env::set_current_dir(root).expect("it is there");
    let cases = TestCases::new();
    cases.env("HOME", home.path().display().to_string());
    cases.env("BLUEPROOF_STORE", path.display().to_string());
    cases.env("NO_COLOR", "1");
    cases.case("docs/simulate.md").case("docs/metrics.md").run();
}

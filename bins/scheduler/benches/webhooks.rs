//! How long a webhook takes to be acknowledged, and until the check run of its pull request is written; one JSON line for each figure.
//!
//! The program runs as it is served, with GitHub as a fake on loopback that answers at once: what is measured is ours. Each pull request has a
//! commit of its own, which is fetched with git. `cargo xtask bench github` runs this and makes a table of it.

#[expect(dead_code, reason = "tests use more of it")]
#[path = "../tests/github/place.rs"]
mod place;

use std::time::{Duration, Instant};

use blueproof_github::api::CheckRunState;
use serde_json::json;

use place::{Agent, News, Place, REPOSITORY};

/// How many pull requests are opened, one after another.
const PULL_REQUESTS: usize = 100;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let place = Place::new().await;
    place.repository();
    let (process, address) = place.serve(Agent::None, News::Webhooks);
    let (mut acknowledged, mut shown) = (Vec::new(), Vec::new());
    for nth in 0..PULL_REQUESTS {
        let head = place.commit(&[&format!("print({nth})")]);
        let number = place
            .github
            .open(REPOSITORY, &place.mallory, &["examples/nano-lm/nano-lm.ipynb"]);
        place.github.push_back(REPOSITORY, number, &place.mallory, &head);
        let begun = Instant::now();
        place.deliver(&address);
        // Two deliveries: it was opened, and pushed to.
        acknowledged.push(begun.elapsed() / 2);
        let is_shown = |state| matches!(state, CheckRunState::Completed { .. });
        place.until_shown(&head, is_shown).await;
        shown.push(begun.elapsed());
    }
    let requests = place.http.requests().await.len() as f64 / PULL_REQUESTS as f64;
    print("webhook to acknowledgement", acknowledged);
    print("webhook to check run", shown);
    let requests = json!({ "name": "requests to GitHub for a pull request", "mean": requests });
    println!("{requests}");
    assert_eq!(process.terminate(), Some(0));
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let percentile = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64();
    let figure = json!({ "name": name, "p50": percentile(50), "p95": percentile(95), "p99": percentile(99) });
    println!("{figure}");
}

//! Teams on one machine: what one borrows, what the other takes back, and what those who wait are told.

use std::fs;

use serde_json::json;

use crate::common::{Answer, Held, Home, eventually};

const TEAMS: [&str; 3] = ["blue", "red", "slack"];

/// One cpu for each of two teams and for the slack between them; what a team owns, it takes back.
fn quota() -> String {
    let queue = |team: &str| {
        format!(
            "---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: {team}
spec:
  cohortName: everybody
  namespaceSelector: {{}}
  preemption:
    withinClusterQueue: LowerPriority
    reclaimWithinCohort: Any
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: any
      resources:
      - {{name: cpu, nominalQuota: 1}}
      - {{name: memory, nominalQuota: 64Gi}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {team}, namespace: default}}
spec:
  clusterQueue: {team}
"
        )
    };
    let flavor = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata:\n  name: any\n";
    format!("{flavor}{}", TEAMS.map(queue).concat())
}

fn apply(home: &Home) -> Answer {
    apply_text(home, &quota())
}

fn apply_text(home: &Home, text: &str) -> Answer {
    let file = home.path().join("quota.yaml");
    fs::write(&file, text).expect("a file");
    home.blueproof(&["quota", "apply", "-f", "quota.yaml"])
}

/// Asks for a notebook that waits until it is let go, and leaves it.
fn ask(home: &Home, queue: &str, name: &str, run: &str) -> Held {
    let held = Held::new(home, name);
    let asked = home.blueproof(&["run", held.typed(), "--queue", queue, "--detach"]);
    assert_eq!(
        (asked.code, asked.stdout),
        (Some(0), format!("{run}\n")),
        "{}",
        asked.stderr
    );
    held
}

fn why(home: &Home, run: &str) -> serde_json::Value {
    home.blueproof(&["why", run, "-o", "json"]).json()
}

#[test]
fn a_run_that_asks_for_more_than_its_queue_can_ever_have_waits_until_there_is_more() {
    let home = Home::new();
    assert_eq!(apply(&home).code, Some(0));
    let large = Held::asking(&home, "large", "  driver: {cpu: 9}\n");
    large.let_go();
    let asked = home.blueproof(&["run", large.typed(), "--queue", "red", "--detach"]);
    assert_eq!(asked.code, Some(0), "as in Kueue it is not refused: {asked:?}");
    home.until_waits("r-1", "ExceedsMaxQuota");
    let more = quota().replace("{name: cpu, nominalQuota: 1}", "{name: cpu, nominalQuota: 9}");
    assert_eq!(apply_text(&home, &more).code, Some(0));
    let settled = home.until_settled("r-1");
    assert_eq!(settled["state"], json!({ "ended": "passed" }));
    home.until_nothing_goes_on();
}

#[test]
fn what_a_team_borrowed_it_gives_back_and_gets_again_in_its_turn() {
    let home = Home::new();
    let applied = apply(&home);
    assert_eq!(applied.code, Some(0), "{applied:?}");

    // Blue has its own cpu, and borrows red's and the slack's.
    let blue = ["r-1", "r-2", "r-3"].map(|run| {
        let held = ask(&home, "blue", run, run);
        home.until_printed(run, &format!("{run} waits"));
        held
    });
    let fourth = ask(&home, "blue", "r-4", "r-4");
    home.until_waits("r-4", "WaitingForQuota");
    let waits = why(&home, "r-4");
    assert_eq!(
        waits["unblockedBy"][0],
        json!({ "kind": "ends", "runs": ["r-1"] }),
        "{waits:#}"
    );
    assert_eq!(
        waits["waits"]["obstacles"][0]["why"]["limit"]["kind"], "cohort",
        "{waits:#}"
    );

    // Red wants its own: the newest borrower has to go, and keeps what it printed.
    let red = ask(&home, "red", "r-5", "r-5");
    home.until_printed("r-5", "r-5 waits");
    let described = home.blueproof(&["describe", "run", "r-3"]);
    let told = "r-3.1 was evicted for r-5: another queue takes back what is its own (InCohortReclamation)";
    assert!(described.stdout.contains(told), "{described:?}");
    let kept =
        fs::read_to_string(home.run_folder("r-3").join("attempts/1/executed.ipynb")).expect("it is kept");
    assert!(kept.contains("r-3 waits"), "its partial outputs are kept");

    // It is older than the fourth, and so the next; nobody else is before it.
    home.until_waits("r-3", "WaitingForQuota");
    assert_eq!(why(&home, "r-3")["waits"]["ahead"], json!([]));
    // What others do to its place is worked out once in a second.
    eventually("it is behind the one that came back", || {
        (why(&home, "r-4")["waits"]["ahead"] == json!(["r-3"])).then_some(())
    });
    let text = home.blueproof(&["why", "r-4"]).stdout;
    assert!(
        text.contains("reason  WaitingForQuota") && text.contains("ahead   r-3"),
        "{text}"
    );
    blue[0].let_go();
    home.until_attempted("r-3", 2);

    for held in [&blue[1], &blue[2], &fourth, &red] {
        held.let_go();
    }
    for run in ["r-1", "r-2", "r-3", "r-4", "r-5"] {
        assert_eq!(
            home.until_settled(run)["state"],
            json!({ "ended": "passed" }),
            "{run}"
        );
    }
    home.until_nothing_goes_on();
}

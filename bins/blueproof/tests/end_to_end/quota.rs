//! Queues of one's own: applied, looked at, run in, and mistaken.

use std::fs;

use serde_json::json;

use crate::common::{Checkout, Held, Home};

const QUEUES: &str = "
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: box}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: team-a}
spec:
  cohortName: main
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: box
      resources:
      - {name: cpu, nominalQuota: 2}
      - {name: memory, nominalQuota: 8Gi}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: a, namespace: team-a}
spec: {clusterQueue: team-a}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: a-slow, namespace: team-a}
spec: {clusterQueue: team-a}
";

/// Writes a file of queues into a home, and returns its path as it is typed.
fn queues(home: &Home, text: &str) -> String {
    let path = home.path().join("queues.yaml");
    fs::write(&path, text).expect("a file");
    path.to_str()
        .expect("temporary folders have plain names")
        .to_owned()
}

#[test]
fn queues_that_are_applied_hold_until_others_are() {
    let home = Home::new();
    let file = queues(&home, QUEUES);

    let dry = home.blueproof(&["quota", "apply", "-f", &file, "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{dry:?}");
    assert!(dry.stdout.contains("+++ ClusterQueue/team-a\n"), "{dry:?}");
    assert!(
        dry.stdout.contains("--- LocalQueue/local\n+++ /dev/null\n"),
        "{dry:?}"
    );
    home.assert_nothing_is_made();

    let applied = home.blueproof(&["quota", "apply", "-f", &file]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    assert_eq!(
        applied.stdout,
        "ResourceFlavor/box added\nClusterQueue/team-a added\nLocalQueue/a added\nLocalQueue/a-slow added\n\
         ResourceFlavor/local removed\nClusterQueue/local removed\nLocalQueue/local removed\n"
    );
    assert_eq!(home.blueproof(&["quota", "get", "-o", "name"]).stdout, "team-a\n");

    let yaml = home.blueproof(&["quota", "get", "-o", "yaml"]).stdout;
    let again = home.blueproof(&["quota", "apply", "-f", &queues(&home, &yaml)]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), ""), "{again:?}");
    assert!(again.stderr.contains("nothing changes"), "{again:?}");
}

#[test]
fn a_run_waits_in_a_queue_that_is_there_and_holds_its_quota() {
    const HIGH: &str =
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: high}\n";
    let home = Home::new();
    let file = queues(&home, &format!("{QUEUES}---\n{HIGH}value: 1000\n"));
    let applied = home.blueproof(&["quota", "apply", "-f", &file]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let held = Held::new(&home, "held");

    let run = home.start(&["run", held.typed(), "--queue", "a", "--priority", "high"]);
    home.until_printed("r-1", "held waits");

    let list = home.blueproof(&["quota", "get", "-o", "json"]).json();
    assert_eq!(list["kind"], "List");
    let table = home.blueproof(&["quota", "get"]).stdout;
    assert!(
        table.contains("  box cpu                  1     2        any     any\n"),
        "{table}"
    );
    assert!(
        table.ends_with("\n\nPRIORITY CLASS  VALUE\nhigh            1000\n"),
        "{table}"
    );
    let told = home.blueproof(&["quota", "describe", "a"]).stdout;
    for says in [
        "queue         team-a\n",
        "entrances     a, a-slow\n",
        "  r-1  story",
        "    team-a  ←\n",
    ] {
        assert!(told.contains(says), "`{says}`: {told}");
    }
    held.let_go();
    assert_eq!(run.end().code, Some(0));
    assert_eq!(home.last()["queue"], "a");
    assert_eq!(home.last()["priority"], 1000);
}

#[test]
fn a_run_asks_for_nothing_in_a_queue_that_is_not_there() {
    let (home, checkout) = (Home::new(), Checkout::new(&["print('x')"], ""));
    let unknown = home.blueproof(&["run", checkout.typed(), "--queue", "locl"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown
            .stderr
            .contains("error[BP0802]: there is no LocalQueue `locl`"),
        "{unknown:?}"
    );
    assert!(unknown.stderr.contains("did you mean `local`?"), "{unknown:?}");
    let unknown = home.blueproof(&["run", checkout.typed(), "--priority", "high"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(
        unknown
            .stderr
            .contains("error[BP0803]: there is no WorkloadPriorityClass `high`"),
        "{unknown:?}"
    );

    let applied = home.blueproof(&["quota", "apply", "-f", &queues(&home, QUEUES)]);
    assert_eq!(applied.code, Some(0), "{applied:?}");
    let unnamed = home.blueproof(&["run", checkout.typed()]);
    assert_eq!(unnamed.code, Some(2), "{unnamed:?}");
    assert!(unnamed.stderr.contains("there is a, a-slow"), "{unnamed:?}");
    assert_eq!(
        home.blueproof(&["get", "runs", "-o", "json"]).json()["items"],
        json!([])
    );
}

#[test]
fn files_with_mistakes_change_nothing() {
    let home = Home::new();
    let wrong = QUEUES.replace("name: cpu, nominal", "name: CPU, nominal");
    let refused = home.blueproof(&["quota", "apply", "-f", &queues(&home, &wrong)]);
    assert_eq!(
        (refused.code, refused.stdout.as_str()),
        (Some(2), ""),
        "{refused:?}"
    );
    for says in [
        "error[BP0815]: ",
        "queues.yaml:17:16",
        "hint: did you mean `cpu`?",
    ] {
        assert!(refused.stderr.contains(says), "`{says}`: {refused:?}");
    }
    home.assert_nothing_is_made();
}

#[test]
fn a_file_without_objects_is_refused_and_takes_no_queue_away() {
    let home = Home::new();
    let file = queues(&home, QUEUES);
    assert_eq!(home.blueproof(&["quota", "apply", "-f", &file]).code, Some(0));
    for nothing in [
        "",
        "# what holds here\n",
        "---\n",
        "---\n# no\n---\n",
        "{apiVersion: v1, kind: List, items: []}",
    ] {
        let empty = home.path().join("empty.yaml");
        fs::write(&empty, nothing).expect("a file");
        let empty = empty.to_str().expect("a plain name");
        for files in [&["-f", empty][..], &["-f", &file, "-f", empty]] {
            let refused = home.blueproof(&[&["quota", "apply"], files].concat());
            assert_eq!(refused.code, Some(2), "{nothing:?}: {refused:?}");
            assert!(
                refused
                    .stderr
                    .contains("error[BP0824]: there are no objects in this file"),
                "{nothing:?}: {refused:?}"
            );
        }
    }
    let names = home.blueproof(&["quota", "get", "-o", "name"]);
    assert_eq!(names.stdout, "team-a\n", "{names:?}");
}

#[test]
fn queues_are_taken_from_standard_input() {
    let home = Home::new();
    let file = fs::File::open(queues(&home, QUEUES)).expect("it was just written");
    let mut command = home.command(&["quota", "apply", "-f", "-"]);
    let applied = command.stdin(file).output().expect("it starts");
    assert!(applied.status.success(), "{applied:?}");
    let names = home.blueproof(&["quota", "get", "-o", "name"]);
    assert_eq!(names.stdout, "team-a\n", "{names:?}");
}

#[test]
fn a_file_that_never_ends_is_refused() {
    let home = Home::new();
    let applied = home.blueproof(&["quota", "apply", "-f", "/dev/zero"]);
    assert_eq!(applied.code, Some(2), "{applied:?}");
    assert!(
        applied.stderr.contains("BP0223") && applied.stderr.contains("more than 64 MiB"),
        "{applied:?}"
    );
    home.assert_nothing_is_made();
}

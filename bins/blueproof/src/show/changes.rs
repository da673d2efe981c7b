//! What is different between the queues that hold and others: object by object, line by line.

use std::{collections::BTreeMap, fmt::Write as _};

use anstyle::{AnsiColor, Style};
use blueproof_queue::{
    manifest::{self, Document},
    objects::Objects,
};

/// How many lines are shown around a change.
const CONTEXT: usize = 3;

/// One object that is different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Its kind and name.
    object: String,
    /// As it is now; nothing where it is new.
    before: Option<String>,
    /// As it would be; nothing where it goes.
    after: Option<String>,
}

/// A line of one text, of the other, or of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// Returns the objects that are different, those that others refer to first.
pub(crate) fn between(before: &Objects, after: &Objects) -> Vec<Change> {
    let old = manifest::documents(before);
    let new = manifest::documents(after);
    let texts = |documents: &[Document]| -> BTreeMap<String, String> {
        let named = documents
            .iter()
            .map(|document| (name(document), document.to_yaml()));
        named.collect()
    };
    let (old_texts, new_texts) = (texts(&old), texts(&new));
    let gone = old
        .iter()
        .filter(|document| !new_texts.contains_key(&name(document)));
    let all = new.iter().chain(gone).map(|document| {
        let object = name(document);
        let (before, after) = (old_texts.get(&object).cloned(), new_texts.get(&object).cloned());
        Change {
            object,
            before,
            after,
        }
    });
    all.filter(|change| change.before != change.after).collect()
}

fn name(document: &Document) -> String {
    match document.name.as_str() {
        "" => document.kind.to_owned(),
        name => format!("{}/{name}", document.kind),
    }
}

/// Returns a line for each object: what becomes of it.
pub(crate) fn summary(changes: &[Change]) -> String {
    let line = |change: &Change| {
        let what = match (&change.before, &change.after) {
            (None, _) => "added",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "removed",
        };
        format!("{} {what}\n", change.object)
    };
    changes.iter().map(line).collect()
}

/// Returns a unified difference.
pub(crate) fn difference(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        let title = |side: &Option<String>| {
            side.as_ref()
                .map_or("/dev/null", |_| change.object.as_str())
                .to_owned()
        };
        let _ = writeln!(
            text,
            "--- {}\n+++ {}",
            title(&change.before),
            title(&change.after)
        );
        let lines = compare(&lines(change.before.as_deref()), &lines(change.after.as_deref()));
        add_hunks(&mut text, &lines);
    }
    text
}

fn lines(text: Option<&str>) -> Vec<&str> {
    text.map_or_else(Vec::new, |text| text.lines().collect())
}

/// Returns the lines of both texts, with as many in common as there can be.
fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - head;
    let (old_end, new_end) = (old.iter().rev(), new.iter().rev());
    let tail = old_end
        .zip(new_end)
        .take(rest)
        .take_while(|(old, new)| old == new)
        .count();
    let (old_middle, new_middle) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines: Vec<_> = old[..head].iter().map(|line| Line::Same(line)).collect();
    lines.extend(compare_middle(old_middle, new_middle));
    lines.extend(old[old.len() - tail..].iter().map(|line| Line::Same(line)));
    lines
}

/// By the longest common subsequence; what goes stands before what comes.
fn compare_middle<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for (i, gone) in old.iter().enumerate().rev() {
        for (j, came) in new.iter().enumerate().rev() {
            common[i][j] = if gone == came {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len() && (j == new.len() || common[i + 1][j] >= common[i][j + 1]) {
            lines.push(Line::Gone(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
    lines
}

/// Adds the changed lines with some around them, each stretch under its line numbers.
fn add_hunks(text: &mut String, lines: &[Line<'_>]) {
    let is_near = |at: usize| {
        let around = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(lines.len());
        lines[around].iter().any(|line| !matches!(line, Line::Same(_)))
    };
    let (mut old, mut new, mut at) = (1, 1, 0);
    while at < lines.len() {
        let end = (at..lines.len()).find(|at| !is_near(*at)).unwrap_or(lines.len());
        let (gone, came) = counts(&lines[at..end]);
        if end > at {
            let (from, to) = (start(old, gone), start(new, came));
            let _ = writeln!(text, "@@ -{from},{gone} +{to},{came} @@");
            lines[at..end].iter().for_each(|line| add_line(text, *line));
        }
        (old, new, at) = (old + gone, new + came, end);
        if at < lines.len() {
            (old, new, at) = (old + 1, new + 1, at + 1);
        }
    }
}

/// Returns how many lines of the old and of the new text these are.
fn counts(lines: &[Line<'_>]) -> (usize, usize) {
    let old = lines.iter().filter(|line| !matches!(line, Line::New(_))).count();
    let new = lines.iter().filter(|line| !matches!(line, Line::Gone(_))).count();
    (old, new)
}

/// Where a stretch begins; one of no lines stands behind line zero.
fn start(line: usize, count: usize) -> usize {
    if count == 0 { line - 1 } else { line }
}

fn add_line(text: &mut String, line: Line<'_>) {
    let (sign, line, style) = match line {
        Line::Same(line) => (' ', line, Style::new()),
        Line::Gone(line) => ('-', line, AnsiColor::Red.on_default()),
        Line::New(line) => ('+', line, AnsiColor::Green.on_default()),
    };
    let _ = writeln!(text, "{style}{sign}{line}{style:#}");
}

#[cfg(test)]
mod tests {
    use blueproof_queue::objects::{ClusterQueue, Cohort, LocalQueue, QueueingStrategy};

    use super::*;

    #[test]
    fn what_is_the_same_is_left_out_and_the_rest_is_unified() {
        let queue = |strategy| ClusterQueue {
            queueing_strategy: strategy,
            cohort: Some("main".into()),
            ..ClusterQueue::default()
        };
        let local = LocalQueue {
            cluster_queue: "a".into(),
            ..LocalQueue::default()
        };
        let objects = |strategy| Objects {
            cluster_queues: BTreeMap::from([("a".into(), queue(strategy))]),
            ..Objects::default()
        };
        let mut before = objects(QueueingStrategy::StrictFIFO);
        before.local_queues.insert("old".into(), local);
        let mut after = objects(QueueingStrategy::BestEffortFIFO);
        after.cohorts.insert("main".into(), Cohort::default());
        let changes = between(&before, &after);
        assert_eq!(
            summary(&changes),
            "Cohort/main added\nClusterQueue/a changed\nLocalQueue/old removed\n"
        );
        let text = anstream::adapter::strip_str(&difference(&changes)).to_string();
        assert_eq!(
            text,
            "\
--- /dev/null
+++ Cohort/main
@@ -0,0 +1,4 @@
+apiVersion: kueue.x-k8s.io/v1beta2
+kind: Cohort
+metadata:
+  name: main
--- ClusterQueue/a
+++ ClusterQueue/a
@@ -5,4 +5,3 @@
 spec:
   cohortName: main
   namespaceSelector: {}
-  queueingStrategy: StrictFIFO
--- LocalQueue/old
+++ /dev/null
@@ -1,7 +0,0 @@
-apiVersion: kueue.x-k8s.io/v1beta2
-kind: LocalQueue
-metadata:
-  name: old
-  namespace: default
-spec:
-  clusterQueue: a
"
        );
        assert_eq!(between(&after, &after), []);
    }

    #[test]
    fn lines_far_apart_are_shown_apart() {
        let numbers: Vec<String> = (1..=20).map(|n| n.to_string()).collect();
        let old: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let mut new = old.clone();
        new[1] = "two";
        new.remove(17);
        let mut text = String::new();
        add_hunks(&mut text, &compare(&old, &new));
        let text = anstream::adapter::strip_str(&text).to_string();
        assert_eq!(
            text,
            "@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n@@ -15,6 +15,5 @@\n 15\n 16\n 17\n-18\n 19\n 20\n"
        );
    }
}

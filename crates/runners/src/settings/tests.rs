//! Files of the kind `RunnerScaleSet`, and the mistakes in them.

use blueproof_core::domain::Gpus;

use super::*;

const LEAST: &str = "\
apiVersion: blueproof.dev/v1alpha1
kind: RunnerScaleSet
spec:
  name: oracle-vm-gpu-a10-1
  url: https://github.com/cncf
  tokenFile: token
  maxRunners: 2
  resources: {cpu: 4, memory: 16Gi, gpu: 1}
  process: {program: /home/runner/run.sh, isolation: disposable}
";

fn read(text: &str) -> Result<RunnerScaleSet, Vec<Diagnostic>> {
    RunnerScaleSet::read("runners.yaml", text.to_owned())
}

#[test]
fn the_schema_has_every_key_of_the_file() {
    let schema = RunnerScaleSet::schema();
    let spec = &schema["properties"]["spec"]["properties"];
    for key in ["url", "maxRunners", "repositories", "trustedEvents"] {
        assert!(spec[key]["description"].is_string(), "{key}: {schema}");
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    let read = read(LEAST).expect("it is one");
    assert_eq!(read.labels(), ["oracle-vm-gpu-a10-1"]);
    assert_eq!(read.runner_group, "Default");
    assert_eq!(read.resources().gpu, Gpus(1));
    assert_eq!(read.trusted_events, TRUSTED_EVENTS);
    assert_eq!((read.binding, read.min_runners), (Binding::ScaleSet, 0));
}

#[test]
fn every_mistake_is_told_at_its_place() {
    let text = LEAST
        .replace("oracle-vm-gpu-a10-1", &"x".repeat(46))
        .replace("https://github.com/cncf", "http://github.com/cncf")
        .replace("isolation: disposable", "isolation: none")
        + "  maxRuners: 3\n";
    let mistakes = read(&text).expect_err("it is none");
    let lines: Vec<_> = mistakes
        .iter()
        .map(|mistake| mistake.place.as_ref().and_then(|place| place.line))
        .collect();
    assert_eq!(lines, [Some(4), Some(5), Some(9), Some(10)], "{mistakes:?}");
}

#[test]
fn what_could_never_work_is_refused() {
    for (text, told) in [
        (LEAST.replace("maxRunners: 2", "maxRunners: 0"), "so few runners"),
        (
            LEAST.replace("maxRunners: 2", "maxRunners: 2\n  minRunners: 3"),
            "so few",
        ),
        (LEAST.replace("  tokenFile: token\n", ""), "either an `app`"),
        (
            format!("{LEAST}  simultaneousCalls: 0\n"),
            "`simultaneousCalls: 0`",
        ),
        (format!("{LEAST}  queue: \"no queue\"\n"), "LocalQueue"),
        (format!("{LEAST}  binding: uniqueLabel\n"), "whose jobs"),
    ] {
        let mistakes = read(&text).expect_err(told);
        assert!(mistakes[0].message.contains(told), "{mistakes:?}");
    }
}

//! A chart's values become a file of ours, and whatever has no place in it is named.

use super::*;
use crate::settings::RunnerScaleSet;

/// Values with every key that the chart has, as of version 0.14.
const FULL: &str = r#"
githubConfigUrl: https://github.com/cncf
scaleSetLabels: [oracle-vm-gpu-a10-1, gpu]
githubConfigSecret:
  github_token: ""
  github_app_id: "1234"
  github_app_installation_id: "5678"
  github_app_private_key: "-----BEGIN PRIVATE KEY-----"
proxy: {http: {url: "http://proxy:1234"}}
maxRunners: 8
minRunners: 1
runnerGroup: GPUs
runnerScaleSetName: oracle-vm-gpu-a10-1
githubServerTLS: {runnerMountPath: /certs}
keyVault: {type: azure_key_vault}
containerMode: {type: dind}
listenerTemplate: {spec: {containers: [{name: listener}]}}
listenerMetrics: {counters: {}}
listenerConfig: {name: x}
template:
  metadata: {labels: {a: b}}
  spec:
    nodeSelector: {gpu: a10}
    initContainers: [{name: init}]
    serviceAccountName: runner
    hostNetwork: true
    containers:
      - name: runner
        image: ghcr.io/actions/actions-runner:latest
        command: ["/home/runner/run.sh"]
        args: [--once]
        env: [{name: A, value: b}]
        volumeMounts: [{name: work, mountPath: /w}]
        resources:
          requests: {cpu: 4, memory: 16Gi}
          limits: {cpu: 8, nvidia.com/gpu: 1, ephemeral-storage: 1Gi}
      - name: side-car
        image: x
    volumes: [{name: work}]
controllerServiceAccount: {name: y}
namespaceOverride: z
labels: {a: b}
annotations: {a: b}
resourceMeta: {role: {labels: {a: b}}}
somethingNew: 1
"#;

fn imported(text: &str, release: Option<&str>) -> ImportedChart {
    import("values.yaml", text.to_owned(), release).expect("it is taken")
}

#[test]
fn what_a_chart_says_of_its_scale_set_stays_as_it_is() {
    let ImportedChart { text, notes: _ } = imported(FULL, Some("release"));
    let read = RunnerScaleSet::read("runners.yaml", text.clone()).expect(&text);
    assert_eq!(read.name.0, "oracle-vm-gpu-a10-1");
    assert_eq!(read.labels(), ["oracle-vm-gpu-a10-1", "gpu"]);
    assert_eq!(read.runner_group, "GPUs");
    assert_eq!((read.min_runners, read.max_runners.value), (1, 8));
    assert_eq!(read.app.expect("it has one").id, "1234");
    let resources = (
        read.resources.cpu.to_string(),
        read.resources.memory.to_string(),
        read.resources.gpu,
    );
    assert_eq!(resources, ("4".into(), "16Gi".into(), 1));
    assert_eq!(read.process.program.0.to_str(), Some("/home/runner/run.sh"));
    assert_eq!(read.process.arguments, ["--once"]);
    assert!(!text.contains("BEGIN PRIVATE KEY"), "{text}");
}

#[test]
fn every_value_that_is_not_carried_over_is_named() {
    let ImportedChart { text, notes } = imported(FULL, None);
    let paths: Vec<_> = notes.iter().map(|note| note.path.as_str()).collect();
    let runner = "template.spec.containers[runner]";
    let expected = [
        "githubConfigSecret.github_app_private_key".to_owned(),
        "proxy".into(),
        "githubServerTLS".into(),
        "keyVault".into(),
        "containerMode".into(),
        "listenerTemplate".into(),
        "listenerMetrics".into(),
        "listenerConfig".into(),
        "template.metadata".into(),
        "template.spec.nodeSelector".into(),
        "template.spec.initContainers".into(),
        "template.spec.serviceAccountName".into(),
        "template.spec.hostNetwork".into(),
        format!("{runner}.image"),
        format!("{runner}.env"),
        format!("{runner}.volumeMounts"),
        format!("{runner}.resources.limits.ephemeral-storage"),
        "template.spec.containers[side-car]".into(),
        "template.spec.volumes".into(),
        "controllerServiceAccount".into(),
        "namespaceOverride".into(),
        "labels".into(),
        "annotations".into(),
        "resourceMeta".into(),
        "somethingNew".into(),
    ];
    assert_eq!(paths, expected);
    for note in &notes {
        assert!(!note.why.is_empty());
        assert!(
            text.contains(&format!("# not carried over: {}: ", note.path)),
            "{text}"
        );
    }
}

#[test]
fn the_values_that_the_chart_comes_with_need_a_url_and_take_the_releases_name() {
    const USUAL: &str = r#"
githubConfigUrl: "URL"
scaleSetLabels: []
githubConfigSecret:
  github_token: ""
template:
  spec:
    containers:
      - name: runner
        image: ghcr.io/actions/actions-runner:latest
        command: ["/home/runner/run.sh"]
"#;
    let without = USUAL.replace("URL", "");
    let error = import("values.yaml", without, Some("gpu")).expect_err("it has no URL");
    assert!(
        error.message.contains("where runners are registered"),
        "{error:?}"
    );
    let with = USUAL.replace("URL", "https://github.com/kubeflow/trainer");
    let error = import("values.yaml", with.clone(), None).expect_err("it has no name");
    assert!(error.message.contains("no name"), "{error:?}");
    let ImportedChart { text, notes } = imported(&with, Some("gpu"));
    let read = RunnerScaleSet::read("runners.yaml", text.clone()).expect(&text);
    assert_eq!((read.name.0.as_str(), read.max_runners.value), ("gpu", 100));
    let paths: Vec<_> = notes.iter().map(|note| note.path.as_str()).collect();
    let image = "template.spec.containers[runner].image";
    assert_eq!(paths, ["githubConfigSecret.github_token", image, "maxRunners"]);
}

#[test]
fn what_would_break_out_of_its_line_does_not() {
    let hostile =
        "githubConfigUrl: https://github.com/a/b\nrunnerGroup: \"x\\n  maxRunners: 99\"\nmaxRunners: 1\n";
    let ImportedChart { text, .. } = imported(hostile, Some("gpu"));
    let read = RunnerScaleSet::read("runners.yaml", text.clone()).expect(&text);
    assert_eq!(read.max_runners.value, 1);
    assert_eq!(read.runner_group, "x\n  maxRunners: 99");
    let key = "githubConfigUrl: https://github.com/a/b\n\"x\\nspec: {}\": 1\nmaxRunners: 1\n";
    let ImportedChart { text, .. } = imported(key, Some("gpu"));
    assert!(
        RunnerScaleSet::read("runners.yaml", text.clone()).is_ok(),
        "{text}"
    );
}

//! Blueprints as people write them, right and wrong.

use std::{fs, path::Path};

use blueproof_core::domain::{Bytes, Cpus, Gpus, Resources};
use blueproof_diagnostic::{Code, Diagnostic};
use jiff::SignedDuration;
use tempfile::TempDir;

use super::*;
use crate::plan::{Expectation, MetricSource, Network, Which};

mod asks;
mod refused;

const NOTEBOOK: &str = r#"{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
    {"cell_type": "code", "source": "print(1)"}
]}"#;

/// A folder with a notebook and a blueprint that says `spec` besides naming it.
fn folder(spec: &str) -> TempDir {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let indented: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    let header = "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nspec:\n  notebook: t.ipynb\n";
    write(folder.path(), "t.ipynb", NOTEBOOK);
    write(folder.path(), FILE_NAME, &format!("{header}{indented}"));
    folder
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().expect("it has a parent")).expect("folders can be made");
    fs::write(path, text).expect("files can be written");
}

#[test]
fn a_notebook_that_names_its_own_environment_is_heeded_where_the_blueprint_names_none() {
    let first = r##"["# /// script\n", "# requires-python = \">=3.10\"\n", "# dependencies = [\"numpy\"]\n", "# ///"]"##;
    let cell = format!(
        r#"{{"cell_type": "code", "id": "a", "metadata": {{}}, "outputs": [], "execution_count": null, "source": {first}}}"#
    );
    let notebook = NOTEBOOK.replace("cells\": [", &format!("cells\": [{cell},"));
    for (spec, expected) in [("", vec!["numpy"]), ("env: {requirements: [jax]}", vec!["jax"])] {
        let folder = folder(spec);
        write(folder.path(), "t.ipynb", &notebook);
        let loaded = Blueprint::load(folder.path()).expect("no mistakes");
        let resolved = loaded.resolve(None, &[]).expect("no mistakes");
        assert_eq!(resolved.plan.environment.requirements, expected, "{spec}");
    }
}

fn errors(spec: &str) -> Vec<Diagnostic> {
    let folder = folder(spec);
    Blueprint::load(folder.path()).expect_err(spec)
}

fn codes(spec: &str) -> Vec<Code> {
    errors(spec).into_iter().map(|error| error.code).collect()
}

/// Writes errors as a person sees them, without the temporary folder.
fn shown(errors: &[Diagnostic]) -> String {
    let mut text = String::new();
    for error in errors {
        text.push_str(&format!("{error}\n"));
        if let Some(place) = &error.place {
            let whole = place.to_string();
            let file = whole.rsplit('/').next().unwrap_or_default();
            text.push_str(&format!("  --> {file}\n"));
            if let Some(source) = &place.source {
                text.push_str(&format!("   | {source}\n"));
            }
        }
        for cause in &error.causes {
            text.push_str(&format!("   = caused by: {cause}\n"));
        }
        for hint in &error.hints {
            text.push_str(&format!("   = hint: {hint}\n"));
        }
    }
    text
}

#[test]
fn a_blueprint_needs_nothing_but_a_notebook() {
    let folder = folder("");
    let loaded = Blueprint::load(folder.path()).expect("it is valid");
    let resolved = loaded.resolve(None, &[]).expect("it resolves");
    assert_eq!(resolved.name.as_str(), "t");
    assert_eq!(resolved.driver().to_string(), "1 cpu, 1Gi memory");
    assert_eq!(resolved.workload(), Resources::default());
    assert_eq!(resolved.timeouts.queue, None);
    assert_eq!(resolved.timeouts.startup, Some(SignedDuration::from_mins(15)));
    assert_eq!(resolved.timeouts.cell, None);
    assert_eq!(resolved.timeouts.run, Some(SignedDuration::from_mins(60)));
    assert_eq!(
        (resolved.retries.infrastructure.0, resolved.retries.blueprint.0),
        (2, 0)
    );
    assert_eq!(resolved.plan.notebook, Path::new("t.ipynb"));
    assert_eq!(resolved.plan.network, Network::Any);
}

#[test]
fn every_part_of_the_format_reaches_the_plan() {
    let folder = folder(FULL);
    let loaded = Blueprint::load(folder.path()).expect("it is valid");
    let resolved = loaded
        .resolve(None, &[("gpus".into(), "2".into())])
        .expect("it resolves");
    assert_eq!(
        resolved.driver(),
        Resources {
            cpu: Cpus::millis(500),
            memory: Bytes(2 << 30),
            gpu: Gpus(0)
        }
    );
    assert_eq!(
        resolved.workload(),
        Resources {
            cpu: Cpus::cores(6),
            memory: Bytes(48 << 30),
            gpu: Gpus(6)
        }
    );
    assert_eq!(resolved.n_pods(), 3);
    assert_eq!(resolved.timeouts.cell, Some(SignedDuration::from_mins(90)));
    assert_eq!(resolved.timeouts.run, None);
    let plan = resolved.plan;
    assert_eq!(plan.environment.python.as_deref(), Some("3.10"));
    assert_eq!(plan.environment.requirements, ["kubeflow==0.5.0"]);
    assert_eq!(
        plan.network,
        Network::Hosts(vec!["huggingface.co".into(), "*.hf.co".into()])
    );
    assert_eq!(plan.parameters["gpus"], 2);
    assert_eq!(plan.parameters["rate"], 1.0);
    assert_eq!(plan.secrets[0].env, "HF_TOKEN");
    assert_eq!(
        plan.metrics[0].from,
        MetricSource::Regex("loss: ([0-9.]+)".into())
    );
    assert_eq!(plan.metrics[1].from, MetricSource::Display("metrics".into()));
    assert_eq!(
        plan.expectations,
        [
            Expectation::Metric {
                name: "loss".into(),
                which: Which::Last,
                min: None,
                max: Some(1.6)
            },
            Expectation::Artifact("out/*.json".into()),
            Expectation::Output("done".into()),
            Expectation::TrainJobs,
        ]
    );
    assert_eq!(plan.artifacts, ["output/*.json"]);
}

const FULL: &str = r#"
triggers: {paths: ["./**", "cmd/**"], nightly: true}
env: {python: "3.10", requirements: [kubeflow==0.5.0], shellInstall: record}
parameters:
  gpus: {type: int, default: 1, min: 1, max: 8, description: GPUs a node}
  rate: {type: float, default: 1}
  mode: {type: string, choices: [fast, slow]}
driver: {cpu: 500m, memory: 2Gi}
workload: {nodes: 3, perNode: {cpu: 2, memory: 16Gi, gpu: "{{gpus}}"}}
timeouts: {queue: 6h, startup: 5m, cell: 1h30m, run: none}
retries: {infrastructure: 1}
network: {mode: allow, hosts: [huggingface.co, "*.hf.co"]}
secrets: [{name: hf-read, env: HF_TOKEN}]
data: [{uri: "hf://Qwen/Qwen2.5-1.5B-Instruct", size: 3Gi}]
metrics: [{name: loss, from: {regex: 'loss: ([0-9.]+)'}}, {name: tokens, from: {display: metrics}}]
expect: {trainJobs: Complete, loss: {last: {max: 1.6}}, artifacts: ["out/*.json"], output: [done]}
artifacts: ["output/*.json"]
profiles:
  smoke: {parameters: {gpus: 2}, workload: {nodes: 1, perNode: {gpu: 0}}, expect: {}, timeouts: {run: 5m}, network: none}
  keep: {expect: {loss: null}, driver: {cpu: 2}}
"#;

#[test]
fn a_profile_overrides_by_key() {
    let folder = folder(FULL);
    let loaded = Blueprint::load(folder.path()).expect("it is valid");
    assert_eq!(loaded.profiles().collect::<Vec<_>>(), ["keep", "smoke"]);
    let smoke = loaded.resolve(Some("smoke"), &[]).expect("it resolves");
    assert_eq!(smoke.workload().to_string(), "2 cpu, 16Gi memory");
    assert_eq!(smoke.plan.expectations, []);
    assert_eq!(smoke.plan.network, Network::None);
    assert_eq!(smoke.plan.parameters["gpus"], 2);
    assert_eq!(smoke.timeouts.run, Some(SignedDuration::from_mins(5)));
    assert_eq!(smoke.timeouts.queue, Some(SignedDuration::from_hours(6)));
    let keep = loaded.resolve(Some("keep"), &[]).expect("it resolves");
    assert_eq!(keep.plan.expectations.len(), 3);
    assert_eq!(keep.driver().to_string(), "2 cpu, 2Gi memory");
}

#[test]
fn a_value_from_the_command_line_wins_over_profile_and_default() {
    let folder = folder(FULL);
    let loaded = Blueprint::load(folder.path()).expect("it is valid");
    let given = [("gpus".into(), "3".into()), ("mode".into(), "slow".into())];
    let resolved = loaded.resolve(Some("smoke"), &given).expect("it resolves");
    assert_eq!(resolved.plan.parameters["gpus"], 3);
    assert_eq!(resolved.plan.parameters["mode"], "slow");
}

#[test]
fn what_the_command_line_gets_wrong_is_refused() {
    let folder = folder(FULL);
    let loaded = Blueprint::load(folder.path()).expect("it is valid");
    let given = |name: &str, value: &str| {
        let errors = loaded
            .resolve(None, &[(name.into(), value.into())])
            .expect_err(value);
        shown(&errors)
    };
    insta::assert_snapshot!(
        [
            given("gpu", "1"),
            given("gpus", "9"),
            given("gpus", "two"),
            given("mode", "medium"),
            given("rate", "NaN")
        ]
        .concat(),
    );
    let profile = loaded
        .resolve(Some("smok"), &[])
        .expect_err("there is no such profile");
    assert_eq!(profile[0].code, Code::UnknownProfile);
    assert_eq!(profile[0].hints, ["did you mean `smoke`?"]);
}

#[test]
fn many_mistakes_are_shown_in_one_pass_each_at_its_place() {
    let errors = errors(
        r#"
timeouts: {queue: 6 hours, runs: 5m}
driver: {cpu: -1, memory: lots, gpu: 1.5}
network: {mode: allow, hosts: ["https://huggingface.co/x"]}
parameters:
  steps: {type: integer}
  rate: {type: float, default: 5, max: 1}
metrics: [{name: loss, from: {regex: "loss: ([0-9"}}]
artifacts: ["[", "../x"]
serve: {from: pvc}
profiles:
  smoke: {cluster: pocket}
"#,
    );
    insta::assert_snapshot!(shown(&errors));
}

#[test]
fn parts_that_do_not_fit_together_are_shown() {
    let errors = errors(
        r#"
env: {python: "three", requirements: ["--index-url=http://x", ""]}
parameters:
  nodes: {type: int, default: 1}
  rate: {type: float, default: 5, max: 1}
  "my-name": {type: string, min: 1}
workload: {nodes: "{{node}}", perNode: {gpu: "{{rate}}"}}
secrets: [{name: a, env: "1X"}]
metrics: [{name: loss, from: {}}, {name: loss, from: {display: "a b"}}, {name: output, from: {display: x}}]
expect: {los: {last: {max: 1}}, loss: {}, output: [x]}
profiles:
  gpu2: {parameters: {nodes: two, other: 1}}
"#,
    );
    insta::assert_snapshot!(shown(&errors));
}

#[test]
fn what_the_format_knows_but_we_cannot_do_is_refused_by_name() {
    for spec in [
        "serve: {from: pvc}",
        "env: {image: x}",
        "workload: {gang: true}",
        "workload: {topology: same-node}",
        "workload: {perNode: {gpuMemory: 20Gi}}",
        "driver: {shm: 1Gi}",
        "secrets: [{name: a, env: A, needs: approval}]",
        "data: [{uri: 'hf://x', cache: cluster}]",
        "metrics: [{name: loss, from: {display: m}, axis: step}]",
        "expect: {gpuBusy: {min: 0.3}}",
        "metrics: [{name: l, from: {display: m}}]\nexpect: {l: {last: {max: 1}, regression: {sigma: 4}}}",
        "profiles: {a: {requires: {physicalGpus: 2}}}",
    ] {
        assert_eq!(codes(spec), [Code::NotSupportedYet], "{spec}");
    }
}

#[test]
fn one_pass_over_a_blueprint_of_a_later_version_names_all_that_is_not_supported_yet() {
    let found = codes(
        r#"
triggers: {paths: ["./**", "cmd/trainers/torchtune/**"], nightly: true}
env: {python: "3.12", requirements: [kubeflow==0.5.0]}
parameters:
  gpus: {type: int, default: 1, min: 1, max: 8}
  samples: {type: int, default: 1000}
workload: {nodes: 1, perNode: {gpu: "{{gpus}}", gpuMemory: 20Gi, memory: 64Gi, shm: 8Gi}, gang: true, topology: same-node}
secrets: [{name: hf-read, env: HF_TOKEN, needs: approval}]
data: [{uri: "hf://Qwen/Qwen2.5-1.5B-Instruct", size: 3Gi, cache: cluster}]
metrics: [{name: loss, from: {regex: 'loss: ([0-9.]+)'}, axis: step}]
expect: {trainJobs: Complete, loss: {last: {max: 1.6}, regression: {sigma: 4, against: base}}, gpuBusy: {min: 0.3}}
serve: {from: pvc, path: output, format: huggingface, ttl: 1h}
profiles:
  smoke: {cluster: pocket, parameters: {samples: 16}, workload: {perNode: {gpu: 0}}, expect: {}, timeouts: {run: 5m}}
  gpu2: {parameters: {gpus: 2}, requires: {physicalGpus: 2}}
"#,
    );
    assert_eq!(found, [Code::NotSupportedYet; 12]);
}

#[test]
fn what_is_empty_and_would_hold_of_everything_is_refused_as_that() {
    for (spec, says) in [
        (
            "expect: {output: [x, '']}",
            "nothing is expected of the output: the text is empty",
        ),
        ("expect: {artifacts: ['']}", "the glob is empty"),
        ("artifacts: ['']", "the glob is empty"),
        (
            "metrics: [{name: l, from: {display: m}}]\nexpect: {l: {last: {max: .inf}}}",
            "a number must be finite",
        ),
    ] {
        let refused = errors(spec);
        assert_eq!(refused[0].code, Code::BadValue, "{spec}");
        assert_eq!(refused[0].message, says);
    }
}

#[test]
fn a_python_version_that_yaml_would_round_is_refused() {
    assert_eq!(codes("env: {python: 3.10}"), [Code::WrongType]);
}

#[test]
fn a_path_that_leaves_the_folder_is_refused() {
    for path in ["/etc/hostname", "../x.ipynb", "a/../../x.ipynb"] {
        let folder = TempDir::new().expect("a temporary folder can be made");
        let text =
            format!("apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nspec: {{notebook: \"{path}\"}}\n");
        write(folder.path(), FILE_NAME, &text);
        let errors = Blueprint::load(folder.path()).expect_err(path);
        assert_eq!(errors[0].code, Code::OutsideCheckout, "{path}");
    }
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_that_leaves_the_folder_is_refused() {
    let outside = TempDir::new().expect("a temporary folder can be made");
    write(outside.path(), "secret.ipynb", NOTEBOOK);
    let folder = folder("");
    let link = folder.path().join("t.ipynb");
    fs::remove_file(&link).expect("it is there");
    std::os::unix::fs::symlink(outside.path().join("secret.ipynb"), link).expect("links can be made");
    let errors = Blueprint::load(folder.path()).expect_err("it leads out");
    assert_eq!(errors[0].code, Code::OutsideCheckout);
}

#[test]
fn another_kind_or_version_is_refused_before_its_keys_are_read() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    write(
        folder.path(),
        FILE_NAME,
        "apiVersion: blueproof.dev/v2\nkind: Blueprint\nwhatever: 1\n",
    );
    let errors = Blueprint::load(folder.path()).expect_err("it is newer");
    assert_eq!(
        errors.iter().map(|e| e.code).collect::<Vec<_>>(),
        [Code::WrongFormat]
    );
}

#[test]
fn what_is_neither_a_notebook_nor_a_blueprint_is_said_to_be_so() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    write(folder.path(), "mk.py", "print('x: y')");
    let errors = Blueprint::load(&folder.path().join("mk.py")).expect_err("it is neither");
    assert_eq!(errors[0].message, "this is neither a notebook nor a blueprint");
    assert_eq!(errors.len(), 1);
}

#[test]
fn a_notebook_without_a_blueprint_takes_the_parameters_of_its_tagged_cell() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let cell = |tag: &str| {
        format!(
            r#"{{"cell_type": "code", "id": "a", "metadata": {{"tags": ["{tag}"]}}, "outputs": [], "execution_count": null,
            "source": ["steps = 5\n", "rate = 0.1\n", "layers = [1]\n", "path = None\n", "big = 10**6"]}}"#
        )
    };
    let resolve = |tag: &str, name: &str, value: &str| {
        let text = format!(
            r#"{{"nbformat": 4, "nbformat_minor": 5, "metadata": {{}}, "cells": [{}]}}"#,
            cell(tag)
        );
        write(folder.path(), "in.ipynb", &text);
        let loaded = Blueprint::load(&folder.path().join("in.ipynb")).expect("it is valid");
        loaded.resolve(None, &[(name.to_owned(), value.to_owned())])
    };
    let parameters = resolve("parameters", "steps", "50")
        .expect("it is there")
        .plan
        .parameters;
    let given: Vec<_> = parameters.into_iter().collect();
    assert_eq!(
        given,
        [("steps".to_owned(), serde_json::json!(50))],
        "the rest stays as it is"
    );
    for (tag, name, value, code) in [
        ("parameters", "steps", "many", Code::ParameterValue),
        ("parameters", "layers", "2", Code::UnknownParameter),
        ("other", "steps", "50", Code::UnknownParameter),
    ] {
        let errors = resolve(tag, name, value).expect_err("it is refused");
        assert_eq!(errors[0].code, code, "{tag} {name} {value}");
    }
    assert!(resolve("parameters", "big", "7").is_ok(), "a power is a number");
    for (name, value, says) in [
        ("layers", "2", "it has no type that can be read"),
        ("path", "x", "what the cell tagged `parameters` gives it is None"),
        ("path", "x", "{parameters: {path: {type: string}}}"),
        ("steps", "many", "a blueprint.yaml can declare another"),
        (
            "steps",
            "99999999999999999999",
            "a whole number from -9223372036854775808 to",
        ),
    ] {
        let errors = resolve("parameters", name, value).expect_err("it is refused");
        let told = format!("{:?}", errors[0]);
        assert!(
            told.contains(says) && !told.contains("spec.parameters.steps"),
            "{told}"
        );
    }
}

#[test]
fn a_bare_notebook_is_a_blueprint() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    write(folder.path(), "My Notebook.ipynb", NOTEBOOK);
    let loaded = Blueprint::load(&folder.path().join("My Notebook.ipynb")).expect("it is valid");
    assert_eq!(loaded.name.as_str(), "my-notebook");
}

#[test]
fn a_blueprint_inside_the_notebook_counts_unless_a_file_names_the_notebook() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let inside = "{\"nbformat\": 4, \"nbformat_minor\": 5, \"cells\": [{\"cell_type\": \"code\", \"source\": \"1\"}],\n \"metadata\": {\"blueproof\": \n  \
                  {\"metadata\": {\"name\": \"inside\"}, \"spec\": {\"driver\": {\"cpu\": 3}}}}}";
    write(folder.path(), "t.ipynb", inside);
    let path = folder.path().join("t.ipynb");
    let loaded = Blueprint::load(&path).expect("it is valid");
    assert_eq!(loaded.name.as_str(), "inside");
    assert_eq!(
        loaded.resolve(None, &[]).expect("it resolves").driver().cpu,
        Cpus::cores(3)
    );
    let beside = "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nmetadata: {name: beside}\nspec: {notebook: t.ipynb}\n";
    write(folder.path(), FILE_NAME, beside);
    assert_eq!(
        Blueprint::load(&path).expect("it is valid").name.as_str(),
        "beside"
    );
    write(
        folder.path(),
        FILE_NAME,
        &beside.replace("t.ipynb", "other.ipynb"),
    );
    assert_eq!(
        Blueprint::load(&path).expect("it is valid").name.as_str(),
        "inside"
    );
}

#[test]
fn a_mistake_inside_the_notebook_is_shown_at_its_line() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let inside = "{\"nbformat\": 4, \"nbformat_minor\": 5, \"cells\": [{\"cell_type\": \"code\", \"source\": \"1\"}],\n \"metadata\": {\"blueproof\": {\"spec\": \n  \
                  {\"drivr\": {\"cpu\": 3}}}}}";
    write(folder.path(), "t.ipynb", inside);
    let errors = Blueprint::load(&folder.path().join("t.ipynb")).expect_err("a key is unknown");
    assert_eq!(errors[0].code, Code::UnknownKey);
    assert_eq!(errors[0].place.as_ref().and_then(|place| place.line), Some(3));
}

#[test]
fn a_blueprint_is_found_by_its_name_from_anywhere() {
    let root = TempDir::new().expect("a temporary folder can be made");
    let text = |name: &str| {
        format!(
            "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nmetadata: {{name: {name}}}\nspec: {{notebook: t.ipynb}}\n"
        )
    };
    write(root.path(), "examples/a/blueprint.yaml", &text("nano-lm"));
    write(root.path(), "examples/b/blueprint.yaml", &text("twice"));
    write(root.path(), "examples/c/blueprint.yaml", &text("twice"));
    write(root.path(), "node_modules/d/blueprint.yaml", &text("hidden"));
    write(root.path(), ".venv/d/blueprint.yaml", &text("hidden"));
    write(root.path(), "target/d/blueprint.yaml", &text("hidden"));
    let found = find(root.path(), "nano-lm", &mut |_| {}).expect("it is there");
    assert!(
        found.ends_with("examples/a/blueprint.yaml"),
        "{}",
        found.display()
    );
    let near = find(root.path(), "nano-ml", &mut |_| {}).expect_err("it is not there");
    assert_eq!(near[0].hints, ["did you mean `nano-lm`?"]);
    assert_eq!(
        find(root.path(), "twice", &mut |_| {}).expect_err("it is not clear")[0].code,
        Code::AmbiguousBlueprint
    );
    assert_eq!(
        find(root.path(), "hidden", &mut |_| {}).expect_err("it is hidden")[0].code,
        Code::NoSuchBlueprint
    );
    let names: Vec<String> = list(root.path(), &mut |_| {})
        .found
        .into_iter()
        .map(|found| found.name)
        .collect();
    assert_eq!(names, ["nano-lm", "twice", "twice"]);
}

#[test]
fn the_schema_is_what_editors_are_told() {
    let text = serde_json::to_string_pretty(&schema()).expect("it is JSON");
    insta::assert_snapshot!(text);
}

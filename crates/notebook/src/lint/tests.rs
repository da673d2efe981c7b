//! Each rule on a notebook that breaks it and on one that does not.

use std::fs;

use blueproof_core::diagnostic::{Code, Diagnostic};
use serde_json::json;
use tempfile::TempDir;

use crate::{blueprint::Blueprint, lint};

const CLIENT: &str = "from kubeflow.trainer import CustomTrainer, TrainerClient\nclient = TrainerClient()";
const TRAIN: &str =
    "job = client.train(trainer=CustomTrainer(func=f, num_nodes=2), runtime=\"torch-distributed\")";
const WAIT: &str = "client.wait_for_job_status(name=job, timeout=1200)";

/// Checks a notebook of these code cells, the first of which is tagged `parameters`, under a blueprint.
fn checked(spec: &str, cells: &[&str]) -> Vec<Diagnostic> {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let mut code = vec![json!({
        "cell_type": "code", "metadata": {"tags": ["parameters"]}, "outputs": [], "source": "nodes = 2\ngpus = 0",
    })];
    code.extend(cells.iter().map(|source| {
        json!({
            "cell_type": "code", "metadata": {}, "outputs": [], "source": source, "execution_count": null,
        })
    }));
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": code});
    let blueprint =
        format!("apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nspec:\n  notebook: n.ipynb\n{spec}");
    fs::write(folder.path().join("n.ipynb"), notebook.to_string()).expect("files can be written");
    fs::write(folder.path().join("blueprint.yaml"), blueprint).expect("files can be written");
    let loaded = Blueprint::load(folder.path()).expect("it is valid");
    lint::check(&loaded)
}

fn codes(cells: &[&str]) -> Vec<Code> {
    checked("", cells).into_iter().map(|found| found.code).collect()
}

#[test]
fn a_notebook_that_does_it_right_has_no_findings() {
    assert_eq!(
        codes(&[
            "def f():\n    import torch\n    torch.rand(1)",
            CLIENT,
            TRAIN,
            WAIT
        ]),
        []
    );
}

#[test]
fn a_missing_parameters_tag_is_told() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let path = folder.path().join("n.ipynb");
    let text = r#"{"nbformat": 4, "cells": [{"cell_type": "code", "source": "x = 1"}]}"#;
    fs::write(&path, text).expect("files can be written");
    let found = lint::check(&Blueprint::load(&path).expect("it is valid"));
    assert_eq!(
        found.iter().map(|found| found.code).collect::<Vec<_>>(),
        [Code::NoParametersTag]
    );
}

#[test]
fn installs_in_cells_are_told_and_unpinned_ones_twice() {
    assert_eq!(codes(&["!pip install a==1.0"]), [Code::ShellInstall]);
    assert_eq!(
        codes(&["%pip install a"]),
        [Code::ShellInstall, Code::UnpinnedInstall]
    );
    assert_eq!(
        codes(&["%%bash\npip install 'a>=1'"]),
        [Code::ShellInstall, Code::UnpinnedInstall]
    );
    let process =
        "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'a==1'])";
    assert_eq!(codes(&[process]), [Code::ShellInstall]);
    assert_eq!(codes(&["# !pip install a", "!pip list"]), []);
    let pods = TRAIN.replace("num_nodes=2", "num_nodes=2, packages_to_install=['a', 'b==1']");
    let found = checked("", &["def f(): pass", CLIENT, &pods, WAIT]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "cell 4: no exact version: a");
}

#[test]
fn placeholders_are_told_where_they_stand() {
    assert_eq!(codes(&["BUCKET = 's3://your-bucket/x'"]), [Code::Placeholder]);
    assert_eq!(
        codes(&["# BUCKET = 'Add your S3 bucket'", "print(BUCKET)"]),
        [Code::Placeholder]
    );
    assert_eq!(codes(&["print(TOKEN)"]), [Code::Placeholder]);
    assert_eq!(
        codes(&["# BUCKET = 'old'\nBUCKET = 'kubeflow-examples'", "print(BUCKET)"]),
        []
    );
    assert_eq!(codes(&["class MLP:\n    pass", "m = MLP()"]), []);
    assert_eq!(codes(&["from x import *", "print(TOKEN)"]), []);
}

#[test]
fn a_gpu_that_xgboost_never_uses_is_told() {
    let function = "def f():\n    import xgboost as xgb\n    xgb.train({'tree_method': 'hist'}, None)";
    let train = "resources = {'cpu': 2}\nif gpus > 0:\n    resources['gpu'] = gpus\n\
                 job = client.train(trainer=CustomTrainer(func=f, num_nodes=nodes, resources_per_node=resources))";
    assert_eq!(codes(&[function, CLIENT, train, WAIT]), [Code::UnusedGpu]);
    let cuda = function.replace("'hist'", "'hist', 'device': 'cuda'");
    assert_eq!(codes(&[&cuda, CLIENT, train, WAIT]), []);
    let jax = "def f():\n    import jax\n    jax.jit(len)";
    assert_eq!(codes(&[jax, CLIENT, train, WAIT]), []);
    let none = train.replace("gpus > 0:\n    resources['gpu'] = gpus", "nodes:\n    pass");
    assert_eq!(codes(&[function, CLIENT, &none, WAIT]), []);
}

#[test]
fn gpus_of_the_driver_are_told_where_trainjobs_need_them() {
    let cells = ["def f(): pass", CLIENT, TRAIN, WAIT];
    let found = checked("  driver: {gpu: 1}\n", &cells);
    assert_eq!(
        found.iter().map(|found| found.code).collect::<Vec<_>>(),
        [Code::DriverHoldsGpus]
    );
    assert_eq!(found[0].place.as_ref().and_then(|place| place.line), Some(5));
    let profile = checked("  profiles:\n    big: {driver: {gpu: 2}}\n", &cells);
    assert_eq!(profile.len(), 1, "{profile:?}");
    assert_eq!(checked("  driver: {gpu: 1}\n", &["x = 1"]), []);
    assert_eq!(checked("  workload: {perNode: {gpu: 1}}\n", &cells), []);
}

#[test]
fn waits_for_running_and_short_waits_are_told() {
    let cells = |wait: &str| codes(&["def f(): pass", CLIENT, TRAIN, wait, WAIT]);
    assert_eq!(
        cells("client.wait_for_job_status(name=job, status={'Running'})"),
        [Code::WaitsForRunning]
    );
    assert_eq!(
        cells(
            "from kubeflow.trainer.constants import constants\nclient.wait_for_job_status(job, {constants.TRAINJOB_RUNNING})"
        ),
        [Code::WaitsForRunning]
    );
    assert_eq!(
        cells("limit = 20\nclient.wait_for_job_status(job, timeout=limit)"),
        [Code::ShortWait]
    );
    assert_eq!(cells("client.wait_for_job_status(job, timeout=120)"), []);
    assert_eq!(
        cells("import time\nclient.wait_for_job_status(job, timeout=time.time())"),
        []
    );
}

#[test]
fn a_trainjob_that_nobody_awaits_is_told() {
    assert_eq!(codes(&["def f(): pass", CLIENT, TRAIN]), [Code::NoCompletionWait]);
    let again = "other = client.train(trainer=CustomTrainer(func=f))";
    assert_eq!(
        codes(&["def f(): pass", CLIENT, TRAIN, again, WAIT]),
        [Code::NoCompletionWait]
    );
    assert_eq!(
        codes(&[
            "def f(): pass",
            CLIENT,
            TRAIN,
            "!kubectl wait trainjob/x --for=condition=Complete"
        ]),
        []
    );
    let helper = "def wait(name):\n    client.wait_for_job_status(name, timeout=600)\nwait(job)";
    assert_eq!(codes(&["def f(): pass", CLIENT, TRAIN, helper]), []);
    assert_eq!(codes(&["import xgboost\nmodel = xgboost.train({}, None)"]), []);
}

#[test]
fn a_loop_over_a_constant_number_of_nodes_is_told() {
    let logs =
        |count: &str| format!("for i in range({count}):\n    client.get_job_logs(job, step=f'node-{{i}}')");
    let train = TRAIN.replace("num_nodes=2", "num_nodes=nodes");
    let cells = |train: &str, count: &str| codes(&["def f(): pass", CLIENT, train, WAIT, &logs(count)]);
    assert_eq!(cells(&train, "2"), [Code::FixedNodeLoop]);
    assert_eq!(cells(TRAIN, "3"), [Code::FixedNodeLoop]);
    assert_eq!(cells(TRAIN, "2"), []);
    assert_eq!(cells(&train, "nodes"), []);
    assert_eq!(codes(&["for i in range(3):\n    print(i)"]), []);
}

#[test]
fn stored_outputs_are_told_once() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let path = folder.path().join("n.ipynb");
    let text = r#"{"nbformat": 4, "cells": [
        {"cell_type": "code", "metadata": {"tags": ["parameters"]}, "source": "x = 1", "execution_count": 1},
        {"cell_type": "code", "source": "x", "outputs": [{}]}]}"#;
    fs::write(&path, text).expect("files can be written");
    let found = lint::check(&Blueprint::load(&path).expect("it is valid"));
    assert_eq!(
        found.iter().map(|found| found.code).collect::<Vec<_>>(),
        [Code::StoredOutputs]
    );
    assert!(found[0].message.contains("1 more"), "{}", found[0].message);
}

#[test]
fn a_cell_that_is_no_python_is_told_and_the_rest_is_still_checked() {
    assert_eq!(
        codes(&["this is no python", "!pip install a==1"]),
        [Code::CellNotPython, Code::ShellInstall]
    );
    assert_eq!(codes(&["%%html\n<b>x</b>"]), []);
}

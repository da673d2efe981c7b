//! Each rule on a notebook that breaks it and on one that does not.

use std::fs;

use blueproof_diagnostic::{Code, Diagnostic};
use serde_json::json;
use tempfile::TempDir;

use crate::{blueprint::Blueprint, lint};

mod data;

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
    let env = if spec.contains("env:") {
        ""
    } else {
        "  env: {requirements: [kubeflow, jax, torch, x, xgboost]}\n"
    };
    let blueprint = format!(
        "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nspec:\n  notebook: n.ipynb\n{spec}{env}"
    );
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
    let blueprint = folder.path().join("blueprint.yaml");
    let codes_of = |source: &str, spec: &str| {
        let notebook = json!({"nbformat": 4, "cells": [{"cell_type": "code", "source": source}]});
        fs::write(&path, notebook.to_string()).expect("files can be written");
        let head = "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nspec:\n  notebook: n.ipynb\n  env: {requirements: [kubeflow]}\n";
        fs::write(&blueprint, format!("{head}{spec}")).expect("files can be written");
        let found = lint::check(&Blueprint::load(&blueprint).expect("it is valid"));
        found.into_iter().map(|found| found.code).collect::<Vec<_>>()
    };
    let declared = "  parameters: {x: {type: int, default: 1}}\n";
    assert_eq!(codes_of("x = 1", declared), [Code::NoParametersTag]);
    assert_eq!(codes_of("x = 1", ""), []);
    let job = format!("def f(): pass\n{CLIENT}\n{TRAIN}\n{WAIT}").replace(
        "from kubeflow.trainer import",
        "from kubeflow.trainer import constants,",
    );
    assert_eq!(codes_of(&job, ""), [Code::NoParametersTag]);
}

#[test]
fn a_declared_parameter_that_nothing_reads_is_told() {
    let declared = "  parameters: {lr: {type: float, default: 0.5}, gpus: {type: int, default: 0}}\n";
    let told = |cell: &str| {
        let found = checked(declared, &[cell]).into_iter();
        let unused = found.filter(|found| found.code == Code::ParameterUnused);
        unused.map(|found| found.message).collect::<Vec<_>>()
    };
    assert_eq!(
        told("rate = 0.1\ndict(lr=rate)"),
        ["no cell reads the parameters lr: their values change nothing"]
    );
    assert_eq!(told("print('lr', 0.1)").len(), 1);
    for cell in [
        "print(lr)",
        "%run -i train.py",
        "exec(open('train.py').read())",
        "ne.evaluate('grad * lr')",
    ] {
        assert_eq!(told(cell), [""; 0], "{cell}");
    }
}

#[test]
fn a_name_that_is_read_before_it_has_a_value_is_told_with_the_cell_that_gives_it_one() {
    let told = |cells: &[&str]| {
        let found = checked("", cells).into_iter();
        let names = found.filter(|found| found.code == Code::NameWithoutValue);
        names.map(|found| found.message).collect::<Vec<_>>()
    };
    assert_eq!(
        told(&["x = frame + 1", "frame = 2"]),
        ["cell 2: `frame` is read, and only cell 3 gives it a value"]
    );
    assert_eq!(
        told(&["print(a)\na = 1"]),
        ["cell 2: `a` is read before line 2 gives it a value"]
    );
    assert_eq!(
        told(&["b = 1\ndel b", "b"]),
        ["cell 3: `b` is read after `del b`"]
    );
    assert_eq!(
        told(&["def f():\n    return helper()", "f()"]),
        ["cell 2: `helper` is read and never given a value"]
    );
    for cells in [
        &["def f():\n    return later", "later = 1", "f()"][..],
        &["def never_called():\n    return nothing"],
        &["f = lambda N, M: N * M", "f(1, 2)"],
        &["nodes + gpus"],
        &["%%capture out\nprint(1)", "out.show()"],
        &["files = !ls", "files", "_", "_12", "In[1]", "display(Out)"],
        &["%time slow = sum([1])", "slow"],
        &["%run helpers.py", "helper()"],
        &["%%cython\ndef fast(): pass", "fast()"],
        &["total = 0\ntotal += 1", "print(f'{total:>{total}}')"],
        &[
            "try:\n    import json as quick\nexcept ImportError:\n    quick = None",
            "quick",
        ],
    ] {
        assert_eq!(told(cells), Vec::<String>::new(), "{cells:?}");
    }
    assert_eq!(
        checked(
            "  parameters: {rate: {type: float, default: 1.5}}\n",
            &["rate * 2"]
        )
        .iter()
        .filter(|found| found.code == Code::NameWithoutValue)
        .count(),
        0
    );
}

#[test]
fn a_statement_that_is_data_is_told() {
    let data = format!("data = [{}]", "1, ".repeat(200_000));
    assert_eq!(codes(&[&data, "len(data)"]), [Code::StatementTooLong]);
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
    let (defined, called) = helper
        .rsplit_once('\n')
        .expect("it is called in a line of its own");
    assert_eq!(codes(&["def f(): pass", CLIENT, defined, TRAIN, called]), []);
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

/// Checks a notebook of one cell beside these empty files.
fn beside(files: &[&str], env: &str, cell: &str) -> Vec<(Code, String)> {
    let folder = TempDir::new().expect("a temporary folder can be made");
    for file in files {
        let file = folder.path().join(file);
        fs::create_dir_all(file.parent().expect("it has one")).expect("folders can be made");
        fs::write(file, "").expect("files can be written");
    }
    let notebook = json!({"nbformat": 4, "cells": [{"cell_type": "code", "source": cell}]});
    fs::write(folder.path().join("n.ipynb"), notebook.to_string()).expect("files can be written");
    let head = "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nspec:\n  notebook: n.ipynb\n";
    fs::write(folder.path().join("blueprint.yaml"), format!("{head}{env}")).expect("files can be written");
    let found = lint::check(&Blueprint::load(folder.path()).expect("it is valid"));
    found
        .into_iter()
        .map(|found| (found.code, found.message))
        .collect()
}

#[test]
fn an_import_that_no_requirement_brings_is_told() {
    let env = "  env: {requirements: ['scikit-learn>=1', helpful]}\n";
    let found = beside(
        &["own.py"],
        env,
        "import sklearn, numpy, helpful, own, os, polars\nfrom . import x",
    );
    assert_eq!(
        found,
        [(
            Code::ImportMissing,
            "cell 1: it imports `polars`, which no requirement brings".into()
        )]
    );
    for cell in [
        "try:\n    import polars\nexcept ImportError:\n    polars = None",
        "!pip install polars==1.0\nimport polars",
        "import sys\nsys.path.append(f'{sys.prefix}/x')\nimport polars",
        "# /// script\n# dependencies = ['polars']\n# ///\nimport polars",
        "def f():\n    import polars",
    ] {
        let found = beside(&[], "", cell);
        assert!(
            found.iter().all(|(code, _)| *code != Code::ImportMissing),
            "{cell} {found:?}"
        );
    }
    assert_eq!(
        beside(&[], "", "import os, time, IPython"),
        [],
        "Python and the kernel bring them"
    );
    let profile = "  profiles: {big: {env: {requirements: [polars]}}}\n";
    assert_eq!(beside(&[], profile, "import polars"), []);
}

#[test]
fn a_module_that_cells_write_or_put_where_python_looks_is_told_as_what_it_is() {
    for cell in [
        "open('own_xq.py', 'w').write('x = 1')\nimport own_xq",
        "!wget https://example.org/own_xq.py\nimport own_xq",
        "import sys\nsys.path.insert(0, 'lib')\nimport inlib",
        "import sys\nsys.path += ['lib']\nimport inlib",
        "%cd lib\nimport inlib",
    ] {
        let found = beside(&["lib/inlib.py"], "", cell);
        let told = found.iter().any(|(code, _)| *code == Code::ImportMissing);
        assert!(!told, "{cell} {found:?}");
    }
    let parent = TempDir::new().expect("a temporary folder can be made");
    let place = parent.path().display();
    fs::write(parent.path().join("inparent.py"), "").expect("files can be written");
    let found = beside(
        &[],
        "",
        &format!("import sys\nsys.path.append('{place}')\nimport inparent, other"),
    );
    let said: Vec<&str> = found.iter().map(|(_, message)| message.as_str()).collect();
    assert!(
        said.iter()
            .any(|said| said.contains("`inparent`, which a run lacks"))
            && said
                .iter()
                .any(|said| said.contains("`other`, which no requirement brings")),
        "{said:?}"
    );
}

#[test]
fn a_missing_package_is_named_once_and_one_of_many_is_not_guessed() {
    let cells = ["import setuptools, pkg_resources\nfrom google.cloud import storage"];
    let found = checked("", &cells);
    let hint = &found[0].hints[0];
    assert!(
        hint.contains(": setuptools, the package that brings `google`;"),
        "{hint}"
    );
}

#[test]
fn of_a_file_outside_of_the_copied_folder_it_is_said_that_a_run_lacks_it() {
    let beside_folder = tempfile::NamedTempFile::new().expect("a file can be made");
    let outside = beside_folder.path().file_name().expect("it has a name");
    let cell = |name: &str| format!("open('../{name}.txt')");
    let text = beside_folder.path().with_extension("txt");
    fs::write(&text, "x").expect("files can be written");
    let there = text
        .file_stem()
        .expect("it has a name")
        .to_string_lossy()
        .into_owned();
    assert!(!outside.is_empty());
    for (cell, says) in [
        (cell(&there), "which a run lacks"),
        (cell("nosuchfile"), "which is not there"),
    ] {
        let found = beside(&[], "", &cell);
        assert!(
            found.iter().any(|(_, message)| message.contains(says)),
            "{found:?}"
        );
    }
    fs::remove_file(text).expect("it is there");
}

#[test]
fn a_secret_in_a_cell_is_told_and_not_shown() {
    let token = format!("hf_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3h");
    for cell in [
        format!("TOKEN = '{token}'"),
        format!("%env HF_TOKEN={token}"),
        format!("login(token='{token}')").replace("login", "print"),
    ] {
        let found = checked("", &[&cell]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].code, Code::SecretInSource);
        assert!(!format!("{found:?}").contains(&token), "{found:?}");
    }
    assert_eq!(codes(&["import os\nTOKEN = os.environ['HF_TOKEN']"]), []);
}

#[test]
fn a_cell_that_asks_a_person_is_told() {
    for cell in [
        "name = input('Name: ')",
        "from getpass import getpass\ngetpass()",
        "import getpass\ngetpass.getpass('x')",
        "breakpoint()",
        "import pdb; pdb.set_trace()",
        "def ask():\n    return input()\nask()",
    ] {
        assert_eq!(codes(&[cell]), [Code::AsksPerson], "{cell}");
    }
    for cell in [
        "import os\nif 'KEY' not in os.environ:\n    input()",
        "def ask():\n    return input()",
        "layer = object()\nlayer.input()",
    ] {
        assert_eq!(codes(&[cell]), [], "{cell}");
    }
}

#[test]
fn a_gpu_that_nobody_asks_for_is_told() {
    for cell in [
        "import torch\nmodel = torch.nn.Linear(1, 1).cuda()",
        "import torch\nx = torch.ones(1).to('cuda')",
        "import torch\ndevice = 'cuda:0'\nx = torch.ones(1).to(device)",
        "import torch\nx = torch.ones(1, device='cuda')",
        "import torch\ndevice = torch.device('cuda')\nx = torch.ones(1).to(device)",
    ] {
        assert_eq!(codes(&[cell]), [Code::GpuNotAsked], "{cell}");
        assert_eq!(checked("  driver: {gpu: 1}\n", &[cell]), [], "{cell}");
        assert_eq!(
            checked("  profiles: {big: {driver: {gpu: 1}}}\n", &[cell]),
            [],
            "{cell}"
        );
    }
    for cell in [
        "import torch\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\nx = torch.ones(1).to(device)",
        "import torch\nif torch.cuda.is_available():\n    x = torch.ones(1).cuda()",
        "import torch\nprint(torch.cuda.is_available())",
        "import torch\nx = torch.ones(1).to('cpu')",
    ] {
        assert_eq!(codes(&[cell]), [], "{cell}");
    }
}

#[test]
fn a_command_that_changes_the_machine_is_told() {
    for cell in [
        "!sudo apt-get install -y make",
        "!apt install make",
        "%conda install x",
        "!rm -rf /data",
        "!cd x && rm -fr y",
        "%%bash\nrm -r --force y",
        "import os\nos.system('sudo reboot')",
        "import subprocess\nsubprocess.run(['rm', '-rf', 'x'])",
        "import subprocess\nsubprocess.run(['bash', '-lc', 'sudo x'])",
        "!DEBIAN_FRONTEND=noninteractive apt-get install -y x",
        "!env A=1 B='2 3' apt-get -y install x",
        "!if true; then sudo x; fi",
        "!for i in 1 2; do rm -rf $i; done",
        "!bash -c \"sudo x\"",
        "!/bin/sh -ec 'cd x; rm -rf y'",
        "!echo $(sudo x)",
        "!(sudo x)",
        "%rm -rf x",
        "%sx sudo x",
        "!echo it\\'s; sudo x",
        "import os\nos.system('# tools\\nsudo apt-get install -y x')",
        "import subprocess\nsubprocess.run(['env', 'A=1', 'sudo', 'x'])",
    ] {
        assert_eq!(codes(&[cell]), [Code::MachineCommand], "{cell}");
    }
    for cell in [
        "!rm x",
        "!rm -f x.json",
        "!conda list",
        "!echo sudo",
        "!kubectl apply -f x",
        "%env X=rm -rf",
        "!echo 'first; sudo x'",
        "!ls # ; sudo x",
        "!bash -c 'echo sudo'",
        "!bash install.sh --config=sudo",
        "import subprocess\nsubprocess.run(['echo', 'first; sudo x'])",
        "%rm x",
    ] {
        assert_eq!(codes(&[cell]), [], "{cell}");
    }
}

#[test]
fn of_a_notebook_in_another_language_only_its_kernel_and_its_outputs_are_told() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it can be written");
    let cells = json!([{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": 3,
                        "source": "x <- undefined\n!pip install torch"}]);
    let metadata = json!({"kernelspec": {"name": "no-such-kernel", "display_name": "R", "language": "R"}});
    let notebook = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells});
    write("n.ipynb", &notebook.to_string());
    let blueprint = "apiVersion: blueproof.dev/v1alpha1\nkind: Blueprint\nspec:\n  notebook: n.ipynb\n";
    write("blueprint.yaml", blueprint);
    let loaded = Blueprint::load(folder.path()).expect("a run may find its kernel");
    let found = lint::check(&loaded);
    let codes: Vec<Code> = found.iter().map(|found| found.code).collect();
    assert_eq!(codes, [Code::ForeignLanguage, Code::StoredOutputs]);
    assert!(found[0].message.contains("`no-such-kernel`"), "{found:?}");

    write(
        "blueprint.yaml",
        &format!("{blueprint}  parameters: {{n: {{type: int, default: 3}}}}\n"),
    );
    let refused = Blueprint::load(folder.path()).expect_err("they cannot be put in");
    assert!(
        refused
            .iter()
            .any(|refused| refused.code == Code::ParametersForeign),
        "{refused:?}"
    );
}

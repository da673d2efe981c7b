//! Drafts of notebooks that say the same things in different ways.

use std::{fs, path::PathBuf};

use blueproof_core::attempt::Stream;
use blueproof_diagnostic::Code;
use blueproof_queue::Quantity;
use serde_json::json;
use tempfile::TempDir;

use super::draft;
use crate::{
    blueprint::{Blueprint, Resolved},
    measure::Recorder,
};

struct Written {
    _folder: TempDir,
    path: PathBuf,
}

/// Writes a notebook of these code cells, the first of which is tagged `parameters`.
fn notebook(name: &str, cells: &[&str]) -> Written {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let path = folder.path().join(name);
    let cell = |(index, source): (usize, &&str)| {
        let tags = if index == 0 {
            json!(["parameters"])
        } else {
            json!([])
        };
        json!({"cell_type": "code", "metadata": {"tags": tags}, "outputs": [], "source": source})
    };
    let code: Vec<_> = cells.iter().enumerate().map(cell).collect();
    let whole = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": code});
    fs::write(&path, whole.to_string()).expect("files can be written");
    Written {
        _folder: folder,
        path,
    }
}

fn resolved(cells: &[&str]) -> (String, Resolved) {
    let written = notebook("n.ipynb", cells);
    let text = draft(&written.path).expect("it can be drafted");
    let loaded = Blueprint::parse(&written.path.with_file_name("blueprint.yaml"), text.clone()).expect(&text);
    let resolved = loaded.resolve(None, &[]).expect("it resolves");
    (text, resolved)
}

#[test]
fn a_draft_names_the_cell_of_each_value() {
    let written = notebook(
        "Fine Tune.ipynb",
        &[
            "num_nodes = 2\nnum_gpu = 1\nmodel = 'a: \"b\"'\nrate = 1e-3\nfast = True",
            "!pip install -q 'kubeflow==0.5.0' torch\nimport sklearn, os",
            "def f():\n    load('s3://open-data/x')",
            "from kubeflow.trainer import CustomTrainer, TrainerClient\nclient = TrainerClient()",
            "job = client.train(\n    trainer=CustomTrainer(func=f, num_nodes=num_nodes, packages_to_install=['boto3'],\n        \
             resources_per_node={'cpu': '500m', 'memory': '4Gi', 'nvidia.com/gpu': num_gpu}),\n    runtime='torch-distributed')",
            "client.wait_for_job_status(job, timeout=3600)",
            "print(<not python>",
        ],
    );
    insta::assert_snapshot!(draft(&written.path).expect("it can be drafted"));
}

#[test]
fn a_notebook_without_anything_to_infer_gives_a_valid_draft() {
    let (_, resolved) = resolved(&["print(1)"]);
    assert_eq!(resolved.n_pods(), 0);
    assert_eq!(resolved.name.as_str(), "n");
}

#[test]
fn a_notebook_in_which_nothing_runs_has_a_draft_that_says_so() {
    for cells in [&[][..], &["# only a comment"]] {
        let written = notebook("n.ipynb", cells);
        let text = draft(&written.path).expect("it can be drafted");
        assert!(text.contains("# Nothing of the notebook runs"), "{text}");
        let meant = text + "  allowEmpty: true\n";
        Blueprint::parse(&written.path.with_file_name("blueprint.yaml"), meant)
            .expect("that is all it lacks");
    }
}

#[test]
fn the_same_trainjob_is_seen_however_it_is_written() {
    let client = "from kubeflow.trainer import *\nclient = TrainerClient()";
    for train in [
        "client.train(trainer=CustomTrainer(func=f, num_nodes=2, resources_per_node={'gpu': 4}))",
        "N = 1 + 1\nR = dict(gpu=4)\nclient.train(trainer=CustomTrainer(func=f, num_nodes=N, resources_per_node=R))",
        "t = CustomTrainer(func=f, num_nodes=2, resources_per_node={'nvidia.com/gpu': '4'})\nTrainerClient().train(trainer=t)",
        "client.train(runtime='r', trainer=BuiltinTrainer(config=TorchTuneConfig(num_nodes=2, resources_per_node={'gpu': 4})))",
        "kw = {'num_nodes': 2}\nkw['resources_per_node'] = {'gpu': 4}\nclient.train(trainer=CustomTrainer(func=f, **kw))",
        "def submit(n, gpus=4):\n    return client.train(trainer=CustomTrainer(func=f, num_nodes=n, resources_per_node={'gpu': gpus}))\nsubmit(2)",
        "import kubeflow.trainer as kt\nkt.TrainerClient().train(trainer=kt.CustomTrainer(f, num_nodes=2, resources_per_node={'gpu': 4}))",
        "from kubeflow.trainer import CustomTrainer as CT\nclient.train(CT(func=f, num_nodes=int('2'), resources_per_node={'gpu': 4}))",
        "n, g = 2, 4\nwith open('x') as x:\n    try:\n        client.train(trainer=CustomTrainer(func=f, num_nodes=n, resources_per_node={'gpu': g}))\n    except Exception as e:\n        raise",
        "if True:\n    nodes = 2\nelse:\n    nodes = 9\nclient.train(trainer=CustomTrainer(func=f, num_nodes=nodes, resources_per_node={f'gpu': 4}))",
        "api.create_namespaced_custom_object(group='g', version='v', namespace='n', plural='trainjobs', body={'spec': {'trainer': {'numNodes': 2, 'resourcesPerNode': {'limits': {'nvidia.com/gpu': 4}}}}})",
        "@timed\ndef go():\n    client.train(trainer=CustomTrainer(func=f, num_nodes=2, resources_per_node={'gpu': 4}))\ngo()",
    ] {
        let (text, resolved) = resolved(&["x = 1", client, train]);
        assert_eq!(
            resolved.workload().to_string(),
            "2 cpu, 2Gi memory, 8 gpu",
            "{train}\n{text}"
        );
    }
}

#[test]
fn a_resource_of_another_maker_is_drafted_by_its_kubernetes_name() {
    let train = |asked: &str| {
        format!(
            "from kubeflow.trainer import *\nTrainerClient().train(trainer=CustomTrainer(func=f, num_nodes=2, \
             resources_per_node={{{asked}}}))"
        )
    };
    for (asked, resource, amount) in [
        ("'amd.com/gpu': 4", "amd.com/gpu", 8),
        ("'cpu': 2, 'google.com/tpu': 1", "google.com/tpu", 2),
        ("'mig-1g.10gb': 1", "nvidia.com/mig-1g.10gb", 2),
        ("'nvidia.com/mig-1g.10gb': '1'", "nvidia.com/mig-1g.10gb", 2),
    ] {
        let (text, resolved) = resolved(&["x = 1", &train(asked)]);
        let further: Vec<_> = resolved.pod_sets.further().into_iter().collect();
        assert_eq!(further, [(resource.to_owned(), Quantity(amount))], "{text}");
        assert_eq!(resolved.workload().gpu.0, 0, "{text}");
    }
    let (text, _) = resolved(&["x = 1", &train("'AMD.com/gpu': 4")]);
    assert!(
        text.contains("asks for AMD.com/gpu, which is not counted"),
        "{text}"
    );
}

#[test]
fn a_parameter_stays_a_parameter() {
    let train = "from kubeflow.trainer import *\nr = {'cpu': cpus}\nif gpus:\n    r['gpu'] = gpus\n\
                 TrainerClient().train(trainer=CustomTrainer(func=f, num_nodes=int(nodes), resources_per_node=r))";
    let written = notebook("n.ipynb", &["nodes = 2\ngpus = 0\ncpus = '500m'", train]);
    let text = draft(&written.path).expect("it can be drafted");
    let loaded = Blueprint::parse(&written.path.with_file_name("blueprint.yaml"), text).expect("it is valid");
    let given = [("nodes".into(), "3".into()), ("gpus".into(), "2".into())];
    let resolved = loaded.resolve(None, &given).expect("it resolves");
    assert_eq!(resolved.workload().to_string(), "1500m cpu, 3Gi memory, 6 gpu");
}

#[test]
fn a_secret_that_is_read_from_the_environment_is_named() {
    for read in [
        "os.environ['HF_TOKEN']",
        "os.environ.get('HF_TOKEN')",
        "os.getenv('HF_TOKEN', '')",
        "environ['HF_TOKEN']",
    ] {
        let (text, _) = resolved(&[
            "x = 1",
            &format!("import os\nfrom os import environ\ntoken = {read}"),
        ]);
        assert!(text.contains("cell 2 reads HF_TOKEN"), "{read}\n{text}");
    }
    let (text, _) = resolved(&["x = 1", "import os\nhome = os.environ['HOME']"]);
    assert!(!text.contains("secrets"), "{text}");
}

#[test]
fn what_cannot_be_known_is_left_to_a_person() {
    let train = "from kubeflow.trainer import *\nimport os\nTrainerClient().train(trainer=CustomTrainer(func=f, \
                 num_nodes=len(os.listdir('.')), resources_per_node={'memory': 'much', 'gpu': -1}))";
    let (text, resolved) = resolved(&["x = 1", train]);
    assert!(text.contains("# nodes: cell 2 computes it"), "{text}");
    assert!(text.contains("# memory: cell 2 gives no amount"), "{text}");
    assert_eq!(resolved.workload().to_string(), "1 cpu, 1Gi memory");
}

#[test]
fn values_that_no_blueprint_takes_are_left_out_of_the_draft() {
    for (nodes, resources) in [
        ("0", "{'gpu': nodes}"),
        ("-1", "{'gpu': nodes, 'cpu': -2}"),
        ("' 2 '", "{'cpu': nodes}"),
        ("'2.0'", "{'gpu': nodes}"),
        ("2.5", "{'memory': nodes}"),
        (
            "4000000000",
            "{'gpu': 4000000000, 'memory': '15Ei', 'cpu': 1e300}",
        ),
        ("None", "{'gpu': nodes}"),
        ("True", "{'gpu': nodes}"),
    ] {
        let train = format!(
            "from kubeflow.trainer import *\nTrainerClient().train(trainer=CustomTrainer(func=f, num_nodes=nodes, \
             resources_per_node={resources}))"
        );
        let written = notebook("n.ipynb", &[&format!("nodes = {nodes}"), &train]);
        draft(&written.path).unwrap_or_else(|errors| panic!("{nodes} {resources}: {errors:#?}"));
    }
}

#[test]
fn hostile_texts_cannot_write_keys_into_the_draft() {
    let cells = [
        "a = 'x\"\\nspec: {}\\n# \\u2028'\nb = '\\x00'",
        "!pip install 'x\ty: z'\nfrom kubeflow.trainer import *\nTrainerClient().train(runtime='r\\n  driver: {cpu: 99}', trainer=CustomTrainer(func=f))",
    ];
    let (_, resolved) = resolved(&cells);
    assert_eq!(resolved.driver().to_string(), "1 cpu, 2Gi memory");
    let odd = notebook("a: {b} #c.ipynb", &["x = 1"]);
    draft(&odd.path).expect("its name can be written");
}

#[test]
fn a_file_that_is_no_notebook_is_refused() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let errors = draft(&folder.path().join("none.ipynb")).expect_err("it is not there");
    assert_eq!(errors[0].code, Code::FileMissing);
}

#[test]
fn every_import_is_in_the_draft() {
    let (text, resolved) = resolved(&[
        "x = 1",
        "import os, numpy, holoviews as hv, unheard_of, sklearn.svm\nfrom google.cloud import storage\n%matplotlib inline",
        "try:\n    import quick\nexcept ImportError:\n    pass",
    ]);
    let mut requirements = resolved.plan.environment.requirements;
    requirements.sort();
    assert_eq!(
        requirements,
        ["holoviews", "matplotlib", "numpy", "scikit-learn", "unheard_of"],
        "{text}"
    );
    for said in [
        "unheard_of  # cell 2 imports it; is this the package's name?",
        "# cell 2 imports google: name the package",
        "# cell 3 imports quick where it is there: quick",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

/// What a draft says of a module: nothing, that it lies outside of the blueprint's folder, that it may be the notebook's own.
const OWN: &str = "";
const ELSEWHERE: &str = "which lies in";
const UNKNOWN: &str = "if that is no module of your own";
/// What stands before an import, the module, and what a draft says of it.
const IMPORTS: &[(&str, &str, &str)] = &[
    ("%%writefile own_xq.py\nx = 1", "own_xq", OWN),
    ("%%writefile -a pkg_xq/part.py\nx = 1", "pkg_xq", OWN),
    ("open('own_xq.py', 'w').write('x')", "own_xq", OWN),
    (
        "from pathlib import Path\nPath('own_xq.py').write_text('x')",
        "own_xq",
        OWN,
    ),
    ("!cp ../elsewhere/own_xq.py .", "own_xq", OWN),
    (
        "import urllib.request as r\nr.urlretrieve('https://example.org/own_xq.py', 'own_xq.py')",
        "own_xq",
        OWN,
    ),
    ("import sys\nsys.path.insert(0, 'lib')", "inlib", OWN),
    ("import sys\nsys.path.extend(['nowhere', 'lib'])", "inlib", OWN),
    ("import sys\nsys.path[:0] = ['lib']", "inlib", OWN),
    ("import sys\nsys.path = ['lib'] + sys.path", "inlib", OWN),
    ("import os\nos.chdir('lib')", "inlib", OWN),
    (
        "import sys\nfor folder in ['.', 'lib']:\n    if folder not in sys.path:\n        sys.path.append(folder)",
        "inlib",
        OWN,
    ),
    (
        "import sys, os\nsys.path.insert(0, os.path.abspath('..'))",
        "src",
        ELSEWHERE,
    ),
    (
        "import sys, os\nsys.path.insert(0, os.path.join(os.getcwd(), '..'))",
        "utils",
        ELSEWHERE,
    ),
    (
        "import sys, os\nsys.path += [os.path.dirname(os.getcwd())]",
        "utils",
        ELSEWHERE,
    ),
    (
        "import sys\nfrom pathlib import Path\nsys.path.append(str(Path.cwd().parent))",
        "src",
        ELSEWHERE,
    ),
    (
        "import sys\nfrom pathlib import Path\nsys.path.append(str(Path('..').resolve() / 'src'))",
        "data",
        ELSEWHERE,
    ),
    ("import sys\nsys.path.append(find())", "own_xq", UNKNOWN),
    (
        "!git clone https://example.org/a/repo\n%cd repo",
        "own_xq",
        UNKNOWN,
    ),
    (
        "import sys\nsys.path.append(find())",
        "pandas",
        "- pandas  # cell",
    ),
    ("x = 1", "own_xq", "- own_xq  # cell"),
    ("x = 1", "datasets", "- datasets  # cell"),
];

#[test]
fn the_notebooks_own_modules_are_no_requirements() {
    let project = TempDir::new().expect("a temporary folder can be made");
    for file in [
        "src/data.py",
        "utils.py",
        "book/lib/inlib.py",
        "book/datasets/a.csv",
    ] {
        let file = project.path().join(file);
        fs::create_dir_all(file.parent().expect("it has one")).expect("folders can be made");
        fs::write(file, "").expect("files can be written");
    }
    for (before, module, said) in IMPORTS.iter().copied() {
        let written = notebook("n.ipynb", &["y = 1", before, &format!("from {module} import x")]);
        let path = project.path().join("book/n.ipynb");
        fs::copy(&written.path, &path).expect("files can be copied");
        let text = draft(&path).expect("it can be drafted");
        let listed = text.contains(&format!("- {module}"));
        assert_eq!(listed, said.starts_with('-'), "{before}\n{text}");
        assert!(text.contains(said), "{before}\n{said}\n{text}");
        assert!(
            said != OWN || !text.contains(&format!("imports {module}")),
            "{before}\n{text}"
        );
    }
}

#[test]
fn requirements_beside_the_notebook_and_in_its_script_block_are_in_the_draft() {
    let block = "# /// script\n# requires-python = '>=3.10'\n# dependencies = ['polars==1.2']\n# ///\nimport polars, own";
    let written = notebook("n.ipynb", &[block, "import numpy, pandas, yaml"]);
    fs::write(
        written.path.with_file_name("requirements.txt"),
        "# what it needs\nnumpy>=2  # arrays\n-r other.txt\nPyYAML==6.0\n",
    )
    .expect("files can be written");
    fs::write(written.path.with_file_name("own.py"), "").expect("files can be written");
    let text = draft(&written.path).expect("it can be drafted");
    let loaded = Blueprint::parse(&written.path.with_file_name("blueprint.yaml"), text.clone()).expect(&text);
    let resolved = loaded.resolve(None, &[]).expect("it resolves");
    assert_eq!(
        resolved.plan.environment.requirements,
        ["polars==1.2", "numpy>=2", "PyYAML==6.0", "pandas"],
        "{text}"
    );
    for said in [
        "asks for Python >=3.10",
        "polars==1.2  # the script block of cell 1",
        "# requirements.txt",
        "requirements.txt says -r other.txt, which has no place here",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn a_list_of_requirements_is_read_as_pip_reads_it_or_it_is_said_why_not() {
    let written = notebook("n.ipynb", &["x = 1"]);
    let beside = written.path.with_file_name("requirements.txt");
    let text = "numpy>=2 \\\r\n    --hash=sha256:aa\r\nnumpy<3\nscipy\\\n>=1\nscipy>=1\n";
    fs::write(&beside, text).expect("files can be written");
    let drafted = draft(&written.path).expect("it can be drafted");
    for said in ["- \"numpy>=2\"", "- \"numpy<3\"", "- \"scipy >=1\""] {
        assert!(drafted.contains(said), "{said}\n{drafted}");
    }
    assert!(!drafted.contains("no place here"), "{drafted}");
    let utf_16 = [0xff, 0xfe]
        .into_iter()
        .chain("numpy".encode_utf16().flat_map(u16::to_le_bytes));
    fs::write(&beside, utf_16.collect::<Vec<u8>>()).expect("files can be written");
    let drafted = draft(&written.path).expect("it can be drafted");
    assert!(
        drafted.contains("# requirements.txt was left out: this file is not text in UTF-8"),
        "{drafted}"
    );
}

#[test]
fn parameters_that_have_no_type_are_named() {
    let (text, _) = resolved(&["layers = [1, 2]\nseed = None\noptions = {}\nwhen = now()\nrate = 0.1"]);
    for said in [
        "layers is a list",
        "seed is None",
        "options is a dictionary",
        "when is computed",
        "rate: {type: float, default: 0.1}",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn files_that_are_written_and_figures_that_are_printed_are_offered() {
    let (text, _) = resolved(&[
        "x = 1",
        "for step in range(3):\n    print(f'step {step}, loss: {step:.3f}')\nprint('accuracy =', x)",
        "frame.to_csv('out.csv')\nwith open('report.txt', 'w') as out:\n    out.write('x')",
    ]);
    for said in [
        r"cell 2 prints a figure: metrics: [{name: loss, from: {regex: '(?:^|[^\w\s./-]|[^\pL_\s]\s)\s*loss\s*[:=]\s*([-+]?(?:nan|inf|[0-9]{1,3}(?:[,_][0-9]{3})+\b(?:\.[0-9]+)?)|[-+0-9.eE]+)'}}]",
        "metrics: [{name: accuracy,",
        "cell 3 writes a file: artifacts: [out.csv]",
        "artifacts: [report.txt]",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn a_metric_that_is_offered_finds_its_own_figure_and_none_with_a_longer_name() {
    let written = notebook(
        "n.ipynb",
        &[
            "print(f'loss: {a} val_loss: {b}')",
            "print(f'epoch {e} - train loss: {c} | top.loss = {d}, val/acc: {f}')\nprint('accuracy =', x)",
        ],
    );
    let text = draft(&written.path).expect("it can be drafted");
    let printed = "loss: 5.0 val_loss: 0.1 train_loss=0.2\n\
                   Epoch 1/3 - loss: 4 - val_loss: 0.3 - top.loss: 9\n\
                   epoch 2 - train loss: 6e-1 | top.loss = 7, val/acc: 0.8\n\
                   val loss: 0.4, (loss=3)  loss2: 8 step 7 loss: 2\n\
                   accuracy = 0.9\naccuracy = -1,234,567.89, or 12\naccuracy = 1_200\naccuracy = 1234\n\
                   accuracy = 0.5,0.25\nloss: nan\n";
    let offered = text
        .lines()
        .filter_map(|line| line.split_once("prints a figure: "));
    let offered: String = offered
        .map(|(_, metrics)| metrics.trim_start_matches("metrics: [").trim_end_matches(']'))
        .map(|metric| format!("  - {metric}\n"))
        .collect();
    let yaml = format!("{text}  metrics:\n{offered}");
    let beside = written.path.with_file_name("blueprint.yaml");
    let loaded = Blueprint::parse(&beside, yaml.clone()).expect(&yaml);
    let plan = loaded.resolve(None, &[]).expect("it resolves").plan;
    let mut recorder = Recorder::new(&plan.metrics).expect("its patterns are good");
    let samples = recorder.text(Stream::Stdout, printed);
    let of = |name: &str| -> Vec<Option<f64>> {
        let own = samples.iter().filter(|sample| sample.name == name);
        own.map(|sample| sample.value).collect()
    };
    let some = |values: &[f64]| -> Vec<Option<f64>> { values.iter().copied().map(Some).collect() };
    let mut losses = some(&[5.0, 4.0, 3.0, 2.0]);
    losses.push(None);
    assert_eq!(of("loss"), losses, "{text}");
    assert_eq!(of("val_loss"), some(&[0.1, 0.3]), "{text}");
    assert_eq!(of("train_loss"), some(&[0.6]), "{text}");
    assert_eq!(of("top_loss"), some(&[9.0, 7.0]), "{text}");
    assert_eq!(of("val_acc"), some(&[0.8]), "{text}");
    assert_eq!(
        of("accuracy"),
        some(&[0.9, -1_234_567.89, 1200.0, 1234.0, 0.5]),
        "{text}"
    );
}

//! The 16 notebooks of kubeflow/trainer's `examples/`, rebuilt in our own words from facts about their cells.

use std::{collections::BTreeMap, fs, path::Path};

use blueproof_notebook::{blueprint::Blueprint, init, lint};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;

const FIXTURE: &str = include_str!("fixtures/kubeflow-trainer.yaml");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Example {
    notebook: String,
    minor: u32,
    facts: Facts,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[derive(Default)]
struct Facts {
    disabled_installs: Vec<Vec<String>>,
    installs: Vec<Vec<String>>,
    parameters: BTreeMap<String, i64>,
    disabled_names: BTreeMap<String, String>,
    names: BTreeMap<String, String>,
    star_import: bool,
    jobs: Vec<Job>,
    waits: Vec<Wait>,
    node_loop: Option<String>,
    driver_imports: Vec<String>,
    stale: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Job {
    backend: Option<String>,
    trainer: Option<String>,
    runtime: Option<String>,
    by: String,
    nodes: Option<Value>,
    resources: BTreeMap<String, Value>,
    gpu_if_any: Option<String>,
    packages: Vec<String>,
    libraries: Vec<String>,
    device: Option<String>,
    in_try: bool,
    data_nodes: Option<u32>,
    uris: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Wait {
    until: String,
    seconds: Option<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expect {
    name: String,
    runtime: Option<String>,
    nodes: u32,
    workload: String,
    requirements: Vec<String>,
    #[serde(default)]
    data: Vec<String>,
    #[serde(default)]
    parameters: BTreeMap<String, i64>,
    hazards: Vec<String>,
}

/// Code cells in the making, each with whether it is the one that is tagged `parameters`.
#[derive(Default)]
struct Cells(Vec<(String, bool)>);

impl Cells {
    fn add(&mut self, source: impl Into<String>) {
        self.0.push((source.into(), false));
    }
}

/// Writes a value as Python does; a text that is the name of a parameter stays a name.
fn python(value: &Value, facts: &Facts) -> String {
    match value.as_str() {
        Some(name) if facts.parameters.contains_key(name) => name.to_owned(),
        Some(text) => format!("\"{text}\""),
        None => value.to_string(),
    }
}

fn cells(facts: &Facts) -> Cells {
    let mut cells = Cells::default();
    for packages in &facts.disabled_installs {
        cells.add(format!(
            "# Uncomment to install\n# %pip install -U {}",
            packages.join(" ")
        ));
    }
    for packages in &facts.installs {
        cells.add(format!("!pip install -q \"{}\"", packages.join("\" \"")));
    }
    for (number, job) in facts.jobs.iter().enumerate() {
        cells.add(function(number, job));
    }
    let from = "from kubeflow.trainer import";
    cells.add(if facts.star_import {
        format!("{from} *")
    } else {
        format!(
            "{from} BuiltinTrainer, ContainerBackendConfig, CustomTrainer, DataCacheInitializer, \
             HuggingFaceDatasetInitializer, HuggingFaceModelInitializer, Initializer, LocalProcessBackendConfig, \
             S3DatasetInitializer, TorchTuneConfig, TrainerClient"
        )
    });
    if !facts.parameters.is_empty() {
        let lines: Vec<String> = facts
            .parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        cells.0.push((lines.join("\n"), true));
    }
    for (name, value) in &facts.disabled_names {
        cells.add(format!("# {name} = \"{value}\""));
    }
    for (name, value) in &facts.names {
        cells.add(format!("{name}= \"{value}\""));
    }
    for (number, job) in facts.jobs.iter().enumerate() {
        cells.add(train(number, job, facts));
    }
    waits(&mut cells, facts);
    for module in &facts.driver_imports {
        cells.add(format!("import {module}"));
    }
    cells
}

fn function(number: usize, job: &Job) -> String {
    let imports: Vec<String> = job
        .libraries
        .iter()
        .map(|name| format!("    import {name}"))
        .collect();
    let device = job
        .device
        .as_ref()
        .map_or(String::new(), |device| format!("    device = \"{device}\"\n"));
    // The comment must not count as using a GPU.
    format!(
        "def train_{number}(*args):\n    \"\"\"Trains.\"\"\"\n{}\n{device}    print(\"step\")  # device=\"cuda\"",
        imports.join("\n")
    )
}

fn train(number: usize, job: &Job, facts: &Facts) -> String {
    let mut lines = vec![client(job)];
    let runtime = job.runtime.clone().unwrap_or_default();
    if job.by == "comparison" {
        lines.push(format!(
            "for r in client.list_runtimes():\n    if r.name == \"{runtime}\":\n        chosen = r"
        ));
    }
    let resources: Vec<String> = job
        .resources
        .iter()
        .map(|(name, value)| format!("    \"{name}\": {},", python(value, facts)))
        .collect();
    lines.push(format!("resources = {{\n{}\n}}", resources.join("\n")));
    if let Some(gpu) = &job.gpu_if_any {
        lines.push(format!("if {gpu} > 0:\n    resources[\"gpu\"] = {gpu}"));
    }
    let mut call = format!(
        "job = client.train(\n    trainer={},\n",
        trainer(number, job, facts)
    );
    match (job.by.as_str(), &job.runtime) {
        ("comparison", Some(_)) => call.push_str("    runtime=chosen,\n"),
        (_, Some(name)) => call.push_str(&format!("    runtime=\"{name}\",\n")),
        (_, None) => {}
    }
    let uris: Vec<String> = job
        .uris
        .iter()
        .map(|uri| format!("Source(storage_uri=\"{uri}\")"))
        .collect();
    if !uris.is_empty() {
        call.push_str(&format!("    initializer=Initializer({}),\n", uris.join(", ")));
    }
    if let Some(nodes) = job.data_nodes {
        call.push_str(&format!(
            "    initializer=Initializer(DataCacheInitializer(num_data_nodes={nodes})),\n"
        ));
    }
    call.push(')');
    if job.in_try {
        call = format!(
            "try:\n    {}\nexcept Exception as error:\n    print(error)",
            call.replace('\n', "\n    ")
        );
    }
    lines.push(call);
    lines.join("\n")
}

fn client(job: &Job) -> String {
    let config = match job.backend.as_deref() {
        Some("process") => "LocalProcessBackendConfig(cleanup_venv=True)",
        Some("container") => "ContainerBackendConfig()",
        Some(other) => panic!("unknown backend {other}"),
        None => return "client = TrainerClient()".to_owned(),
    };
    format!("config = {config}\nclient = TrainerClient(backend_config=config)")
}

fn trainer(number: usize, job: &Job, facts: &Facts) -> String {
    let mut arguments = vec!["resources_per_node=resources".to_owned()];
    arguments.extend(
        job.nodes
            .as_ref()
            .map(|nodes| format!("num_nodes={}", python(nodes, facts))),
    );
    if !job.packages.is_empty() {
        arguments.push(format!("packages_to_install={:?}", job.packages));
    }
    let mut given = facts.disabled_names.keys().chain(facts.names.keys());
    arguments.extend(given.next().map(|name| format!("env={{\"X\": {name}}}")));
    let arguments = arguments.join(",\n        ");
    match job.trainer.as_deref() {
        Some("builtin") => format!("BuiltinTrainer(config=TorchTuneConfig({arguments}))"),
        Some(other) => panic!("unknown trainer {other}"),
        None => format!("CustomTrainer(func=train_{number}, {arguments})"),
    }
}

fn waits(cells: &mut Cells, facts: &Facts) {
    for wait in &facts.waits {
        let status = match wait.until.as_str() {
            "running" => ", status={\"Running\"}",
            "succeeded" => ", status={\"Succeeded\"}",
            "end" => "",
            other => panic!("unknown end of a wait: {other}"),
        };
        let timeout = wait
            .seconds
            .map_or(String::new(), |seconds| format!(", timeout={seconds}"));
        cells.add(format!("client.wait_for_job_status(name=job{status}{timeout})"));
        if let (Some(count), "running") = (&facts.node_loop, wait.until.as_str()) {
            cells.add(format!(
                "for i in range({count}):\n    print(client.get_job_logs(name=job, follow=True, step=f\"node-{{i}}\"))"
            ));
        }
    }
}

fn write(example: &Example, folder: &Path) -> std::path::PathBuf {
    let built = cells(&example.facts);
    let count = if example.facts.stale {
        json!(7)
    } else {
        Value::Null
    };
    let code = built.0.into_iter().map(|(source, tagged)| {
        let tags = if tagged { json!(["parameters"]) } else { json!([]) };
        let lines: Vec<&str> = source.split_inclusive('\n').collect();
        json!({
            "cell_type": "code", "execution_count": count, "metadata": {"tags": tags}, "outputs": [], "source": lines,
        })
    });
    let title = json!({"cell_type": "markdown", "metadata": {}, "source": ["# ", &example.notebook]});
    let whole = json!({
        "cells": std::iter::once(title).chain(code).collect::<Vec<_>>(),
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": example.minor,
    });
    let path = folder.join(&example.notebook).with_extension("");
    let path = path.with_file_name(format!(
        "{}.ipynb",
        example.notebook.rsplit('/').next().unwrap_or_default()
    ));
    fs::create_dir_all(path.parent().expect("it has a parent")).expect("folders can be made");
    fs::write(&path, serde_json::to_string_pretty(&whole).expect("it is JSON"))
        .expect("files can be written");
    path
}

fn examples() -> Vec<Example> {
    serde_saphyr::from_str(FIXTURE).expect("the fixture is as this test reads it")
}

#[test]
fn the_fixture_describes_all_sixteen() {
    let examples = examples();
    assert_eq!(examples.len(), 16);
    assert_eq!(examples.iter().filter(|example| example.minor == 4).count(), 4);
    let codes = |code: &str| {
        let of = |example: &&Example| example.expect.hazards.iter().any(|hazard| hazard == code);
        examples.iter().filter(of).count()
    };
    assert_eq!(codes("BP0230"), 13, "notebooks without a parameters tag");
    assert_eq!(codes("BP0231"), 13, "notebooks that wait 20 s");
    assert_eq!(codes("BP0238"), 11, "notebooks that wait for Running");
}

#[test]
fn init_writes_a_valid_blueprint_with_what_the_cells_say() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    for example in examples() {
        let path = write(&example, folder.path());
        let text = init::draft(&path).expect(&example.notebook);
        let said = format!("{}:\n{text}", example.notebook);
        let loaded = Blueprint::parse(&path.with_file_name("blueprint.yaml"), text).expect(&said);
        let resolved = loaded.resolve(None, &[]).expect(&said);
        let expect = &example.expect;
        assert_eq!(resolved.name.as_str(), expect.name, "{said}");
        assert_eq!(resolved.n_pods(), expect.nodes, "{said}");
        assert_eq!(resolved.workload().to_string(), expect.workload, "{said}");
        let requirements: Vec<&str> = resolved
            .plan
            .environment
            .requirements
            .iter()
            .map(String::as_str)
            .collect();
        assert_eq!(sorted(&requirements), sorted(&expect.requirements), "{said}");
        let parameters = resolved
            .plan
            .parameters
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), value.as_i64()?)));
        assert_eq!(
            parameters.collect::<BTreeMap<_, _>>(),
            expect.parameters,
            "{said}"
        );
        let data: Vec<&str> = loaded
            .blueprint
            .spec
            .data
            .iter()
            .map(|data| data.uri.as_str())
            .collect();
        assert_eq!(data, expect.data, "{said}");
        assert_eq!(
            loaded.blueprint.metadata.labels.get("runtime"),
            expect.runtime.as_ref(),
            "{said}"
        );
    }
}

#[test]
fn check_reports_exactly_the_hazards_that_the_notebook_has() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    for example in examples() {
        let path = write(&example, folder.path());
        let text = init::draft(&path).expect(&example.notebook);
        let loaded = Blueprint::parse(&path.with_file_name("blueprint.yaml"), text).expect(&example.notebook);
        let found = lint::check(&loaded);
        let codes: Vec<String> = found.iter().map(|found| found.code.to_string()).collect();
        assert_eq!(
            sorted(&codes),
            sorted(&example.expect.hazards),
            "{}: {found:#?}",
            example.notebook
        );
        let placed = found
            .iter()
            .filter(|found| found.place.as_ref().is_some_and(|place| place.line.is_some()));
        assert_eq!(
            placed.count(),
            found.len(),
            "{}: each finding has its line",
            example.notebook
        );
    }
}

fn sorted<T: AsRef<str>>(texts: &[T]) -> Vec<&str> {
    let mut texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    texts.sort_unstable();
    texts
}

//! GPUs that a TrainJob asks for and its training function does not use.

use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::{
    analysis::{Backend, Job, Value},
    python::syntax::{Expr, Function, Kind},
};

/// Libraries that compute on the CPU until they are told a device, and what tells them.
const TOLD: [(&str, &str); 3] = [
    ("xgboost", "params[\"device\"] = \"cuda\""),
    ("lightgbm", "params[\"device_type\"] = \"cuda\""),
    ("torch", "model.to(\"cuda\")"),
];
/// Libraries that take a GPU by themselves.
const BY_THEMSELVES: [&str; 10] = [
    "jax",
    "tensorflow",
    "keras",
    "transformers",
    "accelerate",
    "lightning",
    "pytorch_lightning",
    "deepspeed",
    "mlx",
    "vllm",
];
/// What the name of a device has in it.
const DEVICES: [&str; 7] = ["cuda", "gpu", "nccl", "accelerator", "rocm", "device_map", "xpu"];

pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let on_cluster = subject
        .analysis
        .jobs
        .iter()
        .filter(|job| job.backend != Backend::Process);
    on_cluster.filter_map(|job| idle(subject, job)).collect()
}

fn idle(subject: &Subject<'_>, job: &Job) -> Option<Diagnostic> {
    let (name, asked) = job.gpu()?;
    let parameter = asked
        .via
        .as_deref()
        .filter(|via| subject.analysis.is_parameter(via));
    let none = matches!(asked.value, Value::Int(0) | Value::None);
    if none && parameter.is_none() {
        return None;
    }
    let (_, function) = subject.analysis.functions.get(job.function.as_deref()?)?;
    let (library, device) = library_that_must_be_told(function)?;
    if names_device(function) {
        return None;
    }
    let asks = match parameter {
        Some(parameter) => format!("its TrainJob may hold GPUs (`{name}` is `{parameter}`)"),
        None => format!("its TrainJob holds GPUs (`{name}`)"),
    };
    let message = format!("{asks}, but `{}` trains with {library} on the CPU", function.name);
    Some(
        subject
            .warning(Code::UnusedGpu, asked.at, message)
            .hint(format!("name the device: {device}")),
    )
}

fn library_that_must_be_told(function: &Function) -> Option<(&'static str, &'static str)> {
    let mut modules = Vec::new();
    let mut import = |import: &crate::python::syntax::Import| {
        modules.push(import.path.split('.').next().unwrap_or_default().to_owned());
    };
    function
        .body
        .iter()
        .for_each(|statement| statement.walk(&mut |_| {}, &mut import));
    if modules
        .iter()
        .any(|module| BY_THEMSELVES.contains(&module.as_str()))
    {
        return None;
    }
    TOLD.into_iter()
        .find(|(library, _)| modules.iter().any(|module| module == library))
}

fn names_device(function: &Function) -> bool {
    let mut named = false;
    let mut look = |text: &str| {
        let lower = text.to_ascii_lowercase();
        named |= DEVICES.iter().any(|device| lower.contains(device));
    };
    let mut visit = |expr: &Expr| match &expr.kind {
        Kind::Text(text) if text.len() < 40 => look(text),
        Kind::Name(name) | Kind::Attribute(_, name) => look(name),
        Kind::Call(call) => call.keywords.iter().for_each(|(name, _)| look(name)),
        Kind::None
        | Kind::Bool(_)
        | Kind::Int(_)
        | Kind::Float(_)
        | Kind::Text(_)
        | Kind::Format(_)
        | Kind::List(_)
        | Kind::Dict(_)
        | Kind::Subscript(_, _)
        | Kind::Binary(_, _, _)
        | Kind::Not(_)
        | Kind::Either(_)
        | Kind::Other(_) => {}
    };
    function
        .body
        .iter()
        .for_each(|statement| statement.walk(&mut visit, &mut |_| {}));
    named
}

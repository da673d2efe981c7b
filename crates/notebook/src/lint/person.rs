//! Cells that ask a person, and notebooks that do nothing.

use blueproof_diagnostic::{Code, Diagnostic};

use super::Subject;
use crate::analysis::{At, Made, Reached, Traced};

/// Cells that wait for somebody to type.
pub(super) fn asked(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let calls = subject.analysis.calls.iter().filter(|made| asks(made));
    let calls = calls.map(|made| (made.at, format!("`{}()`", made.function)));
    let debuggers = subject
        .analysis
        .shell
        .iter()
        .filter(|(_, command)| command.trim() == "%debug");
    let all = calls.chain(debuggers.map(|(at, _)| (*at, "`%debug`".to_owned())));
    all.map(|(at, what)| {
        subject
            .warning(
                Code::AsksPerson,
                at,
                format!("{what} waits for somebody to type, and nobody is there"),
            )
            .hint("make the answer a parameter, or read it from the environment (`spec.secrets`)")
    })
    .collect()
}

fn asks(made: &Made) -> bool {
    let receiver = made
        .receiver
        .as_ref()
        .map(|receiver| receiver.symbol().unwrap_or("?"));
    let asks = match (made.function.as_str(), receiver) {
        ("input" | "breakpoint" | "getpass" | "notebook_login", None) => true,
        ("getpass", Some("getpass")) | ("input", Some("builtins")) => true,
        ("set_trace", None | Some("pdb" | "ipdb")) => true,
        (_, _) => false,
    };
    asks && made.reached == Reached::Surely
}

/// GPUs that the kernel uses and nobody asks for.
pub(super) fn gpu_not_asked(subject: &Subject<'_>) -> Vec<Diagnostic> {
    if !super::driver::profiles_with_gpus(subject).is_empty() {
        return Vec::new();
    }
    let used: Vec<(At, String)> = subject
        .analysis
        .calls
        .iter()
        .filter(|made| made.reached == Reached::Surely)
        .filter_map(|made| Some((made.at, needs_gpu(made)?)))
        .collect();
    let Some((at, how)) = used.first() else {
        return Vec::new();
    };
    let message = format!("{how} needs a GPU, and no profile asks for one");
    vec![
        subject.warning(Code::GpuNotAsked, *at, message).hint(
            "write `driver: {gpu: 1}` under `spec`, or choose the device by `torch.cuda.is_available()`",
        ),
    ]
}

fn needs_gpu(made: &Made) -> Option<String> {
    let device = |value: &Traced| {
        let text = match value.made() {
            Some(inner) if inner.function == "device" => inner.arguments.first()?.text()?,
            Some(_) | None => value.text()?,
        };
        (text == "cuda" || text.starts_with("cuda:")).then(|| text.to_owned())
    };
    if made.function == "cuda" && made.receiver.is_some() {
        return Some("`.cuda()`".into());
    }
    if made.function == "to" && made.receiver.is_some() {
        let text = made.arguments.first().and_then(device)?;
        return Some(format!("`.to({text:?})`"));
    }
    let (name, value) = made
        .keywords
        .iter()
        .find(|(name, _)| matches!(name.as_str(), "device" | "device_map" | "map_location"))?;
    Some(format!("`{name}={:?}`", device(value)?))
}

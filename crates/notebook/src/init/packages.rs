//! What the notebook's own kernel needs installed.

use std::collections::BTreeMap;

use super::{Draft, scalar};
use crate::{
    survey::{At, Form, Survey},
    text::line,
};

/// Modules that notebooks import, and the packages that they come in. A module that is not here is one of Python's
/// own or one that only its author knows.
const PACKAGES: [(&str, &str); 46] = [
    ("PIL", "pillow"),
    ("accelerate", "accelerate"),
    ("altair", "altair"),
    ("boto3", "boto3"),
    ("bs4", "beautifulsoup4"),
    ("cloudpathlib", "cloudpathlib"),
    ("cv2", "opencv-python-headless"),
    ("datasets", "datasets"),
    ("deepspeed", "deepspeed"),
    ("evaluate", "evaluate"),
    ("fastapi", "fastapi"),
    ("flax", "flax"),
    ("gensim", "gensim"),
    ("huggingface_hub", "huggingface_hub"),
    ("ipywidgets", "ipywidgets"),
    ("jax", "jax"),
    ("keras", "keras"),
    ("kubeflow", "kubeflow"),
    ("kubeflow_trainer_api", "kubeflow-trainer-api"),
    ("kubernetes", "kubernetes"),
    ("lightgbm", "lightgbm"),
    ("matplotlib", "matplotlib"),
    ("mlflow", "mlflow"),
    ("mlx", "mlx"),
    ("networkx", "networkx"),
    ("nltk", "nltk"),
    ("numpy", "numpy"),
    ("optax", "optax"),
    ("pandas", "pandas"),
    ("peft", "peft"),
    ("plotly", "plotly"),
    ("polars", "polars"),
    ("pyarrow", "pyarrow"),
    ("requests", "requests"),
    ("scipy", "scipy"),
    ("seaborn", "seaborn"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("sympy", "sympy"),
    ("tensorflow", "tensorflow"),
    ("torch", "torch"),
    ("torchaudio", "torchaudio"),
    ("torchvision", "torchvision"),
    ("tqdm", "tqdm"),
    ("transformers", "transformers"),
    ("xgboost", "xgboost"),
];

/// Writes `env`: what cells install, then what else they import.
pub(super) fn write(draft: &mut Draft, survey: &Survey) {
    let found = requirements(survey);
    if !found.is_empty() {
        draft.line(1, "env:");
        draft.line(2, "requirements:");
        for (requirement, remark) in &found {
            draft.remarked(3, format!("- {}", scalar(requirement)), remark);
        }
    }
    for job in survey.jobs.iter().filter(|job| !job.packages.is_empty()) {
        let names: Vec<&str> = job.packages.iter().filter_map(|package| package.text()).collect();
        let cell = job.made.at.cell;
        draft.remark(
            1,
            format!(
                "packages_to_install, in the pods of cell {cell}'s TrainJob: {}",
                line(&names.join(", "))
            ),
        );
    }
}

/// Returns requirements with remarks, each package once, in the order of the cells.
fn requirements(survey: &Survey) -> Vec<(String, String)> {
    let mut found: BTreeMap<String, (At, usize, String, String)> = BTreeMap::new();
    for form in [Form::Run, Form::Comment] {
        for install in survey.installs_by(form) {
            let remark = match form {
                Form::Run => format!("cell {} installs it", install.at.cell),
                Form::Comment => format!("cell {}, in a comment", install.at.cell),
            };
            let packages = install.packages.iter().filter(|package| is_requirement(package));
            for (nth, package) in packages.enumerate() {
                let entry = (install.at, nth, package.clone(), remark.clone());
                found.entry(name_of(package)).or_insert(entry);
            }
        }
    }
    for (module, at) in &survey.imports {
        let Some((_, package)) = PACKAGES.iter().find(|(known, _)| known == module) else {
            continue;
        };
        let remark = format!("cell {} imports it", at.cell);
        found
            .entry(name_of(package))
            .or_insert((*at, 0, (*package).to_owned(), remark));
    }
    let mut ordered: Vec<_> = found.into_values().collect();
    ordered.sort();
    ordered
        .into_iter()
        .map(|(_, _, requirement, remark)| (requirement, remark))
        .collect()
}

fn is_requirement(text: &str) -> bool {
    let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
    begins && text.len() < 200 && !text.chars().any(|c| c.is_control() || c == '{' || c == '$')
}

/// Returns a package's name as PyPI compares names.
fn name_of(requirement: &str) -> String {
    let end = requirement.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    requirement[..end.unwrap_or(requirement.len())]
        .to_ascii_lowercase()
        .replace(['_', '.'], "-")
}

//! `cargo xtask notebooks`: what `blueproof init` and `blueproof check` say about other people's notebooks.
//!
//! The notebooks come out of source distributions on PyPI, each of one version. They lie below `target/` and are never
//! committed. What is printed is counted by code; whether a finding is right, only a person can say (docs/check.md).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{ExitCode, Output},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    process::{Ended, Invocation, print_line},
    workspace::Workspace,
};

/// Source distributions that hold notebooks, by their path on PyPI's host of files, each with its SHA-256.
const DISTRIBUTIONS: [(&str, &str); 9] = [
    (
        "67/68/eb3ec6ab61f97216c257edddb853cc174cd76ea44b365cf4adaedcd44482/statsmodels-0.9.0.tar.gz",
        "6461f93a842c649922c2c9a9bc9d9c4834110b89de8c4af196a791ab8f42ba3b",
    ),
    (
        "ef/d1/fbb719d25a5118f76229625ecbbf1505259ad1c95a309fdd184fcfbce7ef/holoviews-1.9.5.tar.gz",
        "b1cac72c098f164360f8f306da4a74734f6e4dbf3d71d0adc5c1337d0e8f6f78",
    ),
    (
        "18/f3/a9379ff60036ffe3bbac1a54ce3dc5c0dc5af442c0046df64e4955a232d1/hvplot-0.9.2.tar.gz",
        "9a8c9e9249139aaa3dee5f1cea0f93cf36374d179e986705fcddc2b92c470793",
    ),
    (
        "2c/37/35112f57d1a83d76ed2a6e084f6a1da8e24ef94f2982578d94434a1ccd2b/datashader-0.9.0.tar.gz",
        "3a423d61014ae8d2668848edab6c12a6244be6f249570bd7811dd5698d5ff633",
    ),
    (
        "6d/67/5a62448b73e45a5ee2870874a943b5534bd192c9f1996b993537739e49d1/geoviews-1.9.6.tar.gz",
        "e2ab66626fb57434ede7670ed8b2b2e8331919dbec78edb4d1d1646dfa0c73e7",
    ),
    (
        "af/23/9683f34e84d79d5ec564548bb6c4f88e107f1a6687ea8b1615d98cfbdfcb/gpytorch-1.9.1.tar.gz",
        "0bdbba6f6d5957a0f43ef6dc7fec39c47e8a55f632ca33760c6189f259b3ccc3",
    ),
    (
        "e8/93/a85db3742a80c96478067cfb2bbe3eb82f84551264bca57c15bafbfc1867/control-0.9.4.tar.gz",
        "0fa57d2216b7ac4e9339c09eab6827660318a641779335864feee940bd19c9ce",
    ),
    (
        "e2/21/ee8b1fb88974e768bcf281cb83c76875c736aa8a3981ce133f685738e945/flax-0.9.0.tar.gz",
        "8b7f361eed0f5324e81f9dc8d02ea53da5f993d7c2e37e7aa5b37d3f6331dd53",
    ),
    (
        "82/58/aeefc7448114d1ca397c0e3b3f1f7f1353b9095b5f52c6f920d392f93463/dowhy-0.9.tar.gz",
        "f92c8f426667f09ec8fcc82d0c1d17267da232b9b6db62ca65d45bf638d48ad3",
    ),
];
/// How many of a distribution's notebooks are taken, spread over it, so that none outweighs the others.
const MOST_OF_ONE: usize = 45;

/// Fetches what is not there yet, and prints each finding and how many there are of each code.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let build = Invocation::cargo([
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--package",
        "blueproof",
    ]);
    ensure!(build.show(&workspace.root)? == Ended::Well, "`{build}` failed");
    let program = workspace.target.join("release/blueproof");
    let folder = workspace.target.join("notebooks");
    fs::create_dir_all(&folder).with_context(|| format!("could not make `{}`", folder.display()))?;
    let (mut counts, mut looked_at) = (BTreeMap::new(), 0);
    for (path, hash) in DISTRIBUTIONS {
        for notebook in notebooks(&fetched(&folder, path, hash)?)? {
            looked_at += 1;
            for finding in findings(&program, &folder, &notebook)? {
                let code = finding["code"].as_str().unwrap_or_default().to_owned();
                print_line(&format!("{code} {}: {}", notebook.display(), finding["message"]));
                *counts.entry(code).or_insert(0_u32) += 1;
            }
        }
    }
    print_line(&format!("\n{looked_at} notebooks"));
    counts
        .iter()
        .for_each(|(code, count)| print_line(&format!("{code} {count}")));
    Ok(ExitCode::SUCCESS)
}

/// Returns the folder of a distribution, which is downloaded and unpacked where it is not there.
fn fetched(folder: &Path, path: &str, hash: &str) -> Result<PathBuf> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let unpacked = folder.join(file.trim_end_matches(".tar.gz"));
    if unpacked.is_dir() {
        return Ok(unpacked);
    }
    let url = format!("https://files.pythonhosted.org/packages/{path}");
    let download = Invocation::of("curl", ["-fsSL", "-o", file, &url]);
    ensure!(download.show(folder)? == Ended::Well, "`{download}` failed");
    let sum = Invocation::of("sha256sum", [file]).ask(folder);
    let sum = sum.context("sha256sum could not be run")?;
    ensure!(
        sum.starts_with(hash),
        "{file} is not what it was: its SHA-256 is {sum}"
    );
    let unpack = Invocation::of("tar", ["-xzf", file]);
    ensure!(unpack.show(folder)? == Ended::Well, "`{unpack}` failed");
    Ok(unpacked)
}

fn notebooks(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("could not read `{}`", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "ipynb") {
                found.push(path);
            }
        }
    }
    found.sort();
    let step = found.len().div_ceil(MOST_OF_ONE).max(1);
    Ok(found.into_iter().step_by(step).collect())
}

/// Drafts a blueprint for a notebook, beside it, and returns what is found in both.
fn findings(program: &Path, home: &Path, notebook: &Path) -> Result<Vec<Value>> {
    let blueprint = notebook.with_file_name("blueprint.yaml");
    let notebook = notebook.to_string_lossy();
    let draft = answer(program, home, &["init", &notebook, "--stdout"])?;
    let said = String::from_utf8_lossy(&draft.stderr);
    ensure!(draft.status.success(), "`init {notebook}` failed: {said}");
    fs::write(&blueprint, &draft.stdout)
        .with_context(|| format!("could not write `{}`", blueprint.display()))?;
    let checked = answer(
        program,
        home,
        &["check", &blueprint.to_string_lossy(), "-o", "json"],
    );
    fs::remove_file(&blueprint).with_context(|| format!("could not remove `{}`", blueprint.display()))?;
    let list: Value = serde_json::from_slice(&checked?.stdout)
        .with_context(|| format!("`check` of {notebook} answered no JSON"))?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

fn answer(program: &Path, home: &Path, words: &[&str]) -> Result<Output> {
    let home_text = home.to_string_lossy();
    let invocation = Invocation::of(program, words.iter().copied()).env("HOME", &home_text);
    let output = invocation.command(home).output();
    output.with_context(|| format!("could not start `{invocation}`"))
}

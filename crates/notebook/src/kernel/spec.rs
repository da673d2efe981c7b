//! Kernelspecs: how the kernel of another language than Python is started.
//!
//! They are found as Jupyter finds them, but for the folders of the person who runs it: a run must not depend on what
//! somebody has installed for themselves. See <https://jupyter-client.readthedocs.io/en/stable/kernels.html>.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use serde::Deserialize;

use super::Variables;
use crate::ipynb::ForeignKernel;

/// The folders of kernelspecs that belong to the machine.
const SYSTEM: [&str; 2] = ["/usr/local/share/jupyter", "/usr/share/jupyter"];

/// A kernel.json takes less than a KiB.
const LONGEST: u64 = 1 << 20;

/// The kernelspecs that there are, by name; of several with one name, the first that is found.
#[derive(Debug)]
pub(crate) struct KernelSpecs(BTreeMap<String, PathBuf>);

/// How a kernel is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelSpec {
    /// Its name.
    pub(crate) name: String,
    /// How it is asked to interrupt what runs.
    pub(crate) interrupt: InterruptMode,
    folder: PathBuf,
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
}

/// How a kernel is asked to interrupt what runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum InterruptMode {
    /// By SIGINT to its process group.
    #[default]
    Signal,
    /// By a message on its control channel.
    Message,
}

/// A kernel.json, as far as it is looked at.
#[derive(Deserialize)]
struct Written {
    argv: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    interrupt_mode: InterruptMode,
}

impl KernelSpecs {
    /// Finds the kernelspecs of an environment, of the folders that `JUPYTER_PATH` names, and of the machine.
    pub(crate) fn of(environment: Option<&Path>) -> Self {
        let environment = environment.map(|prefix| prefix.join("share/jupyter"));
        let named = env::var_os("JUPYTER_PATH").unwrap_or_default();
        let named = env::split_paths(&named).filter(|path| path.is_absolute());
        let system = SYSTEM.into_iter().map(PathBuf::from);
        Self::below(environment.into_iter().chain(named).chain(system))
    }

    fn below(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut found = BTreeMap::new();
        for entry in folders
            .into_iter()
            .filter_map(|folder| fs::read_dir(folder.join("kernels")).ok())
            .flat_map(|entries| entries.flatten())
        {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if entry.path().join("kernel.json").is_file() {
                // Jupyter takes no notice of case.
                found.entry(name.to_lowercase()).or_insert(entry.path());
            }
        }
        Self(found)
    }

    /// Returns the kernelspec that a notebook asks for: that of its name, or where it names none the only one of its language.
    ///
    /// # Errors
    ///
    /// Where there is none, or it cannot be used.
    pub(crate) fn find(&self, wanted: &ForeignKernel) -> Result<KernelSpec, Box<Diagnostic>> {
        if let Some(name) = &wanted.name {
            let name = name.to_lowercase();
            let folder = self.0.get(&name).ok_or_else(|| Box::new(self.missing(wanted)))?;
            let (spec, _) = read(&name, folder)?;
            return Ok(spec);
        }
        let is_of_language = |language: Option<String>| {
            let of = |one: &Option<String>| one.as_ref().map(|one| one.to_lowercase());
            language.is_some() && of(&language) == of(&wanted.language)
        };
        let read = self.0.iter().filter_map(|(name, folder)| read(name, folder).ok());
        let mut fitting = read.filter(|(_, language)| is_of_language(language.clone()));
        match (fitting.next(), fitting.next()) {
            (Some((only, _)), None) => Ok(only),
            (_, _) => Err(Box::new(self.missing(wanted))),
        }
    }

    fn missing(&self, wanted: &ForeignKernel) -> Diagnostic {
        let of_name = match &wanted.name {
            Some(name) => format!("no kernelspec `{name}`"),
            None => "no single kernelspec of that language".to_owned(),
        };
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let there = if names.is_empty() {
            "there is none at all".to_owned()
        } else {
            format!("there are: {}", names.join(", "))
        };
        let message = format!(
            "the notebook was written for the kernel {wanted}, and the environment has {of_name}; {there}"
        );
        Diagnostic::error(Code::ForeignLanguage, message)
            .hint("add the package that brings it (`share/jupyter/kernels` in its wheel) to spec.env.requirements")
            .hint("or set JUPYTER_PATH, where blueproof is started, to a folder with `kernels` in it, or install it for all users")
            .hint("if the notebook is Python's, open it with a Python kernel and save it again")
    }
}

/// Reads a kernelspec, and the language that it says it has.
fn read(name: &str, folder: &Path) -> Result<(KernelSpec, Option<String>), Box<Diagnostic>> {
    let file = folder.join("kernel.json");
    let unusable = |why: String| {
        let message = format!("the kernelspec `{name}` cannot be used");
        Box::new(
            Diagnostic::error(Code::KernelSpecUnusable, message)
                .at(SourceLocation::file(file.display().to_string()))
                .because(why),
        )
    };
    let text = fs::metadata(&file).and_then(|about| match about.len() {
        0..=LONGEST => fs::read(&file),
        _ => Err(std::io::ErrorKind::FileTooLarge.into()),
    });
    let text = text.map_err(|error| unusable(error.to_string()))?;
    let written: Written = serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))?;
    if written.argv.is_empty() {
        return Err(unusable("its `argv` names no program".into()));
    }
    let spec = KernelSpec {
        name: name.to_owned(),
        interrupt: written.interrupt_mode,
        folder: folder.to_owned(),
        arguments: written.argv,
        variables: written.env,
    };
    Ok((spec, written.language))
}

impl KernelSpec {
    /// Returns the program and its arguments. A bare `python` is that of the environment, as for Jupyter.
    pub(crate) fn command(&self, python: &Path, connection_file: &Path) -> Vec<OsString> {
        let prefix = prefix_of(python).unwrap_or(Path::new("/usr"));
        let fields = [
            ("{connection_file}", connection_file),
            ("{resource_dir}", &self.folder),
            ("{prefix}", prefix),
        ];
        let filled = |argument: &String| {
            let mut text = argument.clone();
            for (field, path) in fields {
                text = text.replace(field, &path.to_string_lossy());
            }
            OsString::from(text)
        };
        let mut command: Vec<OsString> = self.arguments.iter().map(filled).collect();
        if is_python(&command[0]) {
            command[0] = python.into();
        }
        command
    }

    /// Adds the variables that the kernelspec sets; `${NAME}` in them stands for what the kernel has by that name.
    pub(crate) fn add_variables(&self, variables: &mut Variables) {
        let before = variables.clone();
        let all = self.variables.iter();
        variables.extend(all.map(|(name, value)| (name.clone(), expanded(value, &before).into())));
    }

    /// Sees that the program is there.
    ///
    /// # Errors
    ///
    /// Where it is not, or may not be executed.
    pub(crate) fn check_program(
        &self,
        program: &OsStr,
        variables: &Variables,
    ) -> Result<(), Box<Diagnostic>> {
        let path = variables.get("PATH").cloned().unwrap_or_default();
        let may_run =
            |file: &Path| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
        let is_there = if program.as_encoded_bytes().contains(&b'/') {
            may_run(Path::new(program))
        } else {
            env::split_paths(&path).any(|folder| may_run(&folder.join(program)))
        };
        if is_there {
            return Ok(());
        }
        let program = program.to_string_lossy();
        let message = format!(
            "the kernelspec `{}` starts `{program}`, which is not there",
            self.name
        );
        Err(Box::new(
            Diagnostic::error(Code::KernelSpecUnusable, message)
                .at(SourceLocation::file(
                    self.folder.join("kernel.json").display().to_string(),
                ))
                .hint(format!(
                    "install `{program}`, or take the kernelspec away where there is another of its name"
                )),
        ))
    }
}

/// Returns the folder that an interpreter's environment is in.
pub(crate) fn prefix_of(python: &Path) -> Option<&Path> {
    python.parent()?.parent()
}

fn is_python(program: &OsStr) -> bool {
    let version = program
        .to_str()
        .and_then(|program| program.strip_prefix("python"));
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// Replaces `${NAME}` and `$NAME` by what stands there, as Python's `string.Template` does: what is unknown stays.
fn expanded(text: &str, variables: &Variables) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out += before;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, behind) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some(braced) => braced,
            None => after.split_at(after.find(|c| !is_word(c)).unwrap_or(after.len())),
        };
        match variables.get(name) {
            Some(value) => {
                out += &value.to_string_lossy();
                rest = behind;
            }
            None => {
                out.push('$');
                rest = after.strip_prefix('$').unwrap_or(after);
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folders(tempfile::TempDir);

    impl Folders {
        fn new() -> Self {
            Self(tempfile::tempdir().expect("a folder"))
        }

        fn add(&self, data: &str, name: &str, kernel: &str) -> PathBuf {
            let folder = self.0.path().join(data).join("kernels").join(name);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("kernel.json"), kernel).expect("a file");
            folder
        }

        fn specs(&self) -> KernelSpecs {
            KernelSpecs::below(["first", "second"].map(|data| self.0.path().join(data)))
        }
    }

    fn wanted(name: Option<&str>, language: Option<&str>) -> ForeignKernel {
        ForeignKernel {
            name: name.map(str::to_owned),
            language: language.map(str::to_owned),
            display_name: None,
        }
    }

    #[test]
    fn a_kernelspec_is_found_by_its_name_in_the_first_folder_that_has_it() {
        let folders = Folders::new();
        let first = folders.add("first", "IR", r#"{"argv": ["R"], "interrupt_mode": "message"}"#);
        folders.add("second", "ir", r#"{"argv": ["other"]}"#);
        folders.add("second", "bash", r#"{"argv": ["bash"], "language": "Bash"}"#);
        let found = folders
            .specs()
            .find(&wanted(Some("ir"), None))
            .expect("it is there");
        assert_eq!((found.folder, found.interrupt), (first, InterruptMode::Message));
        let found = folders
            .specs()
            .find(&wanted(None, Some("bash")))
            .expect("there is one");
        assert_eq!(
            (found.name.as_str(), found.interrupt),
            ("bash", InterruptMode::Signal)
        );
    }

    #[test]
    fn the_environments_own_kernelspecs_are_found() {
        let folders = Folders::new();
        let own = folders.add("env/share/jupyter", "of-this-environment", r#"{"argv": ["a"]}"#);
        let specs = KernelSpecs::of(prefix_of(&folders.0.path().join("env/bin/python")));
        let found = specs
            .find(&wanted(Some("of-this-environment"), None))
            .expect("it is there");
        assert_eq!(found.folder, own);
    }

    #[test]
    fn where_there_is_none_those_that_are_there_are_named() {
        let folders = Folders::new();
        folders.add("first", "bash", r#"{"argv": ["bash"], "language": "bash"}"#);
        folders.add("first", "bash2", r#"{"argv": ["bash"], "language": "bash"}"#);
        for wanted in [
            wanted(Some("ir"), Some("R")),
            wanted(None, Some("bash")),
            wanted(None, Some("r")),
        ] {
            let missing = folders.specs().find(&wanted).expect_err("there is none");
            assert_eq!(missing.code, Code::ForeignLanguage);
            assert!(
                missing.message.ends_with("there are: bash, bash2"),
                "{}",
                missing.message
            );
        }
        let none = KernelSpecs::below([]).find(&wanted(Some("ir"), None));
        assert!(none.is_err_and(|none| none.message.ends_with("there is none at all")));
    }

    #[test]
    fn a_kernelspec_that_cannot_be_read_is_named_with_its_file() {
        let folders = Folders::new();
        for text in [
            "",
            "[]",
            r#"{"argv": []}"#,
            r#"{"argv": ["a"], "interrupt_mode": "shout"}"#,
        ] {
            folders.add("first", "odd", text);
            let unusable = folders.specs().find(&wanted(Some("odd"), None)).expect_err(text);
            assert_eq!(unusable.code, Code::KernelSpecUnusable, "{text}");
            assert!(
                unusable
                    .place
                    .is_some_and(|place| place.file.ends_with("odd/kernel.json"))
            );
        }
    }

    #[test]
    fn the_command_is_the_kernelspecs_with_its_fields_filled() {
        let folders = Folders::new();
        let text = r#"{"argv": ["python3", "-m", "echo", "--file={connection_file}", "{resource_dir}/x", "{prefix}"],
                       "env": {"LIB": "${ROOT}/lib:$ROOT$$:${NOTHING}", "PATH": "/k:${PATH}"}}"#;
        let folder = folders.add("first", "echo", text);
        let spec = folders
            .specs()
            .find(&wanted(Some("echo"), None))
            .expect("it is there");
        let command = spec.command(Path::new("/env/bin/python"), Path::new("/s/kernel.json"));
        let resource = folder.join("x");
        let expected: Vec<&OsStr> = vec![
            "/env/bin/python".as_ref(),
            "-m".as_ref(),
            "echo".as_ref(),
            "--file=/s/kernel.json".as_ref(),
            resource.as_os_str(),
            "/env".as_ref(),
        ];
        assert_eq!(command, expected);

        let given = [("ROOT", "/r"), ("PATH", "/bin")];
        let mut variables: Variables = given.map(|(name, value)| (name.to_owned(), value.into())).into();
        spec.add_variables(&mut variables);
        assert_eq!(variables["LIB"], "/r/lib:/r$:${NOTHING}");
        assert_eq!(variables["PATH"], "/k:/bin");
    }

    #[test]
    fn a_program_that_is_not_there_is_named_before_anything_starts() {
        let folders = Folders::new();
        folders.add("first", "echo", r#"{"argv": ["/nowhere/echo"]}"#);
        let spec = folders
            .specs()
            .find(&wanted(Some("echo"), None))
            .expect("it is there");
        let variables = Variables::from([("PATH".to_owned(), "/usr/bin:/bin".into())]);
        spec.check_program(OsStr::new("sh"), &variables)
            .expect("every machine has it");
        for missing in ["/nowhere/echo", "no-such-program-at-all", "/etc/passwd"] {
            let missing = spec.check_program(OsStr::new(missing), &variables);
            assert!(missing.is_err_and(|error| error.code == Code::KernelSpecUnusable));
        }
    }
}

//! What an environment is asked for, checked and in one order: the part of its key that the blueprint decides.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::{
    Host, Unprepared,
    interpreter::{Interpreter, PythonRequest},
    lockfile::Lock,
    requirements::{checked_by_name, name_of, parse, refused},
};
use crate::{files::hexadecimal, plan::Environment};

/// Changes when environments are built in another way, so that none of an older kind is reused.
const FORMAT: &str = "2";

/// Always installed: the kernel itself, and pip for notebooks that install packages in a cell.
const ALWAYS: [&str; 2] = ["ipykernel", "pip"];

/// Who chose the packages of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chooser {
    /// Somebody whose code may run as the agent's user.
    Trusted,
    /// Anybody.
    Stranger,
}

/// A checked request for an environment.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) python: Option<PythonRequest>,
    /// What to install beside the lock, as pip writes it, in a fixed order.
    pub(super) requirements: Vec<String>,
    pub(super) lock: Option<Lock>,
    chooser: Chooser,
}

impl Wanted {
    pub(super) fn read(
        environment: &Environment,
        checkout: &Path,
        chooser: Chooser,
    ) -> Result<Self, Unprepared> {
        let python = environment
            .python
            .as_deref()
            .map(PythonRequest::parse)
            .transpose()?;
        let mut requirements = Vec::new();
        for line in &environment.requirements {
            requirements.extend(parse(line).map_err(|why| refused(line, why))?);
        }
        let lock = environment
            .lock
            .as_deref()
            .map(|lock| Lock::read(checkout, lock))
            .transpose()?;
        match chooser {
            Chooser::Trusted => {}
            Chooser::Stranger => {
                let mut lines = environment.requirements.iter();
                lines.try_for_each(|line| {
                    checked_by_name(line).map_err(|refused| Unprepared::config(*refused))
                })?;
                lock.iter().try_for_each(Lock::check_of_stranger)?;
            }
        }
        for name in ALWAYS {
            if !requirements
                .iter()
                .any(|requirement| name_of(requirement) == name)
            {
                requirements.push(name.to_owned());
            }
        }
        requirements.sort();
        requirements.dedup();
        Ok(Self {
            python,
            requirements,
            lock,
            chooser,
        })
    }

    /// Returns everything that is installed by name, the lock's included.
    pub(super) fn all(&self) -> Vec<&str> {
        let locked = self.lock.iter().flat_map(|lock| lock.requirements.iter());
        self.requirements
            .iter()
            .chain(locked)
            .map(String::as_str)
            .collect()
    }

    /// Returns the environment's key: the same for the same request on the same interpreter and platform.
    pub(super) fn key(&self, interpreter: &Interpreter) -> String {
        let mut hasher = Sha256::new();
        for part in [
            &interpreter.implementation,
            &interpreter.version,
            &interpreter.platform,
        ] {
            hasher.update(part);
            hasher.update([0]);
        }
        self.add_to(&mut hasher);
        let minor = interpreter
            .version
            .split('.')
            .take(2)
            .collect::<Vec<_>>()
            .join(".");
        format!("py{minor}-{}", hexadecimal(&hasher.finalize()[..10]))
    }

    /// Returns what stands for the request where no interpreter has been asked yet.
    pub(super) fn request_hash(&self, host: &Host) -> String {
        let mut hasher = Sha256::new();
        if let Some(python) = &self.python {
            hasher.update(python.to_string());
        }
        hasher.update([0]);
        host.fingerprint(&mut hasher);
        self.add_to(&mut hasher);
        hexadecimal(&hasher.finalize()[..16])
    }

    fn add_to(&self, hasher: &mut Sha256) {
        hasher.update(FORMAT);
        match self.chooser {
            Chooser::Trusted => {}
            // It is made in another way, and what it is says so.
            Chooser::Stranger => hasher.update(" of a stranger"),
        }
        for requirement in &self.requirements {
            hasher.update([0]);
            hasher.update(requirement);
        }
        if let Some(lock) = &self.lock {
            hasher.update([1]);
            hasher.update(lock.text());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_spelling_of_requirements_make_no_other_environment() {
        let read = |lines: &[&str]| {
            let environment = Environment {
                requirements: lines.iter().map(ToString::to_string).collect(),
                ..Environment::default()
            };
            Wanted::read(&environment, Path::new("/"), Chooser::Trusted)
                .expect("the requirements are fine")
                .requirements
        };
        assert_eq!(
            read(&["numpy", "absl-py", "numpy # again"]),
            read(&["absl-py", "numpy"])
        );
        assert_eq!(read(&["IPyKernel<8"]), ["IPyKernel<8", "pip"]);
    }
}

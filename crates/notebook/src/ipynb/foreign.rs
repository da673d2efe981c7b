//! Notebooks that were written for a kernel of another language than Python.

use std::fmt;

use blueproof_diagnostic::{Code, Diagnostic};

use super::Notebook;

/// A kernel of another language than Python, as a notebook names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKernel {
    /// The name of its kernelspec, where the file tells it.
    pub name: Option<String>,
    /// Its language, where the file tells it.
    pub language: Option<String>,
    /// What people call it, where the file tells it.
    pub display_name: Option<String>,
}

impl Notebook {
    /// Returns the kernel that the notebook was written for, where that is not Python's.
    pub fn foreign_kernel(&self) -> Option<ForeignKernel> {
        let is_python = |name: &String| name.to_lowercase().contains("py");
        // Kernels that people make for an environment of their own are called anything; their language is in the file then.
        let telling = [&self.language, &self.kernel, &self.kernel_name];
        let told = telling.into_iter().flatten().next()?;
        (!is_python(told)).then(|| ForeignKernel {
            name: self.kernel_name.clone(),
            language: self.language.clone(),
            display_name: self.kernel.clone(),
        })
    }

    /// Returns what is wrong where the notebook is given parameters and is not Python's.
    pub(crate) fn refuses_parameters(&self) -> Option<Diagnostic> {
        let foreign = self.foreign_kernel()?;
        let message =
            format!("parameters are put in as Python, and the notebook was written for the kernel {foreign}");
        let refused = Diagnostic::error(Code::ParametersForeign, message);
        Some(
            refused.hint("take them out of spec.parameters, and give the values in the notebook's own cells"),
        )
    }
}

impl fmt::Display for ForeignKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut known: Vec<&str> = Vec::new();
        for one in [&self.display_name, &self.language].into_iter().flatten() {
            if !known.contains(&one.as_str()) {
                known.push(one);
            }
        }
        if known.is_empty() {
            known.extend(self.name.as_deref());
        }
        f.write_str(&known.join(" · "))
    }
}

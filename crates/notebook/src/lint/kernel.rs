//! Whether the kernel of a notebook in another language is to be had, as far as that is known before there is an environment.

use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};

use super::Subject;
use crate::kernel::KernelSpecs;

/// Reports a kernel that only the environment can bring. Its requirements may, and nobody knows before they are installed.
pub(super) fn check(subject: &Subject<'_>) -> Vec<Diagnostic> {
    let wanted = subject.notebook.foreign_kernel();
    let missing = wanted.filter(|wanted| KernelSpecs::of(None).find(wanted).is_err());
    let warning = missing.map(|wanted| {
        let name = wanted.name.clone().unwrap_or_else(|| wanted.to_string());
        let message = format!("the notebook was written for the kernel {wanted}: a run needs its kernelspec `{name}`");
        Diagnostic::warning(Code::ForeignLanguage, message)
            .at(SourceLocation::file(subject.notebook.file()))
            .hint("see that a package under spec.env.requirements brings it (`share/jupyter/kernels` in its wheel)")
    });
    warning.into_iter().collect()
}

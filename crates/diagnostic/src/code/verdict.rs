//! Codes from BP0401 to BP0499: verdicts on a notebook and what it started.

macro_rules! verdict {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    401 CellRaised "an exception that left a cell"
        "A cell raised and nothing caught it. Cells that are meant to raise carry the tag `raises-exception`."
    402 KernelEnded "a kernel that ended while it was needed"
        "The kernel's process ended by itself or was killed by another process. Its exit status or signal is shown. A kernel \
         that was killed with SIGKILL was often, but not always, out of memory. The kernel's own output is kept in \
         kernel.log."
    403 CellSyntax "a cell that is not Python"
        "The cell could not be compiled, so that no line of it ran."
    404 CellExited "a cell that ends the program"
        "The cell called `exit()`, `quit()` or `sys.exit()`, or raised SystemExit, with whatever status. In a notebook that \
         skips every later cell, so it counts as a failure in the last cell too. End a cell early with a condition, or tag a \
         cell that is meant to raise with `raises-exception`."
    405 InputRefused "a cell that asks for input"
        "A run has no terminal to answer `input()` or `getpass()`, so they fail at once. Take the value from a parameter or \
         an environment variable."
    406 ModuleMissing "a module that is not in the environment"
        "The notebook imports a module that no package of its environment has. Packages are named under \
         spec.env.requirements."
    407 WorkloadFailed "a process or job that the notebook started, and that failed"
        "The notebook only reported that a process or job of its own failed. The last error of that process is shown, as far \
         as it was printed or captured."
    408 OutOfMemory "memory that could not be allocated"
        "The notebook, or a process that it started, was refused memory of the host or of a GPU, or was killed at its memory \
         limit. Ask for more under spec.driver or spec.workload, or make batches smaller."
    409 MessageUnreadable "a message of the kernel that cannot be read"
        "A kernel sends JSON in signed messages. One message was not JSON, even after invalid UTF-8 was replaced. It may have \
         been an exception or a metric, so the cell has failed."
    410 NothingRan "a notebook of which no code ran"
        "A run passes if code ran and did not fail. Without code, or with every cell switched off, a pass would say nothing. \
         If that is intended, set `spec.allowEmpty: true`."
    411 FailedInSilence "a failure that did not stop its cell"
        "A shell step, a thread, a task or a child process failed, and its cell ended without an error. It may explain a \
         later failure."
    412 InstallLeftOut "an installation that was skipped"
        "A cell installs packages that the environment already has. The line is skipped, so that pinned versions stay as they \
         are. `spec.env.shellInstall: allow` runs it."
    413 InstallRan "an installation that was run"
        "A cell installs packages into its environment while it runs. What it installs is neither pinned nor cached; \
         name it under spec.env.requirements."
    414 ForeignLanguage "a notebook in another language"
        "The notebook names a kernel whose kernelspec was not found. Kernelspecs are searched in the environment \
         (`share/jupyter/kernels`), in the folders of JUPYTER_PATH where blueproof is started, and in the machine's folders; \
         not in a user's. Python is not used instead: a notebook in another language would fail there with errors that \
         explain nothing."
    415 ParameterUnused "a parameter that nothing reads"
        "A value was put into the notebook under the parameter's name and has no effect: no cell reads the name, or a cell \
         assigns it first."
    416 SecretShown "a secret in a notebook's output"
        "A cell printed text that has the form of a token or a key, or an artifact contains one. In outputs it is replaced by \
         `***`; an artifact is kept as it is. Declared secrets (spec.secrets) are replaced without a message, unless they are \
         too short for that."
    417 KernelSpecUnusable "a kernelspec that cannot be used"
        "The notebook's kernel is started as its kernel.json says. That file cannot be read, or names a program that is not there."
    418 ParametersForeign "parameters for a notebook in another language"
        "Parameters are put into a notebook as Python. A notebook in another language reads its values from a file, or \
         defines them in its own cells."
    441 MetricMissing "a metric without a value"
        "The blueprint expects a value of a metric that no cell printed or displayed. The metric's pattern matches nothing, \
         or the cell that prints it was never reached."
    442 MetricOutOfBounds "a metric outside its bounds"
        "Every cell ran, but the value is not within what the blueprint expects. Bounds are included."
    443 MetricNotFinite "a metric that is no finite number"
        "NaN and infinity satisfy no expectation, whatever its bounds."
    444 MetricPattern "a metric's pattern that is no regular expression"
        "Patterns are in RE2's syntax, which has no look-around and no back-references, so that a search always takes \
         time in proportion to the text."
    445 ArtifactMissing "an artifact that is not there"
        "The blueprint expects a file that the notebook did not write. Globs are relative to the notebook's folder; \
         links that lead out of it do not count."
    446 ArtifactEmpty "an artifact that is empty"
        "Files of that name are there, and all of them are empty."
    447 ArtifactPattern "a glob that cannot be used"
        "In a glob `*` stands for anything within one folder, `**` for folders, `?` for one character, `[…]` for one of \
         several and `{a,b}` for either."
    448 OutputMissing "a text that no cell printed"
        "The blueprint expects that a cell prints a text. No cell printed it; the text may not be split between cells."
    449 ArtifactRefused "an artifact that is not kept"
        "Only regular files in the notebook's own folder are kept as artifacts: a link that leads elsewhere could copy a file \
         of the machine."
    450 ArtifactsLimited "artifacts beyond the limit"
        "The artifacts of one attempt are limited in size. Artifacts beyond the limit were not kept, not even in part."
    451 ArtifactUnkept "an artifact that could not be written"
        "The file was there, but could not be copied to where artifacts are kept."
    452 ArtifactRenamed "an artifact that is kept by another name"
        "File names on Linux are bytes; reports, links and JSON contain text. A byte that is not UTF-8 is written as `\\x` \
         and two digits."
    453 ArtifactUntouched "an artifact that the run did not write"
        "An expected file was already in the checkout, and the run did not write to it. Its presence says nothing about this \
         run."
    454 NotEnforced "a requirement that is not enforced here"
        "The blueprint asks for something that is not enforced on this machine. It is unknown whether the notebook kept to \
         it, and a pass says nothing about it. On Kubernetes it is enforced. Memory and processor time are enforced here, \
         too, where cgroup v2 is delegated: `systemd-run --user --scope -p Delegate=yes blueproof run`."
    455 PassedLate "a pass after an attempt that had failed"
        "The same content failed once and then passed, so one of the two results is due to chance: a seed, a race, another \
         host. A blueprint that must not pass this way has no `retries.blueprint`."
    456 DiskLimit "files beyond the limit of a sandbox"
        "What a notebook in a sandbox writes to its folders is limited in size and number, and the machine's disk is never \
         filled. The notebook was ended. Write less, or remove what is no longer needed while the notebook runs. The packages of a pull request have such a limit \
         of their own: ask for fewer."
    }};
}

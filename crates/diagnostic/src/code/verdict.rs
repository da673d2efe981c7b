//! Codes from BP0401 to BP0499: verdicts on a notebook and what it started.

macro_rules! verdict {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    401 CellRaised "an exception that left a cell"
        "A cell raised and nothing caught it. Cells that are meant to raise carry the tag `raises-exception`."
    402 KernelEnded "a kernel that came to its end while it was needed"
        "The process that runs the notebook ended by itself or was killed from outside. Its exit status or signal is \
         named. A kernel that is killed with SIGKILL was often, but not always, out of memory. What the kernel itself \
         printed is kept in kernel.log."
    403 CellSyntax "a cell that is not Python"
        "The cell could not be compiled, so that no line of it ran."
    404 CellExited "a cell that ends the program"
        "The cell called `exit()`, `quit()` or `sys.exit()`, or raised SystemExit, whatever its status. In a notebook \
         that leaves every later cell out, so it counts as a failure in the last cell too. End a cell early with a \
         condition, or tag one that is meant to raise with `increases-exception`."
    405 InputRefused "a cell that asks for input"
        "Nobody is there to answer `input()` or `getpass()`, so they fail at once. Take the value from a parameter or \
         an environment variable."
    406 ModuleMissing "a module that is not in the environment"
        "The notebook imports a module that no package of its environment has. Packages are named under \
         spec.env.requirements."
    407 WorkloadFailed "a process or job that the notebook started, and that failed"
        "The notebook only noticed that something it had started failed. What is shown is the last error of that \
         process itself, as far as it was printed or captured."
    408 OutOfMemory "memory that could not be had"
        "The notebook or something it started was refused memory, of the host or of a GPU, or was killed at the limit of \
         memory that was granted to it. Ask for more under spec.driver or spec.workload, or make batches smaller."
    409 MessageUnreadable "a message of the kernel that cannot be read"
        "What a kernel tells is JSON in signed messages. One came that is neither, also after bytes that are no text were made \
         some. It may have been an exception, or a metric, so the cell has failed."
    410 NothingRan "a notebook of which nothing ran"
        "A pass says that code was run and did not fail. Where there is no code, or every cell is switched off, it would say \
         nothing. Where that is meant, `spec.allowEmpty: true` says so."
    411 FailedInSilence "something that failed without stopping its cell"
        "A shell step, a thread, a task or a child process failed, and the cell ended well all the same. It may \
         explain what fails later."
    412 InstallLeftOut "an installation that was left out"
        "A cell installs packages that the environment already has. The line is left out, so that pinned versions stay \
         as they are. `spec.env.shellInstall: allow` runs it."
    413 InstallRan "an installation that was run"
        "A cell installs packages into its environment while it runs. What it installs is neither pinned nor cached; \
         name it under spec.env.requirements."
    414 ForeignLanguage "a notebook in another language"
        "The notebook says which kernel it was written for, and that kernel's kernelspec is not there. It is looked for in the \
         environment (`share/jupyter/kernels`), in the folders that JUPYTER_PATH names where blueproof is started, and in those \
         of the machine; not in those of a user. Run by Python, such a notebook would fail in a manner that says nothing."
    415 ParameterUnused "a parameter that nothing reads"
        "A value is put into the notebook under the parameter's name, and changes nothing: no cell reads it, or one assigns it first."
    416 SecretShown "a secret that a notebook let out"
        "A cell showed what is shaped like a token or a key, or a kept file holds one. What is shown is kept as `***`; a file \
         is kept as it is. Declared secrets (spec.secrets) are taken out without a word, unless they are too short for it."
    417 KernelSpecUnusable "a kernelspec that cannot be used"
        "The notebook's kernel is started as its kernel.json says. That file cannot be read, or names a program that is not there."
    418 ParametersForeign "parameters for a notebook in another language"
        "Values of parameters are put into a notebook as Python. A notebook in another language takes them from a file, or has them \
         in its own cells."
    441 MetricMissing "a metric without a value"
        "The blueprint expects something of a metric that no cell printed or showed. A pattern that matches nothing, \
         or a cell that was never reached, look the same here."
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
    447 ArtifactPattern "a glob that is none"
        "In globs `*` stands for anything within one folder, `**` for folders, `?` for one character, `[…]` for one of \
         several and `{a,b}` for either."
    448 OutputMissing "a text that no cell printed"
        "The blueprint expects some cell to print a text, all of it within one cell."
    449 ArtifactRefused "an artifact that is not kept"
        "Only ordinary files of the notebook's own folder are kept: a link that leads elsewhere could carry away a \
         file of the machine's."
    450 ArtifactsLimited "artifacts beyond the limit"
        "The artifacts of one attempt may take so much room and no more. What did not fit was left out whole."
    451 ArtifactUnkept "an artifact that could not be written"
        "The file was there, but could not be copied to where artifacts are kept."
    452 ArtifactRenamed "an artifact that is kept by another name"
        "A file's name on Linux is any bytes; reports, links and JSON hold text. A byte that is no UTF-8 stands in the name as \
         `\\x` and two digits."
    453 ArtifactUntouched "an artifact of before"
        "A file that is expected was in the checkout already, and nothing wrote to it. That it is there says nothing of this run."
    454 NotEnforced "something that was asked for and is not done here"
        "The blueprint asks for something that nobody sees to on this machine. Whether the notebook keeps to it is not known, and \
         a pass says nothing of it. On Kubernetes it is enforced. Memory and processor time are enforced here, too, where cgroup \
         v2 is delegated: `systemd-run --user --scope -p Delegate=yes blueproof run`."
    455 PassedLate "a pass after an attempt that had failed"
        "The same content failed once and then passed, so that one of the two was by chance: a seed, a race, another host. A \
         blueprint that shall not pass so has no `retries.blueprint`."
    }};
}

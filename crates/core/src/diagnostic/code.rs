//! Every code that a person can meet, in one table. A code is never given a second meaning.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($number:literal $name:ident $title:literal $explanation:literal)*) => {
        /// Which kind of thing is wrong; shown as `BP0213`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(try_from = "String", into = "String")]
        pub enum Code {
            $(#[doc = $title] $name = $number,)*
        }

        impl Code {
            /// Every code, in the order of their numbers.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// Returns what the code stands for, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$name => $title,)* }
            }

            /// Returns what `blueproof explain` says: why it comes about and how it is mended.
            pub fn explanation(self) -> &'static str {
                match self { $(Code::$name => $explanation,)* }
            }
        }
    };
}

// 01 command line and configuration; 02 blueprint and notebook files; 03 environments; 04 verdicts on a notebook
// and what it started; 05 limits of time; 06 the machine and the cluster; 07 the store; 08 gate and queue.
codes! {
    101 Usage "a command that cannot be understood"
        "The command line names something that does not exist or leaves out something that is needed. \
         `blueproof help COMMAND` shows what a command takes."
    102 NoSuchRun "a run that is not in the store"
        "No run of that id is known here. `blueproof get runs` lists those that are; `last` stands for the newest of the project in which it is typed, and a blueprint's \
         name for its newest there. A run is known only to the store that it was made in (`--store`, `BLUEPROOF_STORE`)."
    103 NoHome "a machine without a home folder"
        "What blueproof keeps lies in the home folder when nothing else is configured, and HOME is not set, or is no \
         absolute path. Set it, or name other places: `--store`, `BLUEPROOF_STORE`, `BLUEPROOF_ENVIRONMENTS`."
    104 ConfigUnreadable "a configuration file that cannot be read"
        "The file is there but could not be read, or it was named with `--config` or `BLUEPROOF_CONFIG` and is not \
         there. `blueproof config path` lists the files that are looked at."
    105 ConfigValue "a configuration value that cannot be used"
        "A configuration file says `apiVersion: blueproof.dev/v1alpha1` and `kind: Config`; each of its keys, and each \
         `BLUEPROOF_*` variable, takes values of one kind. `blueproof schema config` prints them all."
    106 ConfigNotHere "a setting that this file may not have"
        "The configuration in a project's folder comes with its content, as a notebook does. It may say where things \
         go, but not who approves what is run: that stands in the user's or the machine's file."
    107 Unwritable "an answer that could not be written"
        "Standard output did not take the answer: a full disk, or a device that failed. What was asked for may be done \
         all the same; `blueproof get runs` tells."
    108 LeftAlone "a run that no process drives"
        "The process that drove this run has ended, or was killed. Nothing is lost: an attempt goes on by itself, and the \
         next `blueproof wait`, `blueproof run` or scheduler on the same store takes the run over. Why one that drove for `--detach` ended stands in `runs/host.log` beside the store."
    109 ConfigOfStranger "a configuration file that somebody else put there"
        "A project's `.blueproof/config.yaml` was found in a folder that everybody may write to, and belongs to somebody \
         else. It could name a program to run as you. `--config FILE` uses it all the same."
    201 FileMissing "a file that is not there or cannot be read"
        "The blueprint, or the notebook that it names, could not be read. Paths in a blueprint are relative to the \
         folder of the blueprint."
    202 YamlSyntax "a file that is not YAML"
        "The file could not be parsed. The place that is shown is where the parser gave up; the mistake is often on \
         the line above: a missing colon, a tab, or an unclosed quote."
    203 UnknownKey "a key that is not known"
        "Keys that blueproof does not know are refused instead of ignored, because a limit or an expectation that \
         is silently not applied is worse than none. `blueproof schema blueprint` prints every key of a blueprint."
    204 WrongType "a value of the wrong kind"
        "A key holds text where a number is wanted, a single value where a list is wanted, or the like. A number that \
         is meant as text, such as a Python version, needs quotes. `blueproof schema blueprint` prints every key."
    205 BadValue "a value that is not allowed"
        "The value is of the right kind, but cannot be used: an amount, a duration, a name, a glob or a regular \
         expression that is not well formed, or a number outside its range. The hint says what is allowed."
    206 MissingKey "a key that must be there"
        "A blueprint needs little: `spec.notebook`, and in each parameter, metric and secret the keys without which \
         it says nothing. Everything else has a default, which `blueproof schema blueprint` tells."
    207 NotSupportedYet "a key that cannot be acted upon yet"
        "The key belongs to the format, but this version cannot do what it asks for. It is refused instead of \
         ignored: a run that silently lacks what its blueprint asks for would prove nothing."
    208 UnknownParameter "a parameter that the blueprint does not have"
        "A value was given to a parameter, or `{{name}}` refers to one, that `spec.parameters` does not declare."
    209 ParameterValue "a value that a parameter does not take"
        "Each parameter has a type and may have a least value, a greatest value and a list of choices. Values are \
         checked before a run is queued, in the blueprint, in its profiles and on the command line."
    210 UnknownProfile "a profile that the blueprint does not have"
        "Profiles stand under `spec.profiles`. Without a profile the blueprint is run as it is written."
    211 OutsideCheckout "a path that leaves the folder of the blueprint"
        "A blueprint comes from a pull request and may only name files in its own folder: no absolute path, no `..` \
         that leads out, and no symbolic link that does."
    212 WrongFormat "a file of another kind or version"
        "A blueprint says `apiVersion: blueproof.dev/v1alpha1` and `kind: Blueprint`. A file of a newer version is \
         not read by guesswork."
    213 UnknownMetric "a metric that the blueprint does not have"
        "What `spec.expect` says about a metric needs that metric under `spec.metrics`, or it would hold for ever \
         without being measured."
    214 NoSuchBlueprint "a blueprint that was not found"
        "No blueprint of that name stands in this folder or below it. Hidden folders, `node_modules` and `target` are \
         not searched. A path to a notebook or to a blueprint.yaml works, too."
    215 AmbiguousBlueprint "a name that several blueprints have"
        "Several blueprints in this folder have the same name. Give the path of the one that is meant, or set \
         `metadata.name` in each."
    216 TooMuch "more than can be counted"
        "The resources of one node times the number of nodes are more than a number can hold. The blueprint asks for \
         something that no cluster has."
    220 NotebookSyntax "a file that is not a notebook"
        "A notebook file is one JSON object in UTF-8. An interrupted download, a merge conflict or a Git LFS pointer \
         in its place look like this."
    221 NotebookFormat "a notebook of another format"
        "Notebooks of format 4 are read, which Jupyter has written since 2015. \
         `jupyter nbconvert --to notebook --nbformat 4 FILE` upgrades an older one."
    222 NotebookShape "a notebook whose cells are not as the format says"
        "The file is JSON, but a cell lacks its type or its source, or has something else in their place."
    223 FileTooLarge "a file that is too large to be read"
        "Blueprints may have 1 MiB and notebooks 50 MiB; what is larger is data. Clear the outputs of a notebook \
         before it is committed: `jupyter nbconvert --clear-output --inplace FILE`. Files of queues may have 64 MiB."
    230 NoParametersTag "a notebook whose parameters are not marked"
        "Values are put in after the cell that is tagged `parameters`; without one they are put in at the top, and \
         a later assignment in the notebook silently undoes them. In JupyterLab: property inspector, cell tags. A notebook \
         needs no such cell when its blueprint has no parameters and it creates no TrainJob."
    231 ShortWait "a wait that may be shorter than the work"
        "The wait for a TrainJob ends with an error after a time that pulling an image alone can take. What then \
         fails is the wait, and the real reason stays hidden."
    232 FixedNodeLoop "a loop over a fixed number of nodes"
        "The loop counts to a constant while the number of nodes is set elsewhere. With fewer nodes it shows \
         sections without content, with more it leaves some out, and neither fails."
    233 UnusedGpu "a GPU that is asked for and not used"
        "The TrainJob may hold GPUs, but its training function never names a device, so that they stay idle. \
         XGBoost needs `device=\"cuda\"`; it trains on the CPU otherwise, whatever it was given."
    234 Placeholder "a value that a person has to fill in"
        "The notebook cannot run as it is committed: a bucket, a token or a path is a placeholder. Make it a \
         parameter, read it from the environment (`spec.secrets`), or make the step depend on it."
    235 UnpinnedInstall "a package without a version"
        "The newest version is installed at each run, so that the same commit passes today and fails tomorrow."
    236 ShellInstall "a cell that installs packages"
        "Installing in a cell changes the environment while it is in use, needs a network, and hides what the \
         notebook needs. List it under `spec.env.requirements`; `spec.env.shellInstall` says what becomes of the cell."
    237 NoCompletionWait "a TrainJob whose end is not awaited"
        "The notebook creates a TrainJob and never waits for it to complete, so that it can pass although the \
         TrainJob fails later."
    238 WaitsForRunning "a wait that can hang where Kueue admits TrainJobs"
        "The SDK tells the status Running only for a TrainJob without conditions; one that Kueue has admitted always \
         has one, so that the wait never ends (kubeflow/sdk#803). Wait for Complete, or follow the logs."
    239 DriverHoldsGpus "GPUs given to the notebook that its TrainJobs need"
        "The notebook only creates TrainJobs; the GPUs that its own kernel holds stay idle and may be the very ones \
         that the TrainJobs wait for. GPUs of TrainJobs stand under `spec.workload`."
    240 StoredOutputs "a notebook that is committed with its outputs"
        "Outputs and execution counts of an earlier run are in the file. They make every change of the file hard to \
         read and look like results of this commit, which they are not."
    241 CellNotPython "a cell that is not Python"
        "The cell could not be understood as Python with IPython's additions, so nothing is known of what it does. \
         The kernel would most likely refuse it, too."
    249 HeadChanged "a folder that changed after it was asked for"
        "A run is of exactly the content that was there when it was asked for, and that is what an approval is of. The \
         folder held something else when the run was about to start."
    250 NameWithoutValue "a name that is read before it has a value"
        "The cells are run once, from the first to the last. A name that only a cell further down gives a value, or none, \
         is there in an old kernel and not in a new one: the run ends with a NameError."
    251 SecretInSource "a secret in a cell"
        "What looks like a token, a password or a private key stands in the notebook, and so in every copy of the \
         repository. Take it back where it was issued, and have the notebook read it from the environment (`spec.secrets`)."
    252 AsksPerson "a cell that asks a person"
        "`input()`, `getpass()` and debuggers wait for somebody to type. Nobody is there in a run: the kernel refuses to \
         ask, and the cell raises."
    253 GpuNotAsked "a GPU that is used and not asked for"
        "The notebook moves its work to a GPU without looking whether there is one, and no profile of the blueprint gives \
         its kernel any. Where none is given none can be seen, and the cell raises."
    254 DataMissing "a file that is not there"
        "A cell reads a file that does not lie beside the notebook, and nothing in the notebook writes or fetches it. A run \
         has what is in the blueprint's folder and nothing else."
    255 ImportMissing "a module that nothing brings"
        "A cell imports a module that is neither Python's own nor a file beside the notebook, and no requirement names its \
         package. It may still come as a dependency of another package, until that one needs it no longer."
    256 MachineCommand "a command that changes the machine"
        "A cell calls `sudo` or a package manager of the system, or removes folders whole. In a run there is nobody to type \
         a password, and what is removed or installed is the machine's, not the run's."
    258 StatementTooLong "a statement that is too long to be looked at"
        "A single statement of more than 256 KiB is data. It is left out of what is checked. Data in a file beside the \
         notebook is quicker to read, and its changes can be seen."
    301 PythonMissing "no Python that can run a notebook"
        "No interpreter was found on PATH that starts, says its version and can make a virtual environment. Every one \
         that was tried is listed with its own words: a shim of pyenv's, for example, is a file but need not be a \
         Python."
    302 PythonVersion "no Python of the wanted version"
        "The blueprint asks for a version of Python under `spec.env.python`, or the notebook in its script block, that \
         no interpreter on this machine has. Install one, have uv on PATH, which fetches it, or ask for another."
    303 PackageMissing "a package that does not exist"
        "The package index knows no package of that name. Names are often not those of the module: `import cv2` is \
         `opencv-python`. A private package needs the host's own pip or uv configuration to name its index."
    304 PackageVersion "a version of a package that does not exist"
        "The package exists, but no release of it satisfies the requirement on this Python and platform."
    305 PackageConflict "packages that exclude each other"
        "No choice of versions satisfies every requirement at once. The resolver's own words say which exclude which."
    306 PackageBuild "a package that cannot be built"
        "The package has no wheel for this Python and platform and building it from source failed, usually for want \
         of a compiler or a library. Another version, or another Python, may have a wheel."
    307 PackagesOffline "packages that are not here, and no network to fetch them"
        "The package index could not be reached, and what is missing is not in a cache of this machine. Run once with \
         network, or point pip to a folder of wheels (`PIP_FIND_LINKS`)."
    308 LockFile "a lock file that cannot be used"
        "The file under `spec.env.lock` is `uv.lock` or one requirements file with every version pinned, inside the \
         checkout, and leads to no other file."
    309 Requirement "a requirement that cannot be used"
        "Requirements are a package's name with versions, extras and markers, as pip writes them. Options of pip and \
         paths of this machine are refused: they mean something else on the next machine."
    310 ScriptBlock "a script block that cannot be read"
        "The comment between `# /// script` and `# ///` in a notebook's first code cell is TOML, as PEP 723 defines it."
    311 InstallFailed "packages that could not be installed"
        "The installer failed in a way that blueproof has no better name for. Its last words are shown."
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
         condition, or tag one that is meant to raise with `raises-exception`."
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
    501 StartupTimeout "a start that took too long"
        "Environment and kernel were not ready within spec.timeouts.startup. A first start downloads packages; later \
         ones find them in the cache."
    502 CellTimeout "a cell that took too long"
        "The cell did not end within spec.timeouts.cell. It was interrupted first; what it had printed is kept."
    503 RunTimeout "cells that took too long together"
        "The cells did not all end within spec.timeouts.run. What they had printed is kept."
    510 QueueTimeout "a run that waited for quota too long"
        "The blueprint limits how long it waits for quota (`spec.timeouts.queue`), and that time is over. `blueproof \
         why RUN` says what it waited for; `blueproof retry RUN` puts it into the queue again."
    511 ExecutionTimeout "a run that had quota for too long"
        "The blueprint limits how long it may have quota (`spec.timeouts.execution`), all attempts together: what an \
         attempt had before it was evicted counts, too. It is Kueue's maximumExecutionTimeSeconds, reason \
         MaximumExecutionTimeExceeded. `blueproof retry RUN` begins anew."
    520 Overdue "an attempt that did not keep its own limits"
        "The agent ends a notebook at its limits by itself. This one did not, so the scheduler ended it."
    601 AgentLost "an agent that was killed"
        "The process that carried out the attempt ended without saying how the attempt ended. Whatever was left of it \
         has been ended. The notebook is not run again in the same attempt; a retry is a new attempt."
    602 KernelNotStarted "a kernel that could not be started"
        "The environment is right, but the kernel could not be started on this machine, or was killed before it \
         answered."
    603 HostDisk "a disk that cannot be written"
        "Files of the attempt could not be written. `df -h` shows which disk is full."
    604 KernelUnusable "an environment whose kernel does not start"
        "Python ended while it loaded ipykernel. That is a matter of the environment's packages, not of the machine: \
         what it printed is shown."
    605 AttemptUnreadable "an attempt that cannot be read"
        "The folder of the attempt holds no readable description of what is to be done. It is written by whatever \
         starts the agent; both must be of the same version."
    606 WorkingCopy "a checkout that could not be copied"
        "Each attempt works on a copy of its own of the checkout, so that the checkout is never changed. The copy \
         could not be made."
    607 SecretMissing "a secret that was not given"
        "The blueprint names a secret whose value this machine does not have, or has empty. It is taken from the \
         environment variable that the blueprint names, as it is set where blueproof is started."
    608 NotebookUnreadable "a file that is no notebook"
        "It is no Jupyter notebook of format 4. `jupyter nbconvert --to notebook` upgrades older ones."
    631 PackageDownload "a download of packages that broke off"
        "The package index was reached but did not deliver: a timeout, a broken connection, or a server error. Trying \
         again usually helps."
    632 EnvironmentDiskFull "no space left for an environment"
        "Environments take from 100 MB to several GB each. They may be deleted when no run uses them; the next run \
         makes its own again."
    633 EnvironmentFolder "a folder for environments that cannot be used"
        "The folder that keeps environments between runs could not be made, read or written."
    634 ReportUnwritten "a report that could not be written"
        "The attempt is over and its outcome is kept; only pages are missing. `blueproof report` writes them again."
    635 ExecutedNotebook "an executed notebook that cannot be read"
        "The notebook with its outputs is damaged, as by a machine that went down. The attempt's log has what was printed."
    636 EnvironmentChanged "an environment that was changed meanwhile"
        "Runs share environments. Another run, or a program that the notebook started, changed this one while the notebook \
         ran, so that its outcome says nothing. The next attempt has a copy of its own."
    640 AttemptLost "an attempt that no longer answers"
        "The attempt was told to end and did not, or its agent is gone without a last word. Whatever it left is \
         removed, and the run is tried again as often as `spec.retries.infrastructure` allows."
    641 StoppedByOthers "an attempt that something else stopped"
        "The agent was asked to stop by a signal that blueproof did not send: a shutdown of the machine, or someone \
         with `kill`."
    642 AgentNotStarted "an agent that did not start"
        "Each attempt is carried out by a process of its own, `blueproof agent`. It could not be started, or ended \
         before it could write anything."
    643 AttemptFolder "an attempt's files that cannot be used"
        "Each attempt has a folder beside the store. It could not be made, read or written: a full disk, missing \
         rights, or someone removed it."
    644 MachineUnknown "a machine that does not say what it has"
        "The local queue promises what the machine has. That could not be read; `local.cpu` and `local.memory` in the \
         configuration say it instead."
    645 DevicesTaken "GPUs that are not free"
        "An attempt is given devices for itself alone. It was promised more than are free, or than there are: the queue's \
         quota of `nvidia.com/gpu` is larger than the machine, or an attempt that nobody knows of any more still has some."
    646 DeviceFault "a GPU that failed under an attempt"
        "Its driver reported an error that no program can make, memory broke, or the device fell off the bus while the attempt \
         had it. Whatever the notebook failed with may well follow from that, so that the machine is held responsible."
    647 DeviceError "an error that a program made on its GPU"
        "The driver reported an error that comes of what a program does, such as reading memory that is not its own. The \
         machine is not at fault."
    648 DeviceLeftovers "something left on a GPU"
        "When everything that the attempt had started was gone, its devices had more processes or memory in use than before. \
         Whoever gets them next may find too little."
    649 DevicesUnfit "GPUs that no attempt is given"
        "A device that is lost, whose memory cannot be mended, or that failed under an attempt in a manner that only a reset \
         ends, would fail the next one as well. It is left out until it is well, or the machine was booted again."
    650 ClockSet "a clock that was set"
        "Somebody, or NTP, set this machine's clock forwards or back while devices were watched, or the machine was asleep. What \
         was known is moved along, so that seconds and joules are counted on as if nothing had happened; times that were \
         written down before are of the old clock."
    651 AttemptTampered "an attempt whose log somebody else has written to"
        "The agent alone writes down how an attempt goes on and ends, and signs each line. Something was added to its log, taken \
         out, changed or put in its place: by the notebook or what it started, most likely, because nobody else knows the \
         folder. Such an attempt has failed, whatever its cells did."
    652 AttemptFolderTaken "a folder that belongs to another attempt"
        "In the place of an attempt lie the files of another one, and something there still runs. Its store was copied, or put \
         back as it was before. Nothing of another attempt is ever taken over, and nothing is removed."
    653 CellsUnaccounted "cells of which it is not known how they ended"
        "A run passes when each cell of code has run to its end. Here nothing failed, and yet some cells did not: a defect of \
         blueproof, which is told as such and not as a pass."
    654 HostExhausted "a machine that has run out of something"
        "Memory, threads, processes or open files ran out while an environment was made or a kernel started. That says nothing of \
         the blueprint: it is the machine's failure, and the run may be tried again."
    701 StoreBroken "a store that cannot be used"
        "The file that holds all runs is not where it was named, or could not be opened, read or written: a full disk, missing rights, or damage. \
         Nothing is decided without it; attempts that run go on by themselves."
    702 StoreTooNew "a store of a newer version"
        "A newer blueproof has changed the store's tables. An older one would misread them, so it does not try."
    703 StoreNotOurs "a file that is no store"
        "The file is an SQLite database, but blueproof did not make it."
    704 LogUnreadable "a log that cannot be replayed"
        "A log is what `blueproof get events -o jsonl` writes: one event a line, numbered from one without a gap, because \
         what an event does follows from all before it. A copy that broke off, lines that were taken out or moved, and \
         events that only a newer blueproof knows look like this."
    705 StoreOvertaken "a store that somebody else has written to"
        "Two processes drove the same store at once, which its lock should prevent: some file systems do not share locks \
         between machines or mounts. Of the two, the one that came later appended nothing and read the log again, so that \
         nothing was lost or done twice. Let one machine drive a store."
    801 AsksTooMuch "a run that can never fit"
        "The whole gang (driver and workload) asks for more than the queue may ever promise. Choose a profile that \
         asks for less, or let the quota grow."
    802 NoSuchQueue "a queue that does not exist"
        "Runs wait in a LocalQueue, which stands before a ClusterQueue with quota. `blueproof quota get` lists them; \
         while nobody has applied others there is one of each, `local`."
    803 NoSuchPriorityClass "a priority class that does not exist"
        "A WorkloadPriorityClass gives a priority a name. Those that were applied are listed by `blueproof quota get`; a \
         priority may always be given as a number, too."
    810 RetryTerms "an annotation on retries that cannot be used"
        "A workload says in annotations `workload.codeflare.dev.appwrapper/...` how it is tried again. Durations, such \
         as `90s` or `1h30m`: admissionGracePeriodDuration, warmupGracePeriodDuration, failureGracePeriodDuration, \
         retryPausePeriodDuration, forcefulDeletionGracePeriodDuration, deletionOnFailureGracePeriodDuration, \
         successTTLDuration. A number: retryLimit. Lists, such as `1, 2`: terminalExitCodes, retryableExitCodes. What \
         cannot be read is refused: under a default, it would be tried again when nobody expects it."
    811 QueueObjectKind "an object that queues do not go by"
        "ClusterQueue, Cohort, LocalQueue, ResourceFlavor and WorkloadPriorityClass of kueue.x-k8s.io/v1beta2 are read, \
         lists of them, and Configuration of config.kueue.x-k8s.io/v1beta2. Anything else in such a file is refused \
         instead of passed over: somebody counts on it."
    812 QueueObjectVersion "an object of another version of Kueue's API"
        "Kueue keeps its objects in v1beta2 since 0.16. Those of v1beta1, and Cohorts of v1alpha1, are converted as a \
         cluster converts them. In other versions fields have other names and other meanings, so that nothing is read by \
         guesswork."
    813 QueueObjectTwice "an object that is there twice"
        "Two objects of one kind have the same name, in one file or in several that are applied together. A cluster \
         would keep the later one; which of the two is meant here nobody knows."
    814 QueueRule "quotas that Kueue refuses"
        "Kueue's own checks refuse this object, so that a file that is taken here is taken by a cluster, too."
    815 QueueResourceCase "a resource's name in the wrong case"
        "Names of resources are told apart by case: nobody ever asks for `nvidia.com/GPU`, and so its quota would never be \
         used, while a run that asks for `nvidia.com/gpu` would find none."
    816 QueueReference "a name that no object has"
        "Kueue takes an object that refers to one that is not there yet. A ClusterQueue admits nothing while one of its \
         flavors is missing, a LocalQueue lets nobody through while its ClusterQueue is, and a cohort that is only named \
         has no quota of its own."
    817 QueueCircle "cohorts that are each other's parents"
        "Kueue takes them, and admits nothing in any of their queues until the circle is broken."
    818 QueueUnreachable "a ClusterQueue that no namespace may use"
        "Without a namespaceSelector Kueue lets no namespace use the queue. There are no namespaces here, so that it \
         makes no difference; in a cluster it would."
    819 QueueSetting "a setting of Kueue's that does not count"
        "Of Kueue's Configuration fairSharing.preemptionStrategies, admissionFairSharing and \
         waitForPodsReady.requeuingStrategy count. Most of the rest is about controllers, of which there are none; what \
         would change a decision is named."
    820 QueueRenamed "LocalQueues of one name in several namespaces"
        "Clusters often have a LocalQueue of the same name in each team's namespace. There are no namespaces here, so \
         that each is known by both: `team-a.default-queue`. Runs that wait in one that had its name to itself before go on."
    821 QueueUsage "an order by usage that is likely not meant"
        "With `admissionMode: UsageBasedAdmissionFairSharing` the LocalQueue that had least lately goes first. How that is \
         counted stands under admissionFairSharing in a Configuration: when it counts half, and what a core, a byte or a \
         GPU counts. docs/queues.md has the formula and an example."
    822 QueueBeyondMachine "quota that this machine does not have"
        "The nominal quota of all ClusterQueues and Cohorts together is more than the machine has, or than `local.cpu` and \
         `local.memory` let it give. Kueue takes that too: it counts quota and sees no machine. Runs that are admitted \
         share the processors and the memory that there are; one that was promised a GPU which is not there fails."
    823 QueuesByTurns "queues whose runs evict each other without end"
        "By Kueue's rules the one for whom another was evicted can be evicted by that one in turn, and so on for ever. In a cluster \
         each turn takes the time that pods need to stop. In virtual time a job without a `grace` stops at once: the clock \
         stands still, and the simulation would have no end. A `grace`, or `spec.protectedRunTime`, lets time pass."
    824 NoQueueObjects "a file without objects"
        "`quota apply` replaces all queues with those of its files. One with nothing in it, such as what an interrupted `kubectl \
         get` leaves, would take all of them away. To have none on purpose, apply another object, such as a ResourceFlavor."
    901 GpuLibrary "a driver's library that is not here"
        "GPUs are read through the library that comes with their driver: NVIDIA's is libnvidia-ml.so.1. A machine without \
         GPUs has none, and neither has a container that was not given it. Everything else works without."
    902 GpuDriver "a driver that is not loaded"
        "The driver's library is here, but the kernel has not loaded the driver, so nothing can be said of any GPU."
    903 GpuPermission "GPUs that may not be read"
        "The driver's device files may not be opened by whoever asks, or the container was not given them."
    904 GpuVersions "a library and a driver of different versions"
        "The driver was updated while it was loaded, so that its library and the kernel's part do not understand each other."
    905 GpuNone "a machine without GPUs"
        "The driver is loaded and knows no device. Where there should be one, it may be switched off, taken by another \
         machine (passed through), or have fallen off the bus: `lspci -d 10de:` shows what is plugged in."
    906 GpuDriverError "a driver that reports an error"
        "The driver answered with an error of its own, which is shown. A restart of the driver or of the machine often helps; \
         a device that does it again is likely broken."
    907 GpuRecording "a file that is no recording of GPUs"
        "A recording has one JSON object in each line: a header with its format and version, and then what was read, in order. \
         One that a newer version of this program wrote is refused instead of half understood."
    908 NotListening "an address that cannot be listened on"
        "Another process listens there, the address is of another machine, or ports below 1024 are not for this user."
    909 WebConfig "a web configuration that cannot be used"
        "The exporter's TLS and passwords stand in a file as Prometheus' exporter-toolkit has it. Where it cannot be used at the \
         start, the exporter does not start; later, what held before holds on until the file is mended."
    910 Certificate "a certificate or a key that cannot be used"
        "Certificates and keys are PEM files, the certificate first and those that signed it behind, and the key without a \
         password. A renewed certificate counts once its key is there too; until then the one before is used."
    911 KubeletSocket "a kubelet that cannot be connected to"
        "Who has which GPU on a Kubernetes node is asked of its kubelet, over a socket in the folder that `--pod-resources` names. \
         Mount the folder, not the socket, which a restarted kubelet makes anew. Until it answers no device has an owner."
    912 KubeletSlow "a kubelet that does not answer in time"
        "The kubelet is asked every few seconds and with each scrape. What it told last holds for ten seconds; after that it is \
         not used, for it could charge a pod with the work of the one before. No device has an owner until the kubelet answers."
    913 KubeletAnswer "a kubelet that answers with an error"
        "The kubelet refused to tell who has which GPU, or answered with what cannot be understood. No device has an owner \
         until it tells."
    914 CommandNotRun "a command that could not be run"
        "The command of a job is not there, or may not be run. Nothing was watched, and the exit code is the shell's: 127 for \
         one that is not there, 126 for one that may not be run."
    915 JobState "a job that is not watched, or is watched already"
        "A job of several steps is watched by a process in the background, which is known by a folder: `start`, `stop` and \
         `report` have to name the same one. A watcher that was killed leaves a summary that is some seconds old."
    916 TpuPlugin "a TPU device plugin that does not tell"
        "TPUs are read from the page that their device plugin serves on each node of GKE, at port 2112. A pod needs the host's \
         network, or the node's address, to reach it."
    917 NotPushed "a summary that a collector did not take"
        "A job's summary can be pushed by OTLP over HTTP, once, when the job is over. What went wrong is shown; the job's exit \
         code is not changed by it."
    918 GpuHangs "a GPU or a driver that does not answer"
        "A call of the driver's library has not come back. What was read before is not told as if it were now: the device, or all \
         devices, are unknown until the call comes back. Other devices are read meanwhile. `dmesg | grep -i -e nvrm -e xid` tells \
         more; a device that goes on so needs a reset, or the machine a restart."
    919 GpuReleased "a driver that was closed on purpose"
        "A driver that a program has open cannot be upgraded, and its devices can be neither reset nor divided anew. SIGUSR1 has the \
         exporter close it for ten minutes, in which nothing is known of any device; SIGHUP has it open it again."
    920 GpuCounters "a file of DCGM's fields that cannot be read"
        "dcgm-exporter is told by a file which fields to show, with a type and a help text for each. Fields of DCGM's that NVML does not \
         tell are left out and named in the log; a line that has no field, or no type, is refused."
    921 DcgmOption "an option of dcgm-exporter that is not understood here"
        "Options and variables of dcgm-exporter are understood where they can be kept to. What would change what is told, and \
         cannot be done without DCGM or a Kubernetes API client, is refused by its name instead of being passed over."
    922 KubeletCheckpoint "a kubelet's checkpoint that does not say which UIDs pods have"
        "The kubelet tells pods with devices by their names. Their UIDs are read from the checkpoint of its device manager, the file \
         `kubelet_internal_checkpoint` in its folder `device-plugins`, which must be mounted. Until it can be read, pods are told \
         without a UID; all else goes on."
}

/// A text that is not the code of anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a code; they look like BP0213")]
pub struct ParseCodeError(String);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BP{:04}", *self as u16)
    }
}

impl FromStr for Code {
    type Err = ParseCodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Code::ALL
            .iter()
            .find(|code| code.to_string().eq_ignore_ascii_case(text));
        known.copied().ok_or_else(|| ParseCodeError(text.into()))
    }
}

impl TryFrom<String> for Code {
    type Error = ParseCodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Code> for String {
    fn from(code: Code) -> Self {
        code.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_read_back_what_they_print() {
        assert!(Code::ALL.is_sorted());
        for code in Code::ALL {
            assert_eq!(code.to_string().parse(), Ok(*code));
            assert!(
                code.explanation().ends_with('.'),
                "{code}: explanations are sentences"
            );
        }
    }
}

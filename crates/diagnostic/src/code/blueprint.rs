//! Codes from BP0201 to BP0299: blueprint and notebook files.

macro_rules! blueprint {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
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
        "A key has text where a number is needed, a single value where a list is needed, or the like. A number that is meant \
         as text, such as a Python version, needs quotes. `blueproof schema blueprint` prints every key."
    205 BadValue "a value that is not allowed"
        "The value is of the right kind, but cannot be used: an amount, a duration, a name, a glob or a regular \
         expression that is not well formed, or a number outside its range. The hint says what is allowed."
    206 MissingKey "a key that must be there"
        "A blueprint needs `spec.notebook`, and each parameter, metric and secret needs the keys that define it. Every other \
         key has a default, which `blueproof schema blueprint` prints."
    207 NotSupportedYet "a key that is not supported yet"
        "The key belongs to the format, but this version does not implement it. It is refused instead of ignored: a run \
         without something that its blueprint asks for would prove nothing."
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
        "`spec.expect` names a metric that `spec.metrics` does not define. Such an expectation would never be measured, and \
         so would always hold."
    214 NoSuchBlueprint "a blueprint that was not found"
        "No blueprint of that name stands in this folder or below it. Hidden folders, `node_modules` and `target` are \
         not searched. A path to a notebook or to a blueprint.yaml works, too."
    215 AmbiguousBlueprint "a name that several blueprints have"
        "Several blueprints in this folder have the same name. Give the path of the one that is meant, or set \
         `metadata.name` in each."
    216 TooMuch "more than can be counted"
        "The resources of one node times the number of nodes exceed what a number can hold. The blueprint asks for more than \
         any cluster has."
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
        "The wait for a TrainJob fails after a time that pulling an image alone can take. The run then fails because of the \
         wait, and the actual reason is not shown."
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
        "The SDK reports the status Running only for a TrainJob without conditions. A TrainJob that Kueue has admitted always \
         has one, so the wait never ends (kubeflow/sdk#803). Wait for Complete, or follow the logs."
    239 DriverHoldsGpus "GPUs given to the notebook that its TrainJobs need"
        "The notebook only creates TrainJobs; the GPUs that its own kernel holds stay idle and may be the very ones \
         that the TrainJobs wait for. GPUs of TrainJobs stand under `spec.workload`."
    240 StoredOutputs "a notebook that is committed with its outputs"
        "Outputs and execution counts of an earlier run are in the file. They make every change of the file hard to \
         read and look like results of this commit, which they are not."
    241 CellNotPython "a cell that is not Python"
        "The cell could not be parsed as Python with IPython's additions, so static analysis knows nothing of it. The kernel \
         would most likely refuse it, too."
    249 HeadChanged "a folder that changed after the run was requested"
        "A run is of exactly the content that the folder had when the run was requested, and an approval is of that content. \
         When the run was about to start, the folder had other content. Request the run again."
    250 NameWithoutValue "a name that is read before it has a value"
        "The cells run once, from the first to the last. A name that is assigned only in a later cell, or in none, exists in \
         an old kernel and not in a new one: the run ends with a NameError."
    251 SecretInSource "a secret in a cell"
        "The notebook contains a token, a password or a private key, and so does every copy of the repository. Revoke it \
         where it was issued, and let the notebook read it from the environment (`spec.secrets`)."
    252 AsksPerson "a cell that waits for input"
        "`input()`, `getpass()` and debuggers wait for a person to type. A run has no terminal: the kernel refuses the \
         request, and the cell raises an exception."
    253 GpuNotAsked "a GPU that is used and not requested"
        "The notebook uses a GPU without checking that there is one, and no profile of the blueprint gives its kernel a GPU. \
         A kernel without GPUs sees none, and the cell raises an exception. Ask for a GPU under `spec.driver`, or let the \
         notebook fall back to the CPU."
    254 DataMissing "a file that is not there"
        "A cell reads a file that is not in the blueprint's folder, and no cell writes or downloads it. A run has only the \
         files of the blueprint's folder."
    255 ImportMissing "a module that no requirement provides"
        "A cell imports a module that is neither part of Python nor a file beside the notebook, and no requirement names its \
         package. It may be installed as a dependency of another package, until that package no longer needs it."
    256 MachineCommand "a command that changes the machine"
        "A cell calls `sudo` or a package manager of the system, or removes whole folders. A run has no terminal in which to \
         type a password, and what is removed or installed belongs to the machine, not to the run."
    258 StatementTooLong "a statement that is too long to be analyzed"
        "A statement of more than 256 KiB is data, and static analysis leaves it out. Data in a file beside the notebook is \
         read faster, and its changes can be reviewed."
    }};
}

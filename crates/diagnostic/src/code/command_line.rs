//! Codes from BP0101 to BP0199: the command line and the configuration.

macro_rules! command_line {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    101 Usage "a command that cannot be understood"
        "The command line names something that does not exist or leaves out something that is needed. \
         `blueproof help COMMAND` shows what a command takes."
    102 NoSuchRun "a run that is not in the store"
        "The store has no run with that id. `blueproof get runs` lists its runs. `last` stands for the newest run of the \
         project in which it is typed, and a blueprint's name for the newest run of that blueprint there. A run is known only \
         in the store that it was made in (`--store`, `BLUEPROOF_STORE`)."
    103 NoHome "a machine without a home folder"
        "blueproof keeps its files in the home folder unless other folders are configured, and HOME is not set or is not an \
         absolute path. Set HOME, or name other folders: `--store`, `BLUEPROOF_STORE`, `BLUEPROOF_ENVIRONMENTS`."
    104 ConfigUnreadable "a configuration file that cannot be read"
        "The file exists and could not be read, or it was named with `--config` or `BLUEPROOF_CONFIG` and does not exist. \
         `blueproof config path` lists the files that are read."
    105 ConfigValue "a configuration value that cannot be used"
        "A configuration file says `apiVersion: blueproof.dev/v1alpha1` and `kind: Config`; each of its keys, and each \
         `BLUEPROOF_*` variable, takes values of one kind. `blueproof schema config` prints them all."
    106 ConfigNotHere "a setting that this file may not have"
        "The configuration in a project's folder comes with the project's content, as a notebook does. It may set paths, but \
         not who approves runs: that belongs in the user's or the machine's configuration file."
    107 Unwritable "an answer that could not be written"
        "Standard output could not be written: the disk is full, or a device failed. The command may have been carried out \
         all the same; `blueproof get runs` shows it."
    108 LeftAlone "a run without a process that leads it"
        "The process that led this run has ended or was killed. Nothing is lost: the attempt continues, and the next \
         `blueproof wait`, `blueproof run` or scheduler on the same store takes the run over. If the process was started by \
         `--detach`, `runs/host.log` beside the store says why it ended."
    109 ConfigOfStranger "a configuration file of another user"
        "A project's `.blueproof/config.yaml` is in a folder that every user may write to, and belongs to another user. It \
         could name a program that would run with your rights. `--config FILE` uses it nevertheless."
    110 ConfigUnwritable "a configuration file that cannot be changed"
        "`blueproof config use-context` writes the current context into the file of `--config` or `BLUEPROOF_CONFIG`, or else \
         into your own configuration file. That file cannot be written, or has all of its settings on one line."
    }};
}

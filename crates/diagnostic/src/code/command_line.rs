//! Codes from BP0101 to BP0199: the command line and the configuration.

macro_rules! command_line {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
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
    110 ConfigUnwritable "a configuration file that cannot be changed"
        "`blueproof config use-context` writes the current context into the file that is named with `--config` or \
         `BLUEPROOF_CONFIG`, and else into your own. It may not be written, or holds all of its settings on one line."
    }};
}

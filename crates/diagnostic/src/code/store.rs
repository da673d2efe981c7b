//! Codes from BP0701 to BP0799: the store.

macro_rules! store {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
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
    706 FactUnreadable "a fact of the log that cannot be understood"
        "What a store holds follows from its log, fact by fact. One that cannot be understood, of a kind that only a newer \
         blueproof knows, or damaged, is not passed over: everything after it would come out otherwise. Nothing was changed, \
         and attempts that run go on by themselves."
    707 CommandQuarantined "a command that was quarantined"
        "A request to the scheduler is a command in the store until the leader takes it up. A command that cannot be read, or about \
         which deciding failed, is quarantined with the reason and delays no other command: `blueproof get commands` lists it. \
         It is not tried again. Send it again with the version of blueproof that the leader runs."
    708 DecidingFailed "an input about which nothing can be decided"
        "Deciding about news, or about what is due, ended in a panic: a mistake in blueproof. The state was made again from the \
         log, so that nothing is half decided. News that does this is quarantined; where each step does it, nothing more is \
         decided, and attempts that run go on by themselves. Please report it, with the log (`blueproof get events -o jsonl`)."
    709 RunNotRemembered "a run that is not remembered"
        "The scheduler remembers the last thousand runs that are over, so that it takes the same memory however old a store is.          Those that ended before them are in the store, with their reports and logs, and nothing more is decided about them:          one of them cannot be tried again. Ask for the same content with `blueproof run`."
    710 StoreNotWhole "a store that is not as its log says"
        "All that a store holds beside its log follows from it: the rows of runs, and snapshots that make it quick to open. They \
         were compared, and something was changed or lost, as by another program or a damaged disk. `blueproof store repair` makes \
         rows and snapshots again; the log is not changed. What SQLite itself finds damaged is not repaired."
    711 StoreInUse "a store that somebody works with"
        "A store is repaired by whoever leads, and another process does: a command that waits for a run, or the scheduler. Attempts \
         that run are not affected by stopping it; whoever comes next takes them over."
    }};
}

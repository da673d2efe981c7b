//! Codes from BP0701 to BP0799: the store.

macro_rules! store {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    701 StoreBroken "a store that cannot be used"
        "The file with all runs does not exist, or could not be opened, read or written: the disk is full, rights are \
         missing, or the file is damaged. Without it nothing is decided; attempts that run continue."
    702 StoreTooNew "a store of a newer version"
        "A newer blueproof has changed the store's tables. An older one would misread them, so it does not try."
    703 StoreNotOurs "a file that is no store"
        "The file is an SQLite database, but blueproof did not make it."
    704 LogUnreadable "a log that cannot be replayed"
        "A log is what `blueproof get events -o jsonl` writes: one event a line, numbered from one without a gap, because \
         each event follows from all before it. A copy that is incomplete, lines that were removed or moved, and events of a \
         newer version of blueproof cause this error."
    705 StoreOvertaken "a store that another process has written to"
        "Two processes led the same store at once. The store's lock should prevent that, but some file systems do not share \
         locks between machines or mounts. The process that came second appended nothing and read the log again, so nothing \
         was lost or done twice. Let only one machine lead a store."
    706 FactUnreadable "a fact of the log that cannot be understood"
        "The state of a store follows from its log, fact by fact. A fact that cannot be read, because it is damaged or of a \
         newer version of blueproof, is not skipped: every later fact depends on it. Nothing was changed, and attempts that \
         run continue."
    707 CommandQuarantined "a command that was quarantined"
        "A request to the scheduler is a command in the store until the leader takes it up. A command that cannot be read, or about \
         which deciding failed, is quarantined with the reason and delays no other command: `blueproof get commands` lists it. \
         It is not tried again. Send it again with the version of blueproof that the leader runs."
    708 DecidingFailed "an input about which nothing can be decided"
        "A decision about an input, or about something that is due, ended in a panic: a defect of blueproof. The state was \
         replayed from the log, so no decision is half applied. An input that causes this is quarantined. If every decision \
         does, nothing more is decided, and attempts that run continue. Please report it, with the log (`blueproof get events \
         -o jsonl`)."
    709 RunNotRemembered "a run that is not remembered"
        "The scheduler keeps the last thousand runs that have ended in memory, so that its memory does not grow with the \
         store. Older runs are in the store with their reports and logs, but no decision is made about them: they cannot be \
         retried. Request the same content with `blueproof run`."
    710 StoreNotWhole "a store that differs from its log"
        "Everything in a store follows from its log: the rows of runs, and the snapshots that make opening it fast. They \
         differ from what the log says: another program changed them, or the disk is damaged. `blueproof store repair` writes \
         rows and snapshots again and does not change the log. Damage that SQLite itself reports is not repaired."
    711 StoreInUse "a store that is in use"
        "Only the leader may repair a store, and another process leads it: a command that waits for a run, or the scheduler. \
         Stop that process; attempts that run are not affected, and the next leader takes them over."
    712 KeyReused "a key of another command"
        "A command has a key, so that one that is sent twice, as after a connection broke, is carried out once. The key of this \
         command belongs to one with other content or by another user. Nothing was stored. Send it again with a new key."
    }};
}

//! Codes from BP0501 to BP0599: limits of time.

macro_rules! time_limit {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    501 StartupTimeout "a start that took too long"
        "Environment and kernel were not ready within spec.timeouts.startup. A first start downloads packages; later \
         ones find them in the cache."
    502 CellTimeout "a cell that took too long"
        "The cell did not end within spec.timeouts.cell. It was interrupted first; what it had printed is kept."
    503 RunTimeout "cells that took too long together"
        "The cells did not all end within spec.timeouts.run. What they had printed is kept."
    510 QueueTimeout "a run that waited for quota too long"
        "The run waited for quota longer than the blueprint allows (`spec.timeouts.queue`). `blueproof why RUN` shows the \
         reason for the wait; `blueproof retry RUN` queues the run again."
    511 ExecutionTimeout "a run that had quota for too long"
        "The run had quota longer than the blueprint allows (`spec.timeouts.execution`), over all attempts: the time of \
         attempts that were evicted counts, too. This is Kueue's maximumExecutionTimeSeconds, reason \
         MaximumExecutionTimeExceeded. `blueproof retry RUN` starts again."
    520 Overdue "an attempt that exceeded its own time limits"
        "The agent ends an attempt at the blueprint's time limits. This attempt did not end in time, so the scheduler \
         terminated it."
    }};
}

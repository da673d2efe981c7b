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
        "The blueprint limits how long it waits for quota (`spec.timeouts.queue`), and that time is over. `blueproof \
         why RUN` says what it waited for; `blueproof retry RUN` puts it into the queue again."
    511 ExecutionTimeout "a run that had quota for too long"
        "The blueprint limits how long it may have quota (`spec.timeouts.execution`), all attempts together: what an \
         attempt had before it was evicted counts, too. It is Kueue's maximumExecutionTimeSeconds, reason \
         MaximumExecutionTimeExceeded. `blueproof retry RUN` begins anew."
    520 Overdue "an attempt that did not keep its own limits"
        "The agent ends a notebook at its limits by itself. This one did not, so the scheduler ended it."
    }};
}

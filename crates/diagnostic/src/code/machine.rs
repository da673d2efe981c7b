//! Codes from BP0601 to BP0699: the machine and the cluster.

macro_rules! machine {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
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
    609 SourceNotFetched "a commit that could not be fetched"
        "The content of the run is a commit of a git repository, which the machine that runs it fetches by itself: this very \
         commit, without asking anybody for a password, over https, ssh or from a file. The server did not have it, did not \
         give it away, or could not be reached."
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
    638 QuotaNotDecided "a cluster that decides about no quota"
        "A ClusterQueue says `blueproof.dev/admission: External`, and the cluster that its runs are for has no Kueue, or none \
         that blueproof knows how to ask. Leave the annotation out, and the embedded queue decides."
    639 ClusterUnknown "a cluster that is not configured"
        "A ClusterQueue says in `blueproof.dev/cluster` on which cluster its runs are carried out, or an attempt is there already, \
         and the scheduler has no cluster of that name. Configure it, or apply the ClusterQueue with another name."
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
    649 DevicesUnhealthy "unhealthy GPUs, which no attempt is given"
        "A device is unhealthy if it is lost, if its memory cannot be repaired, or if it failed under an attempt in a manner \
         that only a reset ends: the next attempt would fail as well. No attempt is given such a device until its driver \
         reports it healthy, or until the machine is booted again where it failed under an attempt."
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
    655 RunnerUnknown "a runner of which nothing is known"
        "Each runner has a folder on the machine that it was started on. There is none of that name: it was removed, or it was \
         started elsewhere."
    656 RunnerNotStarted "a runner that did not start"
        "The program of GitHub's runner could not be started as a process of this machine. Its configuration is not used up, and \
         it is tried again."
    657 RunnerFolder "a runner's files that cannot be used"
        "Each runner has a folder of its own. It could not be made, read, written or removed: a full disk, missing rights, or \
         someone changed it."
    }};
}

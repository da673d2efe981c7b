//! Codes from BP0601 to BP0699: the machine and the cluster.

macro_rules! machine {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    601 AgentLost "an agent that was killed"
        "The agent, the process that carries out the attempt, ended without reporting how the attempt ended. Its remaining \
         processes were ended. The notebook is not run again in the same attempt; a retry is a new attempt."
    602 KernelNotStarted "a kernel that could not be started"
        "The environment is right, but the kernel could not be started on this machine, or was killed before it \
         answered."
    603 HostDisk "a disk that cannot be written"
        "Files of the attempt could not be written. `df -h` shows which disk is full."
    604 KernelUnusable "an environment whose kernel does not start"
        "Python ended while it loaded ipykernel. That is a matter of the environment's packages, not of the machine: \
         what it printed is shown."
    605 AttemptUnreadable "an attempt that cannot be read"
        "The folder of the attempt has no readable description of the attempt. The process that starts the agent writes it; \
         both must be of the same version."
    606 WorkingCopy "a checkout that could not be copied"
        "Each attempt works on a copy of its own of the checkout, so that the checkout is never changed. The copy \
         could not be made."
    607 SecretMissing "a secret that was not given"
        "The blueprint names a secret whose value is missing or empty on this machine. The value comes from the environment \
         variable that the blueprint names, as it is set where blueproof is started. Set that variable and run again."
    608 NotebookUnreadable "a file that is no notebook"
        "It is no Jupyter notebook of format 4. `jupyter nbconvert --to notebook` upgrades older ones."
    609 SourceNotFetched "a commit that could not be fetched"
        "The content of the run is a commit of a git repository. The machine that carries out the run fetches exactly this \
         commit over https, ssh or from a file, without a password prompt. The server does not have the commit, refused it, \
         or could not be reached."
    631 PackageDownload "a download of packages that broke off"
        "The package index was reached but did not deliver: a timeout, a broken connection, or a server error. A retry \
         usually helps."
    632 EnvironmentDiskFull "no space left for an environment"
        "Environments take from 100 MB to several GB each. They may be deleted when no run uses them; the next run \
         makes its own again."
    633 EnvironmentFolder "a folder for environments that cannot be used"
        "The folder that keeps environments between runs could not be created, read or written."
    634 ReportUnwritten "a report that could not be written"
        "The attempt is over and its outcome is kept; only pages are missing. `blueproof report` writes them again."
    635 ExecutedNotebook "an executed notebook that cannot be read"
        "The notebook with its outputs is damaged, as by a machine that went down. The attempt's log has what was printed."
    636 EnvironmentChanged "an environment that was changed meanwhile"
        "Runs share environments. While the notebook ran, another run or a program that the notebook started changed its \
         environment, so the outcome says nothing. The next attempt gets a copy of its own."
    638 QuotaNotDecided "a cluster that does not decide about quota"
        "A ClusterQueue has the annotation `blueproof.dev/admission: External`, and the cluster of its runs has no Kueue, or \
         a version that blueproof cannot use. Remove the annotation, so that the embedded queue decides."
    639 ClusterUnknown "a cluster that is not configured"
        "A ClusterQueue names in `blueproof.dev/cluster` the cluster of its runs, or an attempt already runs there, and the \
         scheduler has no cluster of that name. Configure the cluster, or apply the ClusterQueue with another name."
    640 AttemptLost "an attempt that no longer answers"
        "The attempt was asked to end and did not, or its agent disappeared without a report. Its remains are removed, and \
         the run is retried as often as `spec.retries.infrastructure` allows."
    641 StoppedByOthers "an attempt that something else stopped"
        "The agent was stopped by a signal that blueproof did not send: from a shutdown of the machine, or from a person with \
         `kill`."
    642 AgentNotStarted "an agent that did not start"
        "Each attempt is carried out by a process of its own, `blueproof agent`. That process did not start, or ended before \
         it wrote anything."
    643 AttemptFolder "an attempt's files that cannot be used"
        "Each attempt has a folder beside the store. It could not be created, read or written: the disk is full, rights are \
         missing, or the folder was removed."
    644 MachineUnknown "a machine whose capacity is unknown"
        "The quota of the local queue is the capacity of the machine, which could not be read. Set `local.cpu` and \
         `local.memory` in the configuration instead."
    645 DevicesTaken "GPUs that are not free"
        "Each device is allocated to one attempt at a time. The attempt was promised more devices than are free, or than \
         exist: the queue's quota of `nvidia.com/gpu` exceeds the machine, or an attempt that is no longer known still has \
         some."
    646 DeviceFault "a GPU that failed under an attempt"
        "The driver reported an error that no program can cause, memory failed, or the device fell off the bus during the \
         attempt. The notebook's own failure may follow from that, so the machine is held at fault."
    647 DeviceError "an error that a program made on its GPU"
        "The driver reported an error that a program causes, such as an access to memory that is not its own. The machine is \
         not at fault."
    648 DeviceLeftovers "processes or memory left on a GPU"
        "After every process of the attempt had ended, its devices had more processes or more memory in use than before. The \
         next attempt on these devices may find too little memory."
    649 DevicesUnhealthy "unhealthy GPUs, which no attempt is given"
        "A device is unhealthy if it is lost, if its memory cannot be repaired, or if it failed under an attempt in a manner \
         that only a reset ends: the next attempt would fail as well. No attempt is given such a device until its driver \
         reports it healthy, or until the machine is booted again where it failed under an attempt."
    650 ClockSet "a clock that was set"
        "The machine's clock was set, by hand or by NTP, or the machine was suspended, while devices were watched. Accounting \
         is shifted by the difference, so that seconds and joules are counted on; times that were written before are those of \
         the old clock."
    651 AttemptTampered "an attempt whose log was changed"
        "Only the agent writes the attempt's log, and it signs each line. A line was added, removed, changed or replaced: \
         most likely by the notebook or a process that it started, which alone know the folder. The attempt has failed, \
         whatever its cells did."
    652 AttemptFolderTaken "a folder that belongs to another attempt"
        "The folder of this attempt has the files of another attempt, and a process of that one still runs. The store was \
         copied, or restored from a backup. Nothing of the other attempt is used or removed. End that process and retry the \
         run."
    653 CellsUnaccounted "cells of which it is not known how they ended"
        "A run passes when each code cell has run to its end. Here no cell failed, and yet some did not end. That is a defect \
         of blueproof, which is reported as one and not as a pass. Please report it."
    654 HostExhausted "a machine that ran out of a resource"
        "Memory, threads, processes or open files ran out while an environment was made or a kernel started. That is a \
         failure of the machine and not of the blueprint, so the run may be retried."
    655 RunnerUnknown "a runner that is not known"
        "Each runner has a folder on the machine that started it. This machine has no folder of that name: it was removed, or \
         the runner was started elsewhere."
    656 RunnerNotStarted "a runner that did not start"
        "The program of GitHub's runner could not be started as a process of this machine. Its configuration is still valid, \
         and the start is repeated."
    657 RunnerFolder "a runner's files that cannot be used"
        "Each runner has a folder of its own. It could not be created, read, written or removed: the disk is full, rights are \
         missing, or its content was changed."
    658 SandboxUnavailable "a machine that cannot run strangers' code apart"
        "The notebook of a pull request runs in a sandbox: apart from the machine's files, processes, network and other runs, with \
         limits on memory and processes. This machine cannot make one; the cause is shown. Install bubblewrap, allow user \
         namespaces, and give the scheduler a cgroup of its own. If nothing on the machine is worth protecting, its admin sets \
         `local.isolation: disposable`."
    659 SandboxRefused "a requirement that a sandbox does not grant"
        "The notebook of a pull request runs in a sandbox without a network, without secrets and without the machine's files. \
         Its packages are wheels that are named by name, and none of their code runs before. The blueprint asks for something else, \
         so the run is refused instead of run with less protection."
    660 RunnerLedger "a ledger of runners that cannot be used"
        "Each runner is written down before anything is done about it, in `runners.db` beside the store. That file could not be \
         read or written: the disk is full, rights are missing, or a newer version wrote it. No runner is started meanwhile."
    }};
}

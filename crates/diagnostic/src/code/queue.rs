//! Codes from BP0801 to BP0899: the gate and the queue.

macro_rules! queue {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    801 AsksTooMuch "a run that can never fit"
        "All pods of the run (driver and workload) ask for more than the queue can ever promise. Choose a profile that asks \
         for less, or increase the quota."
    802 NoSuchQueue "a queue that does not exist"
        "Runs are queued in a LocalQueue, which belongs to a ClusterQueue with quota. `blueproof quota get` lists both. \
         Before any is applied there is one of each, named `local`."
    803 NoSuchPriorityClass "a priority class that does not exist"
        "A WorkloadPriorityClass gives a priority a name. `blueproof quota get` lists those that were applied. A priority can \
         also be given as a number."
    804 ApprovalRefused "an approval that does not count"
        "An approval counts if its author may approve, did not write the content, and gave it under the policy that is in \
         force. It is of one head of a pull request that is open and not on hold, and of one base, until it expires. A \
         refused approval is not requested again: docs/approvals.md explains each reason."
    805 NodeLabelMissing "a node selector that no node matches"
        "A `nodeSelector` requires labels of a node. The nodes of a flavor have the labels of its ResourceFlavor; a machine \
         that runs attempts as its own processes has no other labels, and none at all before quota is applied. The run is \
         refused, because no node matches."
    810 RetryTerms "an annotation on retries that cannot be used"
        "A workload says in annotations `workload.codeflare.dev.appwrapper/...` how it is tried again. Durations, such \
         as `90s` or `1h30m`: admissionGracePeriodDuration, warmupGracePeriodDuration, failureGracePeriodDuration, \
         retryPausePeriodDuration, forcefulDeletionGracePeriodDuration, deletionOnFailureGracePeriodDuration, \
         successTTLDuration. A number: retryLimit. Lists, such as `1, 2`: terminalExitCodes, retryableExitCodes. What \
         cannot be read is refused, because a default would retry the workload at an unexpected time."
    811 QueueObjectKind "an object of an unsupported kind"
        "Supported are ClusterQueue, Cohort, LocalQueue, ResourceFlavor and WorkloadPriorityClass of kueue.x-k8s.io/v1beta2, \
         lists of them, and Configuration of config.kueue.x-k8s.io/v1beta2. Any other object in such a file is refused and \
         not ignored, because it would have no effect."
    812 QueueObjectVersion "an object of another version of Kueue's API"
        "Kueue stores its objects as v1beta2 since 0.16. Objects of v1beta1, and Cohorts of v1alpha1, are converted as a \
         cluster converts them. Fields of other versions have other names and meanings, so objects of those are refused."
    813 QueueObjectTwice "an object that is given twice"
        "Two objects of one kind have the same name, in one file or in several that are applied together. A cluster would \
         keep the later one. Remove one of the two."
    814 QueueRule "quotas that Kueue refuses"
        "Kueue's own checks refuse this object, so that a file that is taken here is taken by a cluster, too."
    815 QueueResourceCase "a resource's name in the wrong case"
        "Names of resources are case-sensitive: no run asks for `nvidia.com/GPU`, so its quota would never be used, while a \
         run that asks for `nvidia.com/gpu` would find none."
    816 QueueReference "a reference to an object that does not exist"
        "Kueue accepts a reference to an object that does not exist yet. A ClusterQueue admits nothing while one of its \
         flavors is missing, a LocalQueue admits nothing while its ClusterQueue is missing, and a cohort that is only \
         referred to has no quota of its own."
    817 QueueCircle "cohorts that form a cycle"
        "Kueue accepts such cohorts, and admits no workload in any of their queues until the cycle is removed."
    818 QueueUnreachable "a ClusterQueue that no namespace may use"
        "In Kueue a ClusterQueue without a namespaceSelector can be used by no namespace. Here are no namespaces, so it makes \
         no difference; in a cluster it would."
    819 QueueSetting "a setting of Kueue's that has no effect"
        "Of Kueue's Configuration, fairSharing.preemptionStrategies, admissionFairSharing and \
         waitForPodsReady.requeuingStrategy are used. Most of the rest configures controllers, which do not exist here. A \
         setting that would change a decision is named."
    820 QueueRenamed "LocalQueues of one name in several namespaces"
        "Clusters often have a LocalQueue of the same name in each team's namespace. Here are no namespaces, so each is known \
         by both names: `team-a.default-queue`. Runs that were queued in one of them under its name alone stay queued."
    821 QueueUsage "an order by usage that is likely not intended"
        "With `admissionMode: UsageBasedAdmissionFairSharing` the LocalQueue with the least recent usage goes first. A \
         Configuration defines under admissionFairSharing how usage is counted: its half-life, and the weights of a core, a \
         byte and a GPU. docs/queues.md has the formula and an example."
    822 QueueBeyondMachine "quota that this machine does not have"
        "The nominal quota of all ClusterQueues and Cohorts together exceeds the machine's capacity, or `local.cpu` and \
         `local.memory`. Kueue accepts that too: it compares requests with quota and not with machines. Admitted runs share \
         the processors and the memory of the machine; a run that was promised a GPU that does not exist fails."
    823 QueuesByTurns "queues whose runs preempt each other without end"
        "By Kueue's rules a workload that was preempted can preempt its preemptor in turn, and so on for ever. In a cluster \
         each turn takes the time that pods need to stop. In virtual time a job without a `grace` stops at once: the clock \
         does not advance, and the simulation would never end. Set a `grace` or `spec.protectedRunTime`."
    824 NoQueueObjects "a file without objects"
        "`quota apply` replaces all queues by those of its files. A file without objects, such as an interrupted `kubectl \
         get` leaves, would remove all of them. To remove all queues on purpose, apply another object, such as a \
         ResourceFlavor."
    }};
}

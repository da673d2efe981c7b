//! Codes from BP0801 to BP0899: the gate and the queue.

macro_rules! queue {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    801 AsksTooMuch "a run that can never fit"
        "The whole gang (driver and workload) asks for more than the queue may ever promise. Choose a profile that \
         asks for less, or let the quota grow."
    802 NoSuchQueue "a queue that does not exist"
        "Runs wait in a LocalQueue, which stands before a ClusterQueue with quota. `blueproof quota get` lists them; \
         while nobody has applied others there is one of each, `local`."
    803 NoSuchPriorityClass "a priority class that does not exist"
        "A WorkloadPriorityClass gives a priority a name. Those that were applied are listed by `blueproof quota get`; a \
         priority may always be given as a number, too."
    804 ApprovalRefused "an approval that does not count"
        "An approval counts while whoever gave it may approve, did not write the content, and gave it under the policy that is in \
         force; it is of one head of a pull request that is open and not held, for one base, until it expires. What was refused is \
         not asked for again by itself: docs/approvals.md says what each reason means."
    805 NodeLabelMissing "a node that is not there"
        "A `nodeSelector` names labels that a node must have. The nodes of a flavor have the labels of its ResourceFlavor; a \
         machine that runs attempts as its own processes has no others, and without applied quota it has none. The run is \
         refused instead of being run anywhere."
    810 RetryTerms "an annotation on retries that cannot be used"
        "A workload says in annotations `workload.codeflare.dev.appwrapper/...` how it is tried again. Durations, such \
         as `90s` or `1h30m`: admissionGracePeriodDuration, warmupGracePeriodDuration, failureGracePeriodDuration, \
         retryPausePeriodDuration, forcefulDeletionGracePeriodDuration, deletionOnFailureGracePeriodDuration, \
         successTTLDuration. A number: retryLimit. Lists, such as `1, 2`: terminalExitCodes, retryableExitCodes. What \
         cannot be read is refused: under a default, it would be tried again when nobody expects it."
    811 QueueObjectKind "an object that queues do not go by"
        "ClusterQueue, Cohort, LocalQueue, ResourceFlavor and WorkloadPriorityClass of kueue.x-k8s.io/v1beta2 are read, \
         lists of them, and Configuration of config.kueue.x-k8s.io/v1beta2. Anything else in such a file is refused \
         instead of passed over: somebody counts on it."
    812 QueueObjectVersion "an object of another version of Kueue's API"
        "Kueue keeps its objects in v1beta2 since 0.16. Those of v1beta1, and Cohorts of v1alpha1, are converted as a \
         cluster converts them. In other versions fields have other names and other meanings, so that nothing is read by \
         guesswork."
    813 QueueObjectTwice "an object that is there twice"
        "Two objects of one kind have the same name, in one file or in several that are applied together. A cluster \
         would keep the later one; which of the two is meant here nobody knows."
    814 QueueRule "quotas that Kueue refuses"
        "Kueue's own checks refuse this object, so that a file that is taken here is taken by a cluster, too."
    815 QueueResourceCase "a resource's name in the wrong case"
        "Names of resources are told apart by case: nobody ever asks for `nvidia.com/GPU`, and so its quota would never be \
         used, while a run that asks for `nvidia.com/gpu` would find none."
    816 QueueReference "a name that no object has"
        "Kueue takes an object that refers to one that is not there yet. A ClusterQueue admits nothing while one of its \
         flavors is missing, a LocalQueue lets nobody through while its ClusterQueue is, and a cohort that is only named \
         has no quota of its own."
    817 QueueCircle "cohorts that are each other's parents"
        "Kueue takes them, and admits nothing in any of their queues until the circle is broken."
    818 QueueUnreachable "a ClusterQueue that no namespace may use"
        "Without a namespaceSelector Kueue lets no namespace use the queue. There are no namespaces here, so that it \
         makes no difference; in a cluster it would."
    819 QueueSetting "a setting of Kueue's that does not count"
        "Of Kueue's Configuration fairSharing.preemptionStrategies, admissionFairSharing and \
         waitForPodsReady.requeuingStrategy count. Most of the rest is about controllers, of which there are none; what \
         would change a decision is named."
    820 QueueRenamed "LocalQueues of one name in several namespaces"
        "Clusters often have a LocalQueue of the same name in each team's namespace. There are no namespaces here, so \
         that each is known by both: `team-a.default-queue`. Runs that wait in one that had its name to itself before go on."
    821 QueueUsage "an order by usage that is likely not meant"
        "With `admissionMode: UsageBasedAdmissionFairSharing` the LocalQueue that had least lately goes first. How that is \
         counted stands under admissionFairSharing in a Configuration: when it counts half, and what a core, a byte or a \
         GPU counts. docs/queues.md has the formula and an example."
    822 QueueBeyondMachine "quota that this machine does not have"
        "The nominal quota of all ClusterQueues and Cohorts together is more than the machine has, or than `local.cpu` and \
         `local.memory` let it give. Kueue takes that too: it counts quota and sees no machine. Runs that are admitted \
         share the processors and the memory that there are; one that was promised a GPU which is not there fails."
    823 QueuesByTurns "queues whose runs evict each other without end"
        "By Kueue's rules the one for whom another was evicted can be evicted by that one in turn, and so on for ever. In a cluster \
         each turn takes the time that pods need to stop. In virtual time a job without a `grace` stops at once: the clock \
         stands still, and the simulation would have no end. A `grace`, or `spec.protectedRunTime`, lets time pass."
    824 NoQueueObjects "a file without objects"
        "`quota apply` replaces all queues with those of its files. One with nothing in it, such as what an interrupted `kubectl \
         get` leaves, would take all of them away. To have none on purpose, apply another object, such as a ResourceFlavor."
    }};
}

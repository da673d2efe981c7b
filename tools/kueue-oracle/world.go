package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilsets "k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	qcache "sigs.k8s.io/kueue/pkg/cache/queue"
	"sigs.k8s.io/kueue/pkg/cache/queue/afs"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/controller/core"
	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/scheduler/preemption/expectations"
	utilqueue "sigs.k8s.io/kueue/pkg/util/queue"
	"sigs.k8s.io/kueue/pkg/util/resource"
	workloads "sigs.k8s.io/kueue/pkg/workload"
	"sigs.k8s.io/kueue/pkg/workload/evict"
	"sigs.k8s.io/kueue/pkg/workload/finish"
	"sigs.k8s.io/kueue/pkg/workload/patching"
)

// world is Kueue's scheduler, queues, cache and workload controller, with the API server, the clock and the job
// controller played.
type world struct {
	ctx   context.Context
	clock *testingclock.FakeClock
	// tick is how far one thing is from the next.
	tick       time.Duration
	api        *api
	cache      *schdcache.Cache
	queues     *qcache.Manager
	batch      interface{ ProcessRequeues(context.Context) int }
	scheduler  *scheduler.Scheduler
	controller *core.WorkloadReconciler
	clusterQs  map[string]*kueue.ClusterQueue
	// inSets has the workloads that were given with `sets`.
	inSets    map[string]bool
	unchecked bool
	wakes     bool
}

// newWorld makes an empty one. Where usage decides who goes first, it is charged on entry only: half of what is asked for, and
// nothing that is held for the few nanoseconds of a scenario counts beside a half-life of centuries.
func newWorld(fair *config.FairSharing, byUsage bool) *world {
	w := &world{
		tick:      time.Second,
		ctx:       ctrl.LoggerInto(context.Background(), logr.Discard()),
		clock:     testingclock.NewFakeClock(epoch),
		api:       newAPI(),
		clusterQs: map[string]*kueue.ClusterQueue{},
		inSets:    map[string]bool{},
	}
	var usage *config.AdmissionFairSharing
	if byUsage {
		w.tick = time.Nanosecond
		usage = &config.AdmissionFairSharing{
			UsageHalfLifeTime:     metav1.Duration{Duration: math.MaxInt64},
			UsageSamplingInterval: metav1.Duration{Duration: math.MaxInt64},
		}
	}
	expected, recorder := expectations.New(), &events.FakeRecorder{}
	w.cache = schdcache.New(w.api, schdcache.WithFairSharing(fair != nil), schdcache.WithAdmissionFairSharing(usage))
	w.queues, w.batch = qcache.NewManagerForUnitTestsWithRequeuer(w.api, w.cache, qcache.WithClock(w.clock),
		qcache.WithPreemptionExpectations(expected), qcache.WithAdmissionFairSharing(usage))
	w.scheduler = scheduler.New(w.queues, w.cache, w.api, recorder, scheduler.WithFairSharing(fair),
		scheduler.WithClock(nil, w.clock), scheduler.WithPreemptionExpectations(expected),
		scheduler.WithAdmissionFairSharing(usage))
	setAdmissionRoutineWrapper(w.scheduler, inline{})
	w.controller = core.NewWorkloadReconciler(w.api, w.queues, w.cache, recorder,
		core.WithPreemptionExpectations(expected))
	return w
}

// inline admits in the routine of the cycle, not beside it.
type inline struct{}

func (inline) Run(admit func()) { admit() }

// check applies a webhook, unless the scenario asks for what no API server would accept.
func check[T any](w *world, validate func(T) error, object T) error {
	if w.unchecked {
		return nil
	}
	return validate(object)
}

// setUp creates flavors, cohorts and queues, in the order of their names.
func (w *world) setUp(s *scenario) error {
	if err := w.addFlavors(s); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Cohorts)) {
		object, err := cohortObject(name, s.Cohorts[name])
		if err != nil {
			return fmt.Errorf("cohort %s: %w", name, err)
		}
		if err := check(w, validateCohort, object); err != nil {
			return err
		}
		if err := w.cache.AddOrUpdateCohort(object); err != nil {
			return fmt.Errorf("cohort %s: %w", name, err)
		}
		w.queues.AddOrUpdateCohort(w.ctx, object)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Queues)) {
		object, err := queueObject(name, s.Queues[name])
		if err != nil {
			return fmt.Errorf("queue %s: %w", name, err)
		}
		if err := w.addQueue(object, s.Queues[name].Users); err != nil {
			return err
		}
	}
	for name := range w.clusterQs {
		if !w.cache.ClusterQueueActive(kueue.ClusterQueueReference(name)) {
			return fmt.Errorf("queue %s is not active: are its cohorts a cycle?", name)
		}
	}
	return nil
}

// addFlavors creates the flavors described and those that a quota only names.
func (w *world) addFlavors(s *scenario) error {
	all := map[string]flavor{}
	add := func(groups []group) {
		for _, g := range groups {
			for _, f := range g {
				all[f.name] = s.Flavors[f.name]
			}
		}
	}
	for _, c := range s.Cohorts {
		add(c.Groups)
	}
	for _, q := range s.Queues {
		add(q.Groups)
	}
	for _, step := range s.Steps {
		if step.SetQueue != nil && step.SetQueue.To != nil {
			add(step.SetQueue.To.Groups)
		}
	}
	maps.Copy(all, s.Flavors)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		object := flavorObject(name, all[name])
		if err := check(w, validateFlavor, object); err != nil {
			return err
		}
		w.cache.AddOrUpdateResourceFlavor(logr.Discard(), object)
	}
	return nil
}

func (w *world) addQueue(cq *kueue.ClusterQueue, users map[string]json.Number) error {
	if err := check(w, validateQueue, cq); err != nil {
		return err
	}
	w.clusterQs[cq.Name] = cq
	if err := firstError(w.cache.AddClusterQueue(w.ctx, cq), w.queues.AddClusterQueue(w.ctx, cq)); err != nil {
		return err
	}
	locals := []*kueue.LocalQueue{localQueueObject(cq.Name, cq.Name)}
	for _, name := range slices.Sorted(maps.Keys(users)) {
		weight := users[name]
		local := localQueueObject(name, cq.Name)
		var err error
		if local.Spec.FairSharing, err = fairSharing(&weight); err != nil {
			return err
		}
		locals = append(locals, local)
	}
	for _, local := range locals {
		if w.api.locals[local.Name] != nil {
			continue
		}
		w.api.locals[local.Name] = local
		if err := firstError(w.cache.AddLocalQueue(local), w.queues.AddLocalQueue(w.ctx, local)); err != nil {
			return err
		}
	}
	return nil
}

// create is a new object in the API server, of which the controller is told.
func (w *world) create(object *kueue.Workload) error {
	if object.Name == "" {
		return fmt.Errorf("a workload without a name")
	}
	if w.api.workloads[object.Name] != nil {
		return fmt.Errorf("workload %s is there already", object.Name)
	}
	if w.api.locals[string(object.Spec.QueueName)] == nil {
		return fmt.Errorf("workload %s: no queue %q", object.Name, object.Spec.QueueName)
	}
	if err := check(w, validateWorkload, object); err != nil {
		return err
	}
	w.api.workloads[object.Name] = object
	w.controller.Create(event.TypedCreateEvent[*kueue.Workload]{Object: object})
	return nil
}

// cycle runs one cycle, a second after the last, and tells the controller what it changed.
func (w *world) cycle() []update {
	w.clock.Step(w.tick)
	w.reorder()
	schedule(w.scheduler, w.ctx)
	return w.deliver()
}

// reorder is the LocalQueue controller, which tells the queues that usage is another. Kueue moves one workload at a time, and
// is told again and again until all have their places.
func (w *world) reorder() {
	for _, cq := range w.clusterQs {
		if cq.Spec.AdmissionScope == nil {
			continue
		}
		for range len(w.api.workloads) {
			for name, local := range w.api.locals {
				if string(local.Spec.ClusterQueue) == cq.Name {
					_ = w.queues.RebuildClusterQueue(cq, name)
				}
			}
		}
	}
}

// pending says whether a cycle has a head to try; without one it would wait for ever. A queue that is stopped has none.
func (w *world) pending() bool {
	for name := range w.queues.Dump() {
		if w.cache.ClusterQueueActive(name) {
			return true
		}
	}
	return false
}

func (w *world) deliver() []update {
	updates := w.api.takeUpdates()
	for _, u := range updates {
		w.controller.Update(event.TypedUpdateEvent[*kueue.Workload]{ObjectOld: u.old, ObjectNew: u.new})
		if !workloads.IsAdmitted(u.old) && workloads.IsAdmitted(u.new) {
			w.settlePenalty(u.new)
		}
		local := w.api.locals[string(u.new.Spec.QueueName)]
		if holdsQuota(u.old) && !holdsQuota(u.new) && ptr.Deref(local.Spec.StopPolicy, kueue.None) != kueue.None {
			w.wakeAll()
		}
	}
	return updates
}

// wakeAll mends, where a scenario says so, what Kueue forgets: to let those try again who wait for quota that is free now.
// When a workload gives it back Kueue looks for them by its LocalQueue, and finds none where that is stopped; when a queue
// leaves a cohort it looks in the one that the queue enters. They wait until something else happens.
func (w *world) wakeAll() {
	if !w.wakes {
		return
	}
	all := utilsets.New[kueue.ClusterQueueReference]()
	for name := range w.clusterQs {
		all.Insert(kueue.ClusterQueueReference(name))
	}
	qcache.NotifyRetryInadmissible(w.queues, all)
}

// settlePenalty makes what a workload was charged on entry part of what its LocalQueue consumed. Kueue's controller does so by
// the machine's clock; here no time has passed.
func (w *world) settlePenalty(object *kueue.Workload) {
	key := utilqueue.KeyFromWorkload(object)
	w.queues.AfsUsageLedger.Update(key, func(ledger afs.UsageLedgerEntry, _ bool) afs.UsageLedgerEntry {
		ledger, penalty := ledger.WithoutPenalty(afs.WorkloadReference(workloads.Key(object)))
		ledger.Resources = resource.MergeResourceListKeepSum(ledger.Resources, penalty)
		return ledger
	})
}

// release is the job controller, once the pods of an evicted workload are gone: quota given back, and queued again.
func (w *world) release(name string) error {
	object := w.api.workloads[name].DeepCopy()
	evicted := meta.FindStatusCondition(object.Status.Conditions, kueue.WorkloadEvicted)
	err := patching.PatchAdmissionStatus(w.ctx, w.api, object, w.clock, func(wl *kueue.Workload) (bool, error) {
		workloads.SetRequeuedCondition(wl, evicted.Reason, evicted.Message, true)
		workloads.UnsetQuotaReservationWithCondition(wl, kueue.WorkloadPending, evicted.Message, w.clock.Now()) //nolint:staticcheck // As the controller does.
		return true, nil
	})
	w.deliver()
	return err
}

func (w *world) finish(name string) error {
	object := w.api.workloads[name].DeepCopy()
	err := finish.Finish(w.ctx, w.api, object, kueue.WorkloadFinishedReasonSucceeded, "", w.clock)
	w.deliver()
	return err
}

func holdsQuota(object *kueue.Workload) bool {
	return workloads.HasQuotaReservation(object) && !finish.IsFinished(object)
}

func isLeaving(object *kueue.Workload) bool {
	return holdsQuota(object) && evict.IsEvicted(object)
}

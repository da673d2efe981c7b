package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload/evict"
)

// setLending changes one lending limit of a queue; none at all where limit is nil.
func (w *world) setLending(change *lending) error {
	return w.edit(change.Queue, func(cq *kueue.ClusterQueue) error {
		found, err := findQuota(cq, change.Where)
		if err != nil {
			return err
		}
		found.LendingLimit, err = optionalAmount(shortName(found.Name), change.Limit)
		return err
	})
}

// setQuota changes one nominal quota of a queue.
func (w *world) setQuota(change *nominal) error {
	return w.edit(change.Queue, func(cq *kueue.ClusterQueue) error {
		found, err := findQuota(cq, change.Where)
		if err != nil {
			return err
		}
		found.NominalQuota, err = amount(shortName(found.Name), change.Amount)
		return err
	})
}

// setStop changes the stopPolicy of a queue. One that is drained evicts whoever holds its quota, which is the workload
// controller's work: it is told of each by its queue.
func (w *world) setStop(change *stop, linger bool) error {
	policy := kueue.StopPolicy(change.Policy)
	if err := oneOf("policy", policy, kueue.None, kueue.Hold, kueue.HoldAndDrain); err != nil {
		return err
	}
	err := w.edit(change.Queue, func(cq *kueue.ClusterQueue) error {
		cq.Spec.StopPolicy = &policy
		return nil
	})
	if err != nil || policy != kueue.HoldAndDrain {
		return err
	}
	return w.drainAll(kueue.WorkloadEvictedByClusterQueueStopped, linger, func(object *kueue.Workload) bool {
		return string(object.Status.Admission.ClusterQueue) == change.Queue
	})
}

// setLocalStop changes the stopPolicy of a LocalQueue, of which its controller tells the queues, and the workload controller
// each workload.
func (w *world) setLocalStop(change *stop, linger bool) error {
	old := w.api.locals[change.Queue]
	if old == nil {
		return fmt.Errorf("no LocalQueue %q to change", change.Queue)
	}
	policy := kueue.StopPolicy(change.Policy)
	if err := oneOf("policy", policy, kueue.None, kueue.Hold, kueue.HoldAndDrain); err != nil {
		return err
	}
	local := old.DeepCopy()
	local.Spec.StopPolicy = &policy
	w.api.locals[change.Queue] = local
	if ptr.Deref(old.Spec.StopPolicy, kueue.None) == policy {
		return nil
	}
	if policy == kueue.None {
		return w.queues.AddLocalQueue(w.ctx, local)
	}
	w.queues.DeleteLocalQueue(logr.Discard(), old)
	if policy == kueue.Hold {
		return nil
	}
	return w.drainAll(kueue.WorkloadEvictedByLocalQueueStopped, linger, func(object *kueue.Workload) bool {
		return string(object.Spec.QueueName) == change.Queue
	})
}

// drainAll evicts those that hold quota and are meant, as the workload controller does.
func (w *world) drainAll(reason string, linger bool, isMeant func(*kueue.Workload) bool) error {
	for _, name := range slices.Sorted(maps.Keys(w.api.workloads)) {
		object := w.api.workloads[name]
		if !holdsQuota(object) || isLeaving(object) || !isMeant(object) {
			continue
		}
		err := evict.Evict(w.ctx, w.api, &events.FakeRecorder{}, object.DeepCopy(), reason, "", "", w.clock, false, nil, nil)
		w.deliver()
		if err != nil {
			return err
		}
		if linger {
			continue
		}
		if err := w.release(name); err != nil {
			return err
		}
	}
	return nil
}

// setQueue makes, changes or removes a ClusterQueue.
func (w *world) setQueue(change *queueChange) error {
	if change.To == nil {
		return w.removeQueue(change.Queue)
	}
	object, err := queueObject(change.Queue, *change.To)
	if err != nil {
		return fmt.Errorf("queue %s: %w", change.Queue, err)
	}
	if w.clusterQs[change.Queue] == nil {
		return w.addQueue(object, change.To.Users)
	}
	return w.edit(change.Queue, func(cq *kueue.ClusterQueue) error {
		object.Spec.StopPolicy = cq.Spec.StopPolicy
		cq.Spec = object.Spec
		return nil
	})
}

// removeQueue deletes a ClusterQueue. While workloads hold its quota a finalizer keeps it, which is not played.
func (w *world) removeQueue(name string) error {
	cq := w.clusterQs[name]
	if cq == nil {
		return fmt.Errorf("no queue %q to remove", name)
	}
	for _, object := range w.api.workloads {
		if holdsQuota(object) && string(object.Status.Admission.ClusterQueue) == name {
			return fmt.Errorf("queue %s is in use", name)
		}
	}
	delete(w.clusterQs, name)
	w.cache.DeleteClusterQueue(cq)
	w.queues.DeleteClusterQueue(logr.Discard(), cq)
	w.wakeAll()
	return nil
}

// edit is a changed ClusterQueue in the API server, of which its controller tells cache and queues.
func (w *world) edit(name string, change func(*kueue.ClusterQueue) error) error {
	old := w.clusterQs[name]
	if old == nil {
		return fmt.Errorf("no queue %q to change", name)
	}
	cq := old.DeepCopy()
	cq.Generation++
	if err := change(cq); err != nil {
		return err
	}
	if err := check(w, validateQueue, cq); err != nil {
		return err
	}
	w.clusterQs[name] = cq
	isOther := !equality.Semantic.DeepEqual(meant(old.Spec), meant(cq.Spec))
	err := firstError(w.cache.UpdateClusterQueue(logr.Discard(), cq), w.queues.UpdateClusterQueue(w.ctx, cq, isOther))
	if old.Spec.CohortName != cq.Spec.CohortName {
		w.wakeAll()
	}
	return err
}

// meant fills in what holds where nothing is said, which the schema does not. To Kueue it is an edit to write it down, and all
// who wait try again; that is not compared.
func meant(spec kueue.ClusterQueueSpec) kueue.ClusterQueueSpec {
	if spec.FairSharing == nil {
		one := resource.MustParse("1")
		spec.FairSharing = &kueue.FairSharing{Weight: &one}
	}
	return spec
}

func findQuota(cq *kueue.ClusterQueue, where string) (*kueue.ResourceQuota, error) {
	for _, g := range cq.Spec.ResourceGroups {
		for _, f := range g.Flavors {
			for i := range f.Resources {
				if string(f.Name)+"/"+shortName(f.Resources[i].Name) == where {
					return &f.Resources[i], nil
				}
			}
		}
	}
	return nil, fmt.Errorf("queue %s has no quota for %q", cq.Name, where)
}

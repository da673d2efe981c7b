package main

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/workload/evict"
	"sigs.k8s.io/kueue/pkg/workload/finish"
)

// letters are how cases write the reason of a preemption.
var letters = map[string]string{
	kueue.InCohortReclamationReason:           "R",
	kueue.InCohortFairSharingReason:           "F",
	kueue.InClusterQueueReason:                "Q",
	kueue.InCohortReclaimWhileBorrowingReason: "W",
}

// cycleAnswer is the outcome of one cycle.
type cycleAnswer struct {
	Admit   map[string]flavors `json:"admit"`
	Preempt map[string]string  `json:"preempt"`
	Wait    map[string]string  `json:"wait"`
	sets
}

// scriptAnswer is the outcome of a script, step by step.
type scriptAnswer struct {
	Steps []*stepAnswer `json:"steps"`
}

type stepAnswer struct {
	Running   []string           `json:"running"`
	Waiting   []string           `json:"waiting"`
	Preempted map[string]string  `json:"preempted"`
	Leaving   *[]string          `json:"leaving,omitempty"`
	Admitted  map[string]flavors `json:"admitted"`
	Shares    *map[string]any    `json:"shares,omitempty"`
	Cycles    int                `json:"cycles"`
	sets
}

// flavors is resource -> flavor, in the names of a scenario.
type flavors map[string]string

// sets says of admitted workloads with several sets how many pods each set got, and where.
type sets struct {
	Counts     map[string][]int32   `json:"counts,omitempty"`
	SetFlavors map[string][]flavors `json:"set_flavors,omitempty"`
}

// journal notes what the updates of a cycle or step say.
type journal struct {
	admitted  map[string]bool
	preempted map[string]string
}

func newJournal() *journal {
	return &journal{admitted: map[string]bool{}, preempted: map[string]string{}}
}

// note answers whether the update is an admission or a preemption.
func (j *journal) note(old, new *kueue.Workload) bool {
	if old.Status.Admission == nil && new.Status.Admission != nil {
		j.admitted[new.Name] = true
		return true
	}
	if evict.IsEvicted(new) && !evict.IsEvicted(old) {
		reason := meta.FindStatusCondition(new.Status.Conditions, kueue.WorkloadPreempted).Reason
		j.preempted[new.Name] = letters[reason]
		return true
	}
	return false
}

// flavorsOf lists where those noted as admitted are now; who has left again is not in it.
func (w *world) flavorsOf(j *journal) (map[string]flavors, sets) {
	all := map[string]flavors{}
	perSet := sets{Counts: map[string][]int32{}, SetFlavors: map[string][]flavors{}}
	for name := range j.admitted {
		object := w.api.workloads[name]
		if !holdsQuota(object) || isLeaving(object) {
			continue
		}
		all[name] = flavors{}
		for _, assigned := range object.Status.Admission.PodSetAssignments {
			one := flavors{}
			for resource, flavor := range assigned.Flavors {
				one[shortName(resource)] = string(flavor)
			}
			all[name].fill(one)
			if w.inSets[name] {
				perSet.Counts[name] = append(perSet.Counts[name], *assigned.Count)
				perSet.SetFlavors[name] = append(perSet.SetFlavors[name], one)
			}
		}
	}
	return all, perSet
}

func (f flavors) fill(more flavors) {
	for resource, flavor := range more {
		if f[resource] == "" {
			f[resource] = flavor
		}
	}
}

// shares lists the weighted share of each queue where it is not 0, rounded up.
func (w *world) shares() (map[string]any, error) {
	all := map[string]any{}
	for name, cq := range w.clusterQs {
		usage, err := w.cache.Usage(cq)
		if err != nil {
			return nil, err
		}
		switch {
		case math.IsInf(usage.WeightedShare, 1):
			all[name] = "max"
		case usage.WeightedShare > 0:
			all[name] = int64(math.Ceil(usage.WeightedShare))
		}
	}
	return all, nil
}

// places lists who runs, waits and leaves, by name.
func (w *world) places() (running, waiting, leaving []string) {
	running, waiting, leaving = []string{}, []string{}, []string{}
	for name, object := range w.api.workloads {
		switch {
		case finish.IsFinished(object):
		case isLeaving(object):
			leaving = append(leaving, name)
		case holdsQuota(object):
			running = append(running, name)
		default:
			waiting = append(waiting, name)
		}
	}
	slices.Sort(running)
	slices.Sort(waiting)
	slices.Sort(leaving)
	return running, waiting, leaving
}

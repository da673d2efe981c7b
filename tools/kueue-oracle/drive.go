package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	workloads "sigs.k8s.io/kueue/pkg/workload"
)

const (
	// maxCycles is how many cycles a step may take before it counts as without an end.
	maxCycles = 200
	// cycleTime is the second of the cycle in a `cycle`: after whatever happened before.
	cycleTime = 1_000_000
)

type unsettled struct {
	Unsettled bool `json:"unsettled"`
}

// decide answers a scenario, with so many cycles after a step in which nothing is left to decide, and returns after which
// steps some heap had someone. Whatever goes wrong, in Kueue too, is an error and not an end.
func decide(s *scenario, idle func(step int) int) (answer any, awake []int, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			answer, err = nil, fmt.Errorf("panic: %v", problem)
		}
	}()
	fair, err := fairConfig(s)
	if err != nil {
		return nil, nil, err
	}
	byUsage := false
	for _, q := range s.Queues {
		byUsage = byUsage || len(q.Users) > 0
	}
	w := newWorld(fair, byUsage)
	w.unchecked, w.wakes = s.Unchecked, s.Wakes
	if err := w.setUp(s); err != nil {
		return nil, nil, err
	}
	switch s.Kind {
	case "cycle":
		answer, err = w.decideCycle(s)
		return answer, nil, err
	case "script", "linger":
		return w.decideScript(s, idle)
	}
	return nil, nil, fmt.Errorf("kind %q is none of cycle, script, linger", s.Kind)
}

func fairConfig(s *scenario) (*config.FairSharing, error) {
	if !s.Fair {
		return nil, nil
	}
	if s.Strategies == nil {
		return &config.FairSharing{PreemptionStrategies: []config.PreemptionStrategy{
			config.LessThanOrEqualToFinalShare, config.LessThanInitialShare,
		}}, nil
	}
	fair := &config.FairSharing{}
	for _, name := range s.Strategies {
		named := config.PreemptionStrategy(name)
		if err := oneOf("strategies", named, config.LessThanOrEqualToFinalShare, config.LessThanInitialShare); err != nil {
			return nil, err
		}
		fair.PreemptionStrategies = append(fair.PreemptionStrategies, named)
	}
	return fair, nil
}

func (w *world) decideCycle(s *scenario) (any, error) {
	if err := w.enter(s.Running, true); err != nil {
		return nil, err
	}
	if err := w.enter(s.Pending, false); err != nil {
		return nil, err
	}
	w.clock.SetTime(at(cycleTime).Time)
	noted := newJournal()
	if w.pending() {
		for _, u := range w.cycle() {
			noted.note(u.old, u.new)
		}
	}
	answer := &cycleAnswer{Preempt: noted.preempted, Wait: map[string]string{}}
	answer.Admit, answer.sets = w.flavorsOf(noted)
	answer.waits(w.queues.Dump(), "queue")
	answer.waits(w.queues.DumpInadmissible(), "parked")
	return answer, nil
}

func (a *cycleAnswer) waits(dump map[kueue.ClusterQueueReference][]workloads.Reference, where string) {
	for _, references := range dump {
		for _, reference := range references {
			_, name, _ := strings.Cut(string(reference), "/")
			a.Wait[name] = where
		}
	}
}

// enter creates the workloads of a `cycle`.
func (w *world) enter(all map[string][]*workload, running bool) error {
	for _, queue := range slices.Sorted(maps.Keys(all)) {
		for _, wanted := range all[queue] {
			object, err := workloadObject(wanted, queue, at(wanted.Created))
			if err != nil {
				return err
			}
			if running {
				admitted(object, wanted, queue)
			}
			if err := w.create(object); err != nil {
				return err
			}
			w.inSets[wanted.Name] = wanted.InSets
		}
	}
	return nil
}

func (w *world) decideScript(s *scenario, idle func(step int) int) (any, []int, error) {
	answer := &scriptAnswer{Steps: []*stepAnswer{}}
	var awake []int
	for i := range s.Steps {
		if err := w.do(&s.Steps[i], s.Kind == "linger"); err != nil {
			return nil, nil, fmt.Errorf("step %d: %w", i, err)
		}
		noted := newJournal()
		cycles, settled, err := w.settle(noted, s.Kind == "linger")
		if err != nil {
			return nil, nil, err
		}
		if !settled {
			return unsettled{true}, nil, nil
		}
		if w.pending() {
			awake = append(awake, i)
		}
		if err := w.idle(idle(i), noted, s.Kind == "linger"); err != nil {
			return nil, nil, err
		}
		step, err := w.state(noted, s)
		if err != nil {
			return nil, nil, err
		}
		step.Cycles = cycles
		answer.Steps = append(answer.Steps, step)
	}
	return answer, awake, nil
}

// do carries out what a step says, before any cycle.
func (w *world) do(step *step, linger bool) error {
	if step.verbs() != 1 {
		return fmt.Errorf("want one of submit, finish, set_lending, set_quota, set_stop, set_local_stop, set_queue, gone; there are %d", step.verbs())
	}
	for _, wanted := range step.Submit {
		if err := w.submit(wanted); err != nil {
			return err
		}
	}
	for _, name := range slices.Concat(step.Finish, step.Gone) {
		if w.api.workloads[name] == nil {
			return fmt.Errorf("no workload %q", name)
		}
	}
	for _, name := range step.Finish {
		if err := w.finish(name); err != nil {
			return err
		}
	}
	switch {
	case step.SetLending != nil:
		return w.setLending(step.SetLending)
	case step.SetQuota != nil:
		return w.setQuota(step.SetQuota)
	case step.SetStop != nil:
		return w.setStop(step.SetStop, linger)
	case step.SetLocalStop != nil:
		return w.setLocalStop(step.SetLocalStop, linger)
	case step.SetQueue != nil:
		return w.setQueue(step.SetQueue)
	}
	return w.releaseAll(step.Gone)
}

func (w *world) submit(wanted *workload) error {
	w.clock.Step(w.tick)
	object, err := workloadObject(wanted, wanted.Queue, metav1.NewTime(w.clock.Now()))
	if err != nil {
		return err
	}
	w.inSets[wanted.Name] = wanted.InSets
	return w.create(object)
}

// releaseAll gives back the quota of those of the names that are leaving.
func (w *world) releaseAll(names []string) error {
	for _, name := range names {
		if !isLeaving(w.api.workloads[name]) {
			continue
		}
		if err := w.release(name); err != nil {
			return err
		}
	}
	return nil
}

// settle runs cycles until one decides nothing and leaves what was there before, and answers how many it ran and whether it
// came to an end. What was there before need not be what the last cycle left: heads that block their queues can scan their
// flavors over and over.
func (w *world) settle(noted *journal, linger bool) (int, bool, error) {
	w.batch.ProcessRequeues(w.ctx)
	known := map[string]bool{w.standing(): true}
	for cycles := range maxCycles {
		if !w.pending() {
			return cycles, true, nil
		}
		decided := false
		for _, u := range w.cycle() {
			decided = noted.note(u.old, u.new) || decided
		}
		if !linger {
			_, _, leaving := w.places()
			if err := w.releaseAll(leaving); err != nil {
				return cycles, false, err
			}
		}
		w.batch.ProcessRequeues(w.ctx)
		if decided {
			clear(known)
		}
		now := w.standing()
		if known[now] {
			return cycles + 1, true, nil
		}
		known[now] = true
	}
	return maxCycles, false, nil
}

// idle runs cycles after a step has come to its end. Kueue goes on scheduling while anybody is in a heap: a head that blocks
// a StrictFIFO queue tries its flavors in a circle, so that where it stands hangs on how many cycles there were.
func (w *world) idle(cycles int, noted *journal, linger bool) error {
	for range cycles {
		if !w.pending() {
			return nil
		}
		for _, u := range w.cycle() {
			noted.note(u.old, u.new)
		}
		if !linger {
			_, _, leaving := w.places()
			if err := w.releaseAll(leaving); err != nil {
				return err
			}
		}
		w.batch.ProcessRequeues(w.ctx)
	}
	return nil
}

// standing is who is in which heap, who is parked, and how far those are who are amid a scan over flavors.
func (w *world) standing() string {
	var lines []string
	where := func(dump map[kueue.ClusterQueueReference][]workloads.Reference, word string) {
		for _, references := range dump {
			for _, reference := range references {
				lines = append(lines, fmt.Sprintln(word, reference))
			}
		}
	}
	where(w.queues.Dump(), "queue")
	where(w.queues.DumpInadmissible(), "parked")
	for name := range w.clusterQs {
		for _, info := range w.queues.PendingWorkloadsInfo(kueue.ClusterQueueReference(name)) {
			if info.LastAssignment.PendingFlavors() {
				lines = append(lines, fmt.Sprintln("scan", info.Obj.Name, info.LastAssignment.LastTriedFlavorIdx))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (w *world) state(noted *journal, s *scenario) (*stepAnswer, error) {
	running, waiting, leaving := w.places()
	step := &stepAnswer{Running: running, Waiting: waiting, Preempted: noted.preempted}
	step.Admitted, step.sets = w.flavorsOf(noted)
	if s.Kind == "linger" {
		step.Leaving = &leaving
	}
	if !s.Fair {
		return step, nil
	}
	shares, err := w.shares()
	step.Shares = &shares
	return step, err
}

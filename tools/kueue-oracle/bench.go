package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/event"

	config "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	// perCohort is how many queues share a cohort.
	perCohort = 6
	// perQueue is the nominal quota of a queue, in workloads.
	perQueue = 20
)

type measured struct {
	Queues    int     `json:"queues"`
	Pending   int     `json:"pending"`
	Fair      bool    `json:"fair"`
	Preempt   bool    `json:"preempt"`
	Decisions int     `json:"decisions"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
}

// bench measures how many admissions a second Kueue's own code decides while a given number of workloads waits.
func bench(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("kueue-oracle bench", flag.ExitOnError)
	m := measured{}
	flags.IntVar(&m.Queues, "queues", 30, "how many queues, in cohorts of 6")
	flags.IntVar(&m.Pending, "pending", 1000, "how many workloads wait")
	flags.BoolVar(&m.Fair, "fair", false, "with fair sharing")
	flags.BoolVar(&m.Preempt, "preempt", false, "each admission preempts another workload first")
	seconds := flags.Float64("seconds", 10, "how long to measure")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || m.Queues < 1 || m.Pending < m.Queues {
		return fmt.Errorf("bench wants at least one queue, and a pending workload for each")
	}
	if err := m.measure(time.Duration(*seconds * float64(time.Second))); err != nil {
		return err
	}
	m.PerSecond = float64(m.Decisions) / m.Seconds
	return json.NewEncoder(out).Encode(m)
}

func (m *measured) measure(long time.Duration) error {
	l, err := newLoad(m)
	if err != nil {
		return err
	}
	round := l.admit
	if m.Preempt {
		round = l.preempt
	}
	for l.spent < long {
		decisions, err := round()
		if err != nil {
			return err
		}
		if decisions == 0 {
			return fmt.Errorf("a round without a decision, after %d", m.Decisions)
		}
		m.Decisions += decisions
	}
	m.Seconds = l.spent.Seconds()
	return nil
}

// load is a world under load, and how long Kueue's code took in it.
type load struct {
	*world
	queues  []string
	running map[string][]string
	made    int
	urgency int32
	spent   time.Duration
}

// newLoad fills half of each queue, or all of it where workloads are to be preempted, and lets `pending` more wait.
func newLoad(m *measured) (*load, error) {
	var fair *config.FairSharing
	if m.Fair {
		fair = &config.FairSharing{}
	}
	l := &load{world: newWorld(fair, false), running: map[string][]string{}}
	s := &scenario{Queues: map[string]queue{}}
	units := ordered[quota]{{name: "cpu", value: quota{Nominal: json.Number(strconv.Itoa(perQueue))}}}
	for i := range m.Queues {
		name := fmt.Sprintf("q%d", i)
		l.queues = append(l.queues, name)
		s.Queues[name] = queue{
			Cohort: fmt.Sprintf("c%d", i/perCohort),
			Within: "LowerPriority",
			Groups: []group{{{name: "default", value: units}}},
		}
	}
	if err := l.setUp(s); err != nil {
		return nil, err
	}
	full := perQueue / 2
	if m.Preempt {
		full = perQueue
	}
	for i := range m.Queues * full {
		if err := l.put(l.queues[i%m.Queues], true); err != nil {
			return nil, err
		}
	}
	for i := range m.Pending {
		if err := l.put(l.queues[i%m.Queues], false); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// put creates a workload of one unit.
func (l *load) put(queue string, running bool) error {
	l.made++
	w := &workload{
		Name: fmt.Sprintf("w%d", l.made), Created: int64(l.made), Priority: l.urgency,
		Sets: []podSet{{Count: 1, Requests: map[string]json.Number{"cpu": "1"}}},
	}
	object, err := workloadObject(w, queue, at(w.Created))
	if err != nil {
		return err
	}
	if running {
		admitted(object, w, queue)
		l.running[queue] = append(l.running[queue], w.Name)
	}
	return l.create(object)
}

// timed runs a cycle, and counts its time and that of handling what it changed.
func (l *load) timed() *journal {
	begin := time.Now()
	updates := l.cycle()
	l.spent += time.Since(begin)
	noted := newJournal()
	for _, u := range updates {
		noted.note(u.old, u.new)
	}
	return noted
}

// remove deletes a workload, as the garbage collector does after its job.
func (l *load) remove(name string) {
	object := l.api.workloads[name]
	delete(l.api.workloads, name)
	l.controller.Delete(event.TypedDeleteEvent[*kueue.Workload]{Object: object})
}

// admit is a cycle that admits the head of every queue. As many of those who run the longest end, and others come.
func (l *load) admit() (int, error) {
	noted := l.timed()
	for name := range noted.admitted {
		queue := string(l.api.workloads[name].Spec.QueueName)
		l.running[queue] = append(l.running[queue], name)
		l.remove(l.running[queue][0])
		l.running[queue] = l.running[queue][1:]
		if err := l.put(queue, false); err != nil {
			return 0, err
		}
	}
	l.batch.ProcessRequeues(l.ctx)
	return len(noted.admitted), nil
}

// preempt lets one more urgent than all before come to every queue: a cycle preempts for them, and one admits them.
func (l *load) preempt() (int, error) {
	l.urgency++
	for _, queue := range l.queues {
		if err := l.put(queue, false); err != nil {
			return 0, err
		}
	}
	for name := range l.timed().preempted {
		l.remove(name)
	}
	l.batch.ProcessRequeues(l.ctx)
	return len(l.timed().admitted), nil
}

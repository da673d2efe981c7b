package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// scenario is one line of input. Keys of an expected outcome may be there too; they are not read.
type scenario struct {
	Kind       string   `json:"kind"`
	Fair       bool     `json:"fair"`
	Strategies []string `json:"strategies"`
	Unchecked  bool     `json:"unchecked"`
	// Wakes mends what Kueue forgets: see wakeAll.
	Wakes   bool                   `json:"wakes"`
	Flavors map[string]flavor      `json:"flavors"`
	Cohorts map[string]cohort      `json:"cohorts"`
	Queues  map[string]queue       `json:"queues"`
	Running map[string][]*workload `json:"running"`
	Pending map[string][]*workload `json:"pending"`
	Steps   []step                 `json:"steps"`
}

type flavor struct {
	Labels      map[string]string   `json:"labels"`
	Taints      []corev1.Taint      `json:"taints"`
	Tolerations []corev1.Toleration `json:"tolerations"`
}

type cohort struct {
	Parent string       `json:"parent"`
	Weight *json.Number `json:"weight"`
	Groups []group      `json:"groups"`
}

type queue struct {
	Cohort      string       `json:"cohort"`
	Weight      *json.Number `json:"weight"`
	Strategy    string       `json:"strategy"`
	Within      string       `json:"within"`
	Reclaim     string       `json:"reclaim"`
	Borrow      *borrow      `json:"bwc"`
	Fungibility fungibility  `json:"fungibility"`
	Groups      []group      `json:"groups"`
	// Users are the LocalQueues in front of it and their weights; where there are any, usage decides who goes first.
	Users map[string]json.Number `json:"users"`
}

type borrow struct {
	Policy string `json:"policy"`
	Max    *int32 `json:"max"`
}

type fungibility struct {
	WhenCanBorrow  string `json:"whenCanBorrow"`
	WhenCanPreempt string `json:"whenCanPreempt"`
	Preference     string `json:"preference"`
}

// group is flavor -> resource -> quota, in the order written: flavors are tried in it.
type group = ordered[ordered[quota]]

type quota struct {
	Nominal          json.Number
	Borrowing, Lends *json.Number
}

// step does exactly one of its verbs.
type step struct {
	Submit     []*workload `json:"submit"`
	Finish     []string    `json:"finish"`
	SetLending *lending    `json:"set_lending"`
	SetQuota   *nominal    `json:"set_quota"`
	SetStop    *stop       `json:"set_stop"`
	// SetLocalStop names a LocalQueue.
	SetLocalStop *stop        `json:"set_local_stop"`
	SetQueue     *queueChange `json:"set_queue"`
	Gone         []string     `json:"gone"`
}

type lending struct {
	Queue string       `json:"queue"`
	Where string       `json:"fr"`
	Limit *json.Number `json:"limit"`
}

// nominal is another nominal quota; the limits stay as they are.
type nominal struct {
	Queue  string      `json:"queue"`
	Where  string      `json:"fr"`
	Amount json.Number `json:"nominal"`
}

// queueChange makes a ClusterQueue with its LocalQueues, changes one, or removes it. Its stopPolicy and its LocalQueues stay.
type queueChange struct {
	Queue string `json:"queue"`
	To    *queue `json:"to"`
}

// stop is another stopPolicy.
type stop struct {
	Queue  string `json:"queue"`
	Policy string `json:"policy"`
}

type workload struct {
	Name  string
	Queue string
	// User is the LocalQueue; without one it is called as the queue.
	User     string
	Priority int32
	Created  int64
	Reserved int64
	Evicted  bool
	InSets   bool
	Sets     []podSet
}

type podSet struct {
	Count       int32
	Min         *int32
	Flavor      flavorChoice
	Selector    map[string]string
	Tolerations []corev1.Toleration
	Requests    map[string]json.Number
}

// flavorChoice says on which flavor a running workload is: one for all resources, or one for each.
type flavorChoice struct {
	all  string
	each map[string]string
}

func (f flavorChoice) of(resource string) string {
	if name, ok := f.each[resource]; ok {
		return name
	}
	if f.all == "" {
		return "default"
	}
	return f.all
}

func (f *flavorChoice) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		return json.Unmarshal(data, &f.each)
	}
	return json.Unmarshal(data, &f.all)
}

// ordered is a JSON object whose keys keep their order.
type ordered[T any] []entry[T]

type entry[T any] struct {
	name  string
	value T
}

func (o *ordered[T]) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return fmt.Errorf("%s is not an object", data)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return err
		}
		next := entry[T]{name: key.(string)}
		if err := decoder.Decode(&next.value); err != nil {
			return err
		}
		*o = append(*o, next)
	}
	return nil
}

func (q *quota) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		return json.Unmarshal(data, &q.Nominal)
	}
	var parts []*json.Number
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) == 0 || len(parts) > 3 || parts[0] == nil {
		return fmt.Errorf("%s is not [nominal, borrowing limit, lending limit]", data)
	}
	parts = append(parts, nil, nil)
	q.Nominal, q.Borrowing, q.Lends = *parts[0], parts[1], parts[2]
	return nil
}

func (s *step) verbs() int {
	count := 0
	verbs := []bool{s.Submit != nil, s.Finish != nil, s.SetLending != nil, s.SetQuota != nil, s.SetStop != nil,
		s.SetLocalStop != nil, s.SetQueue != nil, s.Gone != nil}
	for _, there := range verbs {
		if there {
			count++
		}
	}
	return count
}

// A workload is its name alone (1 cpu), or an object whose keys, besides those named here, are amounts of resources.
func (w *workload) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		w.Sets = []podSet{{Count: 1, Requests: map[string]json.Number{"cpu": "1"}}}
		return json.Unmarshal(data, &w.Name)
	}
	keys, err := newKeys(data)
	if err != nil {
		return err
	}
	keys.take("n", &w.Name)
	keys.take("q", &w.Queue)
	keys.take("u", &w.User)
	keys.take("p", &w.Priority)
	keys.take("c", &w.Created)
	keys.take("t", &w.Reserved)
	keys.take("evicted", &w.Evicted)
	keys.take("sets", &w.Sets)
	if w.InSets = w.Sets != nil; !w.InSets {
		w.Sets = []podSet{keys.podSet()}
		return keys.err
	}
	shared := keys.podSet()
	if len(shared.Requests) > 0 {
		return fmt.Errorf("workload %s has amounts beside its sets", w.Name)
	}
	w.share(shared)
	return keys.err
}

// share gives what was said of the whole workload to each set that does not say otherwise.
func (w *workload) share(whole podSet) {
	for i := range w.Sets {
		set := &w.Sets[i]
		if set.Selector == nil {
			set.Selector = whole.Selector
		}
		if set.Tolerations == nil {
			set.Tolerations = whole.Tolerations
		}
		if set.Flavor.all == "" && set.Flavor.each == nil {
			set.Flavor = whole.Flavor
		}
	}
}

func (p *podSet) UnmarshalJSON(data []byte) error {
	keys, err := newKeys(data)
	if err != nil {
		return err
	}
	*p = keys.podSet()
	return keys.err
}

// keys takes the known keys out of an object and keeps the first error.
type keys struct {
	left map[string]json.RawMessage
	err  error
}

func newKeys(data []byte) (*keys, error) {
	k := &keys{}
	return k, json.Unmarshal(data, &k.left)
}

func (k *keys) take(name string, into any) {
	raw, ok := k.left[name]
	if !ok {
		return
	}
	delete(k.left, name)
	if err := json.Unmarshal(raw, into); err != nil && k.err == nil {
		k.err = fmt.Errorf("%s: %w", name, err)
	}
}

// podSet reads one set of pods; whatever key is left is an amount.
func (k *keys) podSet() podSet {
	set := podSet{Count: 1}
	k.take("count", &set.Count)
	k.take("min", &set.Min)
	k.take("f", &set.Flavor)
	k.take("selector", &set.Selector)
	k.take("tolerations", &set.Tolerations)
	set.Requests = make(map[string]json.Number, len(k.left))
	for name := range k.left {
		var amount json.Number
		k.take(name, &amount)
		set.Requests[name] = amount
	}
	return set
}

// What describes the quota is read strictly: a key that is not known would be a policy silently not applied.
func (f *flavor) UnmarshalJSON(data []byte) error {
	type plain flavor
	return strictly(data, (*plain)(f))
}

func (c *cohort) UnmarshalJSON(data []byte) error {
	type plain cohort
	return strictly(data, (*plain)(c))
}

func (q *queue) UnmarshalJSON(data []byte) error {
	type plain queue
	return strictly(data, (*plain)(q))
}

func strictly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

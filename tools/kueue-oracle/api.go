package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/core/indexer"
)

// api plays the API server: a map of workloads, and the updates that a watch would tell. What Kueue's scheduler does not
// ask of a client is left out; asking for it is a nil pointer, which a scenario reports as its error.
type api struct {
	client.Client
	mu        sync.Mutex
	workloads map[string]*kueue.Workload
	locals    map[string]*kueue.LocalQueue
	updates   []update
}

type update struct{ old, new *kueue.Workload }

func newAPI() *api {
	return &api{workloads: map[string]*kueue.Workload{}, locals: map[string]*kueue.LocalQueue{}}
}

// Get knows workloads, their LocalQueues, and one namespace without labels.
func (a *api) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.Namespace:
		into.Name = key.Name
		return nil
	case *kueue.Workload:
		a.mu.Lock()
		defer a.mu.Unlock()
		if found := a.workloads[key.Name]; found != nil {
			*into = *found
			return nil
		}
	case *kueue.LocalQueue:
		if found := a.locals[key.Name]; found != nil {
			*into = *found
			return nil
		}
	}
	return apierrors.NewNotFound(kueue.Resource("workloads"), key.Name)
}

// List knows workloads and LocalQueues by the fields that Kueue's caches index; there are no limit ranges.
func (a *api) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	wanted := (&client.ListOptions{}).ApplyOptions(options)
	has := func(key, value string) bool {
		if wanted.FieldSelector == nil {
			return true
		}
		exact, found := wanted.FieldSelector.RequiresExactMatch(key)
		return !found || exact == value
	}
	switch into := into.(type) {
	case *kueue.WorkloadList:
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(a.workloads)) {
			object, admittedBy := a.workloads[name], ""
			if object.Status.Admission != nil {
				admittedBy = string(object.Status.Admission.ClusterQueue)
			}
			if has(indexer.WorkloadQueueKey, string(object.Spec.QueueName)) && has(indexer.WorkloadClusterQueueKey, admittedBy) {
				into.Items = append(into.Items, *object)
			}
		}
	case *kueue.LocalQueueList:
		for _, name := range slices.Sorted(maps.Keys(a.locals)) {
			if object := a.locals[name]; has(indexer.QueueClusterQueueKey, string(object.Spec.ClusterQueue)) {
				into.Items = append(into.Items, *object)
			}
		}
	}
	return nil
}

func (a *api) Status() client.SubResourceWriter {
	return statusWriter{api: a}
}

type statusWriter struct {
	client.SubResourceWriter
	api *api
}

// Patch is a server-side apply of a workload's status by the one manager there is, so what the patch lacks is gone. The
// pods that can be reclaimed have another manager.
func (s statusWriter) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	wanted, ok := object.(*kueue.Workload)
	if !ok || patch.Type() != client.Apply.Type() { //nolint:staticcheck // Kueue still sends it.
		return fmt.Errorf("a patch of type %s to a %T is not played", patch.Type(), object)
	}
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
	old := s.api.workloads[wanted.Name]
	if old == nil {
		return apierrors.NewNotFound(kueue.Resource("workloads"), wanted.Name)
	}
	updated := *old
	updated.Status = *wanted.Status.DeepCopy()
	updated.Status.ReclaimablePods = old.Status.ReclaimablePods
	s.api.workloads[wanted.Name] = &updated
	s.api.updates = append(s.api.updates, update{old: old, new: &updated})
	updated.DeepCopyInto(wanted)
	return nil
}

// takeUpdates hands over what was patched since the last call, by name: victims are patched side by side.
func (a *api) takeUpdates() []update {
	a.mu.Lock()
	defer a.mu.Unlock()
	taken := a.updates
	a.updates = nil
	slices.SortStableFunc(taken, func(x, y update) int { return strings.Compare(x.new.Name, y.new.Name) })
	return taken
}

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

const (
	namespace = "default"
	// custom is the domain of the resources that Kubernetes does not know.
	custom = "example.com/"
)

// epoch is second 0 of a scenario.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(second int64) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(second) * time.Second))
}

func resourceName(short string) corev1.ResourceName {
	switch short {
	case "cpu":
		return corev1.ResourceCPU
	case "mem":
		return corev1.ResourceMemory
	}
	return corev1.ResourceName(custom + short)
}

func shortName(name corev1.ResourceName) string {
	if name == corev1.ResourceMemory {
		return "mem"
	}
	return strings.TrimPrefix(string(name), custom)
}

// amount is a number in the units of a scenario: cores, Gi, and ones for all else.
func amount(short string, number json.Number) (resource.Quantity, error) {
	text, finest, unit := number.String(), resource.Scale(0), "ones"
	switch short {
	case "cpu":
		finest, unit = resource.Milli, "milli"
	case "mem":
		text, unit = text+"Gi", "bytes"
	}
	parsed, err := resource.ParseQuantity(text)
	if err != nil {
		return parsed, fmt.Errorf("%s: %s: %w", short, number, err)
	}
	rounded := parsed.DeepCopy()
	if !rounded.RoundUp(finest) {
		return parsed, fmt.Errorf("%s: %s is no whole number of %s", short, number, unit)
	}
	return parsed, nil
}

func optionalAmount(short string, number *json.Number) (*resource.Quantity, error) {
	if number == nil {
		return nil, nil
	}
	parsed, err := amount(short, *number)
	return &parsed, err
}

func flavorObject(name string, f flavor) *kueue.ResourceFlavor {
	return &kueue.ResourceFlavor{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       kueue.ResourceFlavorSpec{NodeLabels: f.Labels, NodeTaints: f.Taints, Tolerations: f.Tolerations},
	}
}

func cohortObject(name string, c cohort) (*kueue.Cohort, error) {
	groups, err := resourceGroups(c.Groups)
	if err != nil {
		return nil, err
	}
	weight, err := fairSharing(c.Weight)
	return &kueue.Cohort{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: kueue.CohortSpec{
			ParentName:     kueue.CohortReference(c.Parent),
			ResourceGroups: groups,
			FairSharing:    weight,
		},
	}, err
}

// queueObject fills in every default of the v1beta2 schema.
func queueObject(name string, q queue) (*kueue.ClusterQueue, error) {
	groups, err := resourceGroups(q.Groups)
	if err != nil {
		return nil, err
	}
	weight, err := fairSharing(q.Weight)
	none := kueue.None
	return &kueue.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1},
		Spec: kueue.ClusterQueueSpec{
			ResourceGroups:    groups,
			CohortName:        kueue.CohortReference(q.Cohort),
			QueueingStrategy:  or(kueue.QueueingStrategy(q.Strategy), kueue.BestEffortFIFO),
			NamespaceSelector: &metav1.LabelSelector{},
			FlavorFungibility: q.Fungibility.object(),
			Preemption: &kueue.ClusterQueuePreemption{
				ReclaimWithinCohort: or(kueue.PreemptionPolicy(q.Reclaim), kueue.PreemptionPolicyNever),
				WithinClusterQueue:  or(kueue.PreemptionPolicy(q.Within), kueue.PreemptionPolicyNever),
				BorrowWithinCohort:  q.Borrow.object(),
			},
			StopPolicy:     &none,
			FairSharing:    weight,
			AdmissionScope: admissionScope(q.Users),
		},
		Status: kueue.ClusterQueueStatus{Conditions: []metav1.Condition{
			condition(kueue.ClusterQueueActive, "Ready", at(0)),
		}},
	}, err
}

func admissionScope(users map[string]json.Number) *kueue.AdmissionScope {
	if len(users) == 0 {
		return nil
	}
	return &kueue.AdmissionScope{AdmissionMode: kueue.UsageBasedAdmissionFairSharing}
}

func (f fungibility) object() *kueue.FlavorFungibility {
	object := &kueue.FlavorFungibility{
		WhenCanBorrow:  or(kueue.FlavorFungibilityPolicy(f.WhenCanBorrow), kueue.MayStopSearch),
		WhenCanPreempt: or(kueue.FlavorFungibilityPolicy(f.WhenCanPreempt), kueue.TryNextFlavor),
	}
	if f.Preference != "" {
		preference := kueue.FlavorFungibilityPreference(f.Preference)
		object.Preference = &preference
	}
	return object
}

func (b *borrow) object() *kueue.BorrowWithinCohort {
	if b == nil {
		return &kueue.BorrowWithinCohort{Policy: kueue.BorrowWithinCohortPolicyNever}
	}
	return &kueue.BorrowWithinCohort{
		Policy:               or(kueue.BorrowWithinCohortPolicy(b.Policy), kueue.BorrowWithinCohortPolicyNever),
		MaxPriorityThreshold: b.Max,
	}
}

func or[T ~string](value, fallback T) T {
	if value == "" {
		return fallback
	}
	return value
}

func fairSharing(weight *json.Number) (*kueue.FairSharing, error) {
	if weight == nil {
		return nil, nil
	}
	parsed, err := resource.ParseQuantity(weight.String())
	if err != nil {
		return nil, fmt.Errorf("weight %s: %w", *weight, err)
	}
	return &kueue.FairSharing{Weight: &parsed}, nil
}

// resourceGroups gives every flavor its resources in the order of the first flavor, as the webhook wants it.
func resourceGroups(groups []group) ([]kueue.ResourceGroup, error) {
	var out []kueue.ResourceGroup
	for _, g := range groups {
		if len(g) == 0 {
			return nil, fmt.Errorf("a group without flavors")
		}
		var covered []string
		for _, first := range g[0].value {
			covered = append(covered, first.name)
		}
		object := kueue.ResourceGroup{}
		for _, short := range covered {
			object.CoveredResources = append(object.CoveredResources, resourceName(short))
		}
		for _, f := range g {
			quotas, err := flavorQuotas(f.value, covered)
			if err != nil {
				return nil, fmt.Errorf("flavor %s: %w", f.name, err)
			}
			object.Flavors = append(object.Flavors, kueue.FlavorQuotas{
				Name: kueue.ResourceFlavorReference(f.name), Resources: quotas,
			})
		}
		out = append(out, object)
	}
	return out, nil
}

func flavorQuotas(quotas ordered[quota], covered []string) ([]kueue.ResourceQuota, error) {
	if len(quotas) != len(covered) {
		return nil, fmt.Errorf("flavors must have the same number of resources as the coveredResources")
	}
	sorted := slices.Clone(quotas)
	place := func(e entry[quota]) int { return slices.Index(covered, e.name) }
	slices.SortStableFunc(sorted, func(a, b entry[quota]) int { return place(a) - place(b) })
	var out []kueue.ResourceQuota
	for _, e := range sorted {
		nominal, err := amount(e.name, e.value.Nominal)
		if err != nil {
			return nil, err
		}
		borrowing, err := optionalAmount(e.name, e.value.Borrowing)
		if err != nil {
			return nil, err
		}
		lends, err := optionalAmount(e.name, e.value.Lends)
		if err != nil {
			return nil, err
		}
		out = append(out, kueue.ResourceQuota{
			Name: resourceName(e.name), NominalQuota: nominal, BorrowingLimit: borrowing, LendingLimit: lends,
		})
	}
	return out, nil
}

func localQueueObject(name, queue string) *kueue.LocalQueue {
	return &kueue.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       kueue.LocalQueueSpec{ClusterQueue: kueue.ClusterQueueReference(queue)},
	}
}

// workloadObject is the workload as it waits. Its UID is its name, so that ties go by name.
func workloadObject(w *workload, queue string, created metav1.Time) (*kueue.Workload, error) {
	priority, active := w.Priority, true
	object := &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.Name, Namespace: namespace, UID: types.UID(w.Name), Generation: 1, CreationTimestamp: created,
		},
		Spec: kueue.WorkloadSpec{QueueName: or(kueue.LocalQueueName(w.User), kueue.LocalQueueName(queue)), Priority: &priority, Active: &active},
	}
	for i, set := range w.Sets {
		requests, err := requestsOf(set)
		if err != nil {
			return nil, fmt.Errorf("workload %s: %w", w.Name, err)
		}
		object.Spec.PodSets = append(object.Spec.PodSets, kueue.PodSet{
			Name:     setName(w, i),
			Count:    set.Count,
			MinCount: set.Min,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				NodeSelector: set.Selector,
				Tolerations:  set.Tolerations,
				Containers:   []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}},
			}},
		})
	}
	return object, nil
}

func setName(w *workload, index int) kueue.PodSetReference {
	if len(w.Sets) == 1 {
		return kueue.DefaultPodSetName
	}
	return kueue.PodSetReference(fmt.Sprintf("set%d", index))
}

func requestsOf(set podSet) (corev1.ResourceList, error) {
	requests := make(corev1.ResourceList, len(set.Requests))
	for _, short := range slices.Sorted(maps.Keys(set.Requests)) {
		parsed, err := amount(short, set.Requests[short])
		if err != nil {
			return nil, err
		}
		requests[resourceName(short)] = parsed
	}
	return requests, nil
}

// admitted puts the workload on the flavors that the scenario names.
func admitted(object *kueue.Workload, w *workload, queue string) {
	assigned := &kueue.Admission{ClusterQueue: kueue.ClusterQueueReference(queue)}
	for i, set := range w.Sets {
		count := set.Count
		one := kueue.PodSetAssignment{
			Name:          object.Spec.PodSets[i].Name,
			Count:         &count,
			Flavors:       map[corev1.ResourceName]kueue.ResourceFlavorReference{},
			ResourceUsage: corev1.ResourceList{},
		}
		for short := range set.Requests {
			name := resourceName(short)
			usage := object.Spec.PodSets[i].Template.Spec.Containers[0].Resources.Requests[name].DeepCopy()
			usage.Mul(int64(count))
			one.Flavors[name] = kueue.ResourceFlavorReference(set.Flavor.of(short))
			one.ResourceUsage[name] = usage
		}
		assigned.PodSetAssignments = append(assigned.PodSetAssignments, one)
	}
	reserved := at(w.Reserved)
	object.Status.Admission = assigned
	object.Status.Conditions = []metav1.Condition{
		condition(kueue.WorkloadQuotaReserved, "QuotaReserved", reserved),
		condition(kueue.WorkloadAdmitted, "Admitted", reserved),
	}
	if w.Evicted {
		object.Status.Conditions = append(object.Status.Conditions,
			condition(kueue.WorkloadEvicted, kueue.WorkloadEvictedByPreemption, reserved),
			condition(kueue.WorkloadPreempted, kueue.InClusterQueueReason, reserved))
	}
}

func condition(kind, reason string, since metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: since, ObservedGeneration: 1,
	}
}

package main

import (
	"context"
	"fmt"
	"slices"

	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/webhooks"
)

// What Kueue's webhooks check is asked of them; what only the schema of the objects says is repeated here.

func validateQueue(cq *kueue.ClusterQueue) error {
	if err := webhooks.ValidateClusterQueue(cq).ToAggregate(); err != nil {
		return fmt.Errorf("queue %s: %w", cq.Name, err)
	}
	p, f := cq.Spec.Preemption, cq.Spec.FlavorFungibility
	err := firstError(
		oneOf("strategy", cq.Spec.QueueingStrategy, kueue.StrictFIFO, kueue.BestEffortFIFO),
		oneOf("within", p.WithinClusterQueue, kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority,
			kueue.PreemptionPolicyLowerOrNewerEqualPriority),
		oneOf("reclaim", p.ReclaimWithinCohort, kueue.PreemptionPolicyNever, kueue.PreemptionPolicyLowerPriority,
			kueue.PreemptionPolicyAny),
		oneOf("bwc", p.BorrowWithinCohort.Policy, kueue.BorrowWithinCohortPolicyNever,
			kueue.BorrowWithinCohortPolicyLowerPriority),
		oneOf("whenCanBorrow", f.WhenCanBorrow, kueue.MayStopSearch, kueue.TryNextFlavor),
		oneOf("whenCanPreempt", f.WhenCanPreempt, kueue.MayStopSearch, kueue.TryNextFlavor),
	)
	if f.Preference != nil && err == nil {
		err = oneOf("preference", *f.Preference, kueue.BorrowingOverPreemption, kueue.PreemptionOverBorrowing)
	}
	if err != nil {
		return fmt.Errorf("queue %s: %w", cq.Name, err)
	}
	return nil
}

func validateCohort(c *kueue.Cohort) error {
	if _, err := (&webhooks.CohortWebhook{}).ValidateCreate(context.Background(), c); err != nil {
		return fmt.Errorf("cohort %s: %w", c.Name, err)
	}
	return nil
}

func validateFlavor(f *kueue.ResourceFlavor) error {
	if err := webhooks.ValidateResourceFlavor(f).ToAggregate(); err != nil {
		return fmt.Errorf("flavor %s: %w", f.Name, err)
	}
	return nil
}

func validateWorkload(w *kueue.Workload) error {
	if err := webhooks.ValidateWorkload(w, nil).ToAggregate(); err != nil {
		return fmt.Errorf("workload %s: %w", w.Name, err)
	}
	if len(w.Spec.PodSets) == 0 {
		return fmt.Errorf("workload %s: no sets of pods", w.Name)
	}
	for _, set := range w.Spec.PodSets {
		if set.Count < 0 {
			return fmt.Errorf("workload %s: count must not be negative", w.Name)
		}
		if set.MinCount != nil && (*set.MinCount < 1 || *set.MinCount > set.Count) {
			return fmt.Errorf("workload %s: minCount should be positive and less or equal to count", w.Name)
		}
	}
	return nil
}

func oneOf[T ~string](what string, value T, known ...T) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("%s: %q is none of %q", what, value, known)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"context"
	_ "unsafe" // for go:linkname

	"sigs.k8s.io/kueue/pkg/scheduler"
	"sigs.k8s.io/kueue/pkg/util/routine"
	"sigs.k8s.io/kueue/pkg/util/wait"
)

// One cycle is a method that Kueue does not export; its exported Start does nothing but loop over it. These bodies are
// found by the linker, which the empty linkname.s allows.

//go:linkname schedule sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).schedule
func schedule(*scheduler.Scheduler, context.Context) wait.SpeedSignal

//go:linkname setAdmissionRoutineWrapper sigs.k8s.io/kueue/pkg/scheduler.(*Scheduler).setAdmissionRoutineWrapper
func setAdmissionRoutineWrapper(*scheduler.Scheduler, routine.Wrapper)

package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// Each scenario is one where a reader of the documentation could guess wrong.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct{ scenario, answer string }{
		"a head without a fit parks its like untried": {
			`{"kind": "cycle", "queues": {"q": {"groups": [{"default": {"cpu": 2}}]}}, "running": {"q": ["r"]},
			  "pending": {"q": [{"n": "p1", "cpu": 2, "c": 1}, {"n": "p2", "cpu": 2, "c": 2}, {"n": "p3", "cpu": 1, "c": 3}]}}`,
			`{"admit": {}, "preempt": {}, "wait": {"p1": "parked", "p2": "parked", "p3": "queue"}}`,
		},
		"shares are floats, so an equal share is less": {
			`{"kind": "cycle", "fair": true, "cohorts": {"pool": {"groups": [{"default": {"gpu": 11}}]}},
			  "queues": {"a": {"cohort": "pool", "groups": [{"default": {"gpu": 0}}]},
			             "b": {"cohort": "pool", "weight": 3, "groups": [{"default": {"gpu": 0}}]},
			             "d": {"cohort": "pool", "groups": [{"default": {"gpu": 0}}]}},
			  "running": {"b": [{"n": "b0", "gpu": 2}], "d": [{"n": "d0", "gpu": 8}]},
			  "pending": {"a": [{"n": "a1", "gpu": 1, "c": 9}], "b": [{"n": "b1", "gpu": 1, "p": 5, "c": 1}]}}`,
			`{"admit": {"a1": {"gpu": "default"}}, "preempt": {}, "wait": {"b1": "queue"}}`,
		},
		"flavors are tried in the order written and by their labels": {
			`{"kind": "cycle", "flavors": {"z": {"labels": {"zone": "far"}}, "t": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
			  "queues": {"q": {"groups": [{"z": {"cpu": 9}, "t": {"cpu": 9}, "a": {"cpu": 9}}]}, "r": {"groups": [{"z": {"cpu": 9}, "a": {"cpu": 9}}]}},
			  "pending": {"q": [{"n": "w", "cpu": 1, "selector": {"zone": "near"}, "tolerations": [{"key": "other", "operator": "Exists"}]}], "r": ["x"]}}`,
			`{"admit": {"w": {"cpu": "a"}, "x": {"cpu": "z"}}, "preempt": {}, "wait": {}}`,
		},
		"fewer pods are admitted where not all fit": {
			`{"kind": "cycle", "queues": {"q": {"groups": [{"default": {"cpu": 50}}]}},
			  "pending": {"q": [{"n": "w", "sets": [{"count": 1, "cpu": 1}, {"count": 50, "min": 20, "cpu": 2}]}]}}`,
			`{"admit": {"w": {"cpu": "default"}}, "preempt": {}, "wait": {}, "counts": {"w": [1, 24]},
			  "set_flavors": {"w": [{"cpu": "default"}, {"cpu": "default"}]}}`,
		},
		"a head that waits for its victims is sticky": {
			`{"kind": "linger", "queues": {"q": {"within": "LowerPriority", "groups": [{"default": {"cpu": 2}}]}},
			  "steps": [{"submit": [{"n": "r", "q": "q", "cpu": 2}]}, {"submit": [{"n": "p1", "q": "q", "cpu": 2, "p": 1}]},
			            {"submit": [{"n": "p2", "q": "q", "cpu": 2, "p": 5}]}, {"gone": ["r"]}]}`,
			`{"steps": [
			  {"running": ["r"], "waiting": [], "preempted": {}, "leaving": [], "admitted": {"r": {"cpu": "default"}}, "cycles": 1},
			  {"running": [], "waiting": ["p1"], "preempted": {"r": "Q"}, "leaving": ["r"], "admitted": {}, "cycles": 2},
			  {"running": [], "waiting": ["p1", "p2"], "preempted": {}, "leaving": ["r"], "admitted": {}, "cycles": 1},
			  {"running": [], "waiting": ["p2", "r"], "preempted": {"p1": "Q"}, "leaving": ["p1"], "admitted": {}, "cycles": 3}]}`,
		},
		"where a scan is hangs on the idle cycles, also where those after all steps add up to whole rounds": {
			`{"kind": "script", "queues": {"q": {"strategy": "StrictFIFO", "groups": [{"a": {"gpu": 1}, "b": {"gpu": 1}, "c": {"gpu": 1}}, {"n": {"net": 1}}]}},
			  "steps": [{"submit": [{"n": "w1", "q": "q", "net": 1}]}, {"submit": [{"n": "w2", "q": "q", "gpu": 1, "net": 1}]},
			            {"gone": ["w2"]}, {"gone": ["w2"]}, {"finish": ["w1"]}]}`,
			`{"idle_dependent": true}`,
		},
		"fair sharing can go round for ever": {
			`{"kind": "script", "fair": true,
			  "queues": {"q1": {"cohort": "c", "groups": [{"default": {"cpu": [2, null, 2]}}]},
			             "q2": {"cohort": "c", "within": "LowerOrNewerEqualPriority", "reclaim": "Any", "groups": [{"default": {"cpu": 7}}]}},
			  "steps": [{"submit": [{"n": "w1", "q": "q1", "cpu": 3}, {"n": "w4", "q": "q2", "cpu": 7, "p": -1}, {"n": "w5", "q": "q2", "cpu": 5}]},
			            {"submit": [{"n": "w7", "q": "q2", "cpu": 8}]}, {"finish": ["w5"]}]}`,
			`{"unsettled": true}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask(t, c.scenario, 2); !reflect.DeepEqual(got, parse(t, c.answer)) {
				t.Errorf("got  %v\nwant %v", got, parse(t, c.answer))
			}
		})
	}
}

func TestErrorsSayWhat(t *testing.T) {
	for scenario, want := range map[string]string{
		`{`:                 "unexpected end",
		`{"kind": "cicle"}`: "none of cycle, script, linger",
		`{"kind": "cycle", "queues": {"q": {"recliam": "Any"}}}`:                             `unknown field "recliam"`,
		`{"kind": "cycle", "queues": {"q": {"reclaim": "any"}}}`:                             `reclaim: "any" is none of`,
		`{"kind": "cycle", "queues": {"q": {"groups": [{"f": {"cpu": [1, 1]}}]}}}`:           "must be nil when cohort is empty",
		`{"kind": "cycle", "queues": {"q": {}}, "pending": {"q": ["a", "a"]}}`:               "workload a is there already",
		`{"kind": "cycle", "queues": {"q": {}}, "pending": {"q": [{"n": "a", "gpu": 0.5}]}}`: "no whole number of ones",
		`{"kind": "script", "queues": {"q": {}}, "steps": [{"finish": ["a"]}]}`:              `no workload "a"`,
		`{"kind": "cycle", "cohorts": {"a": {"parent": "b"}, "b": {"parent": "a"}}}`:         "cycle",
	} {
		got, _ := ask(t, scenario, 1)["error"].(string)
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q in it", scenario, got, want)
		}
	}
}

func TestEveryLineIsAnswered(t *testing.T) {
	var out bytes.Buffer
	if err := answerAll(strings.NewReader("{}\n\n{}\n"), &out, 1); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 3 {
		t.Errorf("%d answers to 3 lines", lines)
	}
}

func TestBenchDecides(t *testing.T) {
	for _, args := range [][]string{{}, {"-fair"}, {"-preempt"}, {"-preempt", "-fair"}} {
		var out bytes.Buffer
		if err := bench(append(args, "-queues", "7", "-pending", "20", "-seconds", "0.01"), &out); err != nil {
			t.Fatal(args, err)
		}
		if decisions := parse(t, out.String())["decisions"].(float64); decisions < 7 {
			t.Errorf("%v: %v decisions", args, decisions)
		}
	}
}

func TestMetricsAreListed(t *testing.T) {
	var out bytes.Buffer
	if err := listMetrics(&out); err != nil {
		t.Fatal(err)
	}
	listed := map[string]map[string]any{}
	for line := range strings.Lines(out.String()) {
		metric := parse(t, line)
		listed[metric["name"].(string)] = metric
	}
	want := parse(t, `{"name": "kueue_quota_reserved_wait_time_seconds", "kind": "histogram",
	  "labels": ["cluster_queue", "priority_class", "replica_role"],
	  "bounds": [1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240]}`)
	if got := listed["kueue_quota_reserved_wait_time_seconds"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if listed["kueue_local_queue_status"] == nil || listed["multikueue_workloads_admitted_total"] == nil {
		t.Errorf("only %d are listed", len(listed))
	}
}

func ask(t *testing.T, scenario string, repeat int) map[string]any {
	t.Helper()
	return parse(t, string(answerLine([]byte(scenario), repeat)))
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var parsed map[string]any
	if err := json.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return parsed
}

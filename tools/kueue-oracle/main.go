// Command kueue-oracle decides queue scenarios with Kueue's own scheduler: a line of JSON in, a line of JSON out.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// maxLine is how long a scenario may be.
	maxLine = 64 << 20
	// maxIdle is how many idle cycles are tried: as many as queues have flavors to scan.
	maxIdle = 3
)

func main() {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kueue-oracle:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) > 0 && args[0] == "bench" {
		return bench(args[1:], os.Stdout)
	}
	if len(args) == 1 && args[0] == "metrics" {
		return listMetrics(os.Stdout)
	}
	flags := flag.NewFlagSet("kueue-oracle", flag.ExitOnError)
	repeat := flags.Int("repeat", 3, "decide each scenario so many times, and answer unstable if the answers differ")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *repeat < 1 {
		return fmt.Errorf("usage: kueue-oracle [-repeat N] <scenarios >answers, kueue-oracle bench, or kueue-oracle metrics")
	}
	return answerAll(os.Stdin, os.Stdout, *repeat)
}

// answerAll writes a line for every line, at once.
func answerAll(in io.Reader, out io.Writer, repeat int) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if _, err := out.Write(append(answerLine(lines.Bytes(), repeat), '\n')); err != nil {
			return err
		}
	}
	return lines.Err()
}

// answerLine decides a scenario as often as told: Kueue ranges over maps, and some outcomes hang on their order. Then it
// looks whether the outcome hangs on idle cycles.
func answerLine(line []byte, repeat int) []byte {
	first, awake := answerOnce(line, noIdle)
	for range repeat - 1 {
		if again, _ := answerOnce(line, noIdle); !bytes.Equal(first, again) {
			return []byte(`{"unstable":true}`)
		}
	}
	if repeat > 1 && isIdleDependent(line, first, awake) {
		return []byte(`{"idle_dependent":true}`)
	}
	return first
}

// isIdleDependent decides a scenario again with up to maxIdle idle cycles, after all steps and after each one alone. After
// all steps is not enough: a scan over three flavors is where it was after three steps with as many idle cycles each. Where
// no heap has anyone after a step there are no idle cycles.
func isIdleDependent(line, first []byte, awake []int) bool {
	if len(awake) == 0 {
		return false
	}
	for cycles := 1; cycles <= maxIdle; cycles++ {
		differs := func(after func(step int) int) bool {
			answer, _ := answerOnce(line, after)
			return !bytes.Equal(first, answer)
		}
		if differs(func(int) int { return cycles }) {
			return true
		}
		for _, alone := range awake {
			after := func(step int) int {
				if step == alone {
					return cycles
				}
				return 0
			}
			if differs(after) {
				return true
			}
		}
	}
	return false
}

func noIdle(int) int { return 0 }

// answerOnce also returns the steps after which idle cycles may matter.
func answerOnce(line []byte, idle func(step int) int) ([]byte, []int) {
	s := &scenario{}
	err := json.Unmarshal(line, s)
	var answer any
	var awake []int
	if err == nil {
		answer, awake, err = decide(s, idle)
	}
	if err != nil {
		answer = map[string]string{"error": err.Error()}
	}
	written, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return written, awake
}

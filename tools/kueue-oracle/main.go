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
// decides it again with up to maxIdle idle cycles after each step: some outcomes hang on how many there are.
func answerLine(line []byte, repeat int) []byte {
	first := answerOnce(line, 0)
	for range repeat - 1 {
		if !bytes.Equal(first, answerOnce(line, 0)) {
			return []byte(`{"unstable":true}`)
		}
	}
	for idle := 1; idle <= maxIdle && repeat > 1; idle++ {
		if !bytes.Equal(first, answerOnce(line, idle)) {
			return []byte(`{"idle_dependent":true}`)
		}
	}
	return first
}

func answerOnce(line []byte, idle int) []byte {
	s := &scenario{}
	err := json.Unmarshal(line, s)
	var answer any
	if err == nil {
		answer, err = decide(s, idle)
	}
	if err != nil {
		answer = map[string]string{"error": err.Error()}
	}
	written, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return written
}

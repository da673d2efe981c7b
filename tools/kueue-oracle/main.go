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

// maxLine is how long a scenario may be.
const maxLine = 64 << 20

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

// answerLine decides a scenario as often as told: Kueue ranges over maps, and some outcomes hang on their order.
func answerLine(line []byte, repeat int) []byte {
	var first []byte
	for range repeat {
		answer := answerOnce(line)
		if first != nil && !bytes.Equal(first, answer) {
			return []byte(`{"unstable":true}`)
		}
		first = answer
	}
	return first
}

func answerOnce(line []byte) []byte {
	s := &scenario{}
	err := json.Unmarshal(line, s)
	var answer any
	if err == nil {
		answer, err = decide(s)
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

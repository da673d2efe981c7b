package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"sigs.k8s.io/kueue/pkg/metrics"
)

// mostLabels is more than any metric has.
const mostLabels = 16

// metric is a metric as Kueue registers it; labels are in the order of their names.
type metric struct {
	Name   string    `json:"name"`
	Kind   string    `json:"kind"`
	Labels []string  `json:"labels"`
	Bounds []float64 `json:"bounds,omitempty"`
}

// registered keeps what is registered.
type registered struct {
	*prometheus.Registry
	collectors []prometheus.Collector
}

func (r *registered) MustRegister(collectors ...prometheus.Collector) {
	r.collectors = append(r.collectors, collectors...)
}

// listMetrics writes a line for each metric that Kueue registers at default feature gates.
func listMetrics(out io.Writer) error {
	kept := &registered{Registry: prometheus.NewRegistry()}
	ctrlmetrics.Registry = kept
	metrics.Register()
	lines := json.NewEncoder(out)
	for _, collector := range kept.collectors {
		described, err := describe(collector)
		if err != nil {
			return err
		}
		if err := lines.Encode(described); err != nil {
			return err
		}
	}
	return nil
}

// describe gives a metric a series, and reads its kind, labels and bounds from that.
func describe(collector prometheus.Collector) (metric, error) {
	if err := addSeries(collector); err != nil {
		return metric{}, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector)
	families, err := registry.Gather()
	if err != nil {
		return metric{}, err
	}
	family := families[0]
	series := family.GetMetric()[0]
	described := metric{Name: family.GetName(), Kind: strings.ToLower(family.GetType().String())}
	for _, label := range series.GetLabel() {
		described.Labels = append(described.Labels, label.GetName())
	}
	for _, bucket := range series.GetHistogram().GetBucket() {
		described.Bounds = append(described.Bounds, bucket.GetUpperBound())
	}
	return described, nil
}

// addSeries tries how many labels there are: a metric does not tell.
func addSeries(collector prometheus.Collector) error {
	for count := range mostLabels {
		values := make([]string, count)
		var err error
		switch vector := collector.(type) {
		case *prometheus.CounterVec:
			_, err = vector.GetMetricWithLabelValues(values...)
		case *prometheus.GaugeVec:
			_, err = vector.GetMetricWithLabelValues(values...)
		case *prometheus.HistogramVec:
			_, err = vector.GetMetricWithLabelValues(values...)
		default:
			return fmt.Errorf("%T is a metric of a kind that is not known", collector)
		}
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("a metric has %d labels or more", mostLabels)
}

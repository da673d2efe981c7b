// Command gpu-exporter shows GPUs to Prometheus with go-nvml and client_golang: one of those that our exporter is
// measured beside.
//
// It reads what ours reads, in as few calls, and asks who the devices are once: handles are kept.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve() error {
	if code := nvml.Init(); code != nvml.SUCCESS {
		return fmt.Errorf("could not use the NVIDIA driver: %s", nvml.ErrorString(code))
	}
	devices, err := newDevices()
	if err != nil {
		return err
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(devices); err != nil {
		return fmt.Errorf("could not register the devices: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("could not listen: %w", err)
	}
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	fmt.Fprintf(os.Stderr, "listening on http://%s/metrics\n", listener.Addr())
	return http.Serve(listener, nil)
}

package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/prometheus/client_golang/prometheus"
)

// Looks at the monitors that are closer together say nothing.
const apartAtLeast = 100 * time.Millisecond

// All devices, read anew for each page.
type devices struct {
	lock sync.Mutex
	all  []*device
	info []prometheus.Metric
}

// A device, or a part of one.
type device struct {
	nvml.Device
	whole    nvml.Device
	isPart   bool
	instance int
	labels   []string
	// Until when its own samples were read.
	seen   uint64
	look   nvml.GpmSample
	lookAt time.Time
}

func newDevices() (*devices, error) {
	count, code := nvml.DeviceGetCount()
	if code != nvml.SUCCESS {
		return nil, fmt.Errorf("could not count the devices: %s", nvml.ErrorString(code))
	}
	driver, _ := nvml.SystemGetDriverVersion()
	names := []string{"uuid", "partition", "index", "model", "pci_bus_id", "serial", "driver_version"}
	info := prometheus.NewDesc("gpu_info", "Who a device is", names, nil)
	all := &devices{}
	for index := range count {
		whole, code := nvml.DeviceGetHandleByIndex(index)
		if code != nvml.SUCCESS {
			return nil, fmt.Errorf("could not find device %d: %s", index, nvml.ErrorString(code))
		}
		uuid, _ := whole.GetUUID()
		model, _ := whole.GetName()
		serial, _ := whole.GetSerial()
		pci, _ := whole.GetPciInfo()
		of := []*device{{Device: whole, whole: whole, labels: []string{uuid, ""}}}
		most, _ := whole.GetMaxMigDeviceCount()
		for place := range most {
			part, code := whole.GetMigDeviceHandleByIndex(place)
			if code != nvml.SUCCESS {
				continue
			}
			instance, _ := part.GetGpuInstanceId()
			partition, _ := part.GetUUID()
			labels := []string{uuid, partition}
			of = append(of, &device{Device: part, whole: whole, isPart: true, instance: instance, labels: labels})
		}
		for _, one := range of {
			values := append(append([]string{}, one.labels...), fmt.Sprint(index), model, text(pci.BusId[:]), serial, driver)
			all.info = append(all.info, prometheus.MustNewConstMetric(info, prometheus.GaugeValue, 1, values...))
		}
		all.all = append(all.all, of...)
	}
	return all, nil
}

func text[T int8 | uint8](chars []T) string {
	var bytes []byte
	for _, char := range chars {
		if char == 0 {
			break
		}
		bytes = append(bytes, byte(char))
	}
	return string(bytes)
}

// Describe says nothing: which figures there are depends on the devices.
func (all *devices) Describe(chan<- *prometheus.Desc) {}

// Collect reads all devices.
func (all *devices) Collect(page chan<- prometheus.Metric) {
	all.lock.Lock()
	defer all.lock.Unlock()
	for _, info := range all.info {
		page <- info
	}
	for _, device := range all.all {
		device.collect(page)
	}
}

func (device *device) collect(page chan<- prometheus.Metric) {
	tell := func(of figure, value float64) {
		page <- prometheus.MustNewConstMetric(of.described, of.kind, value, device.labels...)
	}
	if !device.isPart {
		for _, call := range calls {
			if value, code := call.read(device.Device); code == nvml.SUCCESS {
				tell(call.figure, value)
			}
		}
		device.utilization(tell)
		device.fields(tell)
	}
	if memory, code := device.GetMemoryInfo_v2(); code == nvml.SUCCESS {
		tell(memoryTotal, float64(memory.Total))
		tell(memoryUsed, float64(memory.Used))
		tell(memoryFree, float64(memory.Free))
		tell(memoryReserved, float64(memory.Reserved))
	}
	_, _ = device.GetComputeRunningProcesses()
	_, _ = device.GetGraphicsRunningProcesses()
	device.monitors(tell)
}

func (device *device) utilization(tell func(figure, float64)) {
	if rates, code := device.GetUtilizationRates(); code == nvml.SUCCESS {
		tell(utilization, float64(rates.Gpu))
		tell(memoryUtilization, float64(rates.Memory))
	}
	if reasons, code := device.GetCurrentClocksThrottleReasons(); code == nvml.SUCCESS {
		for _, slowdown := range slowdowns {
			value := 0.0
			if reasons&slowdown.bit != 0 {
				value = 1
			}
			tell(slowdown.figure, value)
		}
	}
	_, _ = device.GetProcessUtilization(device.seen)
	_, samples, code := device.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, device.seen)
	if code != nvml.SUCCESS || len(samples) == 0 {
		return
	}
	most := uint32(0)
	for _, sample := range samples {
		most = max(most, binary.NativeEndian.Uint32(sample.SampleValue[:]))
		device.seen = max(device.seen, sample.TimeStamp)
	}
	tell(peak, float64(most))
}

func (device *device) fields(tell func(figure, float64)) {
	values := make([]nvml.FieldValue, len(fields))
	for place, field := range fields {
		values[place].FieldId = field.number
	}
	if device.GetFieldValues(values) != nvml.SUCCESS {
		return
	}
	for place, field := range fields {
		value := values[place]
		if nvml.Return(value.NvmlReturn) != nvml.SUCCESS {
			continue
		}
		if nvml.ValueType(value.ValueType) == nvml.VALUE_TYPE_UNSIGNED_LONG_LONG {
			tell(field.figure, float64(binary.NativeEndian.Uint64(value.Value[:])))
		} else {
			tell(field.figure, float64(binary.NativeEndian.Uint32(value.Value[:])))
		}
	}
}

func (device *device) monitors(tell func(figure, float64)) {
	now := time.Now()
	if device.look != nil && now.Sub(device.lookAt) < apartAtLeast {
		return
	}
	sample, code := nvml.GpmSampleAlloc()
	if code != nvml.SUCCESS {
		return
	}
	if device.isPart {
		code = device.whole.GpmMigSampleGet(device.instance, sample)
	} else {
		code = device.whole.GpmSampleGet(sample)
	}
	if code != nvml.SUCCESS {
		sample.Free()
		return
	}
	before := device.look
	device.look, device.lookAt = sample, now
	if before == nil {
		return
	}
	defer before.Free()
	metrics := nvml.GpmMetricsGetType{NumMetrics: uint32(len(monitors)), Sample1: before, Sample2: sample}
	for place, monitor := range monitors {
		metrics.Metrics[place].MetricId = monitor.number
	}
	if nvml.GpmMetricsGet(&metrics) != nvml.SUCCESS {
		return
	}
	for place, monitor := range monitors {
		if metric := metrics.Metrics[place]; nvml.Return(metric.NvmlReturn) == nvml.SUCCESS {
			tell(monitor.figure, metric.Value)
		}
	}
}

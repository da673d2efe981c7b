package main

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/prometheus/client_golang/prometheus"
)

// A figure that has a call of its own.
type call struct {
	figure figure
	read   func(nvml.Device) (float64, nvml.Return)
}

// A figure, as Prometheus has it.
type figure struct {
	described *prometheus.Desc
	kind      prometheus.ValueType
}

// A figure that NVML has a number for.
type numbered struct {
	figure figure
	number uint32
}

func gauge(name string) figure {
	return figure{described(name), prometheus.GaugeValue}
}

func counter(name string) figure {
	return figure{described(name + "_total"), prometheus.CounterValue}
}

func described(name string) *prometheus.Desc {
	return prometheus.NewDesc("gpu_"+name, name, []string{"uuid", "partition"}, nil)
}

type number interface{ ~int | ~uint32 | ~uint64 }

func as[T number](read func(nvml.Device) (T, nvml.Return)) func(nvml.Device) (float64, nvml.Return) {
	return func(device nvml.Device) (float64, nvml.Return) {
		value, code := read(device)
		return float64(value), code
	}
}

func clock(of nvml.ClockType) func(nvml.Device) (float64, nvml.Return) {
	return as(func(device nvml.Device) (uint32, nvml.Return) { return device.GetClockInfo(of) })
}

func errors(of nvml.MemoryErrorType, since nvml.EccCounterType) func(nvml.Device) (float64, nvml.Return) {
	return as(func(device nvml.Device) (uint64, nvml.Return) { return device.GetTotalEccErrors(of, since) })
}

func violation(of nvml.PerfPolicyType) func(nvml.Device) (float64, nvml.Return) {
	return func(device nvml.Device) (float64, nvml.Return) {
		status, code := device.GetViolationStatus(of)
		return float64(status.ViolationTime), code
	}
}

func coder(read func(nvml.Device) (uint32, uint32, nvml.Return)) func(nvml.Device) (float64, nvml.Return) {
	return func(device nvml.Device) (float64, nvml.Return) {
		share, _, code := read(device)
		return float64(share), code
	}
}

var calls = []call{
	{gauge("sm_clock_megahertz"), clock(nvml.CLOCK_SM)},
	{gauge("memory_clock_megahertz"), clock(nvml.CLOCK_MEM)},
	{gauge("temperature_celsius"), as(func(device nvml.Device) (uint32, nvml.Return) {
		return device.GetTemperature(nvml.TEMPERATURE_GPU)
	})},
	{gauge("power_milliwatts"), as(nvml.Device.GetPowerUsage)},
	{counter("energy_millijoules"), as(nvml.Device.GetTotalEnergyConsumption)},
	{counter("pcie_replays"), as(nvml.Device.GetPcieReplayCounter)},
	{gauge("encoder_utilization_percent"), coder(nvml.Device.GetEncoderUtilization)},
	{gauge("decoder_utilization_percent"), coder(nvml.Device.GetDecoderUtilization)},
	{counter("ecc_corrected"), errors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC)},
	{counter("ecc_uncorrected"), errors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)},
	{counter("ecc_corrected_of_all_time"), errors(nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC)},
	{counter("ecc_uncorrected_of_all_time"), errors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC)},
	{counter("power_violation_nanoseconds"), violation(nvml.PERF_POLICY_POWER)},
	{counter("thermal_violation_nanoseconds"), violation(nvml.PERF_POLICY_THERMAL)},
	{gauge("pcie_generation"), as(nvml.Device.GetCurrPcieLinkGeneration)},
	{gauge("pcie_generation_max"), as(nvml.Device.GetMaxPcieLinkGeneration)},
	{gauge("pcie_width_lanes"), as(nvml.Device.GetCurrPcieLinkWidth)},
	{gauge("pcie_width_max_lanes"), as(nvml.Device.GetMaxPcieLinkWidth)},
}

var fields = []numbered{
	{gauge("memory_temperature_celsius"), nvml.FI_DEV_MEMORY_TEMP},
	{counter("remapped_rows_correctable"), nvml.FI_DEV_REMAPPED_COR},
	{counter("remapped_rows_uncorrectable"), nvml.FI_DEV_REMAPPED_UNC},
	{gauge("row_remap_pending"), nvml.FI_DEV_REMAPPED_PENDING},
	{gauge("row_remap_failure"), nvml.FI_DEV_REMAPPED_FAILURE},
	{counter("retired_pages_correctable"), nvml.FI_DEV_RETIRED_SBE},
	{counter("retired_pages_uncorrectable"), nvml.FI_DEV_RETIRED_DBE},
	{gauge("retired_pages_pending"), nvml.FI_DEV_RETIRED_PENDING},
}

var slowdowns = []struct {
	figure figure
	bit    uint64
}{
	{gauge("hardware_slowdown"), nvml.ClocksThrottleReasonHwSlowdown},
	{gauge("hardware_thermal_slowdown"), nvml.ClocksThrottleReasonHwThermalSlowdown},
	{gauge("hardware_power_brake"), nvml.ClocksThrottleReasonHwPowerBrakeSlowdown},
	{gauge("software_thermal_slowdown"), nvml.ClocksThrottleReasonSwThermalSlowdown},
	{gauge("power_cap"), nvml.ClocksThrottleReasonSwPowerCap},
}

var monitors = []numbered{
	{gauge("engine_active_percent"), uint32(nvml.GPM_METRIC_GRAPHICS_UTIL)},
	{gauge("sm_active_percent"), uint32(nvml.GPM_METRIC_SM_UTIL)},
	{gauge("sm_occupancy_percent"), uint32(nvml.GPM_METRIC_SM_OCCUPANCY)},
	{gauge("tensor_active_percent"), uint32(nvml.GPM_METRIC_ANY_TENSOR_UTIL)},
	{gauge("dram_active_percent"), uint32(nvml.GPM_METRIC_DRAM_BW_UTIL)},
	{gauge("fp64_active_percent"), uint32(nvml.GPM_METRIC_FP64_UTIL)},
	{gauge("fp32_active_percent"), uint32(nvml.GPM_METRIC_FP32_UTIL)},
	{gauge("fp16_active_percent"), uint32(nvml.GPM_METRIC_FP16_UTIL)},
	{gauge("pcie_sent_mebibytes_per_second"), uint32(nvml.GPM_METRIC_PCIE_TX_PER_SEC)},
	{gauge("pcie_received_mebibytes_per_second"), uint32(nvml.GPM_METRIC_PCIE_RX_PER_SEC)},
	{gauge("nvlink_sent_mebibytes_per_second"), uint32(nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC)},
	{gauge("nvlink_received_mebibytes_per_second"), uint32(nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC)},
}

var (
	memoryTotal       = gauge("memory_total_bytes")
	memoryUsed        = gauge("memory_used_bytes")
	memoryFree        = gauge("memory_free_bytes")
	memoryReserved    = gauge("memory_reserved_bytes")
	utilization       = gauge("utilization_percent")
	memoryUtilization = gauge("memory_utilization_percent")
	peak              = gauge("utilization_peak_percent")
)

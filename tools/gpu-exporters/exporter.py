"""GPUs for Prometheus with nvidia-ml-py and prometheus_client: one of those that our exporter is measured beside.

It reads what ours reads, in as few calls, and asks who the devices are once: handles are kept.
"""

import sys
import threading
import time

import pynvml as nvml
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

LABELS = ["uuid", "partition"]
CALLS = {
    "sm_clock_megahertz": lambda device: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM),
    "memory_clock_megahertz": lambda device: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_MEM),
    "temperature_celsius": lambda device: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU),
    "power_milliwatts": nvml.nvmlDeviceGetPowerUsage,
    "energy_millijoules_total": nvml.nvmlDeviceGetTotalEnergyConsumption,
    "pcie_replays_total": nvml.nvmlDeviceGetPcieReplayCounter,
    "encoder_utilization_percent": lambda device: nvml.nvmlDeviceGetEncoderUtilization(device)[0],
    "decoder_utilization_percent": lambda device: nvml.nvmlDeviceGetDecoderUtilization(device)[0],
    "ecc_corrected_total": lambda device: nvml.nvmlDeviceGetTotalEccErrors(device, 0, 0),
    "ecc_uncorrected_total": lambda device: nvml.nvmlDeviceGetTotalEccErrors(device, 1, 0),
    "ecc_corrected_of_all_time_total": lambda device: nvml.nvmlDeviceGetTotalEccErrors(device, 0, 1),
    "ecc_uncorrected_of_all_time_total": lambda device: nvml.nvmlDeviceGetTotalEccErrors(device, 1, 1),
    "power_violation_nanoseconds_total": lambda device: nvml.nvmlDeviceGetViolationStatus(device, 0).violationTime,
    "thermal_violation_nanoseconds_total": lambda device: nvml.nvmlDeviceGetViolationStatus(device, 1).violationTime,
    "pcie_generation": nvml.nvmlDeviceGetCurrPcieLinkGeneration,
    "pcie_generation_max": nvml.nvmlDeviceGetMaxPcieLinkGeneration,
    "pcie_width_lanes": nvml.nvmlDeviceGetCurrPcieLinkWidth,
    "pcie_width_max_lanes": nvml.nvmlDeviceGetMaxPcieLinkWidth,
}
FIELDS = {
    "memory_temperature_celsius": nvml.NVML_FI_DEV_MEMORY_TEMP,
    "remapped_rows_correctable_total": nvml.NVML_FI_DEV_REMAPPED_COR,
    "remapped_rows_uncorrectable_total": nvml.NVML_FI_DEV_REMAPPED_UNC,
    "row_remap_pending": nvml.NVML_FI_DEV_REMAPPED_PENDING,
    "row_remap_failure": nvml.NVML_FI_DEV_REMAPPED_FAILURE,
    "retired_pages_correctable_total": nvml.NVML_FI_DEV_RETIRED_SBE,
    "retired_pages_uncorrectable_total": nvml.NVML_FI_DEV_RETIRED_DBE,
    "retired_pages_pending": nvml.NVML_FI_DEV_RETIRED_PENDING,
}
SLOWDOWNS = {
    "hardware_slowdown": nvml.nvmlClocksThrottleReasonHwSlowdown,
    "hardware_thermal_slowdown": nvml.nvmlClocksThrottleReasonHwThermalSlowdown,
    "hardware_power_brake": nvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown,
    "software_thermal_slowdown": nvml.nvmlClocksThrottleReasonSwThermalSlowdown,
    "power_cap": nvml.nvmlClocksThrottleReasonSwPowerCap,
}
MONITORS = {
    "engine_active_percent": nvml.NVML_GPM_METRIC_GRAPHICS_UTIL,
    "sm_active_percent": nvml.NVML_GPM_METRIC_SM_UTIL,
    "sm_occupancy_percent": nvml.NVML_GPM_METRIC_SM_OCCUPANCY,
    "tensor_active_percent": nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
    "dram_active_percent": nvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
    "fp64_active_percent": nvml.NVML_GPM_METRIC_FP64_UTIL,
    "fp32_active_percent": nvml.NVML_GPM_METRIC_FP32_UTIL,
    "fp16_active_percent": nvml.NVML_GPM_METRIC_FP16_UTIL,
    "pcie_sent_mebibytes_per_second": nvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC,
    "pcie_received_mebibytes_per_second": nvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC,
    "nvlink_sent_mebibytes_per_second": nvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC,
    "nvlink_received_mebibytes_per_second": nvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC,
}
# Looks at the monitors that are closer together say nothing.
APART_AT_LEAST = 0.1


def read(call, *arguments):
    """Returns what a call returns, or None where the card has no answer."""
    try:
        return call(*arguments)
    except nvml.NVMLError:
        return None


class Whole:
    """A device, or a part of one."""

    def __init__(self, handle, partition="", device=None):
        self.handle = handle
        self.device = device or handle
        self.is_part = device is not None
        self.uuid = nvml.nvmlDeviceGetUUID(self.device)
        self.labels = [self.uuid, partition]
        self.instance = nvml.nvmlDeviceGetGpuInstanceId(handle) if self.is_part else None
        self.seen = 0
        self.look = None

    def figures(self):
        """Returns every figure that can be read now."""
        values = {}
        if not self.is_part:
            for name, call in CALLS.items():
                values[name] = read(call, self.handle)
            self.utilization(values)
            self.fields(values)
        memory = read(nvml.nvmlDeviceGetMemoryInfo, self.handle, nvml.nvmlMemory_v2)
        for name in ("total", "used", "free", "reserved"):
            values[f"memory_{name}_bytes"] = memory and getattr(memory, name)
        self.processes()
        self.monitors(values)
        return values

    def utilization(self, values):
        rates = read(nvml.nvmlDeviceGetUtilizationRates, self.handle)
        values["utilization_percent"] = rates and rates.gpu
        values["memory_utilization_percent"] = rates and rates.memory
        reasons = read(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, self.handle)
        for name, bit in SLOWDOWNS.items():
            values[name] = None if reasons is None else int(bool(reasons & bit))
        busy = read(nvml.nvmlDeviceGetSamples, self.handle, nvml.NVML_GPU_UTILIZATION_SAMPLES, self.seen)
        new = [sample for sample in busy[1] if sample.timeStamp > self.seen] if busy else []
        values["utilization_peak_percent"] = max((sample.sampleValue.uiVal for sample in new), default=None)
        read(nvml.nvmlDeviceGetProcessUtilization, self.handle, self.seen)
        self.seen = max((sample.timeStamp for sample in new), default=self.seen)

    def fields(self, values):
        fields = read(nvml.nvmlDeviceGetFieldValues, self.handle, list(FIELDS.values())) or []
        for name, field in zip(FIELDS, fields):
            if field.nvmlReturn == nvml.NVML_SUCCESS:
                is_long = field.valueType == nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
                values[name] = field.value.ullVal if is_long else field.value.uiVal

    def processes(self):
        read(nvml.nvmlDeviceGetComputeRunningProcesses_v3, self.handle)
        read(nvml.nvmlDeviceGetGraphicsRunningProcesses_v3, self.handle)

    def monitors(self, values):
        now = time.monotonic()
        if self.look and now - self.look[0] < APART_AT_LEAST:
            return
        sample = nvml.nvmlGpmSampleAlloc()
        if self.is_part:
            taken = read(nvml.nvmlGpmMigSampleGet, self.device, self.instance, sample)
        else:
            taken = read(nvml.nvmlGpmSampleGet, self.device, sample)
        if taken is None:
            nvml.nvmlGpmSampleFree(sample)
            return
        before, self.look = self.look, (now, sample)
        if before is None:
            return
        metrics = nvml.c_nvmlGpmMetricsGet_t()
        metrics.version = nvml.NVML_GPM_METRICS_GET_VERSION
        metrics.numMetrics = len(MONITORS)
        metrics.sample1, metrics.sample2 = before[1], sample
        for place, metric in enumerate(MONITORS.values()):
            metrics.metrics[place].metricId = metric
        if read(nvml.nvmlGpmMetricsGet, metrics) is not None:
            for place, name in enumerate(MONITORS):
                if metrics.metrics[place].nvmlReturn == nvml.NVML_SUCCESS:
                    values[name] = metrics.metrics[place].value
        nvml.nvmlGpmSampleFree(before[1])


class Devices:
    """All devices, read anew for each page."""

    def __init__(self):
        self.lock = threading.Lock()
        self.all = []
        self.info = GaugeMetricFamily(
            "gpu_info", "Who a device is", labels=[*LABELS, "index", "model", "pci_bus_id", "serial", "driver_version"]
        )
        driver = nvml.nvmlSystemGetDriverVersion()
        for index in range(nvml.nvmlDeviceGetCount()):
            device = nvml.nvmlDeviceGetHandleByIndex(index)
            parts = range(read(nvml.nvmlDeviceGetMaxMigDeviceCount, device) or 0)
            parts = [read(nvml.nvmlDeviceGetMigDeviceHandleByIndex, device, place) for place in parts]
            of_device = [Whole(device)]
            of_device += [Whole(part, nvml.nvmlDeviceGetUUID(part), device) for part in parts if part]
            bus, serial = nvml.nvmlDeviceGetPciInfo(device).busId, read(nvml.nvmlDeviceGetSerial, device)
            who = [str(index), nvml.nvmlDeviceGetName(device), bus, serial or "", driver]
            for part in of_device:
                self.info.add_metric([*part.labels, *who], 1)
            self.all += of_device

    def collect(self):
        families = {}
        with self.lock:
            for device in self.all:
                for name, value in device.figures().items():
                    if value is None:
                        continue
                    family = families.get(name)
                    if family is None:
                        kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                        family = families[name] = kind(f"gpu_{name}", name.replace("_", " "), labels=LABELS)
                    family.add_metric(device.labels, value)
        yield self.info
        yield from families.values()


class Registered:
    """What a registry asks: it would ask once more for the names if there were no `describe`."""

    def __init__(self, devices):
        self.collect = devices.collect

    def describe(self):
        return []


def main():
    nvml.nvmlInit()
    registry = CollectorRegistry()
    registry.register(Registered(Devices()))
    server, thread = start_http_server(0, "127.0.0.1", registry)
    print(f"listening on http://127.0.0.1:{server.server_port}/metrics", file=sys.stderr, flush=True)
    thread.join()


if __name__ == "__main__":
    main()

//! Codes from BP0901 to BP0999: GPUs, and the exporter that tells of them.

macro_rules! gpu {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    901 GpuLibrary "a driver's library that is missing"
        "GPUs are read through a library of their driver: NVIDIA's is libnvidia-ml.so.1. It is missing on a machine without \
         GPUs, and in a container that was not given it. Everything else works without it."
    902 GpuDriver "a driver that is not loaded"
        "The driver's library is installed, but the kernel has not loaded the driver, so no GPU can be read."
    903 GpuPermission "GPUs that may not be read"
        "This user may not open the driver's device files, or the container was not given them."
    904 GpuVersions "a library and a driver of different versions"
        "The driver was updated while it was loaded, so its library and its kernel module have different versions. Load the \
         new module, or reboot the machine."
    905 GpuNone "a machine without GPUs"
        "The driver is loaded and lists no device. If the machine should have one, the device may be switched off, passed \
         through to another machine, or have fallen off the bus: `lspci -d 10de:` lists the devices that are plugged in."
    906 GpuDriverError "a driver that reports an error"
        "The driver answered with an error of its own, which is shown. A restart of the driver or of the machine often helps; \
         a device that fails again is likely broken."
    907 GpuRecording "a file that is not a recording of GPUs"
        "A recording has one JSON object a line: a header with its format and version, and then the readings in order. A \
         recording of a newer version of this program is refused."
    908 NotListening "an address that cannot be listened on"
        "Another process listens on the address, the address belongs to another machine, or this user may not use ports below \
         1024."
    909 WebConfig "a web configuration that cannot be used"
        "The exporter's TLS and passwords are configured in a file in the format of Prometheus' exporter-toolkit. If the file \
         cannot be used at the start, the exporter does not start. If it becomes unusable later, the last usable \
         configuration stays in force until the file is repaired."
    910 Certificate "a certificate or a key that cannot be used"
        "Certificates and keys are PEM files: the certificate first, then those that signed it; and the key without a \
         password. A renewed certificate is used once its key is there too; until then the previous one is used."
    911 KubeletSocket "a kubelet that cannot be connected to"
        "On a Kubernetes node the kubelet reports which pod has which GPU, over a socket in the folder of `--pod-resources`. \
         Mount the folder and not the socket, because a restarted kubelet creates a new socket. Until the kubelet answers, no \
         device has an owner."
    912 KubeletSlow "a kubelet that does not answer in time"
        "The kubelet is asked every few seconds and with each scrape. Its last answer is valid for ten seconds; after that it \
         is not used, because it could attribute one pod's usage to another. Until the kubelet answers, no device has an \
         owner."
    913 KubeletAnswer "a kubelet that answers with an error"
        "The kubelet refused to report which pod has which GPU, or its answer cannot be read. Until it answers correctly, no \
         device has an owner."
    914 CommandNotRun "a command that could not be run"
        "The job's command does not exist or may not be executed. Nothing was watched, and the exit code is the shell's: 127 \
         for a command that does not exist, 126 for one that may not be executed."
    915 JobState "a job that is not watched, or already is"
        "A job of several steps is watched by a background process, which is identified by a folder: `start`, `stop` and \
         `report` must name the same one. The summary of a watcher that was killed is some seconds old."
    916 TpuPlugin "a TPU device plugin that does not answer"
        "TPUs are read from the metrics that their device plugin serves on each node of GKE, at port 2112. The pod needs the \
         host's network, or the node's address, to reach it."
    917 NotPushed "a summary that a collector did not accept"
        "A job's summary can be pushed by OTLP over HTTP, once, after the job has ended. The error is shown; the job's exit \
         code does not change."
    918 GpuHangs "a GPU or a driver that does not answer"
        "A call to the driver's library does not return. Earlier readings are not reported as current: the device, or all \
         devices, are unknown until the call returns. Other devices are still read. `dmesg | grep -i -e nvrm -e xid` shows \
         more; a device that stays so needs a reset, or the machine a reboot."
    919 GpuReleased "a driver that was closed on purpose"
        "While a program has the driver open, the driver cannot be upgraded, and its devices can be neither reset nor \
         repartitioned. SIGUSR1 makes the exporter close the driver for ten minutes, in which all devices are unknown; SIGHUP \
         makes it open the driver again."
    920 GpuCounters "a file of DCGM's fields that cannot be read"
        "dcgm-exporter reads from a file which fields to export, with a type and a help text for each. Fields of DCGM that \
         NVML does not provide are left out and named in the log; a line without a field or a type is refused."
    921 DcgmOption "an option of dcgm-exporter that is not supported"
        "Options and variables of dcgm-exporter are supported where they can be honored. An option that would change the \
         metrics, and that needs DCGM or a Kubernetes API client, is refused by its name instead of being ignored."
    922 KubeletCheckpoint "a kubelet's checkpoint without the UIDs of pods"
        "The kubelet reports pods with devices by their names. Their UIDs are read from the checkpoint of its device manager, \
         the file `kubelet_internal_checkpoint` in its folder `device-plugins`, which must be mounted. Until it can be read, \
         pods are reported without a UID; everything else works."
    }};
}

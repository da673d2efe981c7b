//! Codes from BP0901 to BP0999: GPUs, and the exporter that tells of them.

macro_rules! gpu {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    901 GpuLibrary "a driver's library that is not here"
        "GPUs are read through the library that comes with their driver: NVIDIA's is libnvidia-ml.so.1. A machine without \
         GPUs has none, and neither has a container that was not given it. Everything else works without."
    902 GpuDriver "a driver that is not loaded"
        "The driver's library is here, but the kernel has not loaded the driver, so nothing can be said of any GPU."
    903 GpuPermission "GPUs that may not be read"
        "The driver's device files may not be opened by whoever asks, or the container was not given them."
    904 GpuVersions "a library and a driver of different versions"
        "The driver was updated while it was loaded, so that its library and the kernel's part do not understand each other."
    905 GpuNone "a machine without GPUs"
        "The driver is loaded and knows no device. Where there should be one, it may be switched off, taken by another \
         machine (passed through), or have fallen off the bus: `lspci -d 10de:` shows what is plugged in."
    906 GpuDriverError "a driver that reports an error"
        "The driver answered with an error of its own, which is shown. A restart of the driver or of the machine often helps; \
         a device that does it again is likely broken."
    907 GpuRecording "a file that is no recording of GPUs"
        "A recording has one JSON object in each line: a header with its format and version, and then what was read, in order. \
         One that a newer version of this program wrote is refused instead of half understood."
    908 NotListening "an address that cannot be listened on"
        "Another process listens there, the address is of another machine, or ports below 1024 are not for this user."
    909 WebConfig "a web configuration that cannot be used"
        "The exporter's TLS and passwords stand in a file as Prometheus' exporter-toolkit has it. Where it cannot be used at the \
         start, the exporter does not start; later, what held before holds on until the file is mended."
    910 Certificate "a certificate or a key that cannot be used"
        "Certificates and keys are PEM files, the certificate first and those that signed it behind, and the key without a \
         password. A renewed certificate counts once its key is there too; until then the one before is used."
    911 KubeletSocket "a kubelet that cannot be connected to"
        "Who has which GPU on a Kubernetes node is asked of its kubelet, over a socket in the folder that `--pod-resources` names. \
         Mount the folder, not the socket, which a restarted kubelet makes anew. Until it answers no device has an owner."
    912 KubeletSlow "a kubelet that does not answer in time"
        "The kubelet is asked every few seconds and with each scrape. What it told last holds for ten seconds; after that it is \
         not used, for it could charge a pod with the work of the one before. No device has an owner until the kubelet answers."
    913 KubeletAnswer "a kubelet that answers with an error"
        "The kubelet refused to tell who has which GPU, or answered with what cannot be understood. No device has an owner \
         until it tells."
    914 CommandNotRun "a command that could not be run"
        "The command of a job is not there, or may not be run. Nothing was watched, and the exit code is the shell's: 127 for \
         one that is not there, 126 for one that may not be run."
    915 JobState "a job that is not watched, or is watched already"
        "A job of several steps is watched by a process in the background, which is known by a folder: `start`, `stop` and \
         `report` have to name the same one. A watcher that was killed leaves a summary that is some seconds old."
    916 TpuPlugin "a TPU device plugin that does not tell"
        "TPUs are read from the page that their device plugin serves on each node of GKE, at port 2112. A pod needs the host's \
         network, or the node's address, to reach it."
    917 NotPushed "a summary that a collector did not take"
        "A job's summary can be pushed by OTLP over HTTP, once, when the job is over. What went wrong is shown; the job's exit \
         code is not changed by it."
    918 GpuHangs "a GPU or a driver that does not answer"
        "A call of the driver's library has not come back. What was read before is not told as if it were now: the device, or all \
         devices, are unknown until the call comes back. Other devices are read meanwhile. `dmesg | grep -i -e nvrm -e xid` tells \
         more; a device that goes on so needs a reset, or the machine a restart."
    919 GpuReleased "a driver that was closed on purpose"
        "A driver that a program has open cannot be upgraded, and its devices can be neither reset nor divided anew. SIGUSR1 has the \
         exporter close it for ten minutes, in which nothing is known of any device; SIGHUP has it open it again."
    920 GpuCounters "a file of DCGM's fields that cannot be read"
        "dcgm-exporter is told by a file which fields to show, with a type and a help text for each. Fields of DCGM's that NVML does not \
         tell are left out and named in the log; a line that has no field, or no type, is refused."
    921 DcgmOption "an option of dcgm-exporter that is not understood here"
        "Options and variables of dcgm-exporter are understood where they can be kept to. What would change what is told, and \
         cannot be done without DCGM or a Kubernetes API client, is refused by its name instead of being passed over."
    922 KubeletCheckpoint "a kubelet's checkpoint that does not say which UIDs pods have"
        "The kubelet tells pods with devices by their names. Their UIDs are read from the checkpoint of its device manager, the file \
         `kubelet_internal_checkpoint` in its folder `device-plugins`, which must be mounted. Until it can be read, pods are told \
         without a UID; all else goes on."
    }};
}

//! In the place of dcgm-exporter: its options and variables, understood, passed over with a word, or refused by name.
//!
//! The list is that of NVIDIA/dcgm-exporter 0048f87, `pkg/cmd/app.go`. Whatever would change what is told, and cannot be kept
//! to without DCGM or a client of Kubernetes' API, is refused: a swap of the image must not lose it silently.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, BufReader, Read as _},
    path::Path,
};

use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_gpu::pages::dcgm::Counters;

use crate::{
    cli::{Cli, HostLabel, Listen, PageKind},
    tell,
};

/// How much is read of a file of fields; dcgm-exporter's own have 10 KiB.
const LONGEST_COUNTERS: u64 = 1 << 20;

/// Where dcgm-exporter listens.
const ITS_ADDRESS: &str = ":9400";

/// What is done about an option that is not one of [`crate::cli::DropIn`].
enum Otherwise {
    /// Nothing: what it asks for is so anyway, or has no meaning here.
    PassedOver(&'static str),
    /// It is refused, unless it has this value, which is as good as none.
    Refused {
        unless: &'static [&'static str],
        why: &'static str,
    },
}

use Otherwise::{PassedOver, Refused};

/// Values that switch something off.
const OFF: &[&str] = &["", "false", "0", "f", "F", "FALSE", "False"];

const NO_DCGM: &str = "there is no DCGM here, and nothing of it to set";
const NO_CLIENT: &str = "it needs a client of Kubernetes' API, which this exporter does not have";
const NO_MODULE: &str = "it needs DCGM or its modules";

/// The other options, by their long name, their letter and their variable.
const OTHERS: &[(&str, &str, &str, Otherwise)] = &[
    (
        "config-file",
        "",
        "DCGM_EXPORTER_CONFIG_FILE",
        Refused {
            unless: &[""],
            why: "its form is dcgm-exporter's own; write options or variables",
        },
    ),
    (
        "web-read-timeout",
        "",
        "DCGM_EXPORTER_WEB_READ_TIMEOUT",
        PassedOver("a request has ten seconds"),
    ),
    (
        "web-write-timeout",
        "",
        "DCGM_EXPORTER_WEB_WRITE_TIMEOUT",
        PassedOver("an answer has ten seconds to be taken"),
    ),
    (
        "use-old-namespace",
        "o",
        "DCGM_EXPORTER_USE_OLD_NAMESPACE",
        Refused {
            unless: OFF,
            why: "the names of its first version are not written",
        },
    ),
    (
        "cpu-devices",
        "p",
        "DCGM_EXPORTER_CPU_DEVICES_STR",
        Refused {
            unless: &["", "f"],
            why: NO_MODULE,
        },
    ),
    (
        "configmap-data",
        "m",
        "DCGM_EXPORTER_CONFIGMAP_DATA",
        Refused {
            unless: &["", "none"],
            why: NO_CLIENT,
        },
    ),
    (
        "remote-hostengine-info",
        "r",
        "DCGM_REMOTE_HOSTENGINE_INFO",
        PassedOver(NO_DCGM),
    ),
    (
        "kubernetes-enable-pod-labels",
        "",
        "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS",
        Refused {
            unless: OFF,
            why: NO_CLIENT,
        },
    ),
    (
        "kubernetes-gpu-id-type",
        "",
        "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE",
        PassedOver("both types are understood"),
    ),
    (
        "kubernetes-pod-label-allowlist-regex",
        "",
        "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX",
        Refused {
            unless: &[""],
            why: NO_CLIENT,
        },
    ),
    (
        "switch-devices",
        "s",
        "DCGM_EXPORTER_OTHER_DEVICES_STR",
        Refused {
            unless: &["", "f"],
            why: NO_MODULE,
        },
    ),
    (
        "fake-gpus",
        "",
        "DCGM_EXPORTER_USE_FAKE_GPUS",
        Refused {
            unless: OFF,
            why: NO_MODULE,
        },
    ),
    (
        "web-systemd-socket",
        "",
        "DCGM_EXPORTER_SYSTEMD_SOCKET",
        Refused {
            unless: OFF,
            why: "sockets of systemd are not taken over",
        },
    ),
    (
        "xid-count-window-size",
        "x",
        "DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE",
        PassedOver("DCGM_EXP_XID_ERRORS_COUNT is not told"),
    ),
    (
        "debug",
        "",
        "DCGM_EXPORTER_DEBUG",
        PassedOver("there is no more to tell"),
    ),
    (
        "clock-events-count-window-size",
        "",
        "DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE",
        PassedOver("DCGM_EXP_CLOCK_EVENTS_COUNT is not told"),
    ),
    (
        "enable-dcgm-log",
        "",
        "DCGM_EXPORTER_ENABLE_DCGM_LOG",
        PassedOver(NO_DCGM),
    ),
    (
        "dcgm-log-level",
        "",
        "DCGM_EXPORTER_DCGM_LOG_LEVEL",
        PassedOver(NO_DCGM),
    ),
    (
        "log-format",
        "",
        "DCGM_EXPORTER_LOG_FORMAT",
        Refused {
            unless: &["", "text"],
            why: "the log is text for people",
        },
    ),
    (
        "hpc-job-mapping-dir",
        "",
        "DCGM_HPC_JOB_MAPPING_DIR",
        Refused {
            unless: &[""],
            why: "jobs of a batch system are not told apart",
        },
    ),
    (
        "container-labels",
        "",
        "DCGM_EXPORTER_CONTAINER_LABELS",
        Refused {
            unless: OFF,
            why: "container runtimes are not asked",
        },
    ),
    (
        "container-runtime-socket",
        "",
        "DCGM_CONTAINER_RUNTIME_SOCKET",
        Refused {
            unless: &[""],
            why: "container runtimes are not asked",
        },
    ),
    (
        "kubernetes-virtual-gpus",
        "",
        "KUBERNETES_VIRTUAL_GPUS",
        Refused {
            unless: OFF,
            why: "a device that several pods share is charged to none of them; `/metrics/native` names all",
        },
    ),
    (
        "kubernetes-enable-dra",
        "",
        "KUBERNETES_ENABLE_DRA",
        Refused {
            unless: OFF,
            why: NO_CLIENT,
        },
    ),
    (
        "dump-enabled",
        "",
        "DCGM_EXPORTER_DUMP_ENABLED",
        Refused {
            unless: OFF,
            why: "`--record FILE` writes all that is read",
        },
    ),
    (
        "dump-directory",
        "",
        "DCGM_EXPORTER_DUMP_DIRECTORY",
        PassedOver("nothing is dumped"),
    ),
    (
        "dump-retention",
        "",
        "DCGM_EXPORTER_DUMP_RETENTION",
        PassedOver("nothing is dumped"),
    ),
    (
        "dump-compression",
        "",
        "DCGM_EXPORTER_DUMP_COMPRESSION",
        PassedOver("nothing is dumped"),
    ),
    (
        "disable-startup-validate",
        "",
        "DCGM_EXPORTER_DISABLE_STARTUP_VALIDATE",
        PassedOver("nothing is validated at the start"),
    ),
    (
        "enable-gpu-bind-unbind-watch",
        "",
        "DCGM_EXPORTER_ENABLE_GPU_BIND_UNBIND_WATCH",
        PassedOver("devices are looked for with each reading"),
    ),
    (
        "gpu-bind-unbind-poll-interval",
        "",
        "DCGM_EXPORTER_GPU_BIND_UNBIND_POLL_INTERVAL",
        PassedOver("devices are looked for with each reading"),
    ),
    (
        "enable-pprof",
        "",
        "DCGM_EXPORTER_ENABLE_PPROF",
        Refused {
            unless: OFF,
            why: "there is nothing of Go here",
        },
    ),
];

/// Variables of dcgm-exporter that [`crate::cli::DropIn`] has.
const UNDERSTOOD: &[&str] = &[
    "DCGM_EXPORTER_COLLECTORS",
    "DCGM_EXPORTER_LISTEN",
    "DCGM_EXPORTER_INTERVAL",
    "DCGM_EXPORTER_KUBERNETES",
    "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID",
    "DCGM_EXPORTER_NO_HOSTNAME",
    "DCGM_EXPORTER_WEB_CONFIG_FILE",
    "DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME",
    "DCGM_EXPORTER_DEVICES_STR",
    "DCGM_POD_RESOURCES_KUBELET_SOCKET",
    "NVIDIA_RESOURCE_NAMES",
];

/// What puts the exporter in the place of dcgm-exporter, whatever else is asked.
const IN_ITS_PLACE: &str = "--dcgm-exporter";

/// Takes out of the arguments what is passed over. Whoever says anything to dcgm-exporter asks for it.
///
/// # Errors
///
/// Each option and each variable of dcgm-exporter that is refused, or that nobody knows.
pub(crate) fn without_others(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Vec<OsString>, Vec<Diagnostic>> {
    let (mut kept, mut problems, mut is_asked) = (Vec::new(), Vec::new(), false);
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy().into_owned();
        if kept.len() == 1 && ["job", "health"].contains(&text.as_str()) {
            // What follows is of a command of ours.
            kept.push(argument);
            kept.extend(arguments);
            return Ok(kept);
        }
        let Some((name, given, otherwise)) = other(&text) else {
            kept.push(argument);
            continue;
        };
        let value = match given {
            Some(value) => Some(value.to_owned()),
            None => arguments
                .next_if(|next| !next.to_string_lossy().starts_with('-'))
                .map(|next| next.to_string_lossy().into_owned()),
        };
        is_asked = true;
        // An option without a value switches something on.
        judge(
            &format!("--{name}"),
            value.as_deref().unwrap_or("true"),
            otherwise,
            &mut problems,
        );
    }
    for (name, value) in variables {
        let mut others = OTHERS.iter();
        is_asked |= UNDERSTOOD.contains(&name.as_str());
        if let Some((.., otherwise)) = others.find(|(_, _, variable, _)| *variable == name) {
            is_asked = true;
            judge(&name, &value, otherwise, &mut problems);
        } else if name.starts_with("DCGM_EXPORTER_") && !UNDERSTOOD.contains(&name.as_str()) {
            problems.push(refused(&name, "this exporter does not know it"));
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    if is_asked && !kept.iter().any(|argument| argument == IN_ITS_PLACE) {
        kept.insert(kept.len().min(1), IN_ITS_PLACE.into());
    }
    Ok(kept)
}

/// Returns the option that an argument is, with the value that stands in it.
fn other(argument: &str) -> Option<(&'static str, Option<&str>, &'static Otherwise)> {
    let (written, value) = match argument.split_once('=') {
        Some((written, value)) => (written, Some(value)),
        None => (argument, None),
    };
    let is_it = |name: &str, letter: &str| {
        written.strip_prefix("--") == Some(name)
            || (!letter.is_empty() && written.strip_prefix('-') == Some(letter))
    };
    let mut others = OTHERS.iter();
    let (name, _, _, otherwise) = others.find(|(name, letter, ..)| is_it(name, letter))?;
    Some((name, value, otherwise))
}

fn judge(name: &str, value: &str, otherwise: &Otherwise, problems: &mut Vec<Diagnostic>) {
    match otherwise {
        PassedOver(why) => eprintln!("`{name}` changes nothing here: {why}"),
        Refused { unless, .. } if unless.contains(&value) => {}
        Refused { why, .. } => problems.push(refused(name, why)),
    }
}

fn refused(name: &str, why: &str) -> Diagnostic {
    Diagnostic::error(
        Code::DcgmOption,
        format!("dcgm-exporter's `{name}` is not understood here"),
    )
    .because(why)
    .hint("leave it out, or go on with dcgm-exporter for that")
}

/// What the options of dcgm-exporter, and ours, come to.
pub(crate) struct Settings {
    pub(crate) listen: Listen,
    pub(crate) page: PageKind,
    pub(crate) host_label: HostLabel,
    pub(crate) counters: Option<Counters>,
}

/// Returns what the options come to: by its own options, or where it is asked to be, it is in the place of dcgm-exporter, with
/// that one's port and page.
pub(crate) fn settings(cli: &Cli) -> Result<Settings, Diagnostic> {
    let of = &cli.drop_in;
    if let Some(devices) = of.devices.as_deref().filter(|devices| *devices != "f") {
        let why =
            format!("`{devices}`: all devices are told, and those that are divided by their instances (`f`)");
        return Err(refused("--devices", &why));
    }
    let is_dropped_in = of.is_dropped_in();
    let usual = if is_dropped_in {
        ITS_ADDRESS
    } else {
        crate::cli::OUR_ADDRESS
    };
    let listen = cli.listen.clone().or_else(|| of.address.clone());
    let counters = of.collectors.as_deref().map(read_counters).transpose()?;
    Ok(Settings {
        listen: listen.unwrap_or_else(|| usual.parse().expect("it is an address")),
        page: cli.page.unwrap_or(if is_dropped_in {
            PageKind::Dcgm
        } else {
            PageKind::Native
        }),
        host_label: if of.no_hostname {
            HostLabel::None
        } else {
            cli.host_label
        },
        counters,
    })
}

/// Opens a file as it is mounted, through links too. Anything but a file could keep whoever reads it waiting for ever.
fn open(path: &Path) -> io::Result<io::Take<File>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    Ok(File::open(path)?.take(LONGEST_COUNTERS))
}

/// Reads which fields to show, and says which of them are left out.
pub(crate) fn read_counters(path: &Path) -> Result<Counters, Diagnostic> {
    let name = path.display().to_string();
    let file = open(path).map_err(|error| {
        Diagnostic::error(Code::GpuCounters, format!("could not read `{name}`"))
            .because(error.to_string())
            .hint("name a file such as dcgm-exporter's `default-counters.csv` with `--collectors`")
    })?;
    let counters = Counters::read(&name, BufReader::new(file))?;
    if counters.is_empty() {
        tell(
            &Diagnostic::warning(
                Code::GpuCounters,
                format!("`{name}` names no field that is shown"),
            )
            .because("so its page has no figure of any device")
            .hint("write one field a line, as in dcgm-exporter's `default-counters.csv`, or name no file"),
        );
    }
    for field in counters.left_out() {
        tell(
            &Diagnostic::warning(Code::GpuCounters, format!("{field} is left out"))
                .because("this exporter does not show it")
                .hint("remove it from the file, if nobody asks for it"),
        );
    }
    for label in counters.labels_left_out() {
        tell(
            &Diagnostic::warning(Code::GpuCounters, format!("the label {label} is left out"))
                .because("series of this page have no label of a file but the driver's version")
                .hint("`blueproof_gpu_info` at `/metrics/native` has what devices say of themselves, such as serial numbers"),
        );
    }
    Ok(counters)
}

#[cfg(test)]
mod tests;

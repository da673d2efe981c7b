//! What devices do, draw and complain of, and what runs made of them.

use blueproof_core::{gpu::Figure, metrics as m};
use blueproof_gpu::pages::native;

use crate::{
    expr::{Expr, Named, expr},
    grafana::{Dashboard, Panel, Row, Unit, Variable, View},
    recorded as r,
};

/// The chosen devices.
const CHOSEN: &str = "{instance=~\"$instance\",uuid=~\"$uuid\"}";

/// What a device is called.
const DEVICE: &str = "{{instance}} {{index}} {{model}} {{partition}}";

pub(super) fn dashboard() -> Dashboard {
    let variable = |label| Variable {
        label,
        of: expr("#", &[&native::INFO]),
    };
    Dashboard {
        uid: "blueproof-gpu",
        title: "blueproof: GPU and energy",
        description: "What devices do, what they draw, what they complain of, and what runs made of them.",
        variables: vec![variable("instance"), variable("uuid")],
        rows: vec![
            work(),
            owners(),
            attempts(),
            energy(),
            slow(),
            errors(),
            runs(),
            reading(),
        ],
    }
}

/// Returns what devices read, with the label that says which model each is.
fn with_model(of: &dyn Named, before: &str, after: &str) -> Expr {
    let template =
        format!("{before}#{CHOSEN}{after} * on (job, instance, uuid, partition) group_left (index, model) #");
    expr(&template, &[of, &native::INFO])
}

fn device(title: &'static str, unit: Unit, figure: Figure) -> Panel {
    Panel::new(title, View::Lines, unit).show(DEVICE, with_model(native::family(figure), "", ""))
}

fn rate(title: &'static str, view: View, unit: Unit, figure: Figure) -> Panel {
    let of = with_model(native::family(figure), "rate(", "[$__rate_interval])");
    Panel::new(title, view, unit).show(DEVICE, of)
}

fn work() -> Row {
    Row {
        title: "Work",
        panels: vec![
            device("Busy", Unit::Share, Figure::Utilization),
            Panel::new("Busy at most, over a day", View::Lines, Unit::Share)
                .show(DEVICE, with_model(&r::DEVICE_PEAK, "", "")),
            device("Memory used", Unit::Bytes, Figure::MemoryUsed),
            device("Memory read or written", Unit::Share, Figure::MemoryUtilization),
            device("Multiprocessors with work", Unit::Share, Figure::SmActive),
            device("Tensor cores active", Unit::Share, Figure::TensorActive),
            device("Sent over PCIe", Unit::BytesPerSecond, Figure::PcieSent),
            device("Sent over NVLink", Unit::BytesPerSecond, Figure::NvlinkSent),
        ],
    }
}

fn owners() -> Row {
    let now = |title, by, metric: &dyn Named| {
        let of = expr(&format!("max by ({by}) (#{CHOSEN})"), &[metric]);
        Panel::new(title, View::Table, Unit::Ones).show("", of)
    };
    let machine = "{instance=~\"$instance\"}";
    Row {
        title: "How many, and whose",
        panels: vec![
            Panel::new("GPUs", View::Lines, Unit::Ones).show(
                "{{instance}} {{kind}}",
                expr(
                    &format!("max by (instance, kind) (#{machine})"),
                    &[&native::DEVICES],
                ),
            ),
            Panel::new("The kubelet tells who has which", View::Lines, Unit::Wellness)
                .show("{{instance}}", expr(&format!("#{machine}"), &[&native::KUBELET])),
            now(
                "Who has which",
                "instance, uuid, partition, namespace, pod, container, sharing",
                &native::OWNER,
            ),
            now(
                "What checks found",
                "instance, uuid, check, state",
                &native::HEALTH,
            ),
        ],
    }
}

fn attempts() -> Row {
    let of = |how: &str, metric: &dyn Named| expr(&how.replace('#', &format!("#{CHOSEN}")), &[metric]);
    let now = |title, by: &str, metric: &dyn Named| {
        let machine = "{instance=~\"$instance\"}";
        let of = expr(&format!("max by ({by}) (#{machine})"), &[metric]);
        Panel::new(title, View::Table, Unit::Ones).show("", of)
    };
    let by_attempt = "{{instance}} {{attempt}}";
    let share = format!(
        "sum by (instance, attempt) (rate(#{CHOSEN}[$__rate_interval])) / \
         sum by (instance, attempt) (rate(#{CHOSEN}[$__rate_interval]))"
    );
    Row {
        title: "Attempts that go on",
        panels: vec![
            now(
                "Who they are",
                "instance, attempt, run, repository, pull_request, blueprint, profile",
                &native::ATTEMPT_INFO,
            ),
            now(
                "GPUs promised, and given",
                "instance, attempt, kind",
                &native::ATTEMPT_GPUS,
            ),
            Panel::new("Busy, of what is seen", View::Lines, Unit::Share).show(
                by_attempt,
                expr(&share, &[&native::ATTEMPT_BUSY, &native::ATTEMPT_SEEN]),
            ),
            Panel::new("Memory, at most", View::Lines, Unit::Bytes).show(
                by_attempt,
                of("max by (instance, attempt) (#)", &native::ATTEMPT_MEMORY),
            ),
            Panel::new("Power of their GPUs", View::Areas, Unit::Watts).show(
                by_attempt,
                of(
                    "sum by (instance, attempt) (rate(#[$__rate_interval]))",
                    &native::ATTEMPT_ENERGY,
                ),
            ),
            Panel::new("Whose the GPUs' time is", View::Areas, Unit::Ones).show(
                "{{instance}} {{to}}",
                of(
                    "sum by (instance, to) (rate(#[$__rate_interval]))",
                    &native::CHARGED,
                ),
            ),
        ],
    }
}

fn energy() -> Row {
    Row {
        title: "Energy and heat",
        panels: vec![
            Panel::new("Power", View::Areas, Unit::Watts)
                .show(DEVICE, with_model(native::family(Figure::Power), "", "")),
            Panel::new("Energy, in an hour", View::Areas, Unit::Joules).show(
                DEVICE,
                with_model(native::family(Figure::Energy), "increase(", "[1h])"),
            ),
            device("Temperature", Unit::Celsius, Figure::Temperature),
            device(
                "Temperature of the memory",
                Unit::Celsius,
                Figure::MemoryTemperature,
            ),
            device("Clock of the multiprocessors", Unit::Hertz, Figure::SmClock),
            device("Clock of the memory", Unit::Hertz, Figure::MemoryClock),
        ],
    }
}

fn slow() -> Row {
    let is_so = |title, figure| {
        Panel::new(title, View::Lines, Unit::Fault).show(DEVICE, with_model(native::family(figure), "", ""))
    };
    Row {
        title: "Held back",
        panels: vec![
            rate(
                "Time held back by power",
                View::Lines,
                Unit::Share,
                Figure::PowerViolation,
            ),
            rate(
                "Time held back by heat",
                View::Lines,
                Unit::Share,
                Figure::ThermalViolation,
            ),
            is_so(
                "Slowed down for heat, by hardware",
                Figure::HardwareThermalSlowdown,
            ),
            is_so(
                "Slowed down for heat, by the driver",
                Figure::SoftwareThermalSlowdown,
            ),
            is_so("Slowed down by the power supply", Figure::HardwarePowerBrake),
            device("Transfers over PCIe made again", Unit::Ones, Figure::PcieReplays),
        ],
    }
}

fn errors() -> Row {
    let rows = native::family(Figure::UncorrectableRemappedRows);
    Row {
        title: "Errors",
        panels: vec![
            device(
                "Errors of memory that were corrected",
                Unit::Ones,
                Figure::CorrectedErrors,
            ),
            device(
                "Errors of memory that were not",
                Unit::Ones,
                Figure::UncorrectedErrors,
            ),
            Panel::new("Rows of memory replaced, and to be", View::Lines, Unit::Ones)
                .show(DEVICE, with_model(rows, "", ""))
                .show(
                    "to be: {{instance}} {{index}} {{model}}",
                    with_model(native::family(Figure::RowRemapPending), "", ""),
                ),
            device(
                "Rows of memory that could not be replaced",
                Unit::Fault,
                Figure::RowRemapFailure,
            ),
            Panel::new("Xid errors since the exporter began", View::Table, Unit::Ones).show(
                "",
                expr(
                    &format!("sum by (instance, uuid, xid) (#{CHOSEN})"),
                    &[&native::XIDS],
                ),
            ),
            Panel::new("Figures that could not be read", View::Table, Unit::Ones).show(
                "",
                expr(
                    &format!("sum by (instance, uuid, partition, fault) (#{CHOSEN})"),
                    &[&native::FAULTS],
                ),
            ),
        ],
    }
}

fn runs() -> Row {
    let all = |metric| expr("sum(increase(#[1d]))", &[metric]);
    Row {
        title: "Of runs, over a day",
        panels: vec![
            Panel::new("GPU-seconds", View::Lines, Unit::Seconds)
                .show("allocated", all(&m::RUN_GPU_ALLOCATED_SECONDS))
                .show("seen", all(&m::RUN_GPU_SEEN_SECONDS))
                .show("busy", all(&m::RUN_GPU_BUSY_SECONDS)),
            Panel::new("Energy by blueprint", View::Areas, Unit::Joules).show(
                "{{blueprint}}",
                expr("sum by (blueprint) (increase(#[1d]))", &[&m::RUN_GPU_ENERGY]),
            ),
        ],
    }
}

fn reading() -> Row {
    let per_machine = |title, unit, metric| {
        let chosen = expr("#{instance=~\"$instance\"}", &[metric]);
        Panel::new(title, View::Lines, unit).show("{{instance}}", chosen)
    };
    Row {
        title: "Reading of devices",
        panels: vec![
            per_machine("Devices can be read", Unit::Wellness, &native::UP),
            Panel::new("Devices cannot be read", View::Lines, Unit::Fault)
                .show("{{instance}} {{reason}}", expr("#", &[&native::BLIND])),
            per_machine("How long reading took", Unit::Seconds, &native::TOOK),
            // A reading is told for fifteen seconds.
            per_machine("How long ago it began", Unit::Seconds, &native::AGE).limits(5.0, 15.0),
        ],
    }
}

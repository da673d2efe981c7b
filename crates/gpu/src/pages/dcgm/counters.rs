//! Which of DCGM's fields are shown: a file of dcgm-exporter's, such as its `default-counters.csv`.
//!
//! Each line has a field, Prometheus' type and a help text. A field that this program cannot tell is left out, and named to
//! whoever reads the log; one that cannot be DCGM's is a mistake, as it is to dcgm-exporter.

use std::io::BufRead;

use blueproof_core::{
    gpu::Figure,
    metrics::{Family, Kind},
};
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use csv::{ReaderBuilder, StringRecord, Trim};

use super::Field;

/// The label that has the driver's version.
const DRIVER: &str = "DCGM_FI_DRIVER_VERSION";

/// The fields that are shown, in the file's order.
#[derive(Clone, Default)]
pub struct Counters {
    shown: Vec<(Field, Family)>,
    has_driver: bool,
    left_out: Vec<String>,
    labels_left_out: Vec<String>,
}

impl Counters {
    /// Reads a file; errors call it by this name.
    ///
    /// # Errors
    ///
    /// The first line that has no field of DCGM's with a type and a help text.
    pub fn read(name: &str, file: impl BufRead) -> Result<Self, Diagnostic> {
        let mut counters = Self::default();
        for (number, line) in (1..).zip(file.lines()) {
            let added = line
                .map_err(|error| error.to_string())
                .and_then(|line| counters.add_line(&line));
            added.map_err(|why| wrong(name, number, &why))?;
        }
        Ok(counters)
    }

    /// Reads a line by itself, so that a mistake is told where it stands: a reader of all does not count comments.
    fn add_line(&mut self, line: &str) -> Result<(), String> {
        let line = line.trim();
        if line.starts_with('#') {
            return Ok(());
        }
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .trim(Trim::All)
            .from_reader(line.as_bytes());
        let Some(record) = reader.records().next() else {
            return Ok(());
        };
        self.add(&record.map_err(|error| error.to_string())?)
    }

    /// Returns the fields that the file names and this program cannot tell.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Returns whether nothing is shown by it.
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Returns the labels that the file names and the page does not have.
    pub fn labels_left_out(&self) -> &[String] {
        &self.labels_left_out
    }

    pub(super) fn shown(&self) -> impl Iterator<Item = (Field, &Family)> {
        self.shown.iter().map(|(field, family)| (*field, family))
    }

    /// Returns the figures that the file asks for.
    pub fn figures(&self) -> impl Iterator<Item = Figure> {
        self.shown.iter().filter_map(|(field, _)| match field {
            Field::Metric(metric) => Some(metric.figure),
            Field::XidErrors => None,
        })
    }

    /// Returns whether series have a label with the driver's version.
    pub(super) fn have_driver(&self) -> bool {
        self.has_driver
    }

    fn add(&mut self, record: &StringRecord) -> Result<(), String> {
        let fields: Vec<_> = record.iter().collect();
        let [name, kind, help] = fields[..] else {
            return Err(format!(
                "it has {} columns, and wants a field, a type and a help text",
                fields.len()
            ));
        };
        let kind = match kind {
            "gauge" => Some(Kind::Gauge),
            "counter" => Some(Kind::Counter),
            "label" => None,
            other => return Err(format!("`{other}` is no type; gauge, counter and label are")),
        };
        let known = Field::all().find(|field| field.family().name == name);
        match (known, kind) {
            _ if self.shown.iter().any(|(_, family)| family.name == name) => {}
            (Some(field), Some(kind)) => self.shown.push((field, family(field, kind, help))),
            (None, None) if name == DRIVER => self.has_driver = true,
            (Some(_) | None, None) if name.starts_with("DCGM_") => {
                self.labels_left_out.push(name.to_owned());
            }
            (Some(_) | None, _) if name.starts_with("DCGM_") => self.left_out.push(name.to_owned()),
            (Some(_) | None, _) => return Err(format!("`{name}` is no field of DCGM's")),
        }
        Ok(())
    }
}

/// Returns a field's metric as the file wants it.
fn family(field: Field, kind: Kind, help: &str) -> Family {
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    let of = field.family();
    Family {
        name: of.name,
        kind,
        labels: of.labels,
        constant: of.constant,
        // Metrics live as long as the program everywhere else; a file is read a few times in its life.
        help: help.leak(),
    }
}

fn wrong(name: &str, line: u32, why: &str) -> Diagnostic {
    let place = SourceLocation {
        file: name.to_owned(),
        line: Some(line),
        column: None,
        source: None,
    };
    Diagnostic::error(
        Code::GpuCounters,
        format!("`{name}` does not say which fields of DCGM's to show"),
    )
    .because(why)
    .at(place)
    .hint("each line is like `DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).`; `#` begins a comment")
}

impl std::fmt::Debug for Counters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.shown.iter().map(|(_, family)| family.name).collect();
        f.debug_struct("Counters")
            .field("shown", &names)
            .field("has_driver", &self.has_driver)
            .field("left_out", &self.left_out)
            .field("labels_left_out", &self.labels_left_out)
            .finish()
    }
}

impl PartialEq for Counters {
    fn eq(&self, other: &Self) -> bool {
        let shown = |of: &Self| {
            let families = of.shown.iter();
            families
                .map(|(_, family)| (family.name, family.kind.as_str(), family.help))
                .collect::<Vec<_>>()
        };
        let left_out = |of: &Self| (of.left_out.clone(), of.labels_left_out.clone());
        (shown(self), self.has_driver, left_out(self)) == (shown(other), other.has_driver, left_out(other))
    }
}

impl Eq for Counters {}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# Format\n\n\
        DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).\n\
        # DCGM_FI_DEV_POWER_USAGE, gauge, not this one\n\
        DCGM_FI_DEV_XID_ERRORS,  gauge,\"Value of the last XID error, if any.\"\n\
        DCGM_FI_DEV_PCIE_REPLAY_COUNTER, gauge, as somebody wants it\n\
        DCGM_FI_DEV_GPU_TEMP, gauge, once more\n\
        DCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, vGPU License status\n\
        DCGM_FI_DEV_SERIAL, label, Serial number\n\
        DCGM_FI_DRIVER_VERSION, label, Driver Version\n";

    #[test]
    fn the_file_says_which_fields_are_shown_with_which_type_and_help() {
        let counters = Counters::read("counters.csv", FILE.as_bytes()).expect("it is well formed");
        let shown: Vec<_> = counters
            .shown()
            .map(|(_, family)| (family.name, family.kind.as_str(), family.help))
            .collect();
        assert_eq!(
            shown,
            [
                ("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C)."),
                (
                    "DCGM_FI_DEV_XID_ERRORS",
                    "gauge",
                    "Value of the last XID error, if any."
                ),
                ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "gauge", "as somebody wants it"),
            ]
        );
        assert!(counters.have_driver());
        assert_eq!(
            (counters.left_out(), counters.labels_left_out()),
            (
                &["DCGM_FI_DEV_VGPU_LICENSE_STATUS".to_owned()][..],
                &["DCGM_FI_DEV_SERIAL".to_owned()][..]
            )
        );
    }

    #[test]
    fn a_line_that_is_none_is_refused_where_it_stands() {
        for (line, why) in [
            ("DCGM_FI_DEV_GPU_TEMP, gauge", "2 columns"),
            ("DCGM_FI_DEV_GPU_TEMP, number, help", "`number` is no type"),
            ("NODE_CPU, gauge, help", "`NODE_CPU` is no field"),
        ] {
            let file = format!("# one\n{line}\n");
            let refused = Counters::read("counters.csv", file.as_bytes()).expect_err(line);
            let told = format!("{refused:#}");
            assert!(told.contains(why) && told.contains("counters.csv:2"), "{told}");
        }
    }
}

//! What was measured, row by row.

use std::path::Path;

use anyhow::{Context as _, Result};

/// A CSV file to be.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(head: &[&'static str]) -> Self {
        Self {
            head: head.to_vec(),
            rows: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, row: impl IntoIterator<Item = String>) {
        self.rows.push(row.into_iter().collect());
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let name = || format!("could not write {}", path.display());
        let mut file = csv::Writer::from_path(path).with_context(name)?;
        file.write_record(&self.head).with_context(name)?;
        for row in &self.rows {
            file.write_record(row).with_context(name)?;
        }
        file.flush().with_context(name)
    }
}

/// Returns the median, what one in a hundred exceeds, and the most.
pub(super) fn spread(values: &[f64]) -> Option<[f64; 3]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let most = *sorted.last()?;
    let at = |percent: usize| sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)];
    Some([at(50), at(99), most])
}

pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

//! A notebook that goes on when a test lets it.

use std::{fs, path::PathBuf};

use super::{Checkout, Home};

/// A checkout whose notebook waits in its first cell until it is let go.
pub(crate) struct Held {
    checkout: Checkout,
    gate: PathBuf,
}

impl Held {
    pub(crate) fn new(home: &Home, name: &str) -> Self {
        Self::before(home, name, &[])
    }

    /// Makes one that has more cells, which run when it is let go.
    pub(crate) fn before(home: &Home, name: &str, cells: &[&str]) -> Self {
        Self::of(home, name, cells, "")
    }

    /// Makes one whose blueprint says more.
    pub(crate) fn asking(home: &Home, name: &str, spec: &str) -> Self {
        Self::of(home, name, &[], spec)
    }

    fn of(home: &Home, name: &str, cells: &[&str], spec: &str) -> Self {
        let gate = home.path().join(name);
        let wait = format!(
            "import os, time\nprint('{name} waits', flush=True)\n\
             while not os.path.exists({gate:?}):\n    time.sleep(0.02)\nprint('{name} went on')"
        );
        Self {
            checkout: Checkout::new(&[&[wait.as_str()], cells].concat(), spec),
            gate,
        }
    }

    pub(crate) fn typed(&self) -> &str {
        self.checkout.typed()
    }

    pub(crate) fn hold(&self) {
        fs::remove_file(&self.gate).expect("it was let go");
    }

    pub(crate) fn let_go(&self) {
        fs::write(&self.gate, "").expect("a file");
    }
}

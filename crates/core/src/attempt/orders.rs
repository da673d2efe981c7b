//! What an agent is told by whoever starts it, and nobody else may know.

use std::{
    io::{self, Read},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};

use super::LogKey;

/// The most that is read: far more than they take.
const MOST_BYTES: u64 = 64 << 10;

/// What an agent is told on its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orders {
    /// What it signs its records with.
    pub key: LogKey,
    /// What it is started for.
    pub errand: Errand,
    /// The folder in which the notebook works, to be made and removed: elsewhere than where the agent writes.
    pub work: PathBuf,
}

/// What an agent is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Errand {
    /// To carry out an attempt that has not begun.
    CarryOut,
    /// To end what is left of an attempt whose agent is gone, and to write down how it ended. It runs nothing.
    Finish,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    key: String,
    errand: Errand,
    work: PathBuf,
}

impl Orders {
    /// Writes them, as one line.
    pub fn to_line(&self) -> String {
        let written = Written {
            key: self.key.to_hex(),
            errand: self.errand,
            work: self.work.clone(),
        };
        serde_json::to_string(&written).expect("plain data") + "\n"
    }

    /// Reads them to the end of `input`. Blocks until they are there.
    ///
    /// # Errors
    ///
    /// When nothing can be read, or something else.
    pub fn read(input: impl Read) -> io::Result<Self> {
        let mut text = String::new();
        input.take(MOST_BYTES).read_to_string(&mut text)?;
        let written: Written = serde_json::from_str(&text)?;
        let not_a_key = || io::Error::new(io::ErrorKind::InvalidData, "it is no key");
        Ok(Self {
            key: LogKey::from_hex(&written.key).ok_or_else(not_a_key)?,
            errand: written.errand,
            work: written.work,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::RunId;

    #[test]
    fn orders_are_read_as_they_were_written_and_nothing_else_is() {
        let orders = Orders {
            key: LogKey::of(&[7; 32], RunId(3).attempt(2)),
            errand: Errand::Finish,
            work: "/runs/work/a".into(),
        };
        let line = orders.to_line();
        assert_eq!(Orders::read(line.as_bytes()).expect("they are orders"), orders);
        for other in [
            "",
            "{}",
            &line[..line.len() / 2],
            &line.replace("finish", "again"),
        ] {
            assert!(Orders::read(other.as_bytes()).is_err(), "{other}");
        }
        assert!(!format!("{orders:?}").contains(&orders.key.to_hex()));
    }
}

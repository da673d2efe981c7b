//! A value that was read, or why there is none.

use serde::{Deserialize, Serialize};

/// What came of reading something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reading<T> {
    /// This.
    Value(T),
    /// The card, or its driver, does not know it.
    Unsupported,
    /// The card knows it, and it could not be read now.
    Failed(Fault),
}

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fault {
    /// What it comes to.
    pub kind: FaultKind,
    /// The vendor's word for it, such as `GPU_IS_LOST`.
    pub word: String,
}

/// What a fault comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FaultKind {
    /// The device is gone: it fell off the bus, or was taken away.
    Lost,
    /// Whoever asks may not read it.
    NoPermission,
    /// The device, or the driver of it, does not answer.
    Hangs,
    /// The driver says something else.
    Driver,
}

impl<T> Reading<T> {
    /// Returns the value, if there is one.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Unsupported | Self::Failed(_) => None,
        }
    }

    /// Returns the same with a reference to the value.
    pub fn as_ref(&self) -> Reading<&T> {
        match self {
            Self::Value(value) => Reading::Value(value),
            Self::Unsupported => Reading::Unsupported,
            Self::Failed(fault) => Reading::Failed(fault.clone()),
        }
    }

    /// Changes the value, if there is one.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Value(value) => Reading::Value(change(value)),
            Self::Unsupported => Reading::Unsupported,
            Self::Failed(fault) => Reading::Failed(fault),
        }
    }

    /// Changes the value, if there is one; `None` is that it cannot be, and so is none that the card knows.
    pub fn filter_map<U>(self, change: impl FnOnce(T) -> Option<U>) -> Reading<U> {
        match self.map(change) {
            Reading::Value(Some(value)) => Reading::Value(value),
            Reading::Value(None) | Reading::Unsupported => Reading::Unsupported,
            Reading::Failed(fault) => Reading::Failed(fault),
        }
    }

    /// Returns why it could not be read, if that is so.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Failed(fault) => Some(fault),
            Self::Value(_) | Self::Unsupported => None,
        }
    }
}

impl Fault {
    /// Returns a fault with the vendor's word for it.
    pub fn new(kind: FaultKind, word: impl Into<String>) -> Self {
        Self {
            kind,
            word: word.into(),
        }
    }
}

//! How parts of a run are written down that do not say so themselves.

/// What is shared in memory is written down once where it belongs.
pub(super) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(in super::super) fn serialize<T: Serialize, S: Serializer>(
        shared: &Arc<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        (**shared).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, T, D>(deserializer: D) -> Result<Arc<T>, D::Error>
    where
        T: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        T::deserialize(deserializer).map(Arc::new)
    }
}

/// A head that the gate found approved. Whoever has one cannot make another from a text: only a scheduler reads it.
pub(super) mod approved_head {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::domain::{Actor, ApprovedHead, Head};

    pub(in super::super) fn serialize<S: Serializer>(
        approved: &ApprovedHead,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        (approved.head(), approved.by()).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ApprovedHead, D::Error> {
        let (head, by): (Head, Actor) = Deserialize::deserialize(deserializer)?;
        Ok(ApprovedHead::new(head, by))
    }
}

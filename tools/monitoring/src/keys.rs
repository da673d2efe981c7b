//! The order of keys.

use serde_json::Value;

/// Puts keys in order. serde_json may keep them as they came, if a package that is built with this one wants that.
pub(crate) fn sorted(mut json: Value) -> Value {
    json.sort_all_objects();
    json
}

//! Names of objects as people read them.

/// Returns names in words, the last one behind `and`.
pub fn quoted(names: &[String], and: &str) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} {and} {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

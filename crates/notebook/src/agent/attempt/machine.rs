//! What machine this is.

use std::fs;

use blueproof_core::attempt::Machine;

/// Returns this machine without its devices. What cannot be read is left out.
pub(super) fn this() -> Machine {
    let told = rustix::system::uname();
    let words = [told.sysname(), told.release(), told.machine()];
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    Machine {
        host: told.nodename().to_string_lossy().into_owned(),
        system: words.join(" "),
        processor: fs::read_to_string("/proc/cpuinfo")
            .ok()
            .and_then(|text| processor(&text)),
        ..Machine::default()
    }
}

/// Returns the model of the first processor of `/proc/cpuinfo`, which not every architecture tells.
fn processor(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let (_, model) = line.split_once(':')?;
    Some(model.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_the_processors_is_read_where_it_is_told() {
        let told = "processor\t: 0\nmodel name\t: AMD EPYC  9654 96-Core\nmodel name\t: other\n";
        assert_eq!(processor(told).as_deref(), Some("AMD EPYC 9654 96-Core"));
        assert_eq!(processor("processor\t: 0\nBogoMIPS\t: 2.0\n"), None);
    }
}

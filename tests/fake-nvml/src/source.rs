//! Where a copy of the library finds its scenario.

use crate::returns::{Answer, NvmlReturn};
use crate::scenario::Scenario;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{env, fs};

/// The environment variable that names the scenario's file.
pub(crate) const VARIABLE: &str = "FAKE_NVML_SCENARIO";
/// The scenario's file beside the library, where the variable is not set.
pub(crate) const FILE_NAME: &str = "scenario.json";
/// The file beside the library that has the time, where the scenario's clock is a file.
pub(crate) const TIME_FILE_NAME: &str = "time";

/// Reads a scenario, and tells people on stderr why it could not: a return code cannot.
///
/// Without a scenario there is no driver, so that whoever loads the library by mistake finds no devices.
pub(crate) fn load(path: Option<&Path>) -> Answer<Scenario> {
    let Some(path) = path.map(Path::to_owned).or_else(named).or_else(beside) else {
        eprintln!("fake-nvml: no scenario: set {VARIABLE}, or put {FILE_NAME} beside the library");
        return Err(NvmlReturn::DriverNotLoaded);
    };
    let text = fs::read_to_string(&path).map_err(|error| {
        eprintln!("fake-nvml: could not read `{}`: {error}", path.display());
        NvmlReturn::DriverNotLoaded
    })?;
    serde_json::from_str(&text).map_err(|error| {
        eprintln!("fake-nvml: `{}` is no scenario: {error}", path.display());
        NvmlReturn::Unknown
    })
}

/// Returns the file that the environment names.
fn named() -> Option<PathBuf> {
    env::var_os(VARIABLE)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

/// Returns the file beside this copy of the library, if there is one.
fn beside() -> Option<PathBuf> {
    let path = library()?.with_file_name(FILE_NAME);
    path.exists().then_some(path)
}

/// Returns the second that stands in a file beside this copy of the library, if one does.
pub(crate) fn time() -> Option<f64> {
    static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    let path = PATH.get_or_init(|| Some(library()?.with_file_name(TIME_FILE_NAME)));
    let text = fs::read_to_string(path.as_ref()?).ok()?;
    text.trim().parse().ok()
}

/// Returns where this copy of the library is.
fn library() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    file_at(&maps, library as fn() -> Option<PathBuf> as usize)
}

/// Finds the file that is mapped at an address: the copy of the library that this code is part of.
fn file_at(maps: &str, address: usize) -> Option<PathBuf> {
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (begin, end) = range.split_once('-')?;
        let begin = usize::from_str_radix(begin, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        let path = &rest[rest.find('/')?..];
        (begin..end).contains(&address).then(|| PathBuf::from(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
7f0000000000-7f0000001000 r--p 00000000 08:01 11 /tmp/a copy/libnvidia-ml.so.1
7f0000001000-7f0000005000 r-xp 00001000 08:01 11 /tmp/a copy/libnvidia-ml.so.1
7f0000006000-7f0000007000 r-xp 00000000 08:01 12 /tmp/other/libnvidia-ml.so.1
7ffc00000000-7ffc00001000 rw-p 00000000 00:00 0 [stack]";

    #[test]
    fn the_library_is_the_file_that_its_code_is_mapped_from() {
        let rows = [
            (
                "in the first",
                0x7f00_0000_1234,
                Some("/tmp/a copy/libnvidia-ml.so.1"),
            ),
            (
                "in the second",
                0x7f00_0000_6000,
                Some("/tmp/other/libnvidia-ml.so.1"),
            ),
            ("between them", 0x7f00_0000_5000, None),
            ("in no file", 0x7ffc_0000_0000, None),
        ];
        for (why, address, file) in rows {
            assert_eq!(file_at(MAPS, address), file.map(PathBuf::from), "{why}");
        }
    }
}

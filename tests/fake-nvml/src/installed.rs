//! A copy of the library with a scenario of its own, to be loaded and controlled by the test that made it.
#![expect(
    unsafe_code,
    reason = "the copy is loaded, and its functions have the types that they have"
)]

use crate::scenario::Scenario;
use crate::source::{FILE_NAME, TIME_FILE_NAME};
use libloading::{Library, Symbol};
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_uint};
use std::fmt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};
use tempfile::TempDir;

/// What NVML is called on Linux.
const SONAME: &str = "libnvidia-ml.so.1";

/// A copy of the library in a folder of its own, with a scenario beside it.
///
/// Each copy has its own time, its own devices and its own clients, so tests with one each can run side by side in
/// one process. The folder goes when this does; NVML that was loaded from it stays usable.
#[derive(Debug)]
pub struct Installed {
    library: Library,
    folder: TempDir,
}

impl Installed {
    /// Copies the library that Cargo built beside the running test, and gives the copy a scenario.
    ///
    /// Cargo builds it for every package that has this crate among its dev-dependencies.
    pub fn new(scenario: &Scenario) -> Result<Self, InstallError> {
        Self::copy_of(&built_library()?, scenario)
    }

    /// Copies a library from where the caller knows it to be, and gives the copy a scenario.
    pub fn copy_of(built: &Path, scenario: &Scenario) -> Result<Self, InstallError> {
        let folder = tempfile::tempdir().map_err(|error| InstallError::new("make a folder", error))?;
        let path = folder.path().join(SONAME);
        fs::copy(built, &path)
            .map_err(|error| InstallError::new(format!("copy `{}`", built.display()), error))?;
        // SAFETY: loading it runs nothing, and what it exports is written in this crate.
        let library = unsafe { Library::new(&path) }.map_err(|error| {
            InstallError::new(format!("load `{}`", path.display()), io::Error::other(error))
        })?;
        let installed = Self { library, folder };
        installed.replace_scenario(scenario)?;
        Ok(installed)
    }

    /// Returns the library's path, for `Nvml::builder().lib_path(…)`.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(SONAME)
    }

    /// Returns the library's folder, for `LD_LIBRARY_PATH` of another process, which then has a time of its own.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Answers from another scenario from now on. Time, clients and the handles that they hold stay.
    pub fn replace_scenario(&self, scenario: &Scenario) -> Result<(), InstallError> {
        let path = self.folder.path().join(FILE_NAME);
        let failed = |error| InstallError::new(format!("write `{}`", path.display()), error);
        let text = serde_json::to_vec_pretty(scenario).map_err(|error| failed(error.into()))?;
        fs::write(&path, text).map_err(failed)?;
        let c_path =
            CString::new(path.as_os_str().as_encoded_bytes()).map_err(|error| failed(error.into()))?;
        let load = self.symbol::<unsafe extern "C" fn(*const c_char) -> u32>("fakeNvmlLoadScenario");
        // SAFETY: the path is a C string, and lives until the call is over.
        match unsafe { load(c_path.as_ptr()) } {
            0 => Ok(()),
            code => Err(failed(io::Error::other(format!("the library returned {code}")))),
        }
    }

    /// Sets the time, in seconds of the scenario.
    pub fn set_time(&self, seconds: f64) {
        self.symbol::<extern "C" fn(f64)>("fakeNvmlSetTime")(seconds);
    }

    /// Sets the time for every process that has the library, where the scenario's clock is [`Clock::File`](crate::Clock::File).
    pub fn write_time(&self, seconds: f64) -> io::Result<()> {
        let [new, path] = ["time.new", TIME_FILE_NAME].map(|name| self.folder.path().join(name));
        fs::write(&new, seconds.to_string())?;
        // So nobody reads half of it.
        fs::rename(new, path)
    }

    /// Lets some seconds pass at once.
    pub fn advance(&self, seconds: f64) {
        self.symbol::<extern "C" fn(f64)>("fakeNvmlAdvance")(seconds);
    }

    /// Returns how often a function was called, whatever it returned; `*` is all of them together.
    pub fn calls(&self, function: &str) -> u64 {
        let Ok(function) = CString::new(function) else {
            return 0;
        };
        let calls = self.symbol::<unsafe extern "C" fn(*const c_char) -> u64>("fakeNvmlCalls");
        // SAFETY: the name is a C string, and lives until the call is over.
        unsafe { calls(function.as_ptr()) }
    }

    /// Returns the names of all functions that were called, whatever they returned.
    pub fn called(&self) -> BTreeSet<String> {
        type Called = unsafe extern "C" fn(*mut c_char, c_uint) -> u32;
        // There is room for far more functions than NVML has.
        let mut names = vec![0_u8; 1 << 16];
        // SAFETY: there is room for as many bytes as is said.
        let code = unsafe {
            self.symbol::<Called>("fakeNvmlCalled")(names.as_mut_ptr().cast(), names.len() as c_uint)
        };
        assert_eq!(code, 0, "there is room for the names");
        let names = CStr::from_bytes_until_nul(&names).expect("the library ends what it writes");
        names.to_string_lossy().lines().map(str::to_owned).collect()
    }

    fn symbol<T>(&self, name: &str) -> Symbol<'_, T> {
        // SAFETY: each caller names the type that the function has in this crate.
        unsafe { self.library.get(name.as_bytes()) }.expect("the copy is of this crate's library")
    }
}

/// Finds the library that Cargo built: with tests in `deps`, and beside or below programs.
fn built_library() -> Result<PathBuf, InstallError> {
    let program = env::current_exe().map_err(|error| InstallError::new("find the running test", error))?;
    // So Cargo calls it, on each system.
    let name = format!("{}fake_nvml{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let folders = program.ancestors().skip(1).take(3);
    let mut places = folders.flat_map(|folder| [folder.join(&name), folder.join("deps").join(&name)]);
    places.find(|place| place.exists()).ok_or_else(|| {
        let doing = format!("find `{name}` near `{}`", program.display());
        InstallError::new(doing, io::ErrorKind::NotFound.into())
    })
}

/// A copy of the library that could not be made or changed.
#[derive(Debug)]
pub struct InstallError {
    doing: String,
    source: io::Error,
}

impl InstallError {
    fn new(doing: impl Into<String>, source: io::Error) -> Self {
        Self {
            doing: doing.into(),
            source,
        }
    }
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}", self.doing)
    }
}

impl std::error::Error for InstallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

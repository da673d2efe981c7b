//! What of the host's own settings serves to find Python and to install packages.
//!
//! Building a package from source runs code that a stranger may have named, so that code is given settings of
//! installers, never the rest of our variables, where tokens live.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest, Sha256};

/// Where programs are looked for, and which variables installers are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    variables: BTreeMap<OsString, OsString>,
}

/// Variables that programs need in order to run, reach the network and compile.
const KEPT: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "TMPDIR",
    "NETRC",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "CPPFLAGS",
    "PKG_CONFIG_PATH",
];

/// Variables that name files and folders: of certificates, settings, wheels.
const NAMES_PATHS: &[&str] = &[
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_CONFIG_FILE",
    "PIP_CONSTRAINT",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "UV_CONFIG_FILE",
    "UV_CONSTRAINT",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_OVERRIDE",
    "NETRC",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
];

/// Where installers look for settings, in a folder of settings and on the whole machine.
const CONFIGURED: [&str; 2] = ["pip/pip.conf", "uv/uv.toml"];
const OF_MACHINE: [&str; 4] = [
    "/etc/pip.conf",
    "/etc/xdg/pip/pip.conf",
    "/etc/uv/uv.toml",
    "/etc/xdg/uv/uv.toml",
];

impl Host {
    /// Returns the host that this process runs on, as its environment variables describe it.
    pub fn current() -> Self {
        Self::with_variables(env::vars_os())
    }

    /// Returns a host that is described by these variables; those that are no business of an installer are left out.
    pub fn with_variables(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let variables = variables.into_iter().filter(|(name, _)| serves_installing(name));
        Self {
            variables: variables.collect(),
        }
    }

    /// Returns the value of a variable that serves installing.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Returns the folders in which programs are looked for, in order; relative ones mean nothing here.
    pub(super) fn path(&self) -> Vec<PathBuf> {
        let Some(path) = self.variable("PATH") else {
            return Vec::new();
        };
        env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .collect()
    }

    /// Returns the first file of that name in [`path`](Self::path).
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        self.path()
            .into_iter()
            .map(|folder| folder.join(name))
            .find(|file| file.is_file())
    }

    /// Returns a call of `program` with the host's installer settings and no other variable.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // In `/` no `.python-version`, `pyproject.toml` or `uv.toml` of a stranger's checkout has a say.
        command.env_clear().envs(&self.variables).current_dir("/");
        command
    }

    /// Returns what changes when another Python may be found: folders, and the version that pyenv is set to.
    pub(super) fn fingerprint(&self, hasher: &mut Sha256) {
        for name in ["PATH", "PYENV_VERSION", "PYENV_ROOT"] {
            hasher.update(self.variable(name).unwrap_or_default().as_encoded_bytes());
            hasher.update([0]);
        }
        let Some(root) = self.pyenv_root() else {
            return;
        };
        hasher.update(std::fs::read(root.join("version")).unwrap_or_default());
    }

    /// Returns the files and folders that the settings of installers name, and those settings themselves, as far as they are there.
    /// A password file is among them where a variable names it.
    pub(super) fn settings(&self) -> Vec<PathBuf> {
        let named = NAMES_PATHS
            .iter()
            .filter_map(|name| self.variable(name)?.to_str());
        let named = named.flat_map(|value| value.split([' ', ',', '\n']));
        let named = named.map(|path| PathBuf::from(path.strip_prefix("file://").unwrap_or(path)));
        let home = self.variable("HOME").map(PathBuf::from);
        let usual = home.iter().map(|home| home.join(".config"));
        let configured = self.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let folders = usual
            .chain(configured)
            .flat_map(|folder| CONFIGURED.map(|file| folder.join(file)));
        let older = home.iter().map(|home| home.join(".pip/pip.conf"));
        let machine = OF_MACHINE.into_iter().map(PathBuf::from);
        let all = named.chain(folders).chain(older).chain(machine);
        let holds_home = |path: &Path| home.as_ref().is_some_and(|home| home.starts_with(path));
        all.filter(|path| path.is_absolute() && path.exists() && !holds_home(path))
            .collect()
    }

    /// Returns pyenv's folder, where there is one.
    pub(super) fn pyenv_root(&self) -> Option<PathBuf> {
        let named = self.variable("PYENV_ROOT").map(PathBuf::from);
        let usual = || self.variable("HOME").map(|home| Path::new(home).join(".pyenv"));
        named.or_else(usual).filter(|root| root.is_dir())
    }
}

fn serves_installing(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let upper = name.to_ascii_uppercase();
    let publishes = upper.starts_with("UV_PUBLISH");
    let installer = upper.starts_with("PIP_") || (upper.starts_with("UV_") && !publishes);
    installer || upper.starts_with("LC_") || KEPT.contains(&upper.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installers_see_their_settings_and_no_token_of_ours() {
        let named = [
            "PATH",
            "PIP_INDEX_URL",
            "https_proxy",
            "UV_CACHE_DIR",
            "GITHUB_TOKEN",
            "GITHUB_ENV",
            "UV_PUBLISH_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
        ];
        let host = Host::with_variables(named.map(|name| (name.into(), "x".into())));

        let kept: Vec<_> = host.variables.keys().filter_map(|name| name.to_str()).collect();
        assert_eq!(kept, ["PATH", "PIP_INDEX_URL", "UV_CACHE_DIR", "https_proxy"]);
    }
}

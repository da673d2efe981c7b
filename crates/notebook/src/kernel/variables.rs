//! The environment variables that a notebook sees.
//!
//! It is a list of what is let through, not of what is held back: a CI's command files and tokens, and keys of every
//! sort, have too many names to list.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    path::Path,
};

use blueproof_core::gpu::DeviceUuid;

/// Names and values of environment variables.
pub(crate) type Variables = BTreeMap<String, OsString>;

/// What is let through as it is.
const PASSED: [&str; 24] = [
    "CUDA_DEVICE_ORDER",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CURL_CA_BUNDLE",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "NO_PROXY",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "PIP_CERT",
    "PIP_TRUSTED_HOST",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TZ",
    "USER",
    "LOGNAME",
    "UV_NATIVE_TLS",
    "UV_OFFLINE",
    "no_proxy",
    "SHELL",
];

/// What is let through unless it carries a user's name and password.
const PASSED_ADDRESSES: [&str; 10] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "PIP_EXTRA_INDEX_URL",
    "PIP_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "all_proxy",
    "http_proxy",
    "https_proxy",
];

/// What each numeric library reads its number of threads from; XLA's are `NPROC` and `PJRT_NPROC`.
const THREADS: [&str; 9] = [
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NPROC",
    "NUMEXPR_MAX_THREADS",
    "NUMEXPR_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "PJRT_NPROC",
    "VECLIB_MAXIMUM_THREADS",
];

/// Returns what a kernel is started with: what `host` has and may be seen, folders of its own, and capped threads.
pub(crate) fn kernel_variables(
    host: impl IntoIterator<Item = (OsString, OsString)>,
    python: &Path,
    home: &Path,
    temporary: &Path,
    threads: u64,
) -> Variables {
    let mut variables = Variables::new();
    let mut path = OsString::from("/usr/local/bin:/usr/bin:/bin");
    for (name, value) in host {
        let Some(name) = name.to_str() else { continue };
        if name == "PATH" {
            path = value;
        } else if PASSED.contains(&name) || (PASSED_ADDRESSES.contains(&name) && !has_password(&value)) {
            variables.insert(name.to_owned(), value);
        }
    }
    if let Some(folder) = python.parent() {
        let mut own = folder.as_os_str().to_owned();
        own.push(":");
        own.push(path);
        path = own;
    }
    variables.insert("PATH".into(), path);
    variables.insert("HOME".into(), home.into());
    variables.insert("TMPDIR".into(), temporary.into());
    variables.entry("LANG".into()).or_insert_with(|| "C.UTF-8".into());
    for name in THREADS {
        variables.insert(name.into(), threads.to_string().into());
    }
    variables.insert("PYTHONNOUSERSITE".into(), "1".into());
    variables
}

/// Returns by which variables a notebook is shown these devices and no others: CUDA's, and the one that NVIDIA's container
/// runtime and libraries on top of CUDA read.
pub(crate) fn visible_devices(devices: &[DeviceUuid]) -> impl Iterator<Item = (String, OsString)> {
    let names: Vec<_> = devices.iter().map(|device| device.0.as_str()).collect();
    let list = names.join(",");
    // Of the second one, no text at all means all devices.
    let listed = if list.is_empty() {
        "void".to_owned()
    } else {
        list.clone()
    };
    [("CUDA_VISIBLE_DEVICES", list), ("NVIDIA_VISIBLE_DEVICES", listed)]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
}

fn has_password(value: &OsStr) -> bool {
    value.as_encoded_bytes().contains(&b'@')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(host: &[(&str, &str)]) -> Variables {
        let host = host.iter().map(|(name, value)| (name.into(), value.into()));
        let (python, home, temporary) = ("/env/bin/python", "/work/home", "/t");
        kernel_variables(host, Path::new(python), Path::new(home), Path::new(temporary), 2)
    }

    #[test]
    fn neither_tokens_nor_command_files_nor_passwords_are_seen() {
        let host = [
            ("GITHUB_ENV", "/f"),
            ("GITHUB_TOKEN", "t"),
            ("ACTIONS_RUNTIME_TOKEN", "t"),
            ("AWS_SECRET_ACCESS_KEY", "t"),
            ("HF_TOKEN", "t"),
            ("SSH_AUTH_SOCK", "/s"),
            ("PYTHONPATH", "/p"),
            ("PIP_INDEX_URL", "https://user:secret@index.example/simple"),
        ];
        let variables = seen(&host);
        for (name, _) in host {
            assert!(!variables.contains_key(name), "{name}");
        }
    }

    #[test]
    fn a_kernel_sees_its_own_devices_and_no_others() {
        let uuids = ["GPU-1", "MIG-2"].map(|uuid| DeviceUuid(uuid.into()));
        let seen = |devices: &[DeviceUuid]| visible_devices(devices).collect::<Variables>();
        let two = seen(&uuids);
        assert_eq!(two["CUDA_VISIBLE_DEVICES"], "GPU-1,MIG-2");
        assert_eq!(two["NVIDIA_VISIBLE_DEVICES"], "GPU-1,MIG-2");
        let none = seen(&[]);
        assert_eq!(none["CUDA_VISIBLE_DEVICES"], "");
        assert_eq!(none["NVIDIA_VISIBLE_DEVICES"], "void");
    }

    #[test]
    fn a_kernel_has_folders_of_its_own_and_capped_threads() {
        let variables = seen(&[
            ("PATH", "/bin"),
            ("HOME", "/root"),
            ("TMPDIR", "/tmp"),
            ("OMP_NUM_THREADS", "64"),
        ]);
        assert_eq!(variables["PATH"], "/env/bin:/bin");
        assert_eq!(variables["HOME"], "/work/home");
        assert_eq!(variables["TMPDIR"], "/t");
        assert_eq!(variables["OMP_NUM_THREADS"], "2");
    }
}

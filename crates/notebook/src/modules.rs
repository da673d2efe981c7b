//! Which package a module comes in, as far as that can be known without asking an index.

use std::{collections::HashSet, path::Path, sync::LazyLock};

/// Modules that come in a package of another name. All others come, most likely, in one of their own name.
const PACKAGES: [(&str, &str); 69] = [
    ("kubeflow_trainer_api", "kubeflow-trainer-api"),
    ("Bio", "biopython"),
    ("Crypto", "pycryptodome"),
    ("MySQLdb", "mysqlclient"),
    ("OpenSSL", "pyOpenSSL"),
    ("PIL", "pillow"),
    ("Xlib", "python-xlib"),
    ("absl", "absl-py"),
    ("apiclient", "google-api-python-client"),
    ("attr", "attrs"),
    ("azureml", "azureml-core"),
    ("bs4", "beautifulsoup4"),
    ("cairo", "pycairo"),
    ("community", "python-louvain"),
    ("cv2", "opencv-python-headless"),
    ("dateutil", "python-dateutil"),
    ("discord", "discord.py"),
    ("docx", "python-docx"),
    ("dotenv", "python-dotenv"),
    ("faiss", "faiss-cpu"),
    ("fbprophet", "prophet"),
    ("fitz", "pymupdf"),
    ("git", "GitPython"),
    ("github", "PyGithub"),
    ("googleapiclient", "google-api-python-client"),
    ("grpc", "grpcio"),
    ("haystack", "haystack-ai"),
    ("imblearn", "imbalanced-learn"),
    ("jose", "python-jose"),
    ("jwt", "PyJWT"),
    ("kafka", "kafka-python"),
    ("ldap", "python-ldap"),
    ("magic", "python-magic"),
    ("mpl_toolkits", "matplotlib"),
    ("nacl", "PyNaCl"),
    ("odf", "odfpy"),
    ("osgeo", "gdal"),
    ("pkg_resources", "setuptools"),
    ("pl_bolts", "lightning-bolts"),
    ("plotly_express", "plotly"),
    ("pptx", "python-pptx"),
    ("psycopg2", "psycopg2-binary"),
    ("pylab", "matplotlib"),
    ("pyro", "pyro-ppl"),
    ("pywt", "PyWavelets"),
    ("rest_framework", "djangorestframework"),
    ("ruamel", "ruamel.yaml"),
    ("serial", "pyserial"),
    ("shapefile", "pyshp"),
    ("skbio", "scikit-bio"),
    ("skfuzzy", "scikit-fuzzy"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("skopt", "scikit-optimize"),
    ("sksurv", "scikit-survival"),
    ("slugify", "python-slugify"),
    ("snowflake", "snowflake-connector-python"),
    ("socks", "PySocks"),
    ("speech_recognition", "SpeechRecognition"),
    ("talib", "TA-Lib"),
    ("telegram", "python-telegram-bot"),
    ("umap", "umap-learn"),
    ("usb", "pyusb"),
    ("websocket", "websocket-client"),
    ("whisper", "openai-whisper"),
    ("win32api", "pywin32"),
    ("wx", "wxPython"),
    ("yaml", "PyYAML"),
    ("zmq", "pyzmq"),
];
/// Modules that are known to come in a package of their own name.
static SAME_NAME: LazyLock<HashSet<&str>> = LazyLock::new(|| SAME_NAME_WORDS.split_whitespace().collect());
const SAME_NAME_WORDS: &str = "accelerate aiohttp altair arviz astropy autogluon bitsandbytes bokeh boto3 cartopy catboost click \
    cloudpathlib dask datasets deepspeed diffusers duckdb einops evaluate fastai fastapi flask flax folium \
    gensim geopandas gradio gym gymnasium h5py holoviews httpx huggingface_hub hvplot imageio ipywidgets jax \
    joblib jsonschema keras kubeflow kubernetes langchain librosa lightgbm lightning lmfit \
    loguru matplotlib mlflow mlx networkx nltk numba numpy openai openpyxl optax optuna pandas panel peft plotly \
    polars prophet pyarrow pydantic pymc pymongo pyspark pytest rasterio ray requests rich scipy scrapy seaborn \
    selenium sentencepiece shap shapely soundfile spacy sqlalchemy statsmodels streamlit sympy tabulate tenacity \
    tensorboard tensorflow tiktoken timm tokenizers torch torchaudio torchmetrics torchtext torchvision tqdm \
    transformers trl typer vllm wandb xarray xgboost";
/// Modules that many packages share, so that none can be guessed.
const SHARED: [&str; 5] = ["azure", "google", "ibm", "nvidia", "zope"];
/// Modules of Python itself, those that newer versions have dropped included.
static STANDARD: LazyLock<HashSet<&str>> = LazyLock::new(|| STANDARD_WORDS.split_whitespace().collect());
const STANDARD_WORDS: &str = "__future__ __main__ _thread abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore \
    atexit audioop base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code \
    codecs codeop collections colorsys compileall compression concurrent configparser contextlib contextvars \
    copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email \
    encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc \
    genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib \
    imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma \
    mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt \
    ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes \
    pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc \
    pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select \
    selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile \
    sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig \
    syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit tkinter token \
    tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib \
    uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile \
    zipimport zlib zoneinfo";
/// Modules that come with the kernel, which is always installed.
const OF_THE_KERNEL: [&str; 21] = [
    "IPython",
    "ipykernel",
    "traitlets",
    "jupyter_client",
    "jupyter_core",
    "zmq",
    "tornado",
    "psutil",
    "packaging",
    "comm",
    "debugpy",
    "nest_asyncio",
    "matplotlib_inline",
    "decorator",
    "jedi",
    "pexpect",
    "prompt_toolkit",
    "pygments",
    "dateutil",
    "platformdirs",
    "pip",
];
/// What well-known packages bring beside their own module.
const BROUGHT: [(&str, &[&str]); 22] = [
    ("pandas", &["numpy", "dateutil", "pytz"]),
    ("scipy", &["numpy"]),
    (
        "matplotlib",
        &[
            "numpy",
            "PIL",
            "pyparsing",
            "cycler",
            "kiwisolver",
            "pylab",
            "mpl_toolkits",
        ],
    ),
    ("scikit-learn", &["numpy", "scipy", "joblib", "threadpoolctl"]),
    ("seaborn", &["numpy", "pandas", "matplotlib", "mpl_toolkits"]),
    ("statsmodels", &["numpy", "scipy", "pandas", "patsy"]),
    (
        "torch",
        &["sympy", "networkx", "jinja2", "fsspec", "typing_extensions"],
    ),
    ("torchvision", &["torch", "numpy", "PIL"]),
    ("torchaudio", &["torch"]),
    (
        "tensorflow",
        &[
            "numpy",
            "keras",
            "tensorboard",
            "h5py",
            "absl",
            "google",
            "requests",
        ],
    ),
    ("keras", &["numpy", "h5py"]),
    ("jax", &["numpy", "scipy", "jaxlib"]),
    ("flax", &["jax", "jaxlib", "numpy", "optax", "yaml", "msgpack"]),
    ("optax", &["jax", "numpy", "chex", "absl"]),
    (
        "transformers",
        &[
            "numpy",
            "huggingface_hub",
            "tokenizers",
            "tqdm",
            "requests",
            "yaml",
            "safetensors",
        ],
    ),
    (
        "datasets",
        &[
            "numpy",
            "pandas",
            "pyarrow",
            "huggingface_hub",
            "tqdm",
            "requests",
            "fsspec",
        ],
    ),
    ("xgboost", &["numpy", "scipy"]),
    ("lightgbm", &["numpy", "scipy"]),
    ("xarray", &["numpy", "pandas"]),
    (
        "kubeflow",
        &["kubernetes", "kubeflow_trainer_api", "pydantic", "yaml"],
    ),
    ("google-cloud-storage", &["google", "requests"]),
    (
        "jupyter",
        &["ipywidgets", "notebook", "nbformat", "nbconvert", "jupyterlab"],
    ),
];

/// Where a module comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin<'m> {
    /// Python, or the kernel.
    Always,
    /// The package of this name, which is known.
    Package(&'m str),
    /// Most likely the package that is called as the module is.
    Guessed(&'m str),
    /// One of many packages.
    Shared,
}

/// Returns where the module of this name comes from. Names with dots are those of a package's parts.
pub(crate) fn origin(module: &str) -> Origin<'_> {
    if STANDARD.contains(module) || OF_THE_KERNEL.contains(&module) || module.is_empty() {
        return Origin::Always;
    }
    match PACKAGES.iter().find(|(known, _)| *known == module) {
        Some((_, package)) => Origin::Package(package),
        None if SHARED.contains(&module) => Origin::Shared,
        None if SAME_NAME.contains(module) => Origin::Package(module),
        None => Origin::Guessed(module),
    }
}

/// Returns whether a module is a file or a folder beside the notebook, or in one of the folders `beside` it.
pub(crate) fn is_local(module: &str, folders: &[&Path]) -> bool {
    folders.iter().any(|folder| {
        let package = folder.join(module);
        // Of a folder without this file Python makes a module only where no package has the name.
        let is_package =
            || matches!(origin(module), Origin::Guessed(_)) || package.join("__init__.py").is_file();
        folder.join(format!("{module}.py")).is_file() || package.is_dir() && is_package()
    })
}

/// Returns what to ask for where a module is missing: its package, or in words what is to be found out.
pub(crate) fn wanted(module: &str) -> String {
    match origin(module) {
        Origin::Package(name) | Origin::Guessed(name) => name.to_owned(),
        Origin::Always | Origin::Shared => format!("the package that brings `{module}`"),
    }
}

/// Returns whether a package, by its normalised name, brings a module: its own, or as one that it needs.
pub(crate) fn brings(package: &str, module: &str) -> bool {
    let own = match origin(module) {
        Origin::Always => return true,
        Origin::Package(own) | Origin::Guessed(own) => normalised(own),
        Origin::Shared => module.to_owned(),
    };
    if own == package || normalised(module) == package {
        return true;
    }
    let brought = BROUGHT
        .iter()
        .any(|(known, modules)| *known == package && modules.contains(&module));
    is_variant(package, &own) || brought
}

/// Returns whether a package, by its normalised name, is one that a module comes in, under its own name or a variant's.
pub(crate) fn is_package_of(package: &str, module: &str) -> bool {
    match origin(module) {
        Origin::Always => false,
        Origin::Package(own) | Origin::Guessed(own) => {
            let own = normalised(own);
            let build = ["cpu", "gpu", "headless", "binary", "contrib-python"];
            let other_build = |rest: &str| build.iter().any(|build| rest == format!("-{build}"));
            own == package
                || package.strip_prefix(own.as_str()).is_some_and(other_build)
                || own.strip_prefix(package).is_some_and(other_build)
        }
        Origin::Shared => is_variant(package, module),
    }
}

/// Returns whether one package is of another's family: `google-cloud-storage` brings `google`, `opencv-python` is
/// another build of `opencv-python-headless`, and `tensorflow-cpu` of `tensorflow`.
fn is_variant(package: &str, own: &str) -> bool {
    let family = package
        .strip_prefix(own)
        .is_some_and(|rest| rest.starts_with('-'));
    let stem = own.split('-').next().unwrap_or_default();
    family || (matches!(stem, "opencv" | "psycopg2" | "faiss") && package.starts_with(stem))
}

/// Returns a package's name as PyPI compares names.
pub(crate) fn normalised(name: &str) -> String {
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    name[..end.unwrap_or(name.len())]
        .to_ascii_lowercase()
        .replace(['_', '.'], "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_found_in_the_package_that_brings_it() {
        for (package, module) in [
            ("scikit-learn", "sklearn"),
            ("opencv-python", "cv2"),
            ("pandas", "numpy"),
            ("google-cloud-storage", "google"),
            ("pyyaml", "yaml"),
            ("typing-extensions", "typing_extensions"),
            ("anything", "os"),
            ("anything", "IPython"),
        ] {
            assert!(brings(package, module), "{package} {module}");
        }
        assert!(!brings("numpy", "pandas"));
        assert!(!brings("scikit-image", "sklearn"));
    }
}

//! Codes from BP0301 to BP0399: environments.

macro_rules! environment {
    ([$next:ident $($later:ident)*] $($before:tt)*) => { $next! { [$($later)*] $($before)*
    301 PythonMissing "no Python that can run a notebook"
        "No interpreter on PATH starts, reports its version and can make a virtual environment. Each one that was tried is \
         listed with its own error: a shim of pyenv, for example, is a file but need not be a working Python."
    302 PythonVersion "no Python of the wanted version"
        "The blueprint (`spec.env.python`) or the notebook's script block asks for a version of Python that no interpreter on \
         this machine has. Install that version, put uv on PATH, which downloads it, or ask for another version."
    303 PackageMissing "a package that does not exist"
        "The package index knows no package of that name. Names are often not those of the module: `import cv2` is \
         `opencv-python`. A private package needs the host's own pip or uv configuration to name its index."
    304 PackageVersion "a version of a package that does not exist"
        "The package exists, but no release of it satisfies the requirement on this Python and platform."
    305 PackageConflict "packages that exclude each other"
        "No choice of versions satisfies every requirement at once. The resolver's message says which requirements exclude \
         each other."
    306 PackageBuild "a package that cannot be built"
        "The package has no wheel for this Python and platform and building it from source failed, usually for want \
         of a compiler or a library. For a pull request nothing is built at all. Another version, or another Python, may have a \
         wheel."
    307 PackagesOffline "packages that are not here, and no network to fetch them"
        "The package index could not be reached, and the missing packages are not in a cache of this machine. Run once with a \
         network, or point pip to a folder of wheels (`PIP_FIND_LINKS`)."
    308 LockFile "a lock file that cannot be used"
        "The file under `spec.env.lock` is `uv.lock` or one requirements file with every version pinned, inside the \
         checkout, and leads to no other file."
    309 Requirement "a requirement that cannot be used"
        "Requirements are a package's name with versions, extras and markers, as pip writes them. Options of pip and \
         paths of this machine are refused: they mean something else on the next machine."
    310 ScriptBlock "a script block that cannot be read"
        "The comment between `# /// script` and `# ///` in a notebook's first code cell is TOML, as PEP 723 defines it."
    311 InstallFailed "packages that could not be installed"
        "The installer failed for a reason that has no code of its own. Its last lines are shown."
    }};
}

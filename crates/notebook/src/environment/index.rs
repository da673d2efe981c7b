//! An index that does not answer as one: pip then says of each package that there is none of its name.

use blueproof_diagnostic::{Code, Diagnostic};

use super::{
    Unprepared,
    installer::{Build, Installer},
    wanted::Wanted,
    words::{masked, said},
};

/// How pip begins to say what it got in place of a page, where it is asked to say everything.
const NOT_FETCHED: &str = "Could not fetch URL ";
/// What an index answers about a package that it does not have.
const NOT_THERE: [&str; 2] = [": 404 Client Error", ": 410 Client Error"];

/// How pip says that it passes a source by, and that a package is built from one.
pub(super) const NO_SOURCES: &str = "No sources permitted for ";

const CERTIFICATE: &[&str] = &[
    "certificate verify failed",
    "certificate_verify_failed",
    "invalid peer certificate",
    "ssl certificate problem",
    "server certificate verification failed",
];
const REFUSED: &[&str] = &[
    "401 client error",
    "403 client error",
    "407 client error",
    "lack of valid authentication credentials",
    "returned a 403 forbidden",
    "401 unauthorized",
    "407 proxy authentication required",
];
const UNTRUSTED: &[&str] = &["is not a trusted or secure host and is being ignored"];
const GIT: &[&str] = &["git clone", "git fetch", "git operation failed"];
const GIT_UNREACHED: &[&str] = &[
    "could not resolve host",
    "couldn't connect to server",
    "could not connect to server",
    "failed to connect",
    "connection refused",
    "connection timed out",
    "network is unreachable",
];

/// Returns the lines of an installer, and before them what else pip says of a package of which it said only that there is none.
pub(super) fn asked_again(
    build: &Build<'_>,
    wanted: &Wanted,
    lines: &[String],
    requirement: Option<&str>,
) -> Result<Vec<String>, Unprepared> {
    let Some(requirement) = requirement.filter(|_| !matches!(build.installer, Installer::Uv(_))) else {
        return Ok(lines.to_vec());
    };
    if !build.may_ask() {
        return Ok(lines.to_vec());
    }
    let options = wanted.lock.iter().flat_map(|lock| lock.file.lines());
    let options = options.filter(|line| line.starts_with("--") && !line.starts_with("--require-hashes"));
    let text: String = options
        .chain([requirement])
        .map(|line| format!("{line}\n"))
        .collect();
    let file = build.write("asked.txt", &text)?;
    let mut command = build.installer_command("install");
    command
        .args(["-vv", "--no-deps", "--dry-run", "--requirement"])
        .arg(file);
    let mut told: Vec<String> = Vec::new();
    build.run(command, &mut |line| {
        let line = line.trim();
        let is_reason = line.starts_with(NOT_FETCHED) && !NOT_THERE.iter().any(|words| line.contains(words));
        let is_source = line.contains(NO_SOURCES);
        if is_source || is_reason || line.starts_with("ERROR: Could not find a version") {
            told.push(line.to_owned());
        }
    })?;
    told.extend(lines.iter().cloned());
    Ok(told)
}

/// Returns the requirement that pip says excludes itself: as a constraint it is the same, and nothing was found for it.
pub(super) fn excludes_itself(lines: &[String]) -> Option<&str> {
    let asked = lines
        .iter()
        .filter_map(|line| line.trim().strip_prefix("The user requested "));
    let mut asked = asked.map(|what| what.strip_prefix("(constraint) ").unwrap_or(what));
    let first = asked.next()?;
    let depends = lines.iter().any(|line| line.contains(" depends on "));
    (!depends && asked.all(|other| other == first)).then_some(first)
}

/// Returns what is the matter with an index or a repository, where its own words, or those of the system, tell.
pub(super) fn trouble(lines: &[String]) -> Option<Unprepared> {
    if said(lines, GIT).is_some()
        && let Some(fatal) = lines.iter().find(|line| line.trim().starts_with("fatal: "))
    {
        return Some(git(&masked(fatal.trim())));
    }
    if let Some(word) = said(lines, CERTIFICATE) {
        let diagnostic = Diagnostic::error(
            Code::PackageDownload,
            "the certificate of a package index, or of a proxy before it, is not trusted",
        );
        return Some(Unprepared::infrastructure(
            diagnostic.because(masked(word.trim())).hint(
                "name the certificate of who signed it: PIP_CERT for pip, SSL_CERT_FILE for uv and git",
            ),
        ));
    }
    if let Some(word) = said(lines, REFUSED) {
        let diagnostic = Diagnostic::error(Code::InstallFailed, "the package index refuses this host");
        return Some(Unprepared::config(diagnostic.because(masked(word.trim())).hint(
            "give the host's pip or uv what the index asks for: pip config list shows what pip is given, `~/.netrc` may hold a password",
        )));
    }
    None
}

/// Returns the failure of an index that pip does not ask, because what it answers could be anybody's.
pub(super) fn ignored(lines: &[String]) -> Option<Unprepared> {
    let word = said(lines, UNTRUSTED)?;
    let diagnostic = Diagnostic::error(
        Code::InstallFailed,
        "a package index was not asked: it is not reached by https",
    );
    Some(Unprepared::config(diagnostic.because(masked(word.trim())).hint(
        "give its address with https, or trust its host: PIP_TRUSTED_HOST, or trusted-host in pip's configuration",
    )))
}

fn git(fatal: &str) -> Unprepared {
    let lower = fatal.to_lowercase();
    let is_unreached = GIT_UNREACHED.iter().any(|words| lower.contains(words));
    let (code, hint) = if is_unreached {
        (
            Code::PackagesOffline,
            "connect to the network, or check the host's proxy settings: git config --get-regexp proxy",
        )
    } else {
        (
            Code::InstallFailed,
            "check the address and the revision; try it by hand: git ls-remote ADDRESS",
        )
    };
    let message = "a package cannot be fetched by git";
    Unprepared::config(Diagnostic::error(code, message).because(fatal).hint(hint))
}

#[cfg(test)]
mod tests {
    use blueproof_core::domain::FailureClass;

    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_the_matter_with_an_index_is_read_from_the_words_of_pip_uv_and_git() {
        use FailureClass::{Config, Infrastructure};
        let rows = [
            (
                "Could not fetch URL http://h/simple/x/: 401 Client Error: Unauthorized for url: http://h/simple/x/ - skipping",
                Some((Config, Code::InstallFailed, "~/.netrc")),
            ),
            (
                "hint: An index URL (http://h/simple) could not be queried due to a lack of valid authentication credentials (401 Unauthorized)",
                Some((Config, Code::InstallFailed, "~/.netrc")),
            ),
            (
                "hint: An index (http://h/simple) returned a 403 Forbidden error. Check that the index URL is correct and the credentials are valid.",
                Some((Config, Code::InstallFailed, "~/.netrc")),
            ),
            (
                "WARNING: Retrying (Retry(total=0)) after connection broken by 'SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)'))': /simple/x/",
                Some((Infrastructure, Code::PackageDownload, "PIP_CERT")),
            ),
            (
                "  cause: invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                Some((Infrastructure, Code::PackageDownload, "PIP_CERT")),
            ),
            (
                "  Running command git clone --filter=blob:none --quiet https://h/a /tmp/a\n  fatal: unable to access 'https://h/a/': Failed to connect to h port 443 after 0 ms: Couldn't connect to server\n  error: subprocess-exited-with-error",
                Some((Config, Code::PackagesOffline, "network")),
            ),
            (
                "  cause: Git operation failed\n         fatal: repository 'https://h/a/' not found",
                Some((Config, Code::InstallFailed, "git ls-remote")),
            ),
            ("ERROR: No matching distribution found for x", None),
        ];
        for (words, expected) in rows {
            let found = trouble(&lines(words)).map(|found| match found {
                Unprepared::Failed(failure) => failure,
                Unprepared::Stopped | Unprepared::OutOfTime => panic!("nothing was waited for"),
            });
            let told = found.as_ref().map(|found| (found.class, found.diagnostic.code));
            assert_eq!(told, expected.map(|(class, code, _)| (class, code)), "{words}");
            if let (Some(found), Some((_, _, hint))) = (found, expected) {
                assert!(found.diagnostic.hints[0].contains(hint), "{words}");
                assert!(!found.diagnostic.causes.is_empty(), "{words}");
            }
        }
    }

    #[test]
    fn an_index_that_pip_does_not_trust_is_named_with_what_trusts_it() {
        let pip = "WARNING: The repository located at h.example is not a trusted or secure host and is being ignored. If this repository is available via HTTPS we recommend you use HTTPS instead";
        let Some(Unprepared::Failed(failure)) = ignored(&lines(pip)) else {
            panic!("it is ignored");
        };
        assert_eq!(failure.class, FailureClass::Config);
        assert!(failure.diagnostic.causes[0].contains("h.example"));
        assert!(failure.diagnostic.hints[0].contains("PIP_TRUSTED_HOST"));
        assert_eq!(ignored(&lines("Looking in indexes: http://h.example")), None);
    }

    #[test]
    fn a_requirement_that_excludes_itself_alone_is_one_of_which_nothing_was_found() {
        let same = "The conflict is caused by:\n    The user requested x==1\n    The user requested (constraint) x==1\n";
        assert_eq!(excludes_itself(&lines(same)), Some("x==1"));
        let other = "The conflict is caused by:\n    The user requested x==1\n    The user requested (constraint) x==2\n";
        assert_eq!(excludes_itself(&lines(other)), None);
        let depends = "    The user requested x==1\n    y 2.0 depends on x==3\n";
        assert_eq!(excludes_itself(&lines(depends)), None);
    }
}

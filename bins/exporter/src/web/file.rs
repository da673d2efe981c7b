//! The file: what may stand in it, and what is wrong with it.
//!
//! The keys are exporter-toolkit's. Those that cannot be acted upon are refused by name: a limit that is silently not kept
//! would leave devices open to those whom it was to keep out.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use blueproof_diagnostic::{
    Code, Diagnostic, SourceLocation,
    yaml::{Fields, Format, Located, Placeholders, Problems, Source, YamlNode, choice},
};
use sha2::{Digest as _, Sha256};

use super::auth::Users;

/// Such files, and certificates, are small; what is larger is something else.
const LARGEST: u64 = 1 << 20;

static FORMAT: Format = Format {
    name: "a web configuration",
    kinds: "see https://prometheus.io/docs/prometheus/latest/configuration/https/",
    missing: "TLS needs `cert_file` and `key_file`, and `client_ca_file` where clients show certificates",
    placeholders: Placeholders::None,
    most_nodes: 10_000,
};

const LATER: [(&str, &str); 2] = [
    (
        "http_server_config",
        "leave it out: HTTP/1.1 is spoken, and no header is added",
    ),
    (
        "rate_limit",
        "leave it out, and limit who may connect with a NetworkPolicy",
    ),
];

const TLS_LATER: [(&str, &str); 8] = [
    ("cert", "write it to a file, and name that in `cert_file`"),
    ("key", "write it to a file, and name that in `key_file`"),
    (
        "client_ca",
        "write it to a file, and name that in `client_ca_file`",
    ),
    (
        "client_allowed_sans",
        "leave it out, and let `client_ca_file` sign nobody else",
    ),
    ("max_version", "leave it out: TLS 1.3 is spoken with whoever can"),
    (
        "cipher_suites",
        "leave it out: only suites that are safe are offered",
    ),
    (
        "prefer_server_cipher_suites",
        "leave it out: any suite that is offered is safe",
    ),
    (
        "curve_preferences",
        "leave it out: only curves that are safe are offered",
    ),
];

choice! {
    /// Whether clients show a certificate.
    pub(super) enum ClientAuth {
        /// They need not.
        None = "NoClientCert",
        /// One that is shown is checked.
        IfGiven = "VerifyClientCertIfGiven",
        /// They have to, and it is checked.
        Required = "RequireAndVerifyClientCert",
    }
}

choice! {
    /// The oldest version of TLS that is spoken.
    pub(super) enum Oldest {
        /// 1.2.
        Tls12 = "TLS12",
        /// 1.3.
        Tls13 = "TLS13",
    }
}

/// What the file says.
pub(super) struct WebFile {
    pub(super) tls: Option<TlsFile>,
    pub(super) users: Users,
}

/// What it says of TLS.
pub(super) struct TlsFile {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    /// Who signs the certificates of clients, and whether they need one.
    pub(super) clients: Option<(PathBuf, ClientAuth)>,
    pub(super) oldest: Oldest,
}

/// Reads files, and remembers which, and what was in them.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) paths: Vec<PathBuf>,
    digest: Sha256,
}

impl Reader {
    /// Returns what is in a file.
    pub(super) fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST {
            return Err(io::Error::other("it is larger than 1 MiB"));
        }
        self.digest.update((bytes.len() as u64).to_le_bytes());
        self.digest.update(&bytes);
        self.paths.push(path.to_owned());
        Ok(bytes)
    }

    /// Returns a digest of all that was read. The private key need not be kept a second time to see that it changed.
    pub(super) fn digest(self) -> [u8; 32] {
        self.digest.finalize().into()
    }
}

/// Reads the file, but none that it names.
pub(super) fn read(path: &Path, reader: &mut Reader) -> Result<WebFile, Vec<Diagnostic>> {
    let name = path.display().to_string();
    let text = reader
        .read(path)
        .and_then(|bytes| String::from_utf8(bytes).map_err(|_| io::Error::other("it is not text in UTF-8")));
    let text = text.map_err(|error| {
        let problem = Diagnostic::error(Code::WebConfig, "the web configuration cannot be read");
        vec![
            problem
                .at(SourceLocation::file(name.clone()))
                .because(error.to_string())
                .hint("name a file that the exporter may read with `--web-config`"),
        ]
    })?;
    let source = Source {
        file: name,
        text,
        format: &FORMAT,
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    parse(&source, folder).map_err(|problems| problems.into_iter().map(without_text).collect())
}

/// Takes away the line that a mistake stands in: it may hold a hash, or a password in its place.
fn without_text(mut problem: Diagnostic) -> Diagnostic {
    if let Some(place) = &mut problem.place {
        place.source = None;
    }
    problem
}

fn parse(source: &Source, folder: &Path) -> Result<WebFile, Vec<Diagnostic>> {
    source.read(|node, problems| web(node, folder, problems))
}

fn web(node: &YamlNode, folder: &Path, problems: &mut Problems<'_>) -> Option<WebFile> {
    let known = ["tls_server_config", "basic_auth_users"].map(str::to_owned);
    let fields = Fields::of(node, &known, &LATER, problems)?;
    let users = fields.take("basic_auth_users", Some(BTreeMap::new()), problems);
    let users = users.map(|users| users_of(users, problems));
    let tls = match node.get("tls_server_config") {
        Some(node) => Some(tls(node, folder, problems)?),
        None => None,
    };
    let users = users?;
    if tls.is_none() && users.is_empty() {
        // exporter-toolkit would let everybody in, also while the file is being written.
        let message = "it asks for neither TLS nor passwords";
        problems.bad_value(node.spot, message, "leave `--web-config` out if that is meant");
    }
    Some(WebFile { tls, users })
}

fn users_of(users: BTreeMap<String, Located<String>>, problems: &mut Problems<'_>) -> Users {
    for (name, hash) in &users {
        if hash.value.parse::<bcrypt::HashParts>().is_err() || !(4..=31).contains(&cost(&hash.value)) {
            let message = format!("what stands for the user `{name}` is no bcrypt hash");
            let hint = "`htpasswd -nBC 10 \"\" | tr -d ':\\n'` asks for a password and prints its hash";
            problems.bad_value(hash.spot, message, hint);
        }
    }
    users.into_iter().map(|(name, hash)| (name, hash.value)).collect()
}

/// Returns how much work a hash is; the library reads any, and fails where it is used.
fn cost(hash: &str) -> u32 {
    hash.get(4..6).and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

fn tls(node: &YamlNode, folder: &Path, problems: &mut Problems<'_>) -> Option<TlsFile> {
    let known = [
        "cert_file",
        "key_file",
        "client_auth_type",
        "client_ca_file",
        "min_version",
    ];
    let fields = Fields::of(node, &known.map(str::to_owned), &TLS_LATER, problems)?;
    let certificate: Option<String> = fields.take("cert_file", None, problems);
    let key: Option<String> = fields.take("key_file", None, problems);
    let auth = fields.take("client_auth_type", Some(ClientAuth::None), problems);
    let ca: Option<Option<String>> = fields.take("client_ca_file", Some(None), problems);
    // As exporter-toolkit's default.
    let oldest = fields.take("min_version", Some(Oldest::Tls12), problems);
    let clients = match (ca?, auth?) {
        (None, ClientAuth::None) => None,
        (Some(ca), auth @ (ClientAuth::IfGiven | ClientAuth::Required)) => Some((folder.join(ca), auth)),
        (Some(_), ClientAuth::None) => {
            let message = "`client_ca_file` is named, and no client is asked for a certificate";
            let hint = "write `client_auth_type: RequireAndVerifyClientCert`, or leave `client_ca_file` out";
            problems.bad_value(node.spot, message, hint);
            None
        }
        (None, ClientAuth::IfGiven | ClientAuth::Required) => {
            problems.missing(node.spot, "client_ca_file");
            None
        }
    };
    Some(TlsFile {
        certificate: folder.join(certificate?),
        key: folder.join(key?),
        clients,
        oldest: oldest?,
    })
}

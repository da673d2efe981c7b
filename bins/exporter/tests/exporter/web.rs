//! Who may ask, over sockets that speak TLS and with passwords.

use std::{fs, io::Write as _, net::TcpStream, path::PathBuf, sync::Arc, time::Instant};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use fake_nvml::{Installed, Scenario, a10};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    version::{TLS12, TLS13},
};

use super::program::{Answer, LONG, Server, ask, install, program, text};

/// A folder with a web configuration and what it names.
struct Folder(TempDir);

/// Somebody who signs certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

/// A certificate and its key.
struct Pair {
    certificate: String,
    key: String,
}

impl Folder {
    fn new(config: &str) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        folder.write("web.yml", config);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file as Kubernetes changes one of a secret: the old one, or the new one, and never half of either.
    fn write(&self, name: &str, text: &str) {
        fs::write(self.path("new"), text).expect("it can be written");
        fs::rename(self.path("new"), self.path(name)).expect("it can be renamed");
    }

    fn keep(&self, pair: &Pair) {
        self.write("tls.key", &pair.key);
        self.write("tls.crt", &pair.certificate);
    }

    fn serve(&self, library: &Installed) -> Server {
        let config = self.path("web.yml");
        let config = config.to_str().expect("it is text");
        Server::start(&["--wait", "60000", "--web-config", config], library)
    }

    /// Returns what is told of a configuration that the exporter does not start with.
    fn refused(&self) -> String {
        let mut program = program();
        program
            .args(["--listen", "127.0.0.1:0", "--web-config"])
            .arg(self.path("web.yml"));
        let output = program.output().expect("it can be started");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        text(&output.stderr).replace(self.0.path().to_str().expect("it is text"), "FOLDER")
    }
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
        }
    }

    fn signed(&self, name: &str) -> Pair {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([name.to_owned()]).expect("a name");
        Pair {
            certificate: params.signed_by(&key, &self.issuer).expect("a certificate").pem(),
            key: key.serialize_pem(),
        }
    }
}

/// Somebody who asks over TLS.
struct Client<'a> {
    trusts: &'a Authority,
    shows: Option<&'a Pair>,
    speaks: Vec<&'static SupportedProtocolVersion>,
}

impl<'a> Client<'a> {
    fn of(trusts: &'a Authority) -> Self {
        Self {
            trusts,
            shows: None,
            speaks: vec![&TLS13, &TLS12],
        }
    }

    fn config(&self) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots
            .add(der(&self.trusts.certificate))
            .expect("it is a certificate");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder
            .with_protocol_versions(&self.speaks)
            .expect("versions that go with the suites")
            .with_root_certificates(roots);
        Arc::new(match self.shows {
            Some(pair) => builder
                .with_client_auth_cert(
                    vec![der(&pair.certificate)],
                    PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).expect("a key"),
                )
                .expect("they belong together"),
            None => builder.with_no_client_auth(),
        })
    }

    /// Agrees with the server, or says why not.
    fn connect(&self, server: &Server) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let name = "exporter".try_into().expect("a name");
        let connection = ClientConnection::new(self.config(), name).expect("a client");
        let mut stream = StreamOwned::new(connection, server.connect());
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(stream)
    }

    fn get(&self, server: &Server, path: &str, headers: &[&str]) -> Answer {
        ask(self.connect(server).expect("it agrees"), path, headers)
    }
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate")
}

fn basic(name: &str, password: &str) -> String {
    let coded = BASE64_STANDARD.encode(format!("{name}:{password}"));
    format!("Authorization: Basic {coded}")
}

fn hash(password: &str) -> String {
    bcrypt::hash(password, 4).expect("a hash")
}

fn library() -> Installed {
    install(&Scenario::of([a10()]))
}

const TLS: &str = "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n";

#[test]
fn over_tls_every_path_asks_for_the_password() {
    let authority = Authority::new();
    let users = format!(
        "basic_auth_users:\n  prometheus: {}\n  other: {}\n",
        hash("secret"),
        hash("x:y")
    );
    let folder = Folder::new(&format!("{TLS}{users}"));
    folder.keep(&authority.signed("exporter"));
    let library = library();
    let server = folder.serve(&library);
    let client = Client::of(&authority);
    for path in [
        "/metrics",
        "/metrics/native",
        "/metrics/dcgm",
        "/health",
        "/ready",
        "/",
    ] {
        assert_eq!(client.get(&server, path, &[]).status, 401, "{path}");
        let good = client.get(&server, path, &[&basic("prometheus", "secret")]);
        assert_eq!(good.status, 200, "{path}");
    }
    let page = client.get(&server, "/metrics", &[&basic("other", "x:y")]);
    assert!(page.text().contains("blueproof_gpu_probe_up 1\n"));
    for refused in [
        basic("prometheus", "Secret"),
        basic("prometheus", ""),
        basic("prometheus", "x:y"),
        basic("nobody", "secret"),
        "Authorization: Basic !".into(),
        "Authorization: Bearer secret".into(),
    ] {
        let answer = client.get(&server, "/metrics", &[&refused]);
        assert_eq!(answer.status, 401, "{refused}");
        assert!(answer.headers["www-authenticate"].starts_with("Basic realm="));
        assert!(!answer.text().contains("blueproof_gpu"));
    }
}

#[test]
fn a_renewed_certificate_needs_no_restart_and_a_broken_one_changes_nothing() {
    let (first, second) = (Authority::new(), Authority::new());
    let folder = Folder::new(TLS);
    folder.keep(&first.signed("exporter"));
    let library = library();
    let mut server = folder.serve(&library);
    assert_eq!(Client::of(&first).get(&server, "/health", &[]).status, 200);

    folder.write("tls.crt", "nothing\n");
    for _ in 0..2 {
        assert_eq!(Client::of(&first).get(&server, "/health", &[]).status, 200);
    }
    let renewed = second.signed("exporter");
    folder.keep(&renewed);
    assert_eq!(Client::of(&second).get(&server, "/health", &[]).status, 200);
    assert!(Client::of(&first).connect(&server).is_err());
    let log = server.log_until("can be used again");
    assert_eq!(log.matches("error[BP0910]").count(), 1, "{log}");
}

#[test]
fn a_handshake_that_never_ends_keeps_nobody_waiting() {
    let authority = Authority::new();
    let folder = Folder::new(TLS);
    folder.keep(&authority.signed("exporter"));
    let library = library();
    let server = folder.serve(&library);
    // More than are borne with at a time.
    let silent: Vec<_> = (0..300).map(|_| server.connect()).collect();
    let answer = Client::of(&authority).get(&server, "/metrics", &[]);
    assert_eq!(answer.status, 200);
    drop(silent);
}

#[test]
fn clients_show_the_certificate_that_is_asked_for() {
    let (authority, other) = (Authority::new(), Authority::new());
    let clients = "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n";
    let folder = Folder::new(&format!("{TLS}{clients}"));
    folder.keep(&authority.signed("exporter"));
    folder.write("ca.crt", &authority.certificate);
    let library = library();
    let server = folder.serve(&library);
    let (good, bad) = (authority.signed("prometheus"), other.signed("prometheus"));
    let with = |pair| Client {
        shows: pair,
        // By TLS 1.3 a client hears of the refusal only when it reads.
        speaks: vec![&TLS12],
        ..Client::of(&authority)
    };
    assert_eq!(with(Some(&good)).get(&server, "/health", &[]).status, 200);
    assert!(with(None).connect(&server).is_err());
    assert!(with(Some(&bad)).connect(&server).is_err());
}

#[test]
fn older_versions_of_tls_than_are_allowed_are_refused() {
    let authority = Authority::new();
    let folder = Folder::new(&format!("{TLS}  min_version: TLS13\n"));
    folder.keep(&authority.signed("exporter"));
    let library = library();
    let server = folder.serve(&library);
    let old = Client {
        speaks: vec![&TLS12],
        ..Client::of(&authority)
    };
    assert!(old.connect(&server).is_err());
    assert_eq!(Client::of(&authority).get(&server, "/health", &[]).status, 200);
}

#[test]
fn a_password_that_is_taken_back_is_refused_from_then_on() {
    let folder = Folder::new(&format!("basic_auth_users: {{a: {}}}\n", hash("first")));
    let library = library();
    let mut server = folder.serve(&library);
    let status = |server: &Server, password| server.get("/health", &[&basic("a", password)]).status;
    assert_eq!(status(&server, "first"), 200);
    folder.write(
        "web.yml",
        &format!("basic_auth_users: {{a: {}}}\n", hash("second")),
    );
    assert_eq!(status(&server, "first"), 401);
    assert_eq!(status(&server, "second"), 200);

    folder.write("web.yml", "");
    assert_eq!(
        server.get("/health", &[]).status,
        401,
        "an empty file lets nobody in"
    );
    assert_eq!(status(&server, "second"), 200);
    server.log_until("error[BP");
}

#[test]
fn wrong_passwords_that_cost_much_keep_nobody_else_out_and_are_forgotten_with_their_clients() {
    let costly = bcrypt::hash("costly", 9).expect("a hash");
    let users = format!("basic_auth_users: {{ada: {}, slow: {costly}}}\n", hash("cheap"));
    let folder = Folder::new(&users);
    let library = library();
    let server = folder.serve(&library);
    let request = format!(
        "GET /health HTTP/1.1\r\nHost: x\r\n{}\r\n\r\n",
        basic("slow", "wrong")
    );
    let mut clients: Vec<_> = (0..40).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.write_all(request.as_bytes()).expect("it listens");
    }
    let slow = server.get("/health", &[&basic("slow", "wrong")]);
    assert_eq!(slow.status, 503);
    assert_eq!(slow.headers["retry-after"], "5");
    let cheap = server.get("/health", &[&basic("ada", "cheap")]);
    assert_eq!(cheap.status, 200, "another user's cost is nobody's");

    drop(clients);
    let began = Instant::now();
    while server.get("/health", &[&basic("slow", "costly")]).status != 200 {
        assert!(began.elapsed() < LONG, "it is let in");
    }
}

#[test]
fn tls_is_not_switched_off_by_a_file_that_changes() {
    let authority = Authority::new();
    let folder = Folder::new(TLS);
    folder.keep(&authority.signed("exporter"));
    let library = library();
    let mut server = folder.serve(&library);
    let users = format!("basic_auth_users: {{a: {}}}\n", hash("secret"));
    folder.write("web.yml", &users);
    assert_eq!(Client::of(&authority).get(&server, "/health", &[]).status, 200);
    let log = server.log_until("start the exporter again");
    assert!(log.contains("error[BP0909]"), "{log}");
    folder.write("web.yml", &format!("{TLS}{users}"));
    assert_eq!(Client::of(&authority).get(&server, "/health", &[]).status, 401);
}

#[test]
fn mistakes_are_told_where_they_are_and_passwords_are_not_repeated() {
    let folder = Folder::new(
        "tls_server_config:\n  cert_fle: tls.crt\n  cipher_suites: [TLS_AES_128_GCM_SHA256]\n  min_version: TLS10\n\
         basic_auth_users:\n  a: hunter2\nhttp_server_config: {http2: true}\n",
    );
    let told = folder.refused();
    for expected in [
        "error[BP0203]: unknown key `cert_fle`\n  --> FOLDER/web.yml:2:3\n   = hint: did you mean `cert_file`?",
        "error[BP0207]: `cipher_suites` is not supported yet\n  --> FOLDER/web.yml:3:3",
        "error[BP0205]: `TLS10` is not allowed here\n  --> FOLDER/web.yml:4:16",
        "error[BP0205]: what stands for the user `a` is no bcrypt hash\n  --> FOLDER/web.yml:6:6",
        "error[BP0207]: `http_server_config` is not supported yet\n  --> FOLDER/web.yml:7:1",
        "the key `cert_file` is missing",
    ] {
        assert!(told.contains(expected), "{expected} in\n{told}");
    }
    assert!(!told.contains("hunter2"), "{told}");
}

#[test]
fn what_cannot_be_kept_is_refused_at_the_start() {
    let authority = Authority::new();
    for (config, expected) in [
        ("{}\n", "it asks for neither TLS nor passwords"),
        (TLS, "FOLDER/tls.crt"),
        (
            "tls_server_config: {cert_file: a.crt, key_file: b.key}\n",
            "error[BP0910]: the certificate with its key cannot be used",
        ),
        (
            "tls_server_config: {cert_file: a.crt, key_file: a.key, client_ca_file: a.crt}\n",
            "no client is asked for a certificate",
        ),
        (
            "tls_server_config: {cert_file: a.crt, key_file: a.key, client_auth_type: RequireAnyClientCert}\n",
            "`RequireAnyClientCert` is not allowed here",
        ),
        (
            "tls_server_config: {cert_file: a.crt, key_file: a.key, client_auth_type: VerifyClientCertIfGiven}\n",
            "the key `client_ca_file` is missing",
        ),
    ] {
        let folder = Folder::new(config);
        let (one, other) = (authority.signed("exporter"), authority.signed("exporter"));
        folder.write("a.crt", &one.certificate);
        folder.write("a.key", &one.key);
        folder.write("b.key", &other.key);
        let told = folder.refused();
        assert!(told.contains(expected), "{expected} in\n{told}");
    }
    let none = Folder::new("");
    fs::remove_file(none.path("web.yml")).expect("it is there");
    assert!(
        none.refused()
            .starts_with("error[BP0909]: the web configuration cannot be read")
    );
}

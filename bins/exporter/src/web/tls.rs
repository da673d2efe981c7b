//! TLS: the certificates, and connections that are ready to be spoken over.
//!
//! Handshakes go on beside each other, each with its own limit, so that one that never ends keeps nobody waiting.

use std::{collections::VecDeque, error::Error, io, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use axum::serve::Listener;
use blueproof_diagnostic::{Code, Diagnostic, SourceLocation};
use blueproof_http::Limits;
use tokio::{
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::timeout,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig, SupportedProtocolVersion,
        crypto::{CryptoProvider, ring},
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
        server::{WebPkiClientVerifier, danger::ClientCertVerifier},
        version::{TLS12, TLS13},
    },
    server::TlsStream,
};

use super::{
    Web,
    file::{ClientAuth, Oldest, Reader, TlsFile},
};

/// How long a handshake may take. A client on a bad line needs a few seconds.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// How many handshakes may go on at a time. When there are more, the oldest is given up: it is the likeliest never to end.
const HANDSHAKES: usize = 256;

/// Takes connections, and gives them on when they are ready.
pub(crate) struct TlsListener {
    listener: TcpListener,
    limits: Limits,
    web: Arc<Web>,
    handshakes: JoinSet<Option<(TlsStream<TcpStream>, SocketAddr)>>,
    begun: VecDeque<AbortHandle>,
}

impl TlsListener {
    pub(crate) fn new(listener: TcpListener, limits: Limits, web: Arc<Web>) -> Self {
        Self {
            listener,
            limits,
            web,
            handshakes: JoinSet::new(),
            begun: VecDeque::new(),
        }
    }

    fn begin(&mut self, stream: TcpStream, address: SocketAddr) {
        self.begun.retain(|handshake| !handshake.is_finished());
        if self.begun.len() >= HANDSHAKES.min(self.limits.at_most())
            && let Some(oldest) = self.begun.pop_front()
        {
            oldest.abort();
        }
        let web = Arc::clone(&self.web);
        let handshake = self.handshakes.spawn(async move {
            let ready = timeout(HANDSHAKE_WITHIN, handshake(&web, stream)).await;
            Some((ready.ok()??, address))
        });
        self.begun.push_back(handshake);
    }
}

async fn handshake(web: &Arc<Web>, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    let config = web.rules().await.tls.clone()?;
    // Strangers who speak something else are nothing to tell of.
    TlsAcceptor::from(config).accept(stream).await.ok()
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                (stream, address) = Listener::accept(&mut self.listener) => self.begin(stream, address),
                Some(ended) = self.handshakes.join_next() => if let Ok(Some(ready)) = ended {
                    return ready;
                },
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// Reads certificates and key.
pub(super) fn config(tls: &TlsFile, reader: &mut Reader) -> Result<Arc<ServerConfig>, Box<Diagnostic>> {
    let chain = certificates(&tls.certificate, reader)?;
    let key = reader
        .read(&tls.key)
        .map_err(|error| unusable(&tls.key, "the private key", &error))?;
    let key =
        PrivateKeyDer::from_pem_slice(&key).map_err(|error| unusable(&tls.key, "the private key", &error))?;
    let provider = Arc::new(ring::default_provider());
    let clients = tls.clients.as_ref();
    let clients = clients.map(|(ca, auth)| verifier(ca, *auth, &provider, reader));
    let clients = clients
        .transpose()?
        .unwrap_or_else(WebPkiClientVerifier::no_client_auth);
    let versions: &[&SupportedProtocolVersion] = match tls.oldest {
        Oldest::Tls12 => &[&TLS13, &TLS12],
        Oldest::Tls13 => &[&TLS13],
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .and_then(|builder| {
            builder
                .with_client_cert_verifier(clients)
                .with_single_cert(chain, key)
        })
        .map_err(|error| unusable(&tls.certificate, "the certificate with its key", &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn verifier(
    ca: &Path,
    auth: ClientAuth,
    provider: &Arc<CryptoProvider>,
    reader: &mut Reader,
) -> Result<Arc<dyn ClientCertVerifier>, Box<Diagnostic>> {
    let what = "the certificate of those who sign clients' certificates";
    let mut roots = RootCertStore::empty();
    for certificate in certificates(ca, reader)? {
        roots
            .add(certificate)
            .map_err(|error| unusable(ca, what, &error))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let builder = match auth {
        ClientAuth::None | ClientAuth::IfGiven => builder.allow_unauthenticated(),
        ClientAuth::Required => builder,
    };
    let verifier = builder.build().map_err(|error| unusable(ca, what, &error))?;
    Ok(verifier)
}

fn certificates(path: &Path, reader: &mut Reader) -> Result<Vec<CertificateDer<'static>>, Box<Diagnostic>> {
    let what = "the certificate";
    let bytes = reader.read(path).map_err(|error| unusable(path, what, &error))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let certificates = read.map_err(|error| unusable(path, what, &error))?;
    if certificates.is_empty() {
        return Err(unusable(path, what, &io::Error::other("there is none in it")));
    }
    Ok(certificates)
}

fn unusable(path: &Path, what: &str, error: &dyn Error) -> Box<Diagnostic> {
    let problem = Diagnostic::error(Code::Certificate, format!("{what} cannot be used"));
    let problem = problem
        .at(SourceLocation::file(path.display().to_string()))
        .caused_by(error);
    Box::new(
        problem.hint("`openssl x509 -text -in FILE` and `openssl pkey -check -in FILE` show what they are"),
    )
}

//! Where the API listens: a unix socket, or a loopback address.

use std::{
    fmt,
    future::Future,
    io,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    str::FromStr,
};

use axum::Router;
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_http::Limits;
use tokio::net::{TcpListener, UnixListener, UnixStream};

use super::from_peer;

/// Followers keep their connections, so there are more of them than of those who ask and go.
const LIMITS: Limits = Limits {
    connections: 1_024,
    alive: "/healthz",
};

/// Where an API listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A unix socket, `unix:PATH`.
    Unix(PathBuf),
    /// An address and port, `127.0.0.1:8787`.
    Tcp(SocketAddr),
}

/// A text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no address to listen on: they look like unix:/run/blueproof/scheduler.sock, 127.0.0.1:8787 and localhost:8787"
)]
pub struct ListenError(String);

/// An API that listens, and does not answer yet.
pub struct Listening {
    listener: Listener,
    address: Address,
}

enum Listener {
    Unix(UnixListener, SocketFile),
    Tcp(TcpListener),
}

/// The file of a socket, which is removed with this.
struct SocketFile(PathBuf);

impl FromStr for Address {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Self, ListenError> {
        let wrong = || ListenError(text.into());
        match text.strip_prefix("unix:") {
            Some("") => Err(wrong()),
            Some(path) => Ok(Address::Unix(path.into())),
            None => {
                let numeric = match text.strip_prefix("localhost:") {
                    Some(port) => format!("{}:{port}", Ipv4Addr::LOCALHOST),
                    None => text.to_owned(),
                };
                numeric.parse().map(Address::Tcp).map_err(|_| wrong())
            }
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
            Address::Tcp(address) => write!(f, "http://{address}"),
        }
    }
}

impl Address {
    /// Returns where this one listens. An address that others reach is refused, and so is the socket of a process that is there.
    pub async fn listen(&self) -> Result<Listening, Diagnostic> {
        match self {
            Address::Unix(path) => {
                let listener = listen_on_socket(path).await?;
                Ok(Listening {
                    listener: Listener::Unix(listener, SocketFile(path.clone())),
                    address: self.clone(),
                })
            }
            Address::Tcp(address) if !address.ip().is_loopback() => {
                let message = format!("{address} is reached by others, and nothing is encrypted there");
                let refused = Diagnostic::error(Code::ListensForAll, message);
                Err(refused
                    .hint("listen on 127.0.0.1 or a unix socket, with a proxy that speaks TLS before it"))
            }
            Address::Tcp(address) => {
                let listener = TcpListener::bind(address)
                    .await
                    .map_err(|error| self.failed(&error))?;
                let address = listener.local_addr().map_err(|error| self.failed(&error))?;
                Ok(Listening {
                    listener: Listener::Tcp(listener),
                    address: Address::Tcp(address),
                })
            }
        }
    }

    fn failed(&self, error: &io::Error) -> Diagnostic {
        Diagnostic::error(Code::NotListening, format!("could not listen on {self}"))
            .because(error.to_string())
            .hint("choose another address with `--listen`")
    }
}

async fn listen_on_socket(path: &Path) -> Result<UnixListener, Diagnostic> {
    let address = Address::Unix(path.into());
    let failed = |error: io::Error| address.failed(&error);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    remove_stale(path).await.map_err(failed)?;
    let listener = UnixListener::bind(path).map_err(failed)?;
    // Whoever connects is known by the system; this keeps others of this machine from trying.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    Ok(listener)
}

/// Removes the socket of a process that is gone; one that somebody listens on stays, and so does whatever is no socket.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let kind = match std::fs::symlink_metadata(path) {
        Ok(there) => there.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !kind.is_socket() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "something else is there that is no socket",
        ));
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        _ => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process listens there",
        )),
    }
}

impl Listening {
    /// Returns where it listens: with the port that was chosen, where none was named.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Answers until it is told to end, and then for a few seconds those who have asked already.
    pub async fn serve(self, app: Router, ends: impl Future<Output = ()>) {
        match self.listener {
            Listener::Unix(listener, _file) => {
                let uid = |stream: &UnixStream| stream.peer_cred().ok().map(|peer| peer.uid());
                blueproof_http::serve(listener, LIMITS, |stream| from_peer(&app, uid(stream)), ends).await;
            }
            Listener::Tcp(listener) => {
                blueproof_http::serve(listener, LIMITS, |_| from_peer(&app, None), ends).await;
            }
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // One that cannot be removed is found to be nobody's by the next process.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_socket_or_an_address_of_this_machine_with_a_port() {
        let loopback = Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 8787)));
        for text in ["127.0.0.1:8787", "localhost:8787"] {
            assert_eq!(text.parse(), Ok(loopback.clone()), "{text}");
        }
        assert_eq!("unix:/run/s".parse(), Ok(Address::Unix("/run/s".into())));
        for text in [
            "",
            "unix:",
            "localhost",
            "localhost:",
            "localhost:no",
            "example.org:80",
            "8787",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}

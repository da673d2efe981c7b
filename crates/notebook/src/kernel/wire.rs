//! The Jupyter protocol's client side. Types of the Jupyter and ZeroMQ crates stop here.
//!
//! Messages are taken in as raw JSON, not as the crate's types: an output that nobody can decode is still kept.

use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use jupyter_protocol::{
    ConnectionInfo, ExecuteRequest, InterruptRequest, JupyterMessage, KernelInfoRequest, ShutdownRequest,
    connection_info::Transport,
};
use jupyter_zmq_client::{
    ClientControlConnection, ClientIoPubConnection, ClientShellConnection, Connection, RawMessage,
};
use serde_json::Value;
use zeromq::{SocketRecv, SocketSend};

use super::lossless;

/// How often it is looked for a kernel's sockets: a look is three calls of the system.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The kernel could not be spoken to.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing}")]
pub(crate) struct WireError {
    doing: &'static str,
    #[source]
    source: jupyter_zmq_client::RuntimeError,
}

/// Where a kernel listens, and the key that its messages are signed with.
#[derive(Debug, Clone)]
pub(crate) struct Endpoints(ConnectionInfo);

/// A message from the kernel.
#[derive(Debug)]
pub(crate) struct Message {
    /// What kind it is, such as `stream`.
    pub(crate) kind: String,
    /// When it was made, by the same clock as ours; `None` where it does not say.
    pub(crate) at: Option<Timestamp>,
    /// The id of the request that it answers.
    pub(crate) parent: Option<String>,
    /// Its content.
    pub(crate) content: Value,
}

/// A message and where it came in.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// The answer to a request on the shell channel.
    Shell(Message),
    /// What everybody may see.
    IoPub(Message),
    /// The answer to a request on the control channel.
    Control,
    /// Something that cannot be read, and why: nobody knows what the kernel told by it.
    Unreadable(String),
}

/// The channels to a kernel.
pub(crate) struct Channels {
    shell: ClientShellConnection,
    iopub: ClientIoPubConnection,
    control: ClientControlConnection,
}

impl Endpoints {
    /// Describes unix sockets whose paths begin with `prefix`.
    pub(crate) fn unix(prefix: &Path, key: String) -> Self {
        Self(ConnectionInfo {
            ip: prefix.to_string_lossy().into_owned(),
            transport: Transport::IPC,
            shell_port: 1,
            iopub_port: 2,
            stdin_port: 3,
            control_port: 4,
            hb_port: 5,
            key,
            signature_scheme: "hmac-sha256".into(),
            kernel_name: None,
        })
    }

    /// Chooses free ports of this machine, which it alone can reach.
    pub(crate) fn tcp(key: String) -> io::Result<Self> {
        const LOOPBACK: Ipv4Addr = Ipv4Addr::LOCALHOST;
        // All at once: a port that is let go is the next one's.
        let free: [TcpListener; 5] = [
            TcpListener::bind((LOOPBACK, 0))?,
            TcpListener::bind((LOOPBACK, 0))?,
            TcpListener::bind((LOOPBACK, 0))?,
            TcpListener::bind((LOOPBACK, 0))?,
            TcpListener::bind((LOOPBACK, 0))?,
        ];
        let port = |at: usize| free[at].local_addr().map(|address| address.port());
        Ok(Self(ConnectionInfo {
            ip: LOOPBACK.to_string(),
            transport: Transport::TCP,
            shell_port: port(0)?,
            iopub_port: port(1)?,
            stdin_port: port(2)?,
            control_port: port(3)?,
            hb_port: port(4)?,
            key,
            signature_scheme: "hmac-sha256".into(),
            kernel_name: None,
        }))
    }

    /// Returns the same with other ports.
    pub(crate) fn renewed(&self) -> io::Result<Self> {
        Self::tcp(self.0.key.clone())
    }

    /// Returns whether a process listens on one of the ports; sockets that are files are nobody else's.
    pub(crate) fn are_taken(&self) -> bool {
        let info = &self.0;
        let ports = [
            info.shell_port,
            info.iopub_port,
            info.stdin_port,
            info.control_port,
            info.hb_port,
        ];
        let is_taken = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err();
        info.transport == Transport::TCP && ports.into_iter().any(is_taken)
    }

    /// Waits until the kernel has made its sockets. Bounding the wait is up to the caller.
    ///
    /// Whoever connects earlier comes late: the ZeroMQ crate tries again after 50 ms, 100 ms, 200 ms and so on, and so
    /// may sleep for as long again as the kernel took.
    pub(crate) async fn made(&self) {
        while !self.sockets().iter().all(|socket| socket.exists()) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Returns the files of the sockets that we connect to; there are none where the kernel does not use files.
    fn sockets(&self) -> Vec<PathBuf> {
        let info = &self.0;
        match info.transport {
            Transport::IPC => [info.shell_port, info.iopub_port, info.control_port]
                .map(|port| format!("{}-{port}", info.ip).into())
                .into(),
            Transport::TCP => Vec::new(),
        }
    }

    /// Returns what a kernel reads from its connection file.
    pub(crate) fn to_file(&self) -> String {
        serde_json::to_string(&self.0).expect("strings and numbers make JSON")
    }
}

impl Channels {
    /// Connects, and waits until the kernel listens. Bounding the wait is up to the caller.
    pub(crate) async fn connect(endpoints: &Endpoints) -> Result<Self, WireError> {
        let session = uuid::Uuid::new_v4().to_string();
        let info = &endpoints.0;
        for url in [info.iopub_url(), info.shell_url(), info.control_url()] {
            until_bound(&url).await;
        }
        let connect = async {
            let identity = jupyter_zmq_client::peer_identity_for_session(&session)?;
            let iopub = jupyter_zmq_client::create_client_iopub_connection(info, "", &session).await?;
            let shell =
                jupyter_zmq_client::create_client_shell_connection_with_identity(info, &session, identity)
                    .await?;
            let control = jupyter_zmq_client::create_client_control_connection(info, &session).await?;
            Ok(Self {
                shell,
                iopub,
                control,
            })
        };
        connect.await.map_err(failed("connect to the kernel"))
    }

    /// Waits until the kernel sees this subscriber, for at most `patience`: kernels before ipykernel 7 do not say.
    pub(crate) async fn welcomed(&mut self, patience: Duration) {
        let _ = tokio::time::timeout(patience, async {
            while !matches!(receive(&mut self.iopub).await, Ok(message) if message.kind == "iopub_welcome") {}
        })
        .await;
    }

    /// Asks the kernel what it is; returns the request's id.
    pub(crate) async fn ask_info(&mut self) -> Result<String, WireError> {
        let message = JupyterMessage::new(KernelInfoRequest::default(), None);
        send(&mut self.shell, message, "ask the kernel what it is").await
    }

    /// Has `code` run as a cell; returns the request's id.
    pub(crate) async fn execute(
        &mut self,
        code: String,
        visibility: Visibility,
        expressions: HashMap<String, String>,
    ) -> Result<String, WireError> {
        let silent = matches!(visibility, Visibility::Silent);
        let request = ExecuteRequest {
            code,
            silent,
            store_history: !silent,
            user_expressions: Some(expressions),
            allow_stdin: false,
            // Nothing is ever queued behind a cell, and ipykernel would drop what is asked right after an error.
            stop_on_error: false,
        };
        send(&mut self.shell, JupyterMessage::new(request, None), "send a cell").await
    }

    /// Asks the kernel to interrupt what runs.
    pub(crate) async fn interrupt(&mut self) -> Result<String, WireError> {
        let message = JupyterMessage::new(InterruptRequest {}, None);
        send(&mut self.control, message, "interrupt the kernel").await
    }

    /// Asks the kernel to end.
    pub(crate) async fn shut_down(&mut self) -> Result<String, WireError> {
        let message = JupyterMessage::new(ShutdownRequest { restart: false }, None);
        send(&mut self.control, message, "end the kernel").await
    }

    /// Returns the next message of any channel; waits for ever when none comes. It may be dropped at any point.
    pub(crate) async fn next(&mut self) -> Incoming {
        tokio::select! {
            message = receive(&mut self.iopub) => message.map_or_else(Incoming::Unreadable, Incoming::IoPub),
            message = receive(&mut self.shell) => message.map_or_else(Incoming::Unreadable, Incoming::Shell),
            _ = receive(&mut self.control) => Incoming::Control,
        }
    }
}

/// Whether a request counts as one of the notebook's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// It is a cell of the notebook.
    Cell,
    /// It is ours: it has no number and shows nothing.
    Silent,
}

/// Waits until the unix socket is there; ZeroMQ's own retries wait longer with each one, a kernel's start does not.
async fn until_bound(url: &str) {
    const LOOK_EVERY: Duration = Duration::from_millis(4);
    let Some(path) = url.strip_prefix("ipc://") else {
        return;
    };
    while !Path::new(path).exists() {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn send<S: SocketSend>(
    connection: &mut Connection<S>,
    message: JupyterMessage,
    doing: &'static str,
) -> Result<String, WireError> {
    let id = message.header.msg_id.clone();
    connection.send(message).await.map_err(failed(doing))?;
    Ok(id)
}

/// Returns the next message, or why it cannot be read.
async fn receive<S: SocketRecv>(connection: &mut Connection<S>) -> Result<Message, String> {
    let Ok(parts) = connection.socket.recv().await else {
        // The peer is gone. Whether it comes back is seen from its process, not from here.
        return std::future::pending().await;
    };
    let raw = RawMessage::from_multipart(parts, &connection.mac).map_err(|error| error.to_string())?;
    read(&raw)
}

fn read(raw: &RawMessage) -> Result<Message, String> {
    let part = |at: usize, what: &str| {
        let read = lossless::from_slice(&raw.jparts[at]);
        read.map_err(|error| format!("its {what} is no JSON: {error}"))
    };
    let header = part(0, "header")?;
    let parent = if raw.jparts[1].is_empty() {
        Value::Null
    } else {
        part(1, "parent's header")?
    };
    let kind = header.get("msg_type").and_then(Value::as_str);
    Ok(Message {
        at: header
            .get("date")
            .and_then(Value::as_str)
            .and_then(|date| date.parse().ok()),
        kind: kind.ok_or("its header names no kind")?.to_owned(),
        parent: parent.get("msg_id").and_then(Value::as_str).map(str::to_owned),
        content: part(3, "content")?,
    })
}

fn failed(doing: &'static str) -> impl FnOnce(jupyter_zmq_client::RuntimeError) -> WireError {
    move |source| WireError { doing, source }
}

#[cfg(test)]
mod tests {
    use jupyter_zmq_client::{CannedResponse, TestKernel, TestKernelConfig};

    use super::*;

    async fn connected(config: TestKernelConfig) -> (Channels, impl Sized) {
        let folder = tempfile::tempdir().unwrap();
        let endpoints = Endpoints::unix(&folder.path().join("s"), "key".into());
        let kernel = TestKernel::start(endpoints.0.clone(), config).await.unwrap();
        let mut channels = Channels::connect(&endpoints).await.unwrap();
        channels.welcomed(Duration::from_secs(5)).await;
        (channels, (kernel, folder))
    }

    /// Collects what answers `request` until both its reply and its idle state are in.
    async fn answers(channels: &mut Channels, request: &str) -> Vec<(String, Value)> {
        let mut seen = Vec::new();
        let (mut is_idle, mut is_answered) = (false, false);
        while !(is_idle && is_answered) {
            match channels.next().await {
                Incoming::IoPub(message) if message.parent.as_deref() == Some(request) => {
                    is_idle |= message.content["execution_state"] == "idle";
                    seen.push((message.kind, message.content));
                }
                Incoming::Shell(message) => is_answered |= message.parent.as_deref() == Some(request),
                Incoming::IoPub(_) | Incoming::Control => {}
                Incoming::Unreadable(why) => panic!("{why}"),
            }
        }
        seen
    }

    #[tokio::test]
    async fn a_cell_is_answered_on_both_channels_under_its_own_id() {
        let (mut channels, _kernel) = connected(TestKernelConfig::default()).await;
        let code = "print('hello')".to_owned();
        let request = channels
            .execute(code, Visibility::Cell, HashMap::new())
            .await
            .unwrap();
        let seen = answers(&mut channels, &request).await;
        assert!(
            seen.iter()
                .any(|(kind, content)| kind == "stream" && content["text"] == "print('hello')")
        );
    }

    #[tokio::test]
    async fn outputs_come_through_as_they_were_sent() {
        let outputs = vec![
            serde_json::from_value::<jupyter_protocol::DisplayData>(serde_json::json!({
                "data": {"application/x-nobody-knows+json": {"a": [1, null]}}, "metadata": {}, "transient": null,
            }))
            .unwrap()
            .into(),
        ];
        let config = TestKernelConfig::default().with_response("show()", CannedResponse { outputs });
        let (mut channels, _kernel) = connected(config).await;
        let request = channels
            .execute("show()".into(), Visibility::Cell, HashMap::new())
            .await
            .unwrap();
        let seen = answers(&mut channels, &request).await;
        let (_, shown) = seen.iter().find(|(kind, _)| kind == "display_data").unwrap();
        assert_eq!(shown["data"]["application/x-nobody-knows+json"]["a"][0], 1);
    }
}

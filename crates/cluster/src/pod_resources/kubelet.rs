//! Asking the kubelet.

use std::{
    collections::BTreeMap,
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
    time::Duration,
};

use blueproof_diagnostic::{Code, Diagnostic};
use prost::Message;
use tonic::{
    Request, Status,
    client::Grpc,
    codegen::http::{Uri, uri::PathAndQuery},
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use super::{
    Advertised, DeviceAllocation, KubeletReport,
    checkpoint::PodUids,
    wire::{AllocatableResourcesResponse, ContainerDevices, Empty, ListPodResourcesResponse},
};

/// Where a kubelet listens, if nobody told it otherwise.
pub const USUAL_SOCKET: &str = "/var/lib/kubelet/pod-resources/kubelet.sock";

/// The largest answer that is read. gRPC's own limit of 4 MiB is not enough for a node with many pods and devices.
const LARGEST: usize = 16 << 20;

const LIST: &str = "/v1.PodResourcesLister/List";
const GET_ALLOCATABLE: &str = "/v1.PodResourcesLister/GetAllocatableResources";

/// A kubelet that can be asked who has which device.
#[derive(Debug)]
pub struct Kubelet {
    socket: PathBuf,
    within: Duration,
    /// Where it writes down the UIDs of pods, if they are asked for.
    checkpoint: Option<PathBuf>,
    /// It is kept from one question to the next, and thrown away after an error.
    channel: Option<Channel>,
}

/// Why a kubelet told nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .diagnostic.message)]
pub struct KubeletError {
    /// The reason, one of a few.
    pub reason: Silence,
    /// What is wrong, and what to do.
    pub diagnostic: Box<Diagnostic>,
}

/// The reasons why a kubelet tells nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Silence {
    /// Nobody listens on its socket.
    Absent,
    /// Whoever asks may not open the socket.
    NoPermission,
    /// It did not answer in time.
    Slow,
    /// What it answers is larger than anything that is read.
    TooLarge,
    /// It answered with an error, or with what cannot be understood.
    Refused,
}

impl Kubelet {
    /// Returns the kubelet that listens there. It has so long for each answer. Nothing is asked yet.
    pub fn at(socket: impl Into<PathBuf>, within: Duration) -> Self {
        Self {
            socket: socket.into(),
            within,
            checkpoint: None,
            channel: None,
        }
    }

    /// Has pods told with their UIDs, by the kubelet's checkpoint, usually [`USUAL_CHECKPOINT`](super::USUAL_CHECKPOINT).
    #[must_use]
    pub fn with_uids_of(mut self, checkpoint: impl Into<PathBuf>) -> Self {
        self.checkpoint = Some(checkpoint.into());
        self
    }

    /// Asks who has which device, and which devices there are to give. Waits at most as long as the kubelet has; after that
    /// it may be asked again. A connection is kept until something fails on it; one that is from an earlier question is
    /// replaced once, since it may be of a kubelet that was started anew.
    pub async fn ask(&mut self) -> Result<KubeletReport, KubeletError> {
        let within = self.within;
        let before = self.checkpoint.as_deref().map(PodUids::read);
        let asked = tokio::time::timeout(within, self.ask_patiently()).await;
        let mut asked = asked.unwrap_or_else(|_| Err(slow(&self.socket, within)));
        match (&mut asked, before, self.checkpoint.as_deref()) {
            (Ok(told), Some(before), Some(checkpoint)) => name_pods(told, before, checkpoint),
            (Err(_), ..) => self.channel = None,
            (Ok(_), ..) => {}
        }
        asked
    }

    async fn ask_patiently(&mut self) -> Result<KubeletReport, KubeletError> {
        if let Some(channel) = self.channel.clone()
            && let Ok(told) = ask(channel).await
        {
            return Ok(told);
        }
        self.channel = None;
        let channel = connect(&self.socket).await;
        let channel = channel.map_err(|error| unreachable(&self.socket, &error))?;
        self.channel = Some(channel.clone());
        ask(channel)
            .await
            .map_err(|status| refused(&self.socket, &status))
    }
}

async fn connect(socket: &Path) -> Result<Channel, tonic::transport::Error> {
    // The address is not used to connect, but servers want a host's name in it, and Go's refuse a path.
    let address = format!("unix:{}", socket.display());
    let origin = Uri::from_static("http://localhost");
    Endpoint::from_shared(address)?.origin(origin).connect().await
}

async fn ask(channel: Channel) -> Result<KubeletReport, Status> {
    let listed: ListPodResourcesResponse = call(&channel, LIST).await?;
    let allocatable: Option<AllocatableResourcesResponse> = match call(&channel, GET_ALLOCATABLE).await {
        Ok(allocatable) => Some(allocatable),
        Err(status) if status.code() == tonic::Code::Unimplemented => None,
        Err(status) => return Err(status),
    };
    let mut told = told(listed);
    told.allocatable = allocatable.map(|allocatable| advertised(allocatable.devices).collect());
    Ok(told)
}

async fn call<M: Message + Default + 'static>(channel: &Channel, method: &'static str) -> Result<M, Status> {
    let mut grpc = Grpc::new(channel.clone()).max_decoding_message_size(LARGEST);
    let unready = |error: tonic::transport::Error| Status::from_error(error.into());
    grpc.ready().await.map_err(unready)?;
    let codec = ProstCodec::<Empty, M>::default();
    let answered = grpc.unary(Request::new(Empty {}), PathAndQuery::from_static(method), codec);
    Ok(answered.await?.into_inner())
}

fn told(listed: ListPodResourcesResponse) -> KubeletReport {
    let mut told = KubeletReport {
        pods: listed.pod_resources.len() as u64,
        ..KubeletReport::default()
    };
    let mut dynamic: BTreeMap<String, u64> = BTreeMap::new();
    for pod in listed.pod_resources {
        for container in pod.containers {
            let given = advertised(container.devices).map(|device| DeviceAllocation {
                namespace: pod.namespace.clone(),
                pod: pod.name.clone(),
                pod_uid: None,
                container: container.name.clone(),
                device,
            });
            told.given.extend(given);
            let claims = container.dynamic_resources.into_iter();
            for claim in claims.flat_map(|claims| claims.claim_resources) {
                *dynamic.entry(claim.driver_name).or_default() += 1;
            }
        }
    }
    told.dynamic = dynamic;
    told
}

/// Writes down the UIDs of pods by a checkpoint that was the same before they were told and is after it: else a device may
/// have gone from one pod to the next in between.
fn name_pods(told: &mut KubeletReport, before: io::Result<PodUids>, checkpoint: &Path) {
    let both = before.and_then(|before| Ok((before, PodUids::read(checkpoint)?)));
    match both {
        Ok((before, after)) if before == after => after.name(told),
        Ok(_) => told.no_uids = Some("devices were given while the kubelet was asked".into()),
        Err(error) => told.no_uids = Some(error.to_string()),
    }
}

fn advertised(devices: Vec<ContainerDevices>) -> impl Iterator<Item = Advertised> {
    devices.into_iter().flat_map(|devices| {
        let resource = devices.resource_name;
        let ids = devices.device_ids.into_iter();
        ids.map(move |id| Advertised {
            resource: resource.clone(),
            id,
        })
    })
}

fn slow(socket: &Path, within: Duration) -> KubeletError {
    let message = format!(
        "the kubelet at `{}` did not answer in {within:?}",
        socket.display()
    );
    KubeletError {
        reason: Silence::Slow,
        diagnostic: Box::new(
            Diagnostic::error(Code::KubeletSlow, message)
                .hint("see how busy the node is, and what the kubelet's log says"),
        ),
    }
}

/// Says why nobody could be connected to. An error of the system's is somewhere among the causes.
fn unreachable(socket: &Path, error: &(dyn Error + 'static)) -> KubeletError {
    let mut is_forbidden = false;
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        let system = cause.downcast_ref::<io::Error>();
        is_forbidden |= system.is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        next = cause.source();
    }
    let (reason, hint) = if is_forbidden {
        (
            Silence::NoPermission,
            "the socket is root's: run as root, or as a user that may open it",
        )
    } else {
        (
            Silence::Absent,
            "is a kubelet running, and is its folder `pod-resources` mounted, not the socket alone?",
        )
    };
    let message = format!("could not connect to the kubelet at `{}`", socket.display());
    let diagnostic = Diagnostic::error(Code::KubeletSocket, message);
    KubeletError {
        reason,
        diagnostic: Box::new(diagnostic.caused_by(error).hint(hint)),
    }
}

fn refused(socket: &Path, status: &Status) -> KubeletError {
    let message = format!(
        "the kubelet at `{}` did not tell who has which device",
        socket.display()
    );
    let diagnostic = Diagnostic::error(Code::KubeletAnswer, message);
    // The status of a limit that our side has is "out of range".
    let reason = if status.code() == tonic::Code::OutOfRange {
        Silence::TooLarge
    } else {
        Silence::Refused
    };
    let words = format!("{:?}: {}", status.code(), status.message());
    KubeletError {
        reason,
        diagnostic: Box::new(
            diagnostic
                .because(words)
                .hint("see what the kubelet's log says, and whether it is a kubelet that listens there"),
        ),
    }
}

impl Silence {
    /// Returns it as a label of metrics has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::NoPermission => "no_permission",
            Self::Slow => "slow",
            Self::TooLarge => "too_large",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    #[test]
    fn a_socket_that_may_not_be_opened_is_not_called_absent() {
        for (kind, reason) in [
            (io::ErrorKind::PermissionDenied, Silence::NoPermission),
            (io::ErrorKind::NotFound, Silence::Absent),
            (io::ErrorKind::ConnectionRefused, Silence::Absent),
        ] {
            let told = unreachable(Path::new("kubelet.sock"), &Outer(kind.into()));
            assert_eq!(told.reason, reason, "{kind}");
            assert_eq!(told.diagnostic.causes.len(), 2, "{told:?}");
        }
    }
}

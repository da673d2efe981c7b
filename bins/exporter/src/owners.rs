//! Who has which device: a thread that asks the kubelet, so that one that hangs keeps nobody waiting.
//!
//! Only what is asked after a scrape began is told to it. What comes too late is thrown away: a pod would be charged with
//! the work of the one before.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use blueproof_cluster::pod_resources::{
    Holders, Kubelet, KubeletError, Resources, Sharing, Silence, Told, USUAL_SOCKET, attribute,
};
use blueproof_core::{
    diagnostic::{Code, Diagnostic},
    gpu::{DeviceUuid, GpuInventory},
};
use blueproof_gpu::pages;

use crate::cli::Cli;

/// How long one question may go on after nobody waits for it any more; as long as dcgm-exporter's.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

type Answer = Result<Told, KubeletError>;

/// Knows whom to ask who has which device.
pub(crate) struct OwnerSource {
    asks: mpsc::Sender<()>,
    shared: Arc<Shared>,
    resources: Resources,
    failures: AtomicU64,
}

#[derive(Default)]
struct Shared {
    /// The last answer, and when it was asked for.
    last: Mutex<Option<(Instant, Arc<Answer>)>>,
    answered: Condvar,
}

/// Who has which device, or why that is not known.
pub(crate) struct Owned {
    pub(crate) owners: BTreeMap<DeviceUuid, pages::Owners>,
    pub(crate) attribution: pages::Attribution,
    /// Why it is not known.
    pub(crate) silent: Option<Diagnostic>,
}

impl OwnerSource {
    /// Begins to ask the kubelet that is named, or the usual one if it is here; `None` where there is none. A recording is
    /// of another time, and maybe of another node.
    pub(crate) fn start(cli: &Cli) -> Option<Self> {
        let usual = Path::new(USUAL_SOCKET);
        let usual = usual.exists().then_some(usual).filter(|_| cli.recorded.is_none());
        let socket = cli.pod_resources.as_deref().or(usual)?;
        let (asks, asked) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let kubelet = Kubelet::at(socket, ANSWERS_WITHIN);
        let worker = Arc::clone(&shared);
        let started = thread::Builder::new()
            .name("pod-resources".into())
            .spawn(move || worker.work(kubelet, &asked));
        if let Err(error) = started {
            eprintln!("nobody is asked who has which device: {error}");
            return None;
        }
        Some(Self {
            asks,
            shared,
            resources: Resources::with(cli.gpu_resources.clone()),
            failures: AtomicU64::new(0),
        })
    }

    /// Begins to ask. Returns when.
    pub(crate) fn ask(&self) -> Instant {
        let now = Instant::now();
        // A thread that has ended does not answer, which is told.
        let _ = self.asks.send(());
        now
    }

    /// Waits for what was asked for, and says who has which of these devices.
    pub(crate) fn owned(
        &self,
        asked_at: Instant,
        within: Duration,
        inventory: Option<&GpuInventory>,
    ) -> Owned {
        let answer = self.shared.wait(asked_at, within);
        let answer = answer.as_deref().map_or_else(|| Err(late(within)), Clone::clone);
        let failed = u64::from(answer.is_err());
        let failures = self.failures.fetch_add(failed, Ordering::Relaxed) + failed;
        let told = answer.map(|told| match inventory {
            Some(inventory) => self.told(&told, inventory),
            // Of devices that cannot be read nothing can be found.
            None => (BTreeMap::new(), None),
        });
        let (owners, told, silent) = match told {
            Ok((owners, told)) => (owners, told, None),
            Err(error) => (BTreeMap::new(), None, Some(error)),
        };
        Owned {
            owners,
            attribution: pages::Attribution {
                silence: silent.as_ref().map(|error| error.reason.as_str()),
                failures,
                told,
            },
            silent: silent.map(|error| *error.diagnostic),
        }
    }

    fn told(
        &self,
        told: &Told,
        inventory: &GpuInventory,
    ) -> (BTreeMap<DeviceUuid, pages::Owners>, Option<pages::Told>) {
        let attribution = attribute(told, inventory, &self.resources);
        let owners = attribution.devices.into_iter();
        let ids = attribution.ids.into_iter();
        let shown = pages::Told {
            pods: told.pods,
            devices: ids
                .map(|((resource, state), count)| (resource, state.as_str(), count))
                .collect(),
            dynamic: attribution.dynamic,
            advertised: attribution.advertised,
        };
        (
            owners.map(|(uuid, holders)| (uuid, shown_of(holders))).collect(),
            Some(shown),
        )
    }
}

fn shown_of(holders: Holders) -> pages::Owners {
    let pods = holders.pods.into_iter().map(|holder| pages::Owner {
        namespace: holder.namespace,
        pod: holder.pod,
        container: holder.container,
        shares: holder.shares,
    });
    pages::Owners {
        pods: pods.collect(),
        is_shared: match holders.sharing {
            Sharing::Shared => true,
            Sharing::Exclusive => false,
        },
        disputing: holders.disputing,
    }
}

fn late(within: Duration) -> KubeletError {
    let message = format!("the kubelet did not tell within {within:?} who has which device");
    let diagnostic = Diagnostic::error(Code::KubeletSlow, message)
        .hint("give it longer with `--wait`, if it is only slow");
    KubeletError {
        reason: Silence::Slow,
        diagnostic: Box::new(diagnostic),
    }
}

impl Shared {
    fn work(&self, mut kubelet: Kubelet, asked: &mpsc::Receiver<()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                eprintln!("nobody is asked who has which device: {error}");
                return;
            }
        };
        while asked.recv().is_ok() {
            // Whoever asked until now is answered by one question.
            while asked.try_recv().is_ok() {}
            let begun = Instant::now();
            let answer = Arc::new(runtime.block_on(kubelet.ask()));
            *self.last.lock().expect("nobody panics while they hold it") = Some((begun, answer));
            self.answered.notify_all();
        }
    }

    /// Returns what was asked for at this time or later.
    fn wait(&self, asked_at: Instant, within: Duration) -> Option<Arc<Answer>> {
        let is_new = |begun: &Instant| *begun >= asked_at;
        let left = within.saturating_sub(asked_at.elapsed());
        let last = self.last.lock().expect("nobody panics while they hold it");
        let waited = self.answered.wait_timeout_while(last, left, |last| {
            !last.as_ref().is_some_and(|(begun, _)| is_new(begun))
        });
        let (last, _) = waited.expect("nobody panics while they hold it");
        let (_, answer) = last.as_ref().filter(|(begun, _)| is_new(begun))?;
        Some(Arc::clone(answer))
    }
}

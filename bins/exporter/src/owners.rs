//! Who has which device: a thread that asks the kubelet again and again, so that one that hangs keeps nobody waiting.
//!
//! Kubelets cannot be watched: they are asked every few seconds, and with each scrape. A scrape is told what was asked for
//! with it, or, where the kubelet is slow, what was told last. That has an age and a bound: past it nobody has anything, for
//! a pod would be charged with the work of the one before.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use blueproof_cluster::pod_resources::{
    Holders, Kubelet, KubeletError, KubeletReport, Resources, Sharing, Silence, USUAL_SOCKET, attribute,
};
use blueproof_core::gpu::{DeviceUuid, GpuInventory};
use blueproof_diagnostic::{Code, Diagnostic};
use blueproof_gpu::pages;
use jiff::SignedDuration;

use crate::{cli::Cli, tell};

/// How long one question may go on after nobody waits for it any more; as long as dcgm-exporter's.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// How often it is asked where nobody scrapes.
const ASKED_EVERY: Duration = Duration::from_secs(5);

/// How long an answer holds: one question more than it takes to get the next.
const HOLDS_FOR: Duration = Duration::from_secs(10);

/// How long a scrape waits for an answer where there is one of before. A kubelet with a hundred pods answers in
/// milliseconds.
const SLOW_AFTER: Duration = Duration::from_secs(1);

type Answer = Result<KubeletReport, KubeletError>;

/// Knows whom to ask who has which device.
pub(crate) struct OwnerSource {
    asks: mpsc::Sender<()>,
    shared: Arc<Shared>,
    resources: Resources,
    failures: AtomicU64,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Default)]
struct State {
    /// The last answer, and when it was asked for.
    last: Option<(Instant, Arc<Answer>)>,
    /// Since when the question goes on that is not answered yet.
    asks_since: Option<Instant>,
}

/// Who has which device, or why that is not known.
pub(crate) struct Owned {
    pub(crate) owners: BTreeMap<DeviceUuid, pages::Owners>,
    pub(crate) attribution: pages::Attribution,
    /// Why it is not known.
    pub(crate) silent: Option<Diagnostic>,
}

impl OwnerSource {
    /// Begins to ask the kubelet that is named, or the usual one if it is here; `None` where there is none.
    pub(crate) fn start(cli: &Cli) -> Option<Self> {
        let socket = socket(cli, Path::new(USUAL_SOCKET))?;
        let (asks, asked) = mpsc::channel();
        let shared = Arc::new(Shared::default());
        let mut kubelet = Kubelet::at(socket, ANSWERS_WITHIN);
        if cli.drop_in.kubernetes_enable_pod_uid {
            kubelet = kubelet.with_uids_of(&cli.kubelet_checkpoint);
        }
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
            resources: Resources::with(
                [
                    cli.gpu_resources.clone(),
                    cli.drop_in.nvidia_resource_names.clone(),
                ]
                .concat(),
            ),
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
        let age = answer.as_ref().map(|(begun, _)| begun.elapsed());
        let answer = answer.map_or_else(|| Err(late()), |(_, answer)| (*answer).clone());
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
                age: age.and_then(|age| SignedDuration::try_from(age).ok()),
                told,
            },
            silent: silent.map(|error| *error.diagnostic),
        }
    }

    fn told(
        &self,
        told: &KubeletReport,
        inventory: &GpuInventory,
    ) -> (
        BTreeMap<DeviceUuid, pages::Owners>,
        Option<pages::AllocationReport>,
    ) {
        let attribution = attribute(told, inventory, &self.resources);
        let owners = attribution.devices.into_iter();
        let ids = attribution.ids.into_iter();
        let shown = pages::AllocationReport {
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

/// Returns the socket of the kubelet that is asked. Where somebody wants to know which pod has what (`--kubernetes`), it is
/// asked where it usually is also if it is not there: a mount that was forgotten is told of, and not passed over.
fn socket<'a>(cli: &'a Cli, usual: &'a Path) -> Option<&'a Path> {
    let drop_in = &cli.drop_in;
    let of_dcgm = drop_in.pod_resources_kubelet_socket.as_deref();
    // A recording is of another time, and maybe of another node.
    let usual = Some(usual).filter(|_| cli.recorded.is_none());
    let usual = usual.filter(|usual| drop_in.kubernetes == Some(true) || usual.exists());
    let asked = of_dcgm.or(usual).filter(|_| drop_in.asks_kubelet());
    cli.pod_resources.as_deref().or(asked)
}

fn shown_of(holders: Holders) -> pages::Owners {
    let pods = holders.pods.into_iter().map(|holder| pages::Owner {
        namespace: holder.namespace,
        pod: holder.pod,
        pod_uid: holder.uid,
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

/// Says once that pods have no UIDs any more, and once that they have them again.
fn say_of_uids(missing: Option<&str>) {
    let Some(why) = missing else {
        eprintln!("pods have their UIDs again");
        return;
    };
    tell(
        &Diagnostic::warning(Code::KubeletCheckpoint, "pods are told without their UIDs")
            .because(why)
            .hint("mount the kubelet's folder `device-plugins`, or name its checkpoint with `--kubelet-checkpoint`"),
    );
}

fn late() -> KubeletError {
    let message = format!("the kubelet has not told for {HOLDS_FOR:?} who has which device");
    let diagnostic = Diagnostic::error(Code::KubeletSlow, message)
        .hint("see the kubelet's log, and whether the node has processors left for it");
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
        let mut no_uids = None;
        while asked.recv_timeout(ASKED_EVERY) != Err(mpsc::RecvTimeoutError::Disconnected) {
            // Whoever asked until now is answered by one question.
            while asked.try_recv().is_ok() {}
            let begun = Instant::now();
            self.lock().asks_since = Some(begun);
            let answer = Arc::new(runtime.block_on(kubelet.ask()));
            if let Ok(told) = &*answer
                && told.no_uids != no_uids
            {
                no_uids.clone_from(&told.no_uids);
                say_of_uids(no_uids.as_deref());
            }
            *self.lock() = State {
                last: Some((begun, answer)),
                asks_since: None,
            };
            self.answered.notify_all();
        }
    }

    /// Returns what was asked for at this time or later, and when; where that takes too long, what was told last, if that
    /// still holds.
    fn wait(&self, asked_at: Instant, within: Duration) -> Option<(Instant, Arc<Answer>)> {
        let state = self.lock();
        let left = within.saturating_sub(asked_at.elapsed());
        let slow = state.asks_since.map_or(Duration::ZERO, |since| since.elapsed());
        let left = match state.last {
            Some(_) => left.min(SLOW_AFTER.saturating_sub(slow)),
            None => left,
        };
        let is_old = |state: &mut State| state.last.as_ref().is_none_or(|(begun, _)| *begun < asked_at);
        let waited = self.answered.wait_timeout_while(state, left, is_old);
        let (state, _) = waited.expect("nobody panics while they hold it");
        let last = state.last.as_ref();
        last.filter(|(begun, _)| begun.elapsed() <= HOLDS_FOR).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while they hold it")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    /// Returns what a scrape is told now where the last answer was asked for so long ago, and another question goes on.
    fn told(asked_before: Duration) -> bool {
        let now = Instant::now();
        let shared = Shared::default();
        let begun = now
            .checked_sub(asked_before)
            .expect("the machine runs for longer");
        *shared.lock() = State {
            last: Some((begun, Arc::new(Ok(KubeletReport::default())))),
            asks_since: now.checked_sub(SLOW_AFTER),
        };
        shared.wait(now, Duration::from_secs(60)).is_some()
    }

    #[test]
    fn a_kubelet_that_is_asked_for_is_asked_where_it_is_not_found_too() {
        let here = tempfile::tempdir().expect("a folder");
        let (here, nowhere) = (here.path(), Path::new("/nowhere.sock"));
        for (arguments, usual, expected) in [
            (&[][..], here, Some(here)),
            (&[], nowhere, None),
            (&["--kubernetes"], nowhere, Some(nowhere)),
            (&["--kubernetes=false"], here, None),
            (&["--dcgm-exporter"], here, None),
            (&["--kubernetes", "--recorded", "file"], nowhere, None),
            (
                &["--kubernetes", "--pod-resources-kubelet-socket", "/other.sock"],
                nowhere,
                Some(Path::new("/other.sock")),
            ),
            (
                &["--pod-resources", "/own.sock"],
                nowhere,
                Some(Path::new("/own.sock")),
            ),
        ] {
            let arguments = ["blueproof-exporter"].iter().chain(arguments);
            let cli = Cli::try_parse_from(arguments).expect("options that it has");
            assert_eq!(socket(&cli, usual), expected);
        }
    }

    #[test]
    fn while_a_kubelet_is_slow_what_it_told_holds_for_a_bounded_time() {
        assert!(told(Duration::from_millis(60)));
        assert!(told(HOLDS_FOR / 2));
        assert!(!told(HOLDS_FOR + Duration::from_millis(1)));
    }
}

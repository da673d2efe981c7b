//! How many more runners of each scale set can be placed now.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use blueproof_core::domain::{QueueName, Resources};
use blueproof_runners::{ControllerHandle, FleetInput};
use tokio::sync::watch;

use super::{RunnerSet, Shared};

/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What the runners of each scale set take, by its name.
#[derive(Debug, Default)]
pub(super) struct Rooms(Mutex<BTreeMap<String, (QueueName, Resources, u32)>>);

impl Rooms {
    /// Notes how many runners a scale set has, and returns what all runners take of a queue.
    fn note(&self, name: &str, queue: &QueueName, each: Resources, runners: u32) -> Resources {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), (queue.clone(), each, runners));
        let of_queue = known.values().filter(|(other, ..)| other == queue);
        let taken = of_queue.filter_map(|(_, each, runners)| each.checked_mul(*runners));
        taken.fold(Resources::default(), Resources::saturating_add)
    }
}

/// Tells a scale set's controller what the queue leaves, until `stop` is true.
pub(super) async fn tell(
    set: Arc<RunnerSet>,
    shared: Arc<Shared>,
    handle: ControllerHandle,
    mut stop: watch::Receiver<bool>,
) {
    let (queue, each) = (set.settings.queue(), set.settings.resources());
    let mut before = None;
    loop {
        let runners = u32::try_from(handle.runners.borrow().len()).unwrap_or(u32::MAX);
        let beside = shared.rooms.note(set.name(), &queue, each, runners);
        let of = queue.clone();
        let asked = shared
            .service
            .ask(move |scheduler| scheduler.room_for(&of, each, beside));
        let room = asked.await.flatten();
        if room.is_none() && before != Some(room) {
            tracing::warn!(
                scale_set = set.name(),
                queue = queue.as_str(),
                "no runner is started: the queue is not there or admits nobody"
            );
        }
        before = Some(room);
        if handle.inputs.send(FleetInput::Room(room)).await.is_err() {
            return;
        }
        tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

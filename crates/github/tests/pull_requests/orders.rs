//! Whatever comes in whichever order, late, twice or never: nothing starts on a head that nobody entitled approved.

use std::collections::BTreeSet;

use blueproof_core::{domain::Head, ports::StoreClient as _};
use blueproof_github::{
    api::{ApiError, Permission},
    intake::Pushes,
    payload::CommitSha,
    testing::FakeDelivery,
};
use proptest::{collection::vec, prelude::*};
use tokio::runtime;

use crate::world::{REPOSITORY, World, check_of, parse};

/// Something that happens.
#[derive(Debug, Clone)]
enum Happening {
    Push,
    /// Back to the first head.
    PushBack,
    ChangeBase(bool),
    Close,
    /// Ada, who may approve, writes a comment.
    Says(Named),
    /// Mallory, who may not, does all that she can.
    MalloryTries,
    /// Ada presses the button of the newest run's check.
    Presses,
    Labels,
    CleoMay(bool),
    Minutes(i64),
    Deliver(Delivering),
    Sweep,
    Restart,
    /// One of the next calls to GitHub fails.
    Fail(u64),
}

/// Which head a comment names.
#[derive(Debug, Clone, Copy)]
enum Named {
    None,
    Current,
    First,
}

/// How what GitHub has to tell arrives.
#[derive(Debug, Clone, Copy)]
enum Delivering {
    InOrder,
    Backwards,
    Twice,
    Lost,
}

fn any_happening() -> impl Strategy<Value = Happening> {
    let named = prop_oneof![Just(Named::None), Just(Named::Current), Just(Named::First)];
    let delivering = prop_oneof![
        4 => Just(Delivering::InOrder),
        1 => Just(Delivering::Backwards),
        1 => Just(Delivering::Twice),
        1 => Just(Delivering::Lost),
    ];
    prop_oneof![
        3 => Just(Happening::Push),
        1 => Just(Happening::PushBack),
        1 => any::<bool>().prop_map(Happening::ChangeBase),
        1 => Just(Happening::Close),
        4 => named.prop_map(Happening::Says),
        2 => Just(Happening::MalloryTries),
        3 => Just(Happening::Presses),
        2 => Just(Happening::Labels),
        1 => any::<bool>().prop_map(Happening::CleoMay),
        3 => (0_i64..5).prop_map(Happening::Minutes),
        8 => delivering.prop_map(Happening::Deliver),
        1 => Just(Happening::Sweep),
        1 => Just(Happening::Restart),
        1 => (0_u64..12).prop_map(Happening::Fail),
    ]
}

/// A world, and what was approved in it, as an onlooker knows it who sees everything at once.
struct Onlooker {
    world: World,
    number: u64,
    first: CommitSha,
    /// The heads that somebody entitled has named, or has looked at when they spoke.
    approved: BTreeSet<CommitSha>,
    told: Vec<FakeDelivery>,
}

impl Onlooker {
    async fn new() -> Self {
        let mut world = World::new().await;
        let number = world.opened().await;
        Self {
            first: world.head(number),
            world,
            number,
            approved: BTreeSet::new(),
            told: Vec::new(),
        }
    }

    async fn see(&mut self, happening: &Happening) {
        let (ada, cleo, mallory) = (
            self.world.ada.clone(),
            self.world.cleo.clone(),
            self.world.mallory.clone(),
        );
        let github = self.world.github.clone();
        match happening {
            Happening::Push => {
                github.push(REPOSITORY, self.number, &mallory);
            }
            Happening::PushBack => github.push_back(REPOSITORY, self.number, &mallory, &self.first),
            Happening::ChangeBase(back) => {
                let base = if *back { "main" } else { "release" };
                github.change_base(REPOSITORY, self.number, &mallory, base);
            }
            Happening::Close => github.close(REPOSITORY, self.number, &mallory),
            Happening::Says(named) => self.ada_says(*named),
            Happening::MalloryTries => self.mallory_tries().await,
            Happening::Presses => {
                if let Some((run, head)) = self.newest().await {
                    github.press(
                        REPOSITORY,
                        &check_of(run, head.as_str(), github.app()),
                        &ada,
                        Some("approve"),
                    );
                    self.approved.insert(head);
                }
            }
            Happening::Labels => {
                github.label(REPOSITORY, self.number, &cleo, "ok-to-test-gpu-runner");
                self.approved.insert(self.world.head(self.number));
            }
            Happening::CleoMay(may) => {
                let permission = if *may { Permission::Write } else { Permission::Read };
                github.set_permission(REPOSITORY, &cleo, permission);
            }
            Happening::Minutes(minutes) => self.world.pass_minutes(*minutes),
            Happening::Deliver(how) => self.deliver(*how).await,
            Happening::Sweep => {
                // One that fails half way is what an outage is.
                let _ = self.world.intake.sweep(REPOSITORY).await;
            }
            Happening::Restart => self.world.restart_intake(),
            Happening::Fail(after) => github.fail_call(*after, ApiError::later("reach GitHub")),
        }
        self.told.extend(github.take_deliveries());
        self.world.decide().await;
    }

    fn ada_says(&mut self, named: Named) {
        let current = self.world.head(self.number);
        let (words, head) = match named {
            Named::None => ("/gpu-test".to_owned(), current),
            Named::Current => (format!("/gpu-test {current}"), current),
            Named::First => (format!("/gpu-test {}", self.first), self.first.clone()),
        };
        let ada = self.world.ada.clone();
        self.world.github.comment(REPOSITORY, self.number, &ada, &words);
        self.approved.insert(head);
    }

    async fn mallory_tries(&mut self) {
        let (github, mallory) = (self.world.github.clone(), self.world.mallory.clone());
        let head = self.world.head(self.number);
        let comment = github.comment(REPOSITORY, self.number, &mallory, &format!("/gpu-test {head}"));
        github.edit_comment(REPOSITORY, comment, &mallory, "/gpu-test");
        github.label(REPOSITORY, self.number, &mallory, "ok-to-test-gpu-runner");
        if let Some((run, head)) = self.newest().await {
            let check = check_of(run, head.as_str(), github.app());
            github.press(REPOSITORY, &check, &mallory, Some("approve"));
            github.press(REPOSITORY, &check, &mallory, None);
        }
    }

    async fn newest(&self) -> Option<(u64, CommitSha)> {
        let newest = self.world.store.runs(1).await.expect("a read").pop()?;
        let head = newest.subject.head.to_string().parse().expect("a commit");
        Some((newest.id.0, head))
    }

    async fn deliver(&mut self, how: Delivering) {
        let mut deliveries = std::mem::take(&mut self.told);
        match how {
            Delivering::InOrder => {}
            Delivering::Backwards => deliveries.reverse(),
            Delivering::Twice => deliveries.extend(deliveries.clone()),
            Delivering::Lost => deliveries.clear(),
        }
        let payloads: Vec<_> = deliveries.iter().map(parse).collect();
        for (place, payload) in payloads.iter().enumerate() {
            let later = Pushes::among(&payloads[place + 1..]);
            // One that failed is asked for again by whoever keeps them; here it is lost.
            let _ = self.world.handle(payload, &later).await;
            self.world.decide().await;
        }
    }

    /// Returns the heads that anything was started on, or given quota for.
    async fn started(&self) -> BTreeSet<CommitSha> {
        let views = self.world.store.runs(1000).await.expect("a read");
        let tried = views.into_iter().filter(|view| !view.attempts.is_empty());
        let heads = tried.map(|view| match view.subject.head {
            Head::Commit(digits) => digits.parse().expect("a commit"),
            Head::Snapshot(_) => panic!("GitHub's heads are commits"),
        });
        heads.collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn nothing_starts_on_a_head_that_nobody_approved(happenings in vec(any_happening(), 1..40)) {
        let runtime = runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let mut onlooker = Onlooker::new().await;
            for happening in &happenings {
                onlooker.see(happening).await;
                let started = onlooker.started().await;
                prop_assert!(started.is_subset(&onlooker.approved), "{started:?} after {happening:?}");
            }
            Ok(())
        })?;
    }
}

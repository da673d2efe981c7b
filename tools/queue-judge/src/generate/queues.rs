//! Random flavors, cohorts and queues.

use std::collections::BTreeMap;

use super::Dice;
use crate::format::{
    Bwc, Cohort, Flavor, Fungibility, Group, Operator, Ordered, Queue, Quota, Setup, Taint, Toleration,
};

/// What there is to have a quota of: groups of resources, each in some flavors.
pub(super) struct Catalogue {
    pub(super) groups: Vec<Offer>,
    /// Whether flavors have labels and taints.
    pub(super) is_labelled: bool,
}

/// Resources that come together, and their flavors.
#[derive(Clone)]
pub(super) struct Offer {
    pub(super) resources: Vec<&'static str>,
    flavors: Vec<&'static str>,
}

impl Catalogue {
    pub(super) fn new(dice: &mut Dice) -> Self {
        const FLAVORS: [[&str; 3]; 2] = [["od", "spot", "old"], ["ma", "mb", "mc"]];
        let of_group = |dice: &mut Dice, resources: &[&'static str], names: &[&'static str]| {
            let n_flavors = *dice.one_of(&[1, 1, 1, 2, 2, 3]);
            Offer {
                resources: resources.to_vec(),
                flavors: names[..n_flavors].to_vec(),
            }
        };
        const RESOURCES: [&[&str]; 5] = [&["cpu"], &["cpu"], &["gpu"], &["cpu", "mem"], &["cpu", "gpu"]];
        let first = *dice.one_of(&RESOURCES);
        let mut groups = vec![of_group(dice, first, &FLAVORS[0])];
        if dice.chance(25) {
            groups.push(of_group(dice, &["net"], &FLAVORS[1]));
        }
        Self {
            groups,
            is_labelled: dice.chance(20),
        }
    }

    /// Returns queues in cohorts, or alone.
    pub(super) fn setup(&self, dice: &mut Dice, fair: bool) -> Setup {
        let names = cohort_names(dice);
        let mut cohorts = BTreeMap::new();
        for (number, name) in names.iter().enumerate() {
            cohorts.insert(name.clone(), self.cohort(dice, fair, &names[..number]));
        }
        // One that is only named is there, too.
        if !names.is_empty() && dice.chance(15) {
            cohorts.remove(dice.one_of(&names));
        }
        let n_queues = *dice.one_of(&[1, 2, 2, 3, 3, 4, 5, 7]);
        let queues = (1..=n_queues).map(|number| (format!("q{number}"), self.queue(dice, fair, &names)));
        let queues = queues.collect();
        Setup {
            flavors: self.flavors(dice),
            cohorts,
            queues,
        }
    }

    fn flavors(&self, dice: &mut Dice) -> BTreeMap<String, Flavor> {
        if !self.is_labelled {
            return BTreeMap::new();
        }
        let names = self.groups.iter().flat_map(|offer| &offer.flavors);
        names.map(|name| ((*name).to_owned(), flavor(dice))).collect()
    }

    fn cohort(&self, dice: &mut Dice, fair: bool, above: &[String]) -> Cohort {
        let has_parent = !above.is_empty() && dice.chance(90);
        let parent = has_parent.then(|| dice.one_of(above).clone());
        let groups = if dice.chance(40) {
            self.groups(dice, parent.is_some())
        } else {
            Vec::new()
        };
        Cohort {
            weight: weight(dice, fair),
            groups,
            parent,
        }
    }

    pub(super) fn queue(&self, dice: &mut Dice, fair: bool, cohorts: &[String]) -> Queue {
        let is_in_one = !cohorts.is_empty() && dice.chance(95);
        let cohort = is_in_one.then(|| dice.one_of(cohorts).clone());
        let reclaim = dice.word(75, &["LowerPriority", "Any", "Any"]);
        let borrows = reclaim.is_some() && dice.chance(if fair { 10 } else { 40 });
        Queue {
            weight: weight(dice, fair),
            strategy: dice.word(30, &["StrictFIFO"]),
            within: dice.word(60, &["LowerPriority", "LowerOrNewerEqualPriority"]),
            bwc: borrows.then(|| Bwc {
                policy: "LowerPriority".into(),
                max: dice.chance(40).then(|| *dice.one_of(&[-1, 0, 1])),
            }),
            reclaim,
            fungibility: dice.chance(50).then(|| fungibility(dice)),
            groups: self.groups(dice, cohort.is_some()),
            cohort,
            users: BTreeMap::new(),
        }
    }

    fn groups(&self, dice: &mut Dice, may_borrow: bool) -> Vec<Group> {
        let mut offers = self.groups.clone();
        if offers.len() > 1 && dice.chance(15) {
            offers.remove(dice.between(0, 1));
        }
        let groups = offers.iter().map(|offer| {
            let flavors = dice.some_of(&offer.flavors).into_iter().map(|flavor| {
                let quotas = offer.resources.iter();
                let quotas =
                    quotas.map(|resource| ((*resource).to_owned(), quota(dice, resource, may_borrow)));
                (flavor.to_owned(), quotas.collect())
            });
            Ordered(flavors.collect())
        });
        groups.collect()
    }
}

fn cohort_names(dice: &mut Dice) -> Vec<String> {
    let n_cohorts = *dice.one_of(&[0, 1, 1, 2, 3, 4]);
    (0..n_cohorts)
        .map(|number| {
            if number == 0 {
                "root".into()
            } else {
                format!("c{number}")
            }
        })
        .collect()
}

fn flavor(dice: &mut Dice) -> Flavor {
    let mut labels = BTreeMap::new();
    if let Some(zone) = dice.word(60, &["a", "b"]) {
        labels.insert("zone".into(), zone);
    }
    if let Some(tier) = dice.word(30, &["fast", "slow"]) {
        labels.insert("tier".into(), tier);
    }
    let taint = |dice: &mut Dice| Taint {
        key: (*dice.one_of(&["spot", "old"])).into(),
        value: dice.word(50, &["yes"]).unwrap_or_default(),
        effect: (*dice.one_of(&["NoSchedule", "NoExecute", "PreferNoSchedule"])).into(),
    };
    Flavor {
        labels,
        taints: if dice.chance(40) {
            vec![taint(dice)]
        } else {
            Vec::new()
        },
        tolerations: if dice.chance(15) {
            vec![toleration(dice)]
        } else {
            Vec::new()
        },
    }
}

pub(super) fn toleration(dice: &mut Dice) -> Toleration {
    let effect = dice.word(40, &["NoSchedule", "NoExecute"]).unwrap_or_default();
    let key = dice.word(85, &["spot", "old"]).unwrap_or_default();
    if key.is_empty() || dice.chance(50) {
        return Toleration {
            key,
            effect,
            operator: Operator::Exists,
            ..Toleration::default()
        };
    }
    Toleration {
        key,
        effect,
        operator: Operator::Equal,
        value: dice.word(50, &["yes"]).unwrap_or_default(),
    }
}

fn weight(dice: &mut Dice, fair: bool) -> Option<f64> {
    (fair && dice.chance(45)).then(|| *dice.one_of(&[0.0, 0.5, 1.0, 2.0, 3.0, 3.0]))
}

fn fungibility(dice: &mut Dice) -> Fungibility {
    const BOTH: [&str; 2] = ["MayStopSearch", "TryNextFlavor"];
    let preference = dice.word(35, &["BorrowingOverPreemption", "PreemptionOverBorrowing"]);
    if preference.is_some() {
        // The webhook wants every flavor to be tried where they are compared.
        return Fungibility {
            when_can_borrow: Some("TryNextFlavor".into()),
            when_can_preempt: dice.word(50, &["TryNextFlavor"]),
            preference,
        };
    }
    Fungibility {
        when_can_borrow: dice.word(60, &BOTH),
        when_can_preempt: dice.word(60, &BOTH),
        preference,
    }
}

fn quota(dice: &mut Dice, resource: &str, may_borrow: bool) -> Quota {
    let whole = *dice.one_of(&[0, 0, 2, 3, 4, 4, 5, 6, 8, 11]);
    let nominal = amount(dice, resource, whole);
    if !may_borrow || dice.chance(65) {
        return Quota::Nominal(nominal);
    }
    let borrowing = dice.chance(50).then(|| f64::from(dice.0.u32(..=5)));
    let lending = dice.chance(60).then(|| up_to(dice, nominal));
    Quota::Limits(vec![Some(nominal), borrowing, lending])
}

/// Returns an amount of a resource: halves of cores, too.
pub(super) fn amount(dice: &mut Dice, resource: &str, whole: u32) -> f64 {
    let half = if resource == "cpu" && dice.chance(8) {
        0.5
    } else {
        0.0
    };
    f64::from(whole) + half
}

/// Returns a whole amount of at most so much.
pub(super) fn up_to(dice: &mut Dice, most: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "amounts are small and not below zero"
    )]
    let most = most as u32;
    f64::from(dice.0.u32(..=most))
}

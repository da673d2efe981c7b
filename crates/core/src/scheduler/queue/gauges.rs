//! How the queues stand, for a page of metrics: who waits in them, who has quota, and how much.
//!
//! Waiting counts as in Kueue: where a queue admits nobody, nobody there is about to be tried.

use std::collections::BTreeMap;

use blueproof_queue::{
    AdmissionEntry, AdmissionStatus, CohortFigures, Inactive, Quantity, StopPolicy, Workload, WorkloadStatus,
    objects::{ClusterQueue, LocalQueue, Quota},
};
use jiff::Timestamp;

use super::{NAMESPACE, Queue};
use crate::{
    domain::CPU,
    metrics::{self as m, Page},
};

/// What the workloads of one queue come to.
#[derive(Default)]
struct Sums<'a> {
    active: u32,
    inadmissible: u32,
    reserving: u32,
    admitted: u32,
    /// What is asked for by those who wait, by resource.
    pending: BTreeMap<&'a str, Quantity>,
    /// What is held, by flavor and resource; and what of it by those who were told of it.
    reserved: BTreeMap<(&'a str, &'a str), Quantity>,
    used: BTreeMap<(&'a str, &'a str), Quantity>,
}

impl Queue {
    /// Sets the gauges of all queues and cohorts.
    pub(in super::super) fn tell(&self, now: Timestamp, page: &mut Page) {
        let (mut by_cluster_queue, mut by_local_queue) = (BTreeMap::new(), BTreeMap::new());
        let entries = self.admission.entries();
        for entry in entries.filter(|entry| entry.status() != AdmissionStatus::Inactive) {
            let workload = entry.workload();
            let sums: &mut Sums<'_> = by_cluster_queue
                .entry(workload.cluster_queue.as_str())
                .or_default();
            self.add(entry, sums);
            self.add(
                entry,
                by_local_queue.entry(workload.local_queue.as_str()).or_default(),
            );
        }
        for name in self.queues().names() {
            self.tell_cluster_queue(name, &by_cluster_queue.remove(name).unwrap_or_default(), page);
            self.tell_usage(name, now, page);
        }
        for (name, configured) in &self.objects().local_queues {
            let sums = by_local_queue.remove(name.as_str()).unwrap_or_default();
            self.tell_local_queue(name, configured, &sums, page);
        }
        let fair = self.objects().fair_sharing.is_some();
        for cohort in self.queues().cohorts() {
            tell_cohort(&cohort, page);
            if let Some(share) = self.queues().cohort_share(cohort.name).filter(|_| fair) {
                page.set(&m::COHORT_WEIGHTED_SHARE, &[cohort.name], share);
            }
        }
    }

    fn add<'a>(&'a self, entry: &'a AdmissionEntry, sums: &mut Sums<'a>) {
        let (id, workload) = (entry.workload().id, entry.workload());
        let held = || self.queues().held_by(id);
        match entry.status() {
            AdmissionStatus::Inactive => {}
            AdmissionStatus::Pending => {
                let tried = self.queues().standing(id) == Some(WorkloadStatus::Queued)
                    && self.queues().inactive(&workload.cluster_queue) == Ok(None);
                sums.active += u32::from(tried);
                sums.inadmissible += u32::from(!tried);
                add_pending(workload, sums);
            }
            AdmissionStatus::External => {
                sums.active += 1;
                add_pending(workload, sums);
            }
            AdmissionStatus::QuotaReserved => {
                sums.reserving += 1;
                for (flavor, resource, amount) in held() {
                    add(&mut sums.reserved, (flavor, resource), amount);
                }
            }
            AdmissionStatus::Admitted => {
                sums.reserving += 1;
                sums.admitted += 1;
                for (flavor, resource, amount) in held() {
                    add(&mut sums.reserved, (flavor, resource), amount);
                    add(&mut sums.used, (flavor, resource), amount);
                }
            }
        }
    }

    fn tell_cluster_queue(&self, name: &str, sums: &Sums<'_>, page: &mut Page) {
        page.set(&m::RESERVING_ACTIVE_WORKLOADS, &[name], sums.reserving.into());
        page.set(&m::ADMITTED_ACTIVE_WORKLOADS, &[name], sums.admitted.into());
        let is = match self.queues().inactive(name) {
            Ok(None) => "active",
            Ok(Some(Inactive::Removed)) => "terminating",
            Ok(Some(Inactive::Stopped(_) | Inactive::FlavorNotFound(_) | Inactive::CohortCycle(_)))
            | Err(_) => "pending",
        };
        for status in ["pending", "active", "terminating"] {
            page.set(
                &m::CLUSTER_QUEUE_STATUS,
                &[name, status],
                f64::from(u8::from(status == is)),
            );
        }
        let cohorts = self.queues().cohorts_of(name).unwrap_or_default();
        for cohort in &cohorts {
            page.add(
                &m::COHORT_SUBTREE_ADMITTED_ACTIVE_WORKLOADS,
                &[cohort],
                sums.admitted.into(),
            );
        }
        let cohort = cohorts.first().copied().unwrap_or_default();
        let Some(configured) = self.objects().cluster_queues.get(name) else {
            return tell_held([cohort, name], sums, page);
        };
        page.set(&m::PENDING_WORKLOADS, &[name, "active"], sums.active.into());
        page.set(
            &m::PENDING_WORKLOADS,
            &[name, "inadmissible"],
            sums.inadmissible.into(),
        );
        let root = cohorts.last().copied().unwrap_or_default();
        page.set(&m::CLUSTER_QUEUE_INFO, &[name, cohort, root], 1.0);
        self.tell_quota([cohort, name], configured, sums, page);
        if self.objects().fair_sharing.is_some() {
            let share = self.queues().weighted_share(name).unwrap_or_default();
            let share = if share.is_finite() { share } else { f64::NAN };
            page.set(&m::CLUSTER_QUEUE_WEIGHTED_SHARE, &[name, cohort], share);
        }
    }

    fn tell_quota(&self, [cohort, name]: [&str; 2], queue: &ClusterQueue, sums: &Sums<'_>, page: &mut Page) {
        for (flavor, resource, quota) in quotas(queue) {
            let mut set = |family, value| page.set(family, &[cohort, name, flavor, resource], value);
            let unlimited = Quantity::UNLIMITED;
            let in_units = |quantity| units(resource, quantity);
            set(&m::CLUSTER_QUEUE_NOMINAL_QUOTA, in_units(quota.nominal));
            set(
                &m::CLUSTER_QUEUE_BORROWING_LIMIT,
                in_units(quota.borrowing_limit.unwrap_or(unlimited)),
            );
            set(
                &m::CLUSTER_QUEUE_LENDING_LIMIT,
                in_units(quota.lending_limit.unwrap_or(unlimited)),
            );
            let reserved = self.queues().usage(name, flavor, resource).unwrap_or_default();
            set(&m::CLUSTER_QUEUE_RESOURCE_RESERVATION, in_units(reserved));
            let used = sums.used.get(&(flavor, resource)).copied().unwrap_or_default();
            set(&m::CLUSTER_QUEUE_RESOURCE_USAGE, in_units(used));
            page.add(&m::CLUSTER_QUEUE_RESOURCE_PENDING, &[name, resource], 0.0);
        }
        for (resource, amount) in &sums.pending {
            page.set(
                &m::CLUSTER_QUEUE_RESOURCE_PENDING,
                &[name, resource],
                units(resource, *amount),
            );
        }
    }

    /// Sets what those in front of a queue had lately, where that counts.
    fn tell_usage(&self, name: &str, now: Timestamp, page: &mut Page) {
        let Ok(Some(users)) = self.queues().users(name, now) else {
            return;
        };
        let mut by_local_queue: BTreeMap<&str, f64> = BTreeMap::new();
        for of in &users {
            *by_local_queue.entry(&of.local_queue).or_default() += of.usage.unwrap_or(f64::INFINITY);
        }
        for (local_queue, usage) in by_local_queue {
            let labels = [local_queue, NAMESPACE, name];
            page.set(&m::LOCAL_QUEUE_ADMISSION_FAIR_SHARING_USAGE, &labels, usage);
        }
    }

    fn tell_local_queue(&self, name: &str, configured: &LocalQueue, sums: &Sums<'_>, page: &mut Page) {
        let lq = |page: &mut Page, family, value: u32| page.set(family, &[name, NAMESPACE], value.into());
        lq(page, &m::LOCAL_QUEUE_RESERVING_ACTIVE_WORKLOADS, sums.reserving);
        lq(page, &m::LOCAL_QUEUE_ADMITTED_ACTIVE_WORKLOADS, sums.admitted);
        for (status, count) in [("active", sums.active), ("inadmissible", sums.inadmissible)] {
            page.set(
                &m::LOCAL_QUEUE_PENDING_WORKLOADS,
                &[name, NAMESPACE, status],
                count.into(),
            );
        }
        let admits = configured.stop_policy == StopPolicy::None
            && self.queues().inactive(&configured.cluster_queue) == Ok(None);
        for (active, holds) in [("True", admits), ("False", !admits), ("Unknown", false)] {
            page.set(
                &m::LOCAL_QUEUE_STATUS,
                &[name, NAMESPACE, active],
                f64::from(u8::from(holds)),
            );
        }
        let behind = self.objects().cluster_queues.get(&configured.cluster_queue);
        for (flavor, resource, _) in behind.into_iter().flat_map(quotas) {
            let labels = [name, NAMESPACE, flavor, resource];
            let of = |sums: &BTreeMap<_, Quantity>| {
                units(
                    resource,
                    sums.get(&(flavor, resource)).copied().unwrap_or_default(),
                )
            };
            page.set(&m::LOCAL_QUEUE_RESOURCE_RESERVATION, &labels, of(&sums.reserved));
            page.set(&m::LOCAL_QUEUE_RESOURCE_USAGE, &labels, of(&sums.used));
        }
    }
}

/// Adds what a pending workload asks for.
fn add_pending<'a>(workload: &'a Workload, sums: &mut Sums<'a>) {
    for set in &workload.pod_sets {
        for (resource, amount) in &set.requests {
            add(&mut sums.pending, resource, amount.times(set.count));
        }
    }
}

/// Sets what is still held of a queue that was removed.
fn tell_held([cohort, name]: [&str; 2], sums: &Sums<'_>, page: &mut Page) {
    for (family, held) in [
        (&m::CLUSTER_QUEUE_RESOURCE_RESERVATION, &sums.reserved),
        (&m::CLUSTER_QUEUE_RESOURCE_USAGE, &sums.used),
    ] {
        for ((flavor, resource), amount) in held {
            page.set(
                family,
                &[cohort, name, flavor, resource],
                units(resource, *amount),
            );
        }
    }
}

fn tell_cohort(cohort: &CohortFigures<'_>, page: &mut Page) {
    let parent = cohort.above.first().copied().unwrap_or_default();
    let root = cohort.above.last().copied().unwrap_or(cohort.name);
    page.set(&m::COHORT_INFO, &[cohort.name, parent, root], 1.0);
    for of in &cohort.resources {
        let labels = [cohort.name, of.flavor, of.resource];
        page.set(&m::COHORT_SUBTREE_QUOTA, &labels, units(of.resource, of.quota));
        page.set(
            &m::COHORT_SUBTREE_RESOURCE_RESERVATIONS,
            &labels,
            units(of.resource, of.held),
        );
    }
}

/// Returns each flavor and resource of a queue.
fn quotas(queue: &ClusterQueue) -> impl Iterator<Item = (&str, &str, Quota)> {
    let flavors = queue.resource_groups.iter().flat_map(|group| &group.flavors);
    flavors.flat_map(|flavor| {
        let resources = flavor.resources.iter();
        resources.map(|(resource, quota)| (flavor.name.as_str(), resource.as_str(), *quota))
    })
}

fn add<K: Ord>(sums: &mut BTreeMap<K, Quantity>, of: K, amount: Quantity) {
    let sum = sums.entry(of).or_default();
    *sum = sum.plus(amount);
}

/// Returns an amount in the units of Kueue's metrics: cpu in cores, memory in bytes, everything else in ones.
#[expect(clippy::cast_precision_loss, reason = "metrics are floating-point numbers")]
fn units(resource: &str, amount: Quantity) -> f64 {
    if amount.is_unlimited() {
        return f64::INFINITY;
    }
    let amount = amount.0 as f64;
    if resource == CPU { amount / 1000.0 } else { amount }
}

//! Which flavors a workload would get, and what would have to happen first.
//!
//! Kueue's `flavorassigner`: flavors are tried in order, each is as good as its worst resource, and the search goes on
//! where the last try stopped.

use super::{
    Quantity,
    cycle_state::{CycleState, Request, Victim},
    objects::{FlavorFungibility, FlavorPreference, ReclaimWithinCohort, WhenCanBorrow, WhenCanPreempt},
    progress::Progress,
    quotas::{FlavorResource, Usage},
    terms::{GroupRequest, Mismatch, SetShape},
    tree::Queue,
    victims,
    workload::{Admission, WorkloadId},
};

/// What has to happen before a workload can have its flavors; the later, the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mode {
    /// It cannot have them as things are, whomever one evicts.
    NoFit,
    /// Others have to be evicted, if there are any that may be.
    Preempt,
    /// Nothing.
    Fit,
}

/// The flavors that a workload would get.
#[derive(Debug, Clone)]
pub(super) struct Assignment {
    /// One for each pod set, up to the first that cannot have any.
    pub(super) sets: Vec<SetAssignment>,
    pub(super) usage: Usage,
    /// How far up the tree it borrows; zero is not at all.
    pub(super) borrowing: usize,
    pub(super) mode: Mode,
    pub(super) progress: Progress,
    /// What stood in the way, flavor by flavor.
    pub(super) misses: Vec<Miss>,
}

impl Assignment {
    /// Returns it by the names of resources and flavors.
    pub(super) fn admission(&self, queue: &Queue, id: WorkloadId) -> Admission {
        let entry = queue.holders.get(&id).expect("it was just given its quota").entry;
        let asked = &queue.shape_pod_sets[entry.class.shape];
        let pod_sets = self.sets.iter().zip(asked.iter()).map(|(set, asked)| {
            let flavors = set.flavors.iter().map(|choice| {
                let group = &queue.terms.groups[choice.group];
                (
                    group.resources[choice.resource].clone(),
                    group.flavors[choice.flavor].name.clone(),
                )
            });
            asked.assigned(set.count, flavors.collect())
        });
        Admission {
            workload: id,
            pod_sets: pod_sets.collect(),
        }
    }
}

/// The flavors that a pod set would get.
#[derive(Debug, Clone)]
pub(super) struct SetAssignment {
    pub(super) count: u32,
    pub(super) flavors: Vec<Choice>,
}

/// A resource's flavor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    pub(super) group: usize,
    /// The flavor's and the resource's places in the group.
    pub(super) flavor: usize,
    pub(super) resource: usize,
    pub(super) of: FlavorResource,
    mode: Mode,
}

/// What stands in the way of a flavor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Miss {
    pub(super) set: usize,
    /// The group and the flavor's place in it; `None` is that no group covers what is asked for.
    pub(super) flavor: Option<(usize, usize)>,
    pub(super) why: MissReason,
}

/// Why a flavor cannot be had now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MissReason {
    /// The queue does not have the resource.
    Uncovered(String),
    /// The flavor's nodes are not for it.
    Mismatch(Mismatch),
    /// It is more than there could ever be.
    ExceedsMax {
        of: FlavorResource,
        asked: Quantity,
        most: Quantity,
    },
    /// So much more would have to be free.
    Short {
        of: FlavorResource,
        asked: Quantity,
        available: Quantity,
    },
}

/// How good a flavor is, in detail; by it flavors are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Grade {
    way: Way,
    borrowing: usize,
}

/// By what a flavor could be had; the later, the better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    NoFit,
    NoCandidates,
    Preempt,
    Reclaim,
    Fit,
}

impl Way {
    fn mode(self) -> Mode {
        match self {
            Way::NoFit => Mode::NoFit,
            Way::NoCandidates | Way::Preempt | Way::Reclaim => Mode::Preempt,
            Way::Fit => Mode::Fit,
        }
    }
}

impl Grade {
    const BEST: Self = Self {
        way: Way::Fit,
        borrowing: 0,
    };
    const WORST: Self = Self {
        way: Way::NoFit,
        borrowing: usize::MAX,
    };

    /// Returns whether this is better. What cannot be had now is worst, whatever is preferred.
    fn is_better(self, other: Self, preference: FlavorPreference) -> bool {
        if self.way == Way::NoFit || other.way == Way::NoFit {
            return self.way != Way::NoFit;
        }
        let (without, other_without) = (self.way == Way::NoCandidates, other.way == Way::NoCandidates);
        if without != other_without {
            return !without;
        }
        let evicts_less = self.way.cmp(&other.way);
        let borrows_less = other.borrowing.cmp(&self.borrowing);
        let order = match preference {
            FlavorPreference::BorrowingOverPreemption => evicts_less.then(borrows_less),
            FlavorPreference::PreemptionOverBorrowing => borrows_less.then(evicts_less),
        };
        order.is_gt()
    }

    /// Returns whether the search stops at this flavor.
    fn is_enough(self, fungibility: FlavorFungibility) -> bool {
        match self.way {
            Way::NoFit | Way::NoCandidates => return false,
            Way::Preempt | Way::Reclaim => match fungibility.when_can_preempt {
                WhenCanPreempt::TryNextFlavor => return false,
                WhenCanPreempt::MayStopSearch => {}
            },
            Way::Fit => {}
        }
        self.borrowing == 0 || fungibility.when_can_borrow == WhenCanBorrow::MayStopSearch
    }
}

/// A flavor that was tried for a group.
struct Tried {
    grade: Grade,
    choices: Vec<Choice>,
    amounts: Vec<Quantity>,
    borrowing: usize,
}

/// Returns the flavors that the workload would get with so many pods in each set, going on from `progress`.
pub(super) fn assign(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    counts: Option<&[u32]>,
    progress: Option<&Progress>,
) -> Assignment {
    let mut assignment = Assignment {
        sets: Vec::with_capacity(request.shape.sets.len()),
        usage: Vec::new(),
        borrowing: 0,
        mode: Mode::Fit,
        progress: Progress::default(),
        misses: Vec::new(),
    };
    if request.shape.sets.is_empty() {
        assignment.mode = Mode::NoFit;
    }
    for (number, set) in request.shape.sets.iter().enumerate() {
        let count = counts.map_or(set.count, |counts| counts[number]);
        if !assign_set(state, request, (number, set, count), progress, &mut assignment) {
            assignment.mode = Mode::NoFit;
            break;
        }
    }
    assignment
}

/// Adds a pod set's flavors, and returns whether it can have any.
fn assign_set(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    (number, set, count): (usize, &SetShape, u32),
    progress: Option<&Progress>,
    assignment: &mut Assignment,
) -> bool {
    let mut next = vec![0; state.queues[request.queue].terms.groups.len()];
    let mut flavors = Vec::new();
    let mut amounts = Vec::new();
    let mut borrowing = 0;
    let mut fits = true;
    let mut can = set.uncovered.is_empty();
    for resource in &set.uncovered {
        assignment.misses.push(Miss {
            set: number,
            flavor: None,
            why: MissReason::Uncovered(resource.clone()),
        });
    }
    for group in &set.requests {
        if !can {
            break;
        }
        let start = progress.map_or(0, |progress| progress.next(number, group.group));
        let search = FlavorSearch {
            set: number,
            count,
            group,
            assumed: &assignment.usage,
        };
        let before = assignment.misses.len();
        let (best, then) = find_flavor(state, request, &search, start, &mut assignment.misses);
        match best {
            Some(tried) => {
                if tried.choices.iter().all(|choice| choice.mode == Mode::Fit) {
                    // What keeps it from other flavors does not stand in the way.
                    assignment.misses.truncate(before);
                }
                next[group.group] = then;
                borrowing = borrowing.max(tried.borrowing);
                fits &= tried.grade.way == Way::Fit;
                flavors.extend(tried.choices);
                amounts.extend(tried.amounts);
            }
            None => can = false,
        }
    }
    if !can {
        (flavors, next) = (Vec::new(), Vec::new());
    } else {
        assignment.borrowing = assignment.borrowing.max(borrowing);
        for (choice, amount) in flavors.iter().zip(amounts) {
            add(&mut assignment.usage, choice.of, amount);
            // Where borrowing counts as worse than evicting, a flavor may be graded as fitting by one resource although
            // another needs victims. Kueue takes the grade's word, looks for no victims, and tries again.
            if !fits {
                assignment.mode = assignment.mode.min(choice.mode);
            }
        }
    }
    assignment.progress.next.push(next);
    assignment.sets.push(SetAssignment { count, flavors });
    can
}

fn add(usage: &mut Usage, of: FlavorResource, amount: Quantity) {
    match usage.iter_mut().find(|(at, _)| *at == of) {
        Some((_, sum)) => *sum = sum.plus(amount),
        None => usage.push((of, amount)),
    }
}

/// A search for a flavor of a resource group for a pod set, beside what the sets before it would get.
struct FlavorSearch<'a> {
    set: usize,
    count: u32,
    group: &'a GroupRequest,
    assumed: &'a Usage,
}

/// Returns the best flavor of the group, if any will do, and where the next search starts.
fn find_flavor(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    search: &FlavorSearch<'_>,
    start: usize,
    misses: &mut Vec<Miss>,
) -> (Option<Tried>, usize) {
    let queues = state.queues;
    let terms = &queues[request.queue].terms;
    let n_flavors = terms.groups[search.group.group].flavors.len();
    let mut best: Option<Tried> = None;
    let mut last = start;
    for flavor in start..n_flavors {
        last = flavor;
        if let Some(mismatch) = &search.group.mismatches[flavor] {
            misses.push(Miss {
                set: search.set,
                flavor: Some((search.group.group, flavor)),
                why: MissReason::Mismatch(mismatch.clone()),
            });
            continue;
        }
        let tried = try_flavor(state, request, search, flavor, misses);
        if tried.grade.is_enough(terms.fungibility) {
            best = Some(tried);
            break;
        }
        let so_far = best.as_ref().map_or(Grade::WORST, |best| best.grade);
        if tried.grade.is_better(so_far, terms.fungibility.preference) {
            best = Some(tried);
        }
    }
    let then = if last + 1 >= n_flavors { 0 } else { last + 1 };
    (best, then)
}

/// Returns how good a flavor is: as its worst resource.
fn try_flavor(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    search: &FlavorSearch<'_>,
    flavor: usize,
    misses: &mut Vec<Miss>,
) -> Tried {
    let queues = state.queues;
    let terms = &queues[request.queue].terms;
    let places = &terms.groups[search.group.group].flavors[flavor].places;
    let mut tried = Tried {
        grade: Grade::BEST,
        choices: Vec::with_capacity(search.group.per_pod.len()),
        amounts: Vec::with_capacity(search.group.per_pod.len()),
        borrowing: 0,
    };
    for (resource, per_pod) in &search.group.per_pod {
        let of = places[*resource];
        let amount = per_pod.times(search.count);
        let assumed = search
            .assumed
            .iter()
            .find(|(at, _)| *at == of)
            .map_or(Quantity::ZERO, |(_, sum)| *sum);
        let (grade, miss) = grade(state, request, of, assumed.plus(amount));
        if let Some(why) = miss {
            misses.push(Miss {
                set: search.set,
                flavor: Some((search.group.group, flavor)),
                why,
            });
        }
        tried.borrowing = tried.borrowing.max(grade.borrowing);
        if tried.grade.is_better(grade, terms.fungibility.preference) {
            tried.grade = grade;
        }
        if tried.grade.way == Way::NoFit {
            break;
        }
        tried.amounts.push(amount);
        tried.choices.push(Choice {
            group: search.group.group,
            flavor,
            resource: *resource,
            of,
            mode: grade.way.mode(),
        });
    }
    tried
}

/// Returns by what, and how far from home, an amount could be had, and what stands in the way.
fn grade(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    of: FlavorResource,
    asked: Quantity,
) -> (Grade, Option<MissReason>) {
    let node = state.queues[request.queue].node;
    let most = state.quotas.potential(node, of);
    if asked > most {
        let grade = Grade {
            way: Way::NoFit,
            borrowing: 0,
        };
        return (grade, Some(MissReason::ExceedsMax { of, asked, most }));
    }
    let (borrowing, may_reclaim) = state.quotas.lowest_fit(node, of, asked);
    let available = state.quotas.available(node, of);
    if asked <= available {
        let grade = Grade {
            way: Way::Fit,
            borrowing,
        };
        return (grade, None);
    }
    let miss = MissReason::Short { of, asked, available };
    let within_nominal = asked <= state.quotas.quota(node, of).nominal;
    if !within_nominal && !may_reclaim && !may_preempt_while_borrowing(state, request) {
        let grade = Grade {
            way: Way::NoFit,
            borrowing,
        };
        return (grade, Some(miss));
    }
    (grade_of_evicting(state, request, of, asked), Some(miss))
}

fn may_preempt_while_borrowing(state: &CycleState<'_>, request: &Request<'_>) -> bool {
    let preemption = state.queues[request.queue].terms.preemption;
    preemption.borrow_within_cohort.is_some()
        || (state.rules.fair.is_some() && preemption.reclaim_within_cohort != ReclaimWithinCohort::Never)
}

fn grade_of_evicting(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    of: FlavorResource,
    asked: Quantity,
) -> Grade {
    let node = state.queues[request.queue].node;
    let victims = victims::find(state, request, &[(of, asked)], &[of]);
    state.remove_all(&victims);
    let (borrowing, _) = state.quotas.lowest_fit(node, of, asked);
    state.add_all(&victims);
    let way = if victims.is_empty() {
        Way::NoCandidates
    } else if victims.iter().any(|victim| victim.queue == request.queue) {
        Way::Preempt
    } else {
        Way::Reclaim
    };
    Grade { way, borrowing }
}

/// Returns the flavors that the workload gets, and whom it evicts for them: with all its pods where that can be, else
/// with as many as can be had at all.
pub(super) fn assign_with_victims(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    progress: Option<&Progress>,
) -> (Assignment, Vec<Victim>) {
    let full = assign(state, request, None, progress);
    match full.mode {
        Mode::Fit => return (full, Vec::new()),
        Mode::Preempt => {
            let victims = victims_of(state, request, &full);
            if !victims.is_empty() {
                return (full, victims);
            }
        }
        Mode::NoFit => {}
    }
    fewer_pods(state, request, progress).unwrap_or((full, Vec::new()))
}

fn victims_of(state: &mut CycleState<'_>, request: &Request<'_>, assignment: &Assignment) -> Vec<Victim> {
    let usage: Usage = assignment
        .usage
        .iter()
        .filter(|(_, amount)| *amount != Quantity::ZERO)
        .copied()
        .collect();
    let choices = assignment.sets.iter().flat_map(|set| &set.flavors);
    let mut needs: Vec<_> = choices
        .filter(|choice| choice.mode == Mode::Preempt)
        .map(|choice| choice.of)
        .collect();
    needs.sort_unstable();
    needs.dedup();
    victims::find(state, request, &usage, &needs)
}

/// Looks for the most pods, between all and the least that will do, that can be had now or by evicting.
///
/// Kueue bisects, taking for granted that fewer pods fit where more do.
fn fewer_pods(
    state: &mut CycleState<'_>,
    request: &Request<'_>,
    progress: Option<&Progress>,
) -> Option<(Assignment, Vec<Victim>)> {
    let sets = &request.shape.sets;
    let slack: u64 = sets.iter().map(|set| u64::from(set.count - set.min_count)).sum();
    if slack == 0 {
        return None;
    }
    let mut found = None;
    let (mut least, mut most) = (0, slack + 1);
    while least < most {
        let fewer = least + (most - least) / 2;
        let counts: Vec<u32> = sets.iter().map(|set| reduced(set, fewer, slack)).collect();
        let assignment = assign(state, request, Some(&counts), progress);
        let victims = match assignment.mode {
            Mode::NoFit | Mode::Fit => Vec::new(),
            Mode::Preempt => victims_of(state, request, &assignment),
        };
        if assignment.mode == Mode::Fit || !victims.is_empty() {
            found = Some((assignment, victims));
            most = fewer;
        } else {
            least = fewer + 1;
        }
    }
    found
}

fn reduced(set: &SetShape, fewer: u64, slack: u64) -> u32 {
    let less = u64::from(set.count - set.min_count) * fewer / slack;
    set.count - u32::try_from(less).expect("it is at most the count")
}

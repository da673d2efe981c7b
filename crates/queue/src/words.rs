//! What is said of waits and of what would end them, for people: one line each, without a full stop.

use std::fmt;

use super::{Mismatch, Obstacle, ObstacleReason, QuotaIncrease, QuotaLimit, Remedy, Wait, amount_in_words};

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)?;
        let mut between = ": ";
        for obstacle in &self.obstacles {
            write!(f, "{between}{obstacle}")?;
            between = "; ";
        }
        Ok(())
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(flavor) = &self.flavor {
            write!(f, "flavor {flavor}: ")?;
        }
        match &self.why {
            ObstacleReason::Uncovered { resource } => write!(f, "its queue has no {resource} at all"),
            ObstacleReason::Mismatch {
                mismatch: Mismatch::Taint { taint },
            } => write!(f, "does not tolerate the taint {taint}"),
            ObstacleReason::Mismatch {
                mismatch: Mismatch::NodeSelector { key, value },
            } => write!(f, "is not of {key}={value}"),
            ObstacleReason::Short {
                resource,
                asked,
                available,
                most,
                limit,
            } => {
                let [short, free, most] =
                    [asked.minus(*available), *available, *most].map(|of| amount_in_words(resource, of));
                write!(
                    f,
                    "{short} {resource} missing: {free} free of at most {most}, {limit}"
                )
            }
        }
    }
}

impl fmt::Display for QuotaLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nominal => f.write_str("its queue's own quota"),
            Self::Borrowing { of } => write!(f, "the borrowing limit of {of}"),
            Self::Lending => f.write_str("the rest is not lent"),
            Self::Cohort => f.write_str("its cohort has no more"),
        }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time => f.write_str("those who were told to go have left"),
            Self::Ends { workloads, pending } => f.write_str(&ends_in_words(workloads, pending)),
            Self::InTurn => f.write_str("enough of those with quota, and of those before it, have ended"),
            Self::MoreQuota { increases } => write!(f, "its queue has {}", raises_in_words(increases)),
            Self::Cancelled { workloads, then } => {
                write!(f, "{}{}", cancelled_in_words(workloads), then_in_words(then))
            }
        }
    }
}

/// Says who has to be cancelled.
pub fn cancelled_in_words<T: fmt::Display>(runs: &[T]) -> String {
    let verb = if runs.len() == 1 { "is" } else { "are" };
    format!("{}, which can never fit, {verb} cancelled", names(runs))
}

/// Says what has to come after something else, any one of these.
pub fn then_in_words<T: fmt::Display>(then: &[T]) -> String {
    let then: Vec<String> = then.iter().map(ToString::to_string).collect();
    match &then[..] {
        [] => String::new(),
        [only] => format!(", and then {only}"),
        several => format!(", and then either {}", several.join(" or ")),
    }
}

/// Says who has to end, and who has to be admitted before that.
pub fn ends_in_words<T: fmt::Display>(runs: &[T], pending: &[T]) -> String {
    let verb = |runs: &[T]| if runs.len() == 1 { "ends" } else { "end" };
    let first = format!("{} {}", names(runs), verb(runs));
    match (runs, pending) {
        (_, []) => first,
        ([], [_]) => format!(
            "{}, which goes first, has been admitted and has ended",
            names(pending)
        ),
        ([], _) => format!(
            "{}, which go first, have been admitted and have ended",
            names(pending)
        ),
        (_, [_]) => format!("{first}, and then {}, which goes first", names(pending)),
        (..) => format!("{first}, and then {}, which go first", names(pending)),
    }
}

/// Returns the first few by name, and how many more there are.
fn names<T: fmt::Display>(runs: &[T]) -> String {
    const NAMED: usize = 8;
    let mut names: Vec<String> = runs.iter().take(NAMED).map(ToString::to_string).collect();
    if runs.len() > NAMED {
        names.push(format!("{} more", runs.len() - NAMED));
    }
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Says how much more of what; a flavor is named once, behind the last of what is of it.
pub fn raises_in_words(increases: &[QuotaIncrease]) -> String {
    let flavors = increases.chunk_by(|one, next| one.flavor == next.flavor);
    let of_flavors = flavors.map(|increases| {
        let amounts = increases.iter().map(|raise| {
            format!(
                "{} more {}",
                amount_in_words(&raise.resource, raise.more),
                raise.resource
            )
        });
        let amounts: Vec<_> = amounts.collect();
        format!("{} of flavor {}", amounts.join(" and "), increases[0].flavor)
    });
    of_flavors.collect::<Vec<_>>().join(", and ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Quantity, WaitReason, WorkloadId};

    #[test]
    fn whoever_embeds_the_queue_can_say_what_it_says() {
        let short = ObstacleReason::Short {
            resource: "cpu".into(),
            asked: Quantity(2500),
            available: Quantity(1000),
            most: Quantity(2000),
            limit: QuotaLimit::Borrowing { of: "lab".into() },
        };
        let obstacle = Obstacle {
            pod_set: 0,
            flavor: Some("spot".into()),
            why: short,
        };
        let wait = Wait {
            reason: WaitReason::WaitingForQuota,
            obstacles: vec![obstacle.clone(), obstacle],
            can_ever_fit: false,
        };
        let line = "flavor spot: 1500m cpu missing: 1 free of at most 2, the borrowing limit of lab";
        assert_eq!(wait.to_string(), format!("WaitingForQuota: {line}; {line}"));

        let ids = |ids: &[u64]| ids.iter().copied().map(WorkloadId).collect::<Vec<_>>();
        let ends = |workloads: &[u64], pending: &[u64]| {
            let (workloads, pending) = (ids(workloads), ids(pending));
            Remedy::Ends { workloads, pending }.to_string()
        };
        assert_eq!(ends(&[1], &[]), "workload 1 ends");
        assert_eq!(ends(&[1, 2], &[]), "workload 1 and workload 2 end");
        assert_eq!(
            ends(&[1], &[2, 3]),
            "workload 1 ends, and then workload 2 and workload 3, which go first"
        );
        assert_eq!(
            ends(&[], &[3]),
            "workload 3, which goes first, has been admitted and has ended"
        );
        let many: Vec<u64> = (1..=11).collect();
        assert!(
            ends(&many, &[]).ends_with("workload 8 and 3 more end"),
            "{}",
            ends(&many, &[])
        );
    }
}

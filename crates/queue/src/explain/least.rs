//! Sets from which nothing can be left out.

/// Returns those of `all` that are needed, in their order: without any one of them `helps` does not hold. `None` is that
/// not even all of them help, or that `helps` was asked as often as it may be before that was known.
///
/// That more help where fewer do is not taken for granted: what is returned has been tried, and so have all sets that
/// lack one of it.
pub(super) fn least_set<T: Copy>(
    all: &[T],
    n_tries: usize,
    mut helps: impl FnMut(&[T]) -> bool,
) -> Option<Vec<T>> {
    let mut tries = 0..n_tries;
    let mut helps = |those: &[T]| tries.next().map(|_| helps(those));
    if !helps(all)? {
        return None;
    }
    let mut set = all.to_vec();
    let mut span = set.len().div_ceil(2);
    loop {
        let smaller = leave_out(&set, span, &mut helps)?;
        let is_least = span <= 1 && smaller.len() == set.len();
        set = smaller;
        if is_least {
            return Some(set);
        }
        span = span.div_ceil(2);
    }
}

/// Leaves out, the last ones first, so many at a time as long as the rest helps.
fn leave_out<T: Copy>(
    set: &[T],
    span: usize,
    helps: &mut impl FnMut(&[T]) -> Option<bool>,
) -> Option<Vec<T>> {
    let mut set = set.to_vec();
    let mut end = set.len();
    while end > 0 {
        let start = end.saturating_sub(span);
        let rest = [&set[..start], &set[end..]].concat();
        if helps(&rest)? {
            set = rest;
        }
        end = start;
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::btree_set, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn what_is_needed_stays_and_nothing_else(needed in btree_set(0..60_usize, 0..9), size in 1..60_usize) {
            let all: Vec<usize> = (0..size).collect();
            let helps = |those: &[usize]| needed.iter().all(|one| those.contains(one));
            let found = least_set(&all, usize::MAX, helps);
            let expected = needed.iter().all(|one| *one < size).then(|| needed.iter().copied().collect());
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn where_more_do_not_help_more_nothing_can_be_left_out_either(helpful in proptest::collection::vec(any::<bool>(), 1 << 6)) {
            let all: Vec<usize> = (0..6).collect();
            let helps = |those: &[usize]| helpful[those.iter().map(|one| 1 << one).sum::<usize>()];
            let found = least_set(&all, usize::MAX, helps);
            prop_assert_eq!(found.is_some(), helps(&all));
            let found = found.unwrap_or_default();
            if found.is_empty() {
                return Ok(());
            }
            prop_assert!(helps(&found));
            for spared in &found {
                let others: Vec<usize> = found.iter().filter(|one| *one != spared).copied().collect();
                prop_assert!(!helps(&others), "{spared} of {found:?} is not needed");
            }
        }
    }

    #[test]
    fn nothing_is_returned_that_was_not_tried_to_the_end() {
        let all: Vec<usize> = (0..100).collect();
        let asked = std::cell::Cell::new(0);
        let helps = |those: &[usize]| {
            asked.set(asked.get() + 1);
            those.len() == 100
        };
        assert_eq!(least_set(&all, 3, helps), None);
        assert_eq!(asked.get(), 3);
    }
}

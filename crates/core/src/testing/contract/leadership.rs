//! What every right to lead keeps.

use crate::ports::Leadership;

/// Panics where two lead at a time, or where the right does not come back. The two are of the same store, free at first.
pub async fn leadership_keeps_its_promises(one: &dyn Leadership, other: &dyn Leadership) {
    let term = one.try_lead().await.expect("no error").expect("it is free");
    for who in [one, other] {
        let second = who.try_lead().await.expect("no error");
        assert!(second.is_none(), "one leads at a time");
    }
    tokio::select! {
        biased;
        () = term.lost() => panic!("nobody took it away"),
        () = tokio::task::yield_now() => {}
    }
    drop(term);
    let term = other.try_lead().await.expect("no error");
    assert!(term.is_some(), "dropping it gives it back");
}

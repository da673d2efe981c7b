//! Notebooks of pull requests, really executed: from the pull request to a result on it.

use blueproof_core::{
    domain::{Ending, RunId, RunState},
    ports::StoreClient as _,
};
use blueproof_github::{
    api::{CheckConclusion, CheckOutput, CheckRunState},
    payload::CommitSha,
};

use crate::place::{Agent, News, Place, REPOSITORY, Served, until};

/// The program, and a way to have it learn what happened.
struct Running<'a> {
    place: &'a Place,
    news: News,
    process: Served,
    address: String,
}

impl<'a> Running<'a> {
    fn new(place: &'a Place, news: News) -> Self {
        let (process, address) = place.serve(Agent::Real, news);
        Self {
            place,
            news,
            process,
            address,
        }
    }

    /// Has it learn what happened: by webhooks, or, as its first poll is at its start, by a new start.
    fn learn(self) -> Self {
        match self.news {
            News::Webhooks => {
                self.place.deliver(&self.address);
                self
            }
            News::Polls => {
                self.place.github.take_deliveries();
                assert_eq!(self.process.terminate(), Some(0));
                Self::new(self.place, News::Polls)
            }
        }
    }

    async fn concluded(&self, head: &CommitSha, expected: CheckConclusion) -> CheckOutput {
        let is_so =
            |state| matches!(state, CheckRunState::Completed { conclusion, .. } if conclusion == expected);
        self.place.until_shown(head, is_so).await;
        let checks = self.place.github.checks(REPOSITORY, head);
        checks.into_iter().next().expect("it is shown")
    }
}

#[tokio::test]
async fn a_notebook_is_executed_once_its_commit_is_approved_and_a_push_needs_another_approval() {
    for news in [News::Webhooks, News::Polls] {
        let place = Place::new().await;
        let (ada, mallory) = (place.ada.clone(), place.mallory.clone());
        place.repository();
        let broken = place.commit(&["print('it runs')", "loss = 1\nraise ValueError('too high: @ada')"]);
        let mut running = Running::new(&place, news);
        let number = place
            .github
            .open(REPOSITORY, &mallory, &["examples/nano-lm/nano-lm.ipynb"]);
        place.github.push_back(REPOSITORY, number, &mallory, &broken);
        running = running.learn();
        running.concluded(&broken, CheckConclusion::ActionRequired).await;

        place
            .github
            .comment(REPOSITORY, number, &ada, &format!("/gpu-test {broken}"));
        running = running.learn();
        let failed = running.concluded(&broken, CheckConclusion::Failure).await;
        assert!(failed.title.contains("ValueError"), "{}", failed.title);
        assert!(
            failed.summary.contains("| attempt | r-1.1 |"),
            "{}",
            failed.summary
        );
        let annotated: Vec<_> = failed
            .annotations
            .iter()
            .map(|one| (&*one.path, one.start_line))
            .collect();
        assert_eq!(
            annotated,
            [("examples/nano-lm/nano-lm.ipynb", 4)],
            "{news:?}: {failed:?}"
        );
        assert!(!failed.annotations[0].message.contains("@ada"));

        let mended = place.commit(&["print('it runs')"]);
        place.github.push_back(REPOSITORY, number, &mallory, &mended);
        running = running.learn();
        running.concluded(&mended, CheckConclusion::ActionRequired).await;
        place
            .github
            .comment(REPOSITORY, number, &ada, &format!("/gpu-test {mended}"));
        running = running.learn();
        let passed = running.concluded(&mended, CheckConclusion::Success).await;
        assert!(passed.title.starts_with("Passed"), "{}", passed.title);
        let store = place.store();
        until(&store, RunId(2), |view| {
            view.state == RunState::Ended(Ending::Passed)
        })
        .await;
        let runs = store.runs(10).await.expect("a read");
        assert_eq!(runs.len(), 2, "{news:?}: one for each head");
        assert_eq!(running.process.terminate(), Some(0));
    }
}

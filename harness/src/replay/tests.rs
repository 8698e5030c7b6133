//! How a replay ends that is cut short, and how one does whose target fails.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;

use super::compare::Aspect;
use super::mirror::Mirror;
use super::player::{Outcome, play};
use super::recording::Recording;
use super::report::Collector;
use super::samples;
use crate::target::{Ability, About, Setup, Target, TargetError};
use crate::wire::{Answer, Request};

/// Queues that are not found, at these paths.
fn recording(paths: &[&str]) -> Recording {
    let line = |path: &&str| {
        let url = format!("https://account.queue.core.windows.net/{path}");
        let code = vec![("x-ms-error-code", "QueueNotFound".to_owned())];
        ("GET", url, 404, code)
    };
    let lines: Vec<_> = paths.iter().map(line).collect();
    samples::recording("queue", &lines)
}

/// A recording that was not played to its end has not passed.
#[tokio::test]
async fn a_missing_interaction_is_caught() {
    let recording = recording(&["a", "b"]);
    for (missing, passed) in [(0, 1), (1, 0)] {
        let mut played = play(Arc::new(Mirror::of(&recording)), &recording).await;
        played.outcomes.truncate(2 - missing);
        let mut collector = Collector::new("mirror", true);
        collector.add(&recording, &played);
        assert_eq!(collector.finish().recordings_passed, passed);
    }
}

/// A target that fails in the way that the path names, and does not wait for later dates.
struct Moody(About);

impl Moody {
    fn target() -> Arc<Moody> {
        let able = [Ability::Clock, Ability::Settings];
        Arc::new(Moody(About::by_host("moody").able(able)))
    }
}

#[async_trait]
impl Target for Moody {
    fn about(&self) -> &About {
        &self.0
    }

    async fn reset(&self, _: &Setup) -> Result<(), TargetError> {
        Ok(())
    }

    async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError> {
        match now.iso_s().starts_with("2019-05-09") {
            true => Ok(()),
            false => Err(TargetError::TooFarAhead { ahead_s: 1 }),
        }
    }

    async fn call(&self, request: Request) -> Result<Answer, TargetError> {
        let answer = |status, code| {
            let headers = [
                ("date", "Thu, 09 May 2019 00:57:59 GMT"),
                ("x-ms-error-code", code),
            ];
            Answer {
                status,
                headers: headers.into_iter().collect(),
                body: Bytes::new(),
            }
        };
        match request.url.rsplit('/').next() {
            Some("panics") => panic!("as asked"),
            Some("hangs") => std::future::pending().await,
            Some("missing") => Ok(answer(501, "NotImplemented")),
            _ => Ok(answer(404, "QueueNotFound")),
        }
    }
}

/// A panic, a hang and a missing operation each end their own interaction only.
#[tokio::test(start_paused = true)]
async fn a_failing_target_affects_one_interaction() {
    let recording = recording(&["panics", "hangs", "missing", "fine"]);
    let played = play(Moody::target(), &recording).await;
    let call = |n: usize, part: &str| match &played.outcomes[n] {
        Outcome::Failed(d) => d[0].aspect == Aspect::Call && d[0].live.contains(part),
        _ => false,
    };
    assert!(call(0, "panicked"), "{:?}", played.outcomes[0]);
    assert!(call(1, "none within"), "{:?}", played.outcomes[1]);
    assert_eq!(played.outcomes[2], Outcome::NotBuilt);
    assert_eq!(played.outcomes[3], Outcome::Passed);
    let mut collector = Collector::new("moody", true);
    collector.add(&recording, &played);
    let report = collector.finish();
    // In the slice only the missing operation is counted, and not as passed.
    assert_eq!((report.total.compared, report.total.not_built), (0, 1));
    assert_eq!((report.recordings, report.recordings_not_built), (0, 1));
    let mut collector = Collector::new("moody", false);
    collector.add(&recording, &played);
    let report = collector.finish();
    assert_eq!((report.total.compared, report.total.passed), (3, 1));
    assert_eq!(report.recordings_passed, 0);
    assert_eq!(played.too_far_ahead, None);
    let mut late = recording.clone();
    late.interactions[2].date = late.interactions[2].date.plus_s(86_400);
    let played = play(Moody::target(), &late).await;
    assert_eq!(played.too_far_ahead, Some(2));
}

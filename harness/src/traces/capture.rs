//! A target that records its answers as a trace.

use std::sync::Arc;

use async_trait::async_trait;
use smalt_protocol::{Service, Timestamp};
use tokio::sync::Mutex;

use super::format::Trace;
use super::scrub::{self, About, Seen, account_of_host};
use crate::target::{Ability, About as Place, Setup, Target, TargetError};
use crate::wire::url::Url;
use crate::wire::{Answer, Request};

/// A target, with the exchanges so far. The setup of a recording is left out.
pub struct Capture {
    inner: Arc<dyn Target>,
    about: Place,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Time of the first request.
    begun: Option<Timestamp>,
    now: Option<Timestamp>,
    /// Whether the next call belongs to the recording.
    listens: bool,
    seen: Vec<Seen>,
}

impl Capture {
    /// Wraps a target.
    pub fn of(inner: Arc<dyn Target>) -> Capture {
        // A recording is moved in time for a target without a clock, and requests that need
        // settings are sent anyway, because the comparison needs both sides.
        let able = [Ability::Clock, Ability::Settings];
        let about = inner.about().clone().able(able);
        Capture {
            inner,
            about,
            state: Mutex::default(),
        }
    }

    /// Returns the exchanges as a trace of this service, with `name` as its target.
    pub async fn trace(&self, service: Service, name: &str, seed: Option<u64>) -> Trace {
        let state = self.state.lock().await;
        let begun = state.begun.unwrap_or(Timestamp::UNIX_EPOCH);
        let about = About {
            service,
            target: name.to_owned(),
            recorded_at: begun.iso_ticks(),
            authority: state
                .seen
                .first()
                .map(|s| s.host.clone())
                .unwrap_or_default(),
            seed,
        };
        scrub::trace(&about, &state.seen)
    }
}

#[async_trait]
impl Target for Capture {
    fn about(&self) -> &Place {
        &self.about
    }

    async fn reset(&self, setup: &Setup) -> Result<(), TargetError> {
        self.state.lock().await.listens = false;
        self.inner.reset(setup).await
    }

    async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError> {
        self.state.lock().await.now = Some(now);
        self.inner.set_clock(now).await
    }

    async fn begin(&self) {
        self.state.lock().await.listens = true;
        self.inner.begin().await;
    }

    async fn call(&self, request: Request) -> Result<Answer, TargetError> {
        let answer = self.inner.call(request.clone()).await?;
        let mut state = self.state.lock().await;
        if std::mem::take(&mut state.listens) {
            let now = state.now.unwrap_or(Timestamp::UNIX_EPOCH);
            let begun = *state.begun.get_or_insert(now);
            let t = now.since(begun).as_millis();
            let t = u64::try_from(t).unwrap_or(u64::MAX);
            state.seen.extend(seen(&request, &answer, t));
        }
        Ok(answer)
    }
}

fn seen(request: &Request, answer: &Answer, t: u64) -> Option<Seen> {
    let url = Url::parse(&request.url)?;
    // The root of an account in path style ends with a slash; in host style it is the slash.
    let target = match account_of_host(&url.authority) {
        Some(_) if url.path.is_empty() => format!("/{}", url.path_and_query()),
        _ => url.path_and_query(),
    };
    Some(Seen {
        t,
        host: url.authority.clone(),
        method: request.method.clone(),
        target,
        request_headers: request.headers.pairs(),
        request_body: request.body.clone(),
        status: answer.status,
        response_headers: answer.headers.pairs(),
        response_body: answer.body.clone(),
    })
}

//! A target whose answers are written down as they come.

use std::sync::Arc;

use async_trait::async_trait;
use smalt_protocol::{Service, Timestamp};
use tokio::sync::Mutex;

use crate::replay::hosts::Addressing;
use crate::replay::settings::AccountSettings;
use crate::replay::target::{Target, TargetError};
use crate::replay::uri::Url;
use crate::replay::wire::{Headers, Request, Response};
use crate::traces::format::Trace;
use crate::traces::scrub::{self, About, Seen, account_of_host};

/// A target, and what it was asked and answered so far. What sets a recording up is left out.
pub struct Capture {
    inner: Arc<dyn Target>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When the first request was sent.
    begun: Option<Timestamp>,
    now: Option<Timestamp>,
    /// The next call belongs to the recording.
    listens: bool,
    seen: Vec<Seen>,
}

impl Capture {
    /// Listens to this target.
    pub fn of(inner: Arc<dyn Target>) -> Capture {
        Capture {
            inner,
            state: Mutex::default(),
        }
    }

    /// What was said, as a trace of this service whose target is called `name`.
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
    fn addressing(&self) -> Addressing {
        self.inner.addressing()
    }

    async fn reset(&self, settings: &AccountSettings, start: Timestamp) -> Result<(), TargetError> {
        self.state.lock().await.listens = false;
        self.inner.reset(settings, start).await
    }

    async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError> {
        self.state.lock().await.now = Some(now);
        self.inner.set_clock(now).await
    }

    async fn begin(&self) {
        self.state.lock().await.listens = true;
        self.inner.begin().await;
    }

    async fn call(&self, request: Request) -> Result<Response, TargetError> {
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

fn seen(request: &Request, answer: &Response, t: u64) -> Option<Seen> {
    let url = Url::parse(&request.url)?;
    let pairs = |headers: &Headers| {
        let pairs = headers.iter();
        pairs.map(|(n, v)| (n.to_owned(), v.to_owned())).collect()
    };
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
        request_headers: pairs(&request.headers),
        request_body: request.body.clone(),
        status: answer.status,
        response_headers: pairs(&answer.headers),
        response_body: answer.body.clone(),
    })
}

//! A target that answers as recorded, with other ETags and mapped accounts.
//!
//! It proves that the comparison raises no false alarm, that live values reach later requests, and
//! that every request which the service accepted is signed.

use std::collections::VecDeque;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;
use tokio::sync::Mutex;

use super::hosts::{Addressing, Hosts};
use super::prepare::account_of;
use super::recording::Recording;
use super::verify;
use crate::target::{Ability, About, Setup, Target, TargetError};
use crate::wire::{Answer, Headers, Request};

/// Prefix of ETags in the corpus, which are ticks of this century; the mirror's ETags begin
/// differently.
const RECORDED_ETAG: &str = "0x8D";
const LIVE_ETAG: &str = "0xFD";
/// Status of the answer to a request that has a recorded ETag in place of a live one.
const NOT_SUBSTITUTED: u16 = 599;

/// Answers with the answers of one recording, in order.
pub struct Mirror {
    about: About,
    /// Accounts to map where the recorder left foreign names; `None` leaves them as recorded.
    hosts: Option<Hosts>,
    state: Mutex<State>,
}

struct State {
    answers: VecDeque<Answer>,
    /// Answer to the next call; `None` during the set-up.
    next: Option<Answer>,
    /// Recorded ETags that were returned so far.
    given: Vec<String>,
}

impl Mirror {
    /// Mirrors a recording whose addresses name no other account, so that a foreign one in an
    /// answer is returned as it is.
    pub fn verbatim(recording: &Recording) -> Mirror {
        Mirror {
            hosts: None,
            ..Mirror::of(recording)
        }
    }

    /// Mirrors a recording.
    pub fn of(recording: &Recording) -> Mirror {
        let answers = recording
            .interactions
            .iter()
            .map(|i| i.response.clone())
            .collect();
        let about = About::by_host("mirror").able([Ability::Clock, Ability::Settings]);
        let state = Mutex::new(State {
            answers,
            next: None,
            given: Vec::new(),
        });
        Mirror {
            about,
            hosts: Some(Hosts::of(recording, Addressing::Host)),
            state,
        }
    }
}

#[async_trait]
impl Target for Mirror {
    fn about(&self) -> &About {
        &self.about
    }

    async fn reset(&self, _: &Setup) -> Result<(), TargetError> {
        self.state.lock().await.given.clear();
        Ok(())
    }

    async fn set_clock(&self, _: Timestamp) -> Result<(), TargetError> {
        Ok(())
    }

    async fn begin(&self) {
        let mut state = self.state.lock().await;
        state.next = state.answers.pop_front();
    }

    async fn call(&self, request: Request) -> Result<Answer, TargetError> {
        let mut state = self.state.lock().await;
        let Some(answer) = state.next.take() else {
            return Ok(empty(201));
        };
        let stale = |etag: &String| {
            request
                .headers
                .iter()
                .any(|(_, value)| value.contains(etag))
        };
        if state.given.iter().any(stale) {
            return Ok(empty(NOT_SUBSTITUTED));
        }
        // Requests that the service accepted must be signed; rejected ones need not be.
        if answer.status < 300
            && let Some(problem) = verify::problem(&request)
        {
            return Err(TargetError::Call(problem));
        }
        if let Some(etag) = answer.headers.get("etag") {
            let etag = etag.trim_matches('"').to_owned();
            if etag.starts_with(RECORDED_ETAG) {
                state.given.push(etag);
            }
        }
        Ok(self.renamed(answer, &request))
    }
}

impl Mirror {
    fn renamed(&self, mut answer: Answer, request: &Request) -> Answer {
        let hosts = self.hosts.as_ref();
        let account = hosts.and_then(|hosts| account_of(hosts, request));
        let account = account.unwrap_or_default();
        let mapped = |text: &str| match hosts {
            Some(hosts) => hosts.rewrite_text(text, &account),
            None => text.to_owned(),
        };
        for (_, value) in answer.headers.iter_mut() {
            let mapped = mapped(value);
            *value = mapped.replace(RECORDED_ETAG, LIVE_ETAG);
        }
        let Ok(text) = std::str::from_utf8(&answer.body) else {
            return answer;
        };
        let mut text = mapped(text);
        if text.contains("<Etag>") {
            text = text.replace(RECORDED_ETAG, LIVE_ETAG);
        }
        if answer.headers.has("content-length") && !answer.body.is_empty() {
            answer.headers.set("content-length", text.len().to_string());
        }
        answer.body = Bytes::from(text);
        answer
    }
}

fn empty(status: u16) -> Answer {
    Answer {
        status,
        headers: Headers::default(),
        body: Bytes::new(),
    }
}

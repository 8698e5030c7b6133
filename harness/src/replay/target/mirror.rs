//! A target that answers as recorded, with other ETags and mapped accounts.
//!
//! It proves that the comparison raises no false alarm, that live values reach later requests, and
//! that every request which the service accepted is signed.

use std::collections::VecDeque;

use async_trait::async_trait;
use bytes::Bytes;
use smalt_protocol::Timestamp;
use tokio::sync::Mutex;

use super::{Target, TargetError, verify};
use crate::replay::hosts::{Addressing, Hosts};
use crate::replay::prepare::account_of;
use crate::replay::recording::Recording;
use crate::replay::settings::AccountSettings;
use crate::replay::wire::{Headers, Request, Response};

/// ETags of the corpus are ticks, which begin so in this century; the mirror's begin otherwise.
const RECORDED_ETAG: &str = "0x8D";
const LIVE_ETAG: &str = "0xFD";
/// The answer to a request that carries a recorded ETag where it should carry a live one.
const NOT_SUBSTITUTED: u16 = 599;

/// The recorded answers of one recording, in order.
pub struct Mirror {
    /// Accounts to map, where the recorder left foreign names; `None` says them as recorded.
    hosts: Option<Hosts>,
    state: Mutex<State>,
}

struct State {
    answers: VecDeque<Response>,
    /// What the next call gets; `None` while the set-up runs.
    next: Option<Response>,
    /// ETags given out so far, as recorded.
    given: Vec<String>,
}

impl Mirror {
    /// Mirrors this recording. Its addresses name no account but its own, so that a foreign one in
    /// an answer is told as it is.
    pub fn verbatim(recording: &Recording) -> Mirror {
        Mirror {
            hosts: None,
            ..Mirror::of(recording)
        }
    }

    /// Mirrors this recording.
    pub fn of(recording: &Recording) -> Mirror {
        let answers = recording
            .interactions
            .iter()
            .map(|i| i.response.clone())
            .collect();
        let state = Mutex::new(State {
            answers,
            next: None,
            given: Vec::new(),
        });
        Mirror {
            hosts: Some(Hosts::of(recording, Addressing::Host)),
            state,
        }
    }
}

#[async_trait]
impl Target for Mirror {
    fn addressing(&self) -> Addressing {
        Addressing::Host
    }

    async fn reset(&self, _: &AccountSettings, _: Timestamp) -> Result<(), TargetError> {
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

    async fn call(&self, request: Request) -> Result<Response, TargetError> {
        let mut state = self.state.lock().await;
        let Some(answer) = state.next.take() else {
            return Ok(Response {
                status: 201,
                headers: Headers::default(),
                body: Bytes::new(),
            });
        };
        let stale = |etag: &String| {
            request
                .headers
                .iter()
                .any(|(_, value)| value.contains(etag))
        };
        if state.given.iter().any(stale) {
            let headers = Headers::default();
            return Ok(Response {
                status: NOT_SUBSTITUTED,
                headers,
                body: Bytes::new(),
            });
        }
        // What the service accepted must be signed; what it refused may well not be.
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
    fn renamed(&self, mut answer: Response, request: &Request) -> Response {
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

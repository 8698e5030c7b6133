//! A generated history as traces: what was sent to the emulator and what it answered.

use std::sync::PoisonError;

use bytes::Bytes;
use smalt_model::vocabulary::Operation;
use smalt_protocol::{ApiVersion, Service, Timestamp};

use super::format::Trace;
use super::scrub::{self, About, REDACTED, Seen};
use crate::histories::coverage::Coverage;
use crate::histories::generate::{Intent, Step};
use crate::histories::render::Request;
use crate::histories::run::{Failure, Judging, run};
use crate::histories::server::{Answer, START_S, Server};
use crate::servers::access::ACCOUNT;

/// The host that requests of histories are addressed to.
const HOST: &str = "127.0.0.1:10000";
/// Until when the signatures of copy sources hold: longer than any recording is kept.
const SOURCE_EXPIRY: &str = "2099-01-01T00%3A00%3A00Z";

/// A history as it was played: one trace for each service that it asked something of.
#[derive(Debug)]
pub struct Told {
    /// Blob before queue. A failing history's last exchange, in the trace of its service, is the
    /// one that was answered wrongly.
    pub traces: Vec<Trace>,
    /// The step that was answered wrongly, if there was one.
    pub failure: Option<Failure>,
}

impl Told {
    /// The trace of one service.
    pub fn of(&self, service: Service) -> Option<&Trace> {
        self.traces.iter().find(|one| one.header.service == service)
    }
}

/// Plays a history on this server and writes down what was said.
pub async fn tell(mut server: Server, history: &[Operation], seed: Option<u64>) -> Told {
    let log = server.keep();
    let step = |operation: &Operation| Step {
        intent: Intent::Valid,
        operation: operation.clone(),
    };
    let history: Vec<Step> = history.iter().map(step).collect();
    let judging = Judging {
        every: 0,
        dry: false,
    };
    let failure = run(server, &history, judging, &mut Coverage::default())
        .await
        .err();
    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let trace = |service: Service| {
        let of_it = log.iter().filter(|(asked, _)| *asked == service);
        let seen: Vec<Seen> = of_it.map(|(_, seen)| seen.clone()).collect();
        (!seen.is_empty()).then(|| trace(service, seed, &seen))
    };
    let services = [Service::Blob, Service::Queue];
    Told {
        traces: services.into_iter().filter_map(trace).collect(),
        failure,
    }
}

/// What one service was asked and answered in a history.
pub fn trace(service: Service, seed: Option<u64>, seen: &[Seen]) -> Trace {
    let about = About {
        service,
        target: "smalt".to_owned(),
        recorded_at: Timestamp::from_unix_s(START_S).iso_ticks(),
        authority: HOST.to_owned(),
        seed,
    };
    scrub::trace(&about, seen)
}

/// One exchange of a history, as if it had been signed with the account's key.
pub fn seen(request: &Request, version: ApiVersion, answer: &Answer, t: u64) -> Seen {
    let own = [
        ("x-ms-version", version.to_string()),
        ("authorization", REDACTED.to_owned()),
        ("content-length", request.body.len().to_string()),
    ];
    let mut headers: Vec<(String, String)> = own.map(|(n, v)| (n.to_owned(), v)).into();
    for (name, value) in &request.headers {
        let value = match name.as_str() {
            "x-ms-copy-source" => source(value),
            _ => value.clone(),
        };
        headers.push((name.clone(), value));
    }
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let answered = answer.headers.iter();
    Seen {
        t,
        host: HOST.to_owned(),
        method: request.method.to_string(),
        target: format!("/{ACCOUNT}/{}", request.path),
        request_headers: headers,
        request_body: Bytes::from(request.body.clone()),
        status: answer.status,
        response_headers: answered
            .map(|(n, v)| (n.as_str().to_owned(), text(v)))
            .collect(),
        response_body: answer.body.clone(),
    }
}

/// The address of a copy's source, with a signature that a replay makes anew.
fn source(path: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    let blob = format!("http://{HOST}/{ACCOUNT}/{path}{separator}sv=2021-12-02&ss=b&srt=sco");
    format!("{blob}&sp=r&se={SOURCE_EXPIRY}&sig={REDACTED}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use smalt_model::vocabulary::{
        BlobId, BlobOperation, ContainerOperation, Content, Guard, Metadata, QueueOperation,
    };

    use super::*;
    use crate::replay::player::{Outcome, play};
    use crate::replay::target::inproc::InProcess;
    use crate::traces::convert;

    fn history() -> Vec<Operation> {
        let container = |operation| Operation::Container("con0".to_owned(), operation);
        let none = Guard {
            lease: None,
            condition: None,
        };
        let id = BlobId {
            container: "con0".to_owned(),
            blob: "dir/b0".to_owned(),
        };
        let content = Content {
            seed: 1,
            length: 600,
        };
        let put = BlobOperation::Put(content, Metadata::new(), none);
        let copy = BlobOperation::Copy {
            source: id.clone(),
            snapshot: None,
            source_condition: None,
            metadata: Metadata::new(),
            guard: none,
        };
        let other = BlobId {
            blob: "b0".to_owned(),
            ..id.clone()
        };
        let queue = |operation| Operation::Queue("que0".to_owned(), operation);
        vec![
            container(ContainerOperation::Create(Metadata::new())),
            container(ContainerOperation::Delete(none)),
            container(ContainerOperation::Create(Metadata::new())),
            Operation::Blob(id, put),
            Operation::Advance { seconds: 60 },
            Operation::Blob(other, copy),
            queue(QueueOperation::Create(Metadata::new())),
            queue(QueueOperation::Get),
        ]
    }

    /// A history becomes a trace for each service, which the replay of traces takes as any other.
    #[tokio::test]
    async fn a_history_is_told_and_replays() {
        let told = tell(Server::in_memory().unwrap(), &history(), Some(7)).await;
        assert!(told.failure.is_none(), "{:?}", told.failure);
        assert_eq!(told.of(Service::Blob).unwrap().exchanges.len(), 5);
        assert_eq!(told.of(Service::Queue).unwrap().exchanges.len(), 2);
        for trace in told.traces {
            assert_eq!(trace.header.seed, Some(7));
            let text = trace.write().unwrap();
            assert!(!text.contains(ACCOUNT), "{text}");
            let recording = convert::recording("told", &text).unwrap();
            let played = play(Arc::new(InProcess::default()), &recording).await;
            assert_eq!(played.setup_problems, Vec::<String>::new());
            for outcome in played.outcomes {
                assert_eq!(outcome, Outcome::Passed);
            }
        }
    }
}

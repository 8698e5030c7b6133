//! Runs a generated history against the emulator, and records it as traces.

use std::sync::PoisonError;

use smalt_model::vocabulary::Operation;
use smalt_protocol::{Service, Timestamp};

use super::format::Trace;
use super::scrub::{self, About, REDACTED, Seen};
use crate::histories::coverage::Coverage;
use crate::histories::generate::{Intent, Step};
use crate::histories::run::{Failure, Judging, run};
use crate::histories::server::{START_S, Server};
use crate::replay::credentials::SAS_PARAMETERS;
use crate::wire::in_process;
use crate::wire::url::Url;

/// A history that was run: one trace for each service that it used.
#[derive(Debug)]
pub struct Told {
    /// Traces in the order blob, queue, table.
    pub traces: Vec<Trace>,
    /// The first step with a wrong answer; nothing was sent after it.
    pub failure: Option<Failure>,
}

impl Told {
    /// Returns the trace of a service.
    pub fn of(&self, service: Service) -> Option<&Trace> {
        self.traces.iter().find(|one| one.header.service == service)
    }
}

/// Runs a history on this server, checked by the model, and records it.
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
    let judged = run(server, &history, judging, &mut Coverage::default()).await;
    let failure = judged.err();
    let log = log.lock().unwrap_or_else(PoisonError::into_inner);
    let traces = Service::ALL.into_iter().filter_map(|service| {
        let seen: Vec<Seen> = of(service, &log).cloned().collect();
        (!seen.is_empty()).then(|| trace(service, seed, &seen))
    });
    Told {
        traces: traces.collect(),
        failure,
    }
}

fn authority(service: Service) -> &'static str {
    in_process::base(service).trim_start_matches("http://")
}

/// Returns the exchanges of one service.
pub fn of(service: Service, log: &[Seen]) -> impl Iterator<Item = &Seen> {
    log.iter().filter(move |one| one.host == authority(service))
}

/// Returns the trace of one service.
pub fn trace(service: Service, seed: Option<u64>, seen: &[Seen]) -> Trace {
    let about = About {
        service,
        target: "smalt".to_owned(),
        recorded_at: Timestamp::from_unix_s(START_S).iso_ticks(),
        authority: authority(service).to_owned(),
        seed,
    };
    let seen: Vec<Seen> = seen.iter().map(signed_by_key).collect();
    scrub::trace(&about, &seen)
}

/// Returns an exchange as if signed by the account key, because histories sign each URL.
fn signed_by_key(seen: &Seen) -> Seen {
    let mut seen = seen.clone();
    if let Some(mut url) = Url::parse(&format!("http://{}{}", seen.host, seen.target)) {
        SAS_PARAMETERS
            .iter()
            .for_each(|name| url.remove_param(name));
        url.query = url.query.filter(|pairs| !pairs.is_empty());
        seen.target = url.path_and_query();
    }
    let signature = ("authorization".to_owned(), REDACTED.to_owned());
    seen.request_headers.push(signature);
    seen
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use smalt_model::vocabulary::{
        BlobId, BlobOperation, ContainerOperation, Content, Guard, Labels, Metadata, QueueOperation,
    };

    use super::*;
    use crate::replay::player::{Outcome, play};
    use crate::target::in_process::InProcess;
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
        let put = BlobOperation::Put(content, Labels::default(), none);
        let copy = BlobOperation::Copy {
            source: id.clone(),
            snapshot: None,
            source_condition: None,
            labels: Labels::default(),
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

    /// A history gives a trace for each service, which can be replayed like any other.
    #[tokio::test]
    async fn recorded_history_replays() {
        let told = tell(Server::in_memory().unwrap(), &history(), Some(7)).await;
        assert!(told.failure.is_none(), "{:?}", told.failure);
        assert_eq!(told.of(Service::Blob).unwrap().exchanges.len(), 5);
        assert_eq!(told.of(Service::Queue).unwrap().exchanges.len(), 2);
        for trace in told.traces {
            assert_eq!(trace.header.seed, Some(7));
            let text = trace.write().unwrap();
            assert!(!text.contains("devstoreaccount1"), "{text}");
            let recording = convert::recording("told", &text).unwrap();
            let played = play(Arc::new(InProcess::default()), &recording).await;
            assert_eq!(played.setup_problems, Vec::<String>::new());
            for outcome in played.outcomes {
                assert_eq!(outcome, Outcome::Passed);
            }
        }
    }
}

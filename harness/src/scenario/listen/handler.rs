//! A handler that treats messages as the plan says, and records what it did.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use smalt_listener::handler::{Context, Handler, Message, Verdict};

use super::plan::{Behaviour, ListenPlan};
use crate::scenario::history::Happening;
use crate::scenario::wire::Wire;

/// The handler of one life.
pub(super) struct Scripted {
    /// Records the acts.
    pub wire: Arc<Wire>,
    /// Name of the life.
    pub actor: String,
    pub plan: Arc<ListenPlan>,
}

/// A run of the handler. Its end is recorded even when it is dropped in the middle.
struct Run<'a> {
    of: &'a Scripted,
    id: String,
    count: u32,
    verdict: &'static str,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let ended = Happening::Handled {
            id: std::mem::take(&mut self.id),
            count: self.count,
            verdict: self.verdict,
        };
        self.of.wire.note(&self.of.actor, ended);
    }
}

#[async_trait]
impl Handler for Scripted {
    async fn handle(&self, message: &Message, _ctx: &Context) -> Verdict {
        let body = String::from_utf8_lossy(&message.body).into_owned();
        let behaviour = self.plan.behaviour_of(&body);
        let started = Happening::Started {
            id: message.id.clone(),
            count: message.dequeue_count,
            body,
        };
        self.wire.note(&self.actor, started);
        let mut run = Run {
            of: self,
            id: message.id.clone(),
            count: message.dequeue_count,
            verdict: "dropped",
        };
        let (verdict, name) = act(behaviour, message.dequeue_count).await;
        run.verdict = name;
        drop(run);
        if name == "panic" {
            // Does not print the message of the panic.
            std::panic::resume_unwind(Box::new("the handler panics by plan"));
        }
        verdict
    }
}

async fn act(behaviour: Option<Behaviour>, count: u32) -> (Verdict, &'static str) {
    let (ok, retry) = ((Verdict::Ok, "ok"), |why: &str| {
        (Verdict::retry(why), "retry")
    });
    match behaviour {
        Some(Behaviour::Ok(ms)) => {
            tokio::time::sleep(Duration::from_millis(u64::from(ms))).await;
            ok
        }
        Some(Behaviour::Slow(seconds)) => {
            tokio::time::sleep(Duration::from_secs(u64::from(seconds))).await;
            ok
        }
        Some(Behaviour::FailFirst(n)) if count <= n => retry("fails by plan"),
        Some(Behaviour::RetryAfter(n, seconds)) if count <= n => {
            let after = Duration::from_secs(u64::from(seconds));
            (Verdict::retry_after(after, "later, by plan"), "retry")
        }
        Some(Behaviour::PanicFirst(n)) if count <= n => (Verdict::retry("panics"), "panic"),
        Some(Behaviour::Hang) => {
            std::future::pending::<()>().await;
            retry("never said")
        }
        Some(Behaviour::Reject) => (Verdict::reject("rejected by plan"), "reject"),
        Some(_) => ok,
        None => (Verdict::reject("no message of the plan"), "reject"),
    }
}

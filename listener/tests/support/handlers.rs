//! Handlers that behave as their message says.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use smalt_listener::handler::{Context, Handler, Message, Verdict};
use tokio::time::Instant;

/// A started run of a handler.
#[derive(Clone, Debug)]
pub struct Ran {
    pub id: String,
    pub dequeue_count: u32,
    pub began: Instant,
    /// When the run succeeded; `None` if it did not.
    pub ok_at: Option<Instant>,
}

/// Obeys the text: `ok`, `sleep <ms>`, `retry`, `retry <s>`, `reject`, `panic`, `hang`, `fail <n>`
/// (fails in the first n attempts).
#[derive(Clone, Default)]
pub struct Obey {
    runs: Arc<Mutex<Vec<Ran>>>,
}

impl Obey {
    pub fn runs(&self) -> Vec<Ran> {
        self.runs.lock().unwrap().clone()
    }

    pub fn finished(&self, id: &str) -> bool {
        self.runs().iter().any(|r| r.id == id && r.ok_at.is_some())
    }
}

#[async_trait]
impl Handler for Obey {
    async fn handle(&self, message: &Message, _ctx: &Context) -> Verdict {
        let at = {
            let mut runs = self.runs.lock().unwrap();
            runs.push(Ran {
                id: message.id.clone(),
                dequeue_count: message.dequeue_count,
                began: Instant::now(),
                ok_at: None,
            });
            runs.len() - 1
        };
        let text = String::from_utf8_lossy(&message.body).into_owned();
        let mut words = text.split(' ');
        let (word, number) = (
            words.next(),
            words.next().and_then(|n| n.parse::<u64>().ok()),
        );
        let verdict = match (word, number) {
            (Some("sleep"), Some(ms)) => {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Verdict::Ok
            }
            (Some("retry"), after) => Verdict::Retry {
                after: after.map(Duration::from_secs),
                reason: "asked to".to_owned(),
            },
            (Some("fail"), Some(n)) if u64::from(message.dequeue_count) <= n => {
                Verdict::retry("not yet")
            }
            (Some("reject"), _) => Verdict::reject("bad order"),
            (Some("panic"), _) => std::panic::panic_any("as told".to_owned()),
            (Some("hang"), _) => std::future::pending().await,
            _ => Verdict::Ok,
        };
        if verdict == Verdict::Ok {
            self.runs.lock().unwrap()[at].ok_at = Some(Instant::now());
        }
        verdict
    }
}

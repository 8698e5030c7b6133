//! One client of a queue, and its log.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Method;
use rand_chacha::ChaCha8Rng;
use rand_core::RngCore as _;
use smalt_protocol::uri::encode_query;

use super::events::{Event, Given, Outcome, What};
use crate::histories::documents;
use crate::wire::Answer;

/// Name of the queue.
pub const QUEUE: &str = "soak";
/// Percentage of calls that lose their answer.
const LOST_PERCENT: u32 = 3;
/// Most messages that a client keeps; beyond that it forgets the oldest.
const HELD_MAX: usize = 64;
/// Visibility timeouts in seconds: most expire while the client still has the message.
const HIDDEN_S: [u64; 5] = [1, 1, 2, 5, 30];

/// Sends requests to the service.
pub trait Transport {
    /// Sends a request about the queue; `path` follows the queue's name.
    fn send(
        &mut self,
        method: Method,
        path: &str,
        body: String,
    ) -> impl Future<Output = Result<Answer, String>> + Send;

    /// Returns the service's time in milliseconds of the Unix epoch.
    fn now_ms(&self) -> u64;
}

/// The log that all clients share.
#[derive(Debug, Default)]
pub struct Log {
    ticks: AtomicU64,
    texts: AtomicU64,
    calls: AtomicU64,
    events: Mutex<Vec<Event>>,
}

impl Log {
    fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    fn note(&self, event: Event) {
        let events = self.events.lock();
        events
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .push(event);
    }

    /// Returns the number of calls so far.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns all events.
    pub fn into_events(self) -> Vec<Event> {
        let events = self.events.into_inner();
        events.unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A client of the queue.
pub struct Worker<'a, T> {
    client: usize,
    transport: T,
    random: ChaCha8Rng,
    log: &'a Log,
    held: VecDeque<(String, String)>,
    /// Pop receipts that were replaced and must not work.
    old: VecDeque<(String, String)>,
}

/// A call in progress.
struct Begun {
    called: u64,
    is_lost: bool,
}

impl<'a, T: Transport> Worker<'a, T> {
    /// Creates a client without messages.
    pub fn new(client: usize, transport: T, random: ChaCha8Rng, log: &'a Log) -> Self {
        Worker {
            client,
            transport,
            random,
            log,
            held: VecDeque::new(),
            old: VecDeque::new(),
        }
    }

    /// Makes one random call.
    ///
    /// # Errors
    /// When there is no answer, or one that no call of this kind has.
    pub async fn act(&mut self) -> Result<(), String> {
        self.log.calls.fetch_add(1, Ordering::Relaxed);
        match self.below(100) {
            0..32 => self.put().await,
            32..62 => {
                let (most, hidden_s) = (1 + self.below(8), self.hidden_s());
                self.receive(most, hidden_s).await.map(drop)
            }
            62..86 => {
                let Some((id, receipt)) = self.take_held() else {
                    return self.put().await;
                };
                self.delete(id, receipt).await
            }
            86..96 => {
                let Some((id, receipt)) = self.take_held() else {
                    return self.put().await;
                };
                self.update(id, receipt).await
            }
            _ => match self.old.pop_front() {
                Some((id, receipt)) => self.delete(id, receipt).await,
                None => self.put().await,
            },
        }
    }

    /// Gets everything that is visible and hides it permanently.
    pub async fn drain(&mut self) -> Result<(), String> {
        const WEEK_S: u64 = 7 * 24 * 60 * 60;
        while self.receive_for_certain(32, WEEK_S).await? > 0 {}
        Ok(())
    }

    fn below(&mut self, end: u32) -> u32 {
        self.random.next_u32() % end.max(1)
    }

    fn hidden_s(&mut self) -> u64 {
        let at = self.below(u32::try_from(HIDDEN_S.len()).unwrap_or(1));
        HIDDEN_S[at as usize]
    }

    fn take_held(&mut self) -> Option<(String, String)> {
        let end = u32::try_from(self.held.len()).unwrap_or(u32::MAX);
        let at = self.below(end) as usize;
        self.held.remove(at)
    }

    fn hold(&mut self, id: String, receipt: String) {
        self.held.push_back((id, receipt));
        if self.held.len() > HELD_MAX {
            self.held.pop_front();
        }
    }

    fn begin(&mut self) -> Begun {
        let is_lost = self.below(100) < LOST_PERCENT;
        Begun {
            called: self.log.tick(),
            is_lost,
        }
    }

    fn end(&self, begun: &Begun, what: What) {
        let at_ms = self.transport.now_ms();
        let returned = (!begun.is_lost).then(|| self.log.tick());
        self.log.note(Event {
            client: self.client,
            called: begun.called,
            returned,
            at_ms,
            what,
        });
    }

    async fn put(&mut self) -> Result<(), String> {
        let text = self.log.texts.fetch_add(1, Ordering::SeqCst);
        let hidden_s = if self.below(5) == 0 {
            self.hidden_s()
        } else {
            0
        };
        let path = format!("/messages?messagettl=-1&visibilitytimeout={hidden_s}");
        let begun = self.begin();
        let answer = self
            .transport
            .send(Method::POST, &path, document(text))
            .await?;
        let mut given = expect(&answer, 201)?;
        let made = given.pop().map(|given| Given { text, ..given });
        if !begun.is_lost
            && let Some(given) = &made
        {
            self.hold(given.id.clone(), given.receipt.clone());
        }
        let made = made.filter(|_| !begun.is_lost);
        self.end(&begun, What::Put { text, made });
        Ok(())
    }

    async fn receive(&mut self, most: u32, hidden_s: u64) -> Result<usize, String> {
        let begun = self.begin();
        self.receive_as(&begun, most, hidden_s).await
    }

    async fn receive_for_certain(&mut self, most: u32, hidden_s: u64) -> Result<usize, String> {
        let begun = Begun {
            called: self.log.tick(),
            is_lost: false,
        };
        self.receive_as(&begun, most, hidden_s).await
    }

    async fn receive_as(
        &mut self,
        begun: &Begun,
        most: u32,
        hidden_s: u64,
    ) -> Result<usize, String> {
        let path = format!("/messages?numofmessages={most}&visibilitytimeout={hidden_s}");
        let answer = self
            .transport
            .send(Method::GET, &path, String::new())
            .await?;
        let mut messages = expect(&answer, 200)?;
        let count = messages.len();
        if begun.is_lost {
            messages.clear();
        }
        for given in &messages {
            self.hold(given.id.clone(), given.receipt.clone());
        }
        self.end(begun, What::Got { messages });
        Ok(count)
    }

    async fn update(&mut self, id: String, receipt: String) -> Result<(), String> {
        let hidden_s = if self.below(3) == 0 {
            0
        } else {
            self.hidden_s()
        };
        let path = format!(
            "/messages/{id}?popreceipt={}&visibilitytimeout={hidden_s}",
            encode_query(&receipt)
        );
        let begun = self.begin();
        let answer = self
            .transport
            .send(Method::PUT, &path, String::new())
            .await?;
        // It cannot be later, because this is after the answer.
        let latest_s = self.transport.now_ms() / 1_000 + hidden_s;
        let mut visible_s = latest_s;
        let outcome = match outcome(&answer, 204)? {
            _ if begun.is_lost => Outcome::Lost,
            Outcome::Deleted => {
                let new = answer.header("x-ms-popreceipt").ok_or("no new receipt")?;
                let shown = answer.header("x-ms-time-next-visible");
                let shown = shown.and_then(smalt_protocol::Timestamp::parse_rfc1123);
                visible_s = shown.map_or(latest_s, smalt_protocol::Timestamp::unix_s);
                self.old.push_back((id.clone(), receipt.clone()));
                self.old.truncate(HELD_MAX);
                self.hold(id.clone(), new.to_owned());
                Outcome::Updated(new.to_owned())
            }
            refused => refused,
        };
        let what = What::Update {
            id,
            receipt,
            outcome,
            visible_s,
        };
        self.end(&begun, what);
        Ok(())
    }

    async fn delete(&mut self, id: String, receipt: String) -> Result<(), String> {
        let path = format!("/messages/{id}?popreceipt={}", encode_query(&receipt));
        let begun = self.begin();
        let answer = self
            .transport
            .send(Method::DELETE, &path, String::new())
            .await?;
        let outcome = match outcome(&answer, 204)? {
            _ if begun.is_lost => Outcome::Lost,
            outcome => outcome,
        };
        self.end(
            &begun,
            What::Delete {
                id,
                receipt,
                outcome,
            },
        );
        Ok(())
    }
}

fn document(text: u64) -> String {
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

fn expect(answer: &Answer, status: u16) -> Result<Vec<Given>, String> {
    if answer.status != status {
        return Err(format!("{} in place of {status}", answer.summary()));
    }
    let given = |message: documents::Message| Given {
        id: message.id,
        receipt: message.receipt.unwrap_or_default(),
        text: message
            .text
            .and_then(|text| text.parse().ok())
            .unwrap_or(u64::MAX),
        count: message.dequeue_count.unwrap_or(0),
        visible_s: message.visible_s.unwrap_or(0),
    };
    Ok(documents::messages(&answer.body)?
        .into_iter()
        .map(given)
        .collect())
}

/// Returns the result of using a pop receipt; the status `done` means deleted.
fn outcome(answer: &Answer, done: u16) -> Result<Outcome, String> {
    match (answer.status, answer.header("x-ms-error-code")) {
        (status, None) if status == done => Ok(Outcome::Deleted),
        (_, Some(code @ ("MessageNotFound" | "PopReceiptMismatch"))) => {
            Ok(Outcome::Refused(code.to_owned()))
        }
        _ => Err(format!("{} in place of {done}", answer.summary())),
    }
}

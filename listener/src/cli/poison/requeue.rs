//! `poison requeue` and `poison purge`: what they do to each message, and what came of it.
//!
//! A copy is deleted only after the put was acknowledged. When the answer to a put or delete is
//! lost, the message may be in both queues; it is never in neither.

use std::collections::{HashMap, HashSet};
use std::fmt;

use futures_util::stream::{self, StreamExt};
use serde_json::json;
use smalt_listener::rules::requeue::{self, Copy, Plan, Wish};
use smalt_protocol::Timestamp;
use smalt_protocol::terminal::one_line;
use smalt_sleeve::port::{CallContext, MessageTtl, PortError, PortResult, QueueMessage, Storage};

use super::payloads::Payloads;
use super::walk::{self, AT_ONCE, Held, Walk};

/// Which messages are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// Those with these ids: the copy's own, or the source message's.
    Ids(Vec<String>),
    /// All.
    All,
}

impl Chosen {
    fn covers(&self, message: &QueueMessage) -> bool {
        match self {
            Chosen::All => true,
            Chosen::Ids(ids) => {
                let source = source_id(message);
                ids.iter().any(|id| *id == message.id || *id == source)
            }
        }
    }
}

/// Id of the message that a copy was made of: its own when it is no envelope.
pub(crate) fn source_id(message: &QueueMessage) -> String {
    requeue::open(&message.text).map_or_else(|| message.id.clone(), |envelope| envelope.id)
}

/// What to do with the chosen messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action<'a> {
    /// Put them back.
    Requeue(Wish<'a>),
    /// Delete them.
    Purge,
}

/// What became of one message. Closed: each chosen message ends in one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Became {
    /// Put back as this new message, and deleted here.
    Requeued {
        queue: String,
        new_id: String,
        ttl: MessageTtl,
    },
    /// Put back, but the copy is still here: deleting it failed.
    RequeuedCopyKept { new_id: String, why: String },
    /// A second copy of a message that was put back just now: deleted.
    Duplicate,
    /// Deleted.
    Purged,
    /// A dry run: it would be put here.
    WouldRequeue { queue: String, ttl: MessageTtl },
    /// A dry run: it would be deleted.
    WouldPurge,
    /// Left here, for this reason.
    Left(String),
}

impl Became {
    /// The word for it in the output.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Became::Requeued { .. } => "requeued",
            Became::RequeuedCopyKept { .. } => "requeued_copy_kept",
            Became::Duplicate => "duplicate_deleted",
            Became::Purged => "purged",
            Became::WouldRequeue { .. } => "would_requeue",
            Became::WouldPurge => "would_purge",
            Became::Left(_) => "left",
        }
    }

    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Became::Left(_) | Became::RequeuedCopyKept { .. })
    }
}

/// What became of one message, with its history: the new message begins at dequeue count 0, so
/// this line is where the old count and error are noted.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) message: QueueMessage,
    pub(crate) became: Became,
}

impl Note {
    /// One line for people.
    pub(crate) fn line(&self) -> String {
        one_line(&self.to_string()).into_owned()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let envelope = requeue::open(&self.message.text);
        let mut note = json!({
            "outcome": self.became.name(),
            "id": source_id(&self.message),
            "copy_id": self.message.id,
            "dequeue_count": envelope.as_ref().map(|e| e.dequeue_count),
            "error": envelope.as_ref().map(|e| e.error.as_str()),
            "trace": envelope.as_ref().map(|e| e.trace.as_str()),
        });
        match &self.became {
            Became::Requeued { queue, new_id, ttl } => {
                note["queue"] = json!(queue);
                note["new_id"] = json!(new_id);
                note["ttl"] = json!(ttl_text(*ttl));
            }
            Became::WouldRequeue { queue, ttl } => {
                note["queue"] = json!(queue);
                note["ttl"] = json!(ttl_text(*ttl));
            }
            Became::RequeuedCopyKept { new_id, why } => {
                note["new_id"] = json!(new_id);
                note["reason"] = json!(why);
            }
            Became::Left(why) => note["reason"] = json!(why),
            Became::Duplicate | Became::Purged | Became::WouldPurge => {}
        }
        note
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", source_id(&self.message), self.became.name())?;
        match &self.became {
            Became::Requeued { queue, new_id, ttl } => {
                write!(f, "  in {queue} as {new_id}, expires: {}", ttl_text(*ttl))?;
            }
            Became::WouldRequeue { queue, ttl } => {
                write!(f, "  in {queue}, expires: {}", ttl_text(*ttl))?;
            }
            Became::RequeuedCopyKept { new_id, why } => {
                write!(f, "  as {new_id}; its copy is still here: {why}")?;
            }
            Became::Left(why) => write!(f, "  {why}")?,
            Became::Duplicate | Became::Purged | Became::WouldPurge => {}
        }
        match requeue::open(&self.message.text) {
            Some(e) => write!(f, "  (taken {} times: {})", e.dequeue_count, e.error),
            None => Ok(()),
        }
    }
}

fn ttl_text(ttl: MessageTtl) -> String {
    match ttl {
        MessageTtl::Never => "never".to_owned(),
        MessageTtl::After(life) => format!("in {} s", life.as_secs()),
    }
}

/// One order to the poison queue.
pub(crate) struct Order<'a> {
    pub(crate) storage: &'a dyn Storage,
    pub(crate) poison_queue: &'a str,
    pub(crate) chosen: Chosen,
    pub(crate) payloads: Payloads,
    pub(crate) action: Action<'a>,
    /// Messages at most.
    pub(crate) max: u64,
    /// Change nothing.
    pub(crate) dry_run: bool,
}

impl Order<'_> {
    /// Carries the order out, telling each message as it is done. What was taken and not chosen is
    /// given back, whatever happens.
    pub(crate) async fn carry_out(&self, mut tell: impl FnMut(Note)) -> PortResult<()> {
        if self.dry_run {
            return self.rehearse(tell).await;
        }
        let mut walk = Walk::new(self.storage, self.poison_queue);
        let mut back: Vec<Held> = Vec::new();
        let mut done = HashMap::new();
        let mut left = self.max;
        let result = loop {
            let batch = match walk.next().await {
                Ok(batch) if batch.is_empty() => break Ok(()),
                Ok(batch) => batch,
                Err(error) => break Err(error),
            };
            let (mut chosen, others): (Vec<Held>, Vec<Held>) = batch
                .into_iter()
                .partition(|held| self.chosen.covers(&held.message));
            back.extend(others);
            let most = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(chosen.len());
            back.extend(chosen.split_off(most));
            left -= chosen.len() as u64;
            let notes = self.work(chosen, &mut done).await;
            for (held, became) in notes {
                if matches!(became, Became::Left(_)) {
                    back.push(held.clone());
                }
                tell(Note {
                    message: held.message,
                    became,
                });
            }
            if left == 0 || self.all_found(&done) {
                break Ok(());
            }
        };
        walk::release(self.storage, self.poison_queue, &back).await;
        result
    }

    /// Whether every id that was named is done: nothing further needs to be taken.
    fn all_found(&self, done: &HashMap<String, String>) -> bool {
        match &self.chosen {
            Chosen::All => false,
            Chosen::Ids(ids) => ids.iter().all(|id| done.contains_key(id)),
        }
    }

    async fn rehearse(&self, mut tell: impl FnMut(Note)) -> PortResult<()> {
        let (messages, now) = walk::look(self.storage, self.poison_queue, u64::MAX).await?;
        let chosen = messages.into_iter().filter(|m| self.chosen.covers(m));
        let mut seen = HashSet::new();
        for message in chosen.take(usize::try_from(self.max).unwrap_or(usize::MAX)) {
            let became = match self.action {
                _ if let Some(why) = self.payloads.problem(&message) => {
                    Became::Left(why.to_owned())
                }
                Action::Purge => Became::WouldPurge,
                Action::Requeue(_) if !seen.insert(key(&message)) => Became::Duplicate,
                Action::Requeue(wish) => match plan(&message, &wish, now) {
                    Ok((queue, _, ttl)) => Became::WouldRequeue { queue, ttl },
                    Err(why) => Became::Left(why),
                },
            };
            tell(Note { message, became });
        }
        Ok(())
    }

    /// Works a batch off, several at a time; copies of one message one after the other.
    async fn work(
        &self,
        batch: Vec<Held>,
        done: &mut HashMap<String, String>,
    ) -> Vec<(Held, Became)> {
        let mut first = HashSet::new();
        let (firsts, copies): (Vec<Held>, Vec<Held>) = batch.into_iter().partition(|held| {
            let key = key(&held.message);
            !done.contains_key(&key) && first.insert(key)
        });
        let mut notes: Vec<(Held, Became)> = stream::iter(firsts)
            .map(|held| async move {
                let became = self.one(&held).await;
                (held, became)
            })
            .buffered(AT_ONCE)
            .collect()
            .await;
        for (held, became) in &notes {
            if !matches!(became, Became::Left(_)) {
                for id in [
                    key(&held.message),
                    source_id(&held.message),
                    held.message.id.clone(),
                ] {
                    done.insert(id, became.name().to_owned());
                }
            }
        }
        for held in copies {
            let became = match (done.contains_key(&key(&held.message)), self.action) {
                (true, Action::Requeue(_)) => match self.delete(&held.message).await {
                    Ok(()) => Became::Duplicate,
                    Err(error) => Became::Left(error.to_string()),
                },
                _ => self.one(&held).await,
            };
            notes.push((held, became));
        }
        notes
    }

    async fn one(&self, held: &Held) -> Became {
        let message = &held.message;
        if !held.is_ours() {
            return Became::Left("it took too long to get here: run it again".to_owned());
        }
        if let Some(why) = self.payloads.problem(message) {
            return Became::Left(why.to_owned());
        }
        let wish = match self.action {
            Action::Requeue(wish) => wish,
            Action::Purge => return self.purge(message).await,
        };
        let (queue, text, ttl) = match plan(message, &wish, held.server_time) {
            Ok(put) => put,
            Err(why) => return Became::Left(why),
        };
        if let Err(error) = self.payloads.admit(message, &queue).await {
            return Became::Left(error.to_string());
        }
        // One without an end gets it before the put: a listener may take the message at once.
        if ttl == MessageTtl::Never
            && let Err(error) = self.payloads.requeued(message, ttl).await
        {
            return Became::Left(error.to_string());
        }
        let cx = CallContext::default();
        let put = self
            .storage
            .put_message(&cx, &queue, &text, ttl, std::time::Duration::ZERO);
        let new_id = match put.await {
            Ok(receipt) => receipt.id,
            Err(error) => return Became::Left(not_put(&error)),
        };
        // One with an end, after the put: the copy here has none, and is still needed until then.
        let described = match ttl {
            MessageTtl::Never => Ok(()),
            MessageTtl::After(_) => self.payloads.requeued(message, ttl).await,
        };
        let deleted = match described {
            Ok(()) => self.delete(message).await,
            Err(error) => Err(error),
        };
        match deleted {
            Ok(()) => Became::Requeued { queue, new_id, ttl },
            Err(error) => Became::RequeuedCopyKept {
                new_id,
                why: error.to_string(),
            },
        }
    }

    /// Deletes a message for good, then its payload; which has an end before, so that nothing is
    /// left when this process ends in between.
    async fn purge(&self, message: &QueueMessage) -> Became {
        let deleted = match self.payloads.before_purge(message).await {
            Ok(()) => self.delete(message).await,
            Err(error) => Err(error),
        };
        match deleted {
            Ok(()) => {
                self.payloads.purged(message).await;
                Became::Purged
            }
            Err(error) => Became::Left(error.to_string()),
        }
    }

    async fn delete(&self, message: &QueueMessage) -> PortResult<()> {
        let cx = CallContext::default();
        let (id, receipt) = (&message.id, &message.pop_receipt);
        self.storage
            .delete_message(&cx, self.poison_queue, id, receipt)
            .await
    }
}

/// What tells two copies of one message from two messages: the source's id and the stored text.
fn key(message: &QueueMessage) -> String {
    match requeue::open(&message.text) {
        Some(envelope) => format!("{}\n{}", envelope.id, envelope.body),
        None => message.id.clone(),
    }
}

fn not_put(error: &PortError) -> String {
    use smalt_sleeve::port::ErrorKind::{Busy, OutcomeUnknown};
    match error.kind {
        Busy | OutcomeUnknown => format!("perhaps put, perhaps not: {error}"),
        _ => format!("not put: {error}"),
    }
}

/// The plan for a message, or why it is left.
fn plan(
    message: &QueueMessage,
    wish: &Wish<'_>,
    now: Timestamp,
) -> Result<(String, String, MessageTtl), String> {
    let copy = Copy {
        text: &message.text,
        expires: message.expires,
    };
    match requeue::plan(&copy, wish, now) {
        Plan::Put { queue, text, ttl } => Ok((queue, text, ttl)),
        Plan::Over(at) => Err(format!(
            "its life ended {}: give it one with --ttl",
            at.iso_s()
        )),
        Plan::Foreign(queue) => Err(format!("it came from queue `{queue}`: say where with --to")),
        Plan::Unreadable(at) => Err(format!("its expiry `{at}` is not a time: give --ttl")),
    }
}

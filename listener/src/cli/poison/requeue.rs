//! `poison requeue` and `poison purge`: processes each message and reports the result.
//!
//! A copy is deleted only after the put was acknowledged. If the answer to a put or delete is lost,
//! the message may be in both queues; it is always in at least one.

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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// Messages with these ids, either the copy's or the original message's.
    Ids(Vec<String>),
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

/// Returns the original message's id, or the message's own if it has no envelope.
pub(crate) fn source_id(message: &QueueMessage) -> String {
    requeue::open(&message.text).map_or_else(|| message.id.clone(), |envelope| envelope.id)
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Action<'a> {
    Requeue(Wish<'a>),
    Purge,
}

/// The result for one message. Each chosen message gets exactly one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Became {
    /// Put back as this new message; the copy is deleted.
    Requeued {
        queue: String,
        new_id: String,
        ttl: MessageTtl,
    },
    /// Put back, but deleting the copy failed.
    RequeuedCopyKept {
        new_id: String,
        why: String,
    },
    /// A second copy of a message that was just put back; deleted.
    Duplicate,
    Purged,
    /// Dry run: would be put into this queue.
    WouldRequeue {
        queue: String,
        ttl: MessageTtl,
    },
    /// Dry run: would be deleted.
    WouldPurge,
    /// Left in the poison queue, with the reason.
    Left(String),
}

impl Became {
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

/// The result for one message with its history. The new message starts at dequeue count 0, so only
/// this line keeps the old count and error.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) message: QueueMessage,
    pub(crate) became: Became,
}

impl Note {
    /// Formats the note as one line for a terminal.
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
                write!(f, "  as {new_id}; its copy was not deleted: {why}")?;
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

pub(crate) struct Order<'a> {
    pub(crate) storage: &'a dyn Storage,
    pub(crate) poison_queue: &'a str,
    pub(crate) chosen: Chosen,
    pub(crate) payloads: Payloads,
    pub(crate) action: Action<'a>,
    pub(crate) max: u64,
    pub(crate) dry_run: bool,
}

impl Order<'_> {
    /// Processes the chosen messages and passes a note for each to `tell`. Gives back every
    /// received message that was not chosen, even after an error.
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

    /// Returns whether every named id is done, so that no further messages need to be received.
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

    /// Processes a batch, several messages at once; copies of one message follow each other.
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
            return Became::Left("reaching it took too long; run the command again".to_owned());
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
        // A payload that must not expire is updated before the put, because a listener may receive
        // the message at once.
        if ttl == MessageTtl::Never
            && let Err(error) = self.payloads.requeued(message, ttl).await
        {
            return Became::Left(error.to_string());
        }
        let cx = CallContext::housekeeping();
        let put = self
            .storage
            .put_message(&cx, &queue, &text, ttl, std::time::Duration::ZERO);
        let new_id = match put.await {
            Ok(receipt) => receipt.id,
            Err(error) => return Became::Left(not_put(&error)),
        };
        // A payload that gets an expiry is updated after the put: until then the copy, which never
        // expires, still needs it.
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

    /// Deletes a message, then its payload. The payload gets an expiry before, so that nothing
    /// remains if this process ends in between.
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
        let cx = CallContext::housekeeping();
        let (id, receipt) = (&message.id, &message.pop_receipt);
        self.storage
            .delete_message(&cx, self.poison_queue, id, receipt)
            .await
    }
}

/// Returns the key that copies of one message share: the original's id and the stored text.
fn key(message: &QueueMessage) -> String {
    match requeue::open(&message.text) {
        Some(envelope) => format!("{}\n{}", envelope.id, envelope.body),
        None => message.id.clone(),
    }
}

fn not_put(error: &PortError) -> String {
    use smalt_sleeve::port::ErrorKind::{Busy, OutcomeUnknown};
    match error.kind {
        Busy | OutcomeUnknown => format!("may have been put: {error}"),
        _ => format!("not put: {error}"),
    }
}

/// Returns the put for a message, or the reason to leave it.
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
            "it expired at {}; set a new time to live with --ttl",
            at.iso_s()
        )),
        Plan::Foreign(queue) => Err(format!("it came from queue `{queue}`: choose with --to")),
        Plan::Unreadable(at) => Err(format!("its expiry `{at}` is not a time: give --ttl")),
    }
}

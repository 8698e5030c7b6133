//! The blobs of payloads: LS6, and DL26 at the end.
//!
//! - No blob is deleted while its message, or a copy of it in the poison queue, needs it.
//! - No blob that a copy in the poison queue needs has an expiry for the sweeper.
//! - Every other blob that is left has one: otherwise nothing would ever delete it.

use std::collections::BTreeMap;

use smalt_listener::payload::TTL_KEY;
use smalt_listener::payload::envelope::Claim;
use smalt_protocol::Timestamp;

use super::message::Known;
use crate::scenario::campaign::Violation;
use crate::scenario::history::{Event, Exchange};
use crate::scenario::listen::keeper::NAME;
use crate::scenario::listen::plan::{ListenPlan, WAVE_FIRST};
pub(super) use crate::scenario::listen::shape::PAYLOADS as CONTAINER;
use crate::scenario::marks::{Marks, mark};

/// One blob.
#[derive(Default)]
struct Blob {
    /// Number of its message.
    number: Option<usize>,
    /// Id of its message.
    message: Option<String>,
    /// Its expiry for the sweeper, and the number of the request that set it.
    due: Option<(Timestamp, usize)>,
    /// Number of the last request by which each life has read it.
    read: BTreeMap<String, usize>,
    is_gone: bool,
}

/// All payload blobs, by name.
#[derive(Default)]
pub(super) struct Payloads {
    blobs: BTreeMap<String, Blob>,
    /// Number of requests so far.
    requests: usize,
    /// Whether a sweeper removes what is due.
    is_swept: bool,
}

impl Payloads {
    /// Creates an empty list for a run of this plan.
    pub(super) fn new(plan: &ListenPlan) -> Self {
        Payloads {
            is_swept: plan.shape.swept,
            ..Payloads::default()
        }
    }

    /// Returns the number of the message whose text is an envelope: that of the payload which it
    /// names.
    pub(super) fn number_of(&mut self, plan: &ListenPlan, stored: &str) -> Option<usize> {
        let claim = claim(stored)?;
        let blob = self.blobs.get_mut(&claim.reference.blob)?;
        let sha256 = &claim.reference.sha256;
        let is_it = |number: &usize| {
            let body = plan.body(*number);
            plan.travels_apart(*number)
                && smalt_listener::payload::envelope::sha256_hex(body.as_bytes()) == *sha256
        };
        let last = WAVE_FIRST * 2;
        blob.number = (0..plan.messages.len()).chain(WAVE_FIRST..last).find(is_it);
        blob.number
    }

    /// Records that the message with this number has this id. Returns what is wrong if its payload
    /// is due before it expires.
    pub(super) fn belongs(
        &mut self,
        number: usize,
        id: &str,
        expires: Option<Timestamp>,
    ) -> Option<String> {
        let mut early = None;
        for (name, blob) in &mut self.blobs {
            if blob.number == Some(number) {
                blob.message = Some(id.to_owned());
                let due = blob.due.map(|(due, _)| due);
                let is_early = due.is_some_and(|due| expires.is_none_or(|at| due <= at));
                early = is_early.then(|| format!("{name} is due before its message expires"));
            }
        }
        early
    }

    /// Checks the start of a handler: its listener has found no expiry on the payload of a message
    /// that never expires, or has removed it.
    pub(super) fn started(
        &self,
        actor: &str,
        known: (&str, &Known),
        marks: &mut Marks,
    ) -> Option<String> {
        let (id, known) = known;
        let mut blobs = self.blobs.iter();
        let (name, blob) = blobs.find(|(_, blob)| blob.message.as_deref() == Some(id))?;
        mark(marks, "payload of a message that runs");
        let (_, set) = blob.due.filter(|_| known.expires.is_none())?;
        let read = blob.read.get(actor).is_some_and(|read| set < *read);
        read.then(|| format!("{actor} runs {id} and leaves {name} due"))
    }

    /// Records a request for a blob, and returns what is wrong with it.
    pub(super) fn exchange<'a>(
        &mut self,
        event: &Event,
        exchange: &Exchange,
        of: impl Fn(&str) -> Option<&'a Known>,
        marks: &mut Marks,
    ) -> Option<String> {
        exchange.done()?;
        self.requests += 1;
        let now = self.requests;
        let (_, _, name) = exchange.segments();
        let due = exchange.header(&format!("x-ms-meta-{TTL_KEY}"));
        let due = due.map(|due| (Timestamp::parse_iso(due).unwrap_or(Timestamp::MIN), now));
        match (exchange.method.as_str(), exchange.parameter("comp")) {
            ("PUT", None | Some("metadata")) if !name.is_empty() => {
                self.blobs.entry(name).or_default().due = due;
                None
            }
            ("GET", None) if !name.is_empty() => {
                let read = &mut self.blobs.entry(name).or_default().read;
                read.insert(event.actor.clone(), now);
                None
            }
            ("DELETE", _) => {
                let blob = self.blobs.entry(name.clone()).or_default();
                blob.is_gone = true;
                if event.actor == NAME {
                    mark(marks, "payload swept");
                }
                let known = blob.message.as_deref().and_then(of)?;
                if known.poisoned > 0 {
                    return Some(format!(
                        "{} deletes {name}, which a copy in the poison queue needs",
                        event.actor
                    ));
                }
                let over = known.expires.is_some_and(|expires| expires <= event.at);
                if !known.deleted && !known.swept_away && !over {
                    return Some(format!("{} deletes {name} before its message", event.actor));
                }
                mark(marks, "payload dropped after its message");
                None
            }
            _ => None,
        }
    }

    /// Checks the payload of a copy in the poison queue.
    pub(super) fn poisoned(&self, number: usize, marks: &mut Marks) -> Option<String> {
        let mut blobs = self.blobs.iter();
        let (name, blob) = blobs.find(|(_, blob)| blob.number == Some(number))?;
        mark(marks, "payload kept for the poison queue");
        if blob.is_gone {
            return Some(format!(
                "{name} is gone, and a copy in the poison queue needs it"
            ));
        }
        let what = "is due for the sweeper, and a copy in the poison queue needs it";
        blob.due.map(|_| format!("{name} {what}"))
    }

    /// Returns the blobs that should not be left at the end.
    pub(super) fn left(
        &self,
        messages: &BTreeMap<String, Known>,
        marks: &mut Marks,
    ) -> Vec<Violation> {
        let mut found = Vec::new();
        for (name, blob) in &self.blobs {
            let known = blob.message.as_ref().and_then(|id| messages.get(id));
            let Some(known) = known.filter(|_| !blob.is_gone) else {
                continue;
            };
            if blob.due.is_some() {
                mark(marks, "payload left to the sweeper");
                if self.is_swept {
                    let what = format!("{name} is due, and the sweeper has left it");
                    found.push(Violation::of_run("DL26", what));
                }
                if known.poisoned > 0 {
                    let what = format!("{name} is due, and a copy in the poison queue needs it");
                    found.push(Violation::of_run("LS6", what));
                }
            } else if known.poisoned == 0 && known.deleted {
                let what = format!("{name} is never deleted: its message is gone");
                found.push(Violation::of_run("DL26", what));
            }
        }
        found
    }
}

/// Parses the envelope in a message's text, in either encoding.
fn claim(stored: &str) -> Option<Claim> {
    use base64::Engine as _;
    let decoded = base64::engine::general_purpose::STANDARD
        .decode(stored)
        .ok();
    let body = decoded.unwrap_or_else(|| stored.as_bytes().to_vec());
    serde_json::from_slice(&body).ok()
}

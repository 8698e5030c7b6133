//! The blobs of payloads: LS6, and DL26 at the end.
//!
//! - No blob is deleted while its message, or a copy of it in the poison queue, needs it.
//! - No blob that a copy in the poison queue needs has an expiry for the sweeper.
//! - Every other blob that is left has one: otherwise nothing would ever delete it.

use std::collections::BTreeMap;

use smalt_listener::payload::TTL_KEY;
use smalt_listener::payload::envelope::Claim;

use super::message::Known;
use crate::scenario::campaign::Violation;
use crate::scenario::history::{Event, Exchange};
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
    /// Whether it has an expiry for the sweeper.
    is_due: bool,
    is_gone: bool,
}

/// All payload blobs, by name.
#[derive(Default)]
pub(super) struct Payloads {
    blobs: BTreeMap<String, Blob>,
}

impl Payloads {
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

    /// Records that the message with this number has this id.
    pub(super) fn belongs(&mut self, number: usize, id: &str) {
        for blob in self.blobs.values_mut() {
            if blob.number == Some(number) {
                blob.message = Some(id.to_owned());
            }
        }
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
        let (_, _, name) = exchange.segments();
        let due = exchange.header(&format!("x-ms-meta-{TTL_KEY}")).is_some();
        match (exchange.method.as_str(), exchange.parameter("comp")) {
            ("PUT", None) if !name.is_empty() => {
                self.blobs.entry(name).or_default().is_due = due;
                None
            }
            ("PUT", Some("metadata")) => {
                self.blobs.entry(name).or_default().is_due = due;
                None
            }
            ("DELETE", _) => {
                let blob = self.blobs.entry(name.clone()).or_default();
                blob.is_gone = true;
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
        blob.is_due.then(|| format!("{name} {what}"))
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
            if blob.is_due {
                mark(marks, "payload left to the sweeper");
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

//! Compares what exists after a crash with everything that was acknowledged, and the operation that
//! was not answered.

use std::collections::BTreeMap;

use super::content::Content;
use super::items::{self, Known};
use super::model::{Kind, Message, Model, Op, Unique};
use super::property::{Flaw, Property};

/// A message that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenMessage {
    /// Text of the message, if it is one that it may have.
    pub content: Option<Content>,
    /// Pop receipt of the last get.
    pub receipt: String,
    /// Dequeue count of the last get.
    pub dequeue_count: u32,
    /// Number of times that the check took the message.
    pub times: u32,
}

/// What exists of a connection's data; `None` for what was not examined yet.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Blobs by name.
    pub blobs: items::Seen,
    /// Entities by row key.
    pub entities: items::Seen,
    /// Id of the lease that is honoured.
    pub lease: Option<Option<String>>,
    /// Messages by id.
    pub messages: Option<BTreeMap<String, SeenMessage>>,
}

fn message_differs(model: &Model, id: &str, seen: Option<&SeenMessage>) -> Option<Flaw> {
    let flaw = |property, text: &str| Some(Flaw::new(property, format!("message {id} {text}")));
    let pending = model.pending.as_ref();
    let is_known = |seen: &SeenMessage| model.texts(id).any(|text| seen.content == Some(text));
    let Some(message) = model.messages.get(id) else {
        return match seen {
            Some(seen) if !is_known(seen) => flaw(Property::C1, "was deleted or never put"),
            _ => None,
        };
    };
    let Some(seen) = seen else {
        let is_doomed = pending == Some(&Op::DeleteMessage { id: id.to_owned() });
        return if is_doomed {
            None
        } else {
            flaw(Property::C1, "is gone")
        };
    };
    let least = message.dequeue_count + seen.times;
    let most = least + u32::from(pending == Some(&Op::GetMessages)) + model.uncertain_gets;
    if !(least..=most).contains(&seen.dequeue_count) {
        return flaw(Property::C1, "has another dequeue count");
    }
    match is_known(seen) {
        true => None,
        false => flaw(Property::C3, "has another text"),
    }
}

fn lease_differs(model: &Model, seen: Option<&String>) -> Option<Flaw> {
    let is_told = model.lease.as_ref() == seen;
    let is_unanswered = match &model.pending {
        Some(Op::AcquireLease { id }) => seen == Some(id),
        Some(Op::ReleaseLease { .. }) => seen.is_none(),
        _ => false,
    };
    let text = format!("lease {seen:?} in place of {:?}", model.lease);
    (!is_told && !is_unanswered).then(|| Flaw::new(Property::C4, text))
}

/// Returns how the data differs from what is expected; what was not answered happened completely or
/// not at all.
pub fn differences(model: &Model, seen: &Seen) -> Vec<Flaw> {
    let mut flaws = items::differences(Kind::Blob, model, &seen.blobs);
    flaws.extend(items::differences(Kind::Entity, model, &seen.entities));
    if let Some(lease) = &seen.lease {
        flaws.extend(lease_differs(model, lease.as_ref()));
    }
    if let Some(messages) = &seen.messages {
        let strange = messages
            .keys()
            .filter(|id| !model.messages.contains_key(*id));
        let ids = model.messages.keys().chain(strange);
        flaws.extend(ids.filter_map(|id| message_differs(model, id, messages.get(id))));
    }
    flaws
}

/// Returns the state at the start of the next round, and records values from the unanswered
/// operation.
pub fn settled(before: &Model, seen: &Seen, unique: &Unique, flaws: &mut Vec<Flaw>) -> Model {
    let mut model = Model {
        blobs: Known::of(Kind::Blob, before).settled(&seen.blobs, unique, flaws),
        entities: Known::of(Kind::Entity, before).settled(&seen.entities, unique, flaws),
        lease: seen.lease.clone().flatten(),
        ..Model::default()
    };
    for (id, message) in seen.messages.iter().flatten() {
        if !before.messages.contains_key(id) {
            flaws.extend(unique.note("message id", id));
        }
        let Some(content) = message.content else {
            continue;
        };
        let message = Message {
            content,
            receipt: message.receipt.clone(),
            replaced: None,
            dequeue_count: message.dequeue_count,
        };
        model.messages.insert(id.clone(), message);
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::items::Version;

    fn content(seed: u64) -> Content {
        Content { seed, length: 9 }
    }

    #[test]
    fn an_etag_that_was_given_is_not_given_again() {
        let put = Op::PutBlob {
            name: "c".to_owned(),
            content: content(4),
            mark: 4,
            in_blocks: false,
        };
        let model = Model {
            pending: Some(put),
            ..Model::default()
        };
        let unique = Unique::default();
        assert_eq!(unique.note("ETag", "3"), None);
        let again = |etag: &str| {
            let unanswered = Version::Unanswered(etag.to_owned());
            let seen = Seen {
                blobs: [("c".to_owned(), Some(unanswered))].into(),
                ..Seen::default()
            };
            assert_eq!(differences(&model, &seen), []);
            let mut flaws = Vec::new();
            let next = settled(&model, &seen, &unique, &mut flaws);
            assert_eq!(next.blobs["c"].mark, 4);
            flaws
        };
        assert_eq!(again("4"), []);
        assert_eq!(again("3")[0].property, Property::C4);
    }

    /// C4 as a table: the lease that was acknowledged, what was in flight, the lease that exists.
    #[test]
    fn leases_are_checked() {
        let acquire = || Some(Op::AcquireLease { id: "l".to_owned() });
        let release = || Some(Op::ReleaseLease { id: "l".to_owned() });
        for (told, pending, seen, is_right) in [
            (None, None, None, true),
            (None, None, Some("l"), false),
            (Some("l"), None, Some("l"), true),
            (Some("l"), None, None, false),
            (Some("l"), None, Some("m"), false),
            (None, acquire(), None, true),
            (None, acquire(), Some("l"), true),
            (None, acquire(), Some("m"), false),
            (Some("l"), release(), Some("l"), true),
            (Some("l"), release(), None, true),
        ] {
            let model = Model {
                lease: told.map(str::to_owned),
                pending,
                ..Model::default()
            };
            let existing = Seen {
                lease: Some(seen.map(str::to_owned)),
                ..Seen::default()
            };
            let flaws = differences(&model, &existing);
            assert_eq!(flaws.is_empty(), is_right, "{model:?}, {seen:?}: {flaws:?}");
        }
    }

    /// C1 and C2 as a table: what was in flight, what exists.
    #[test]
    fn messages_are_checked() {
        let message = Message {
            content: content(1),
            receipt: "r".to_owned(),
            replaced: None,
            dequeue_count: 3,
        };
        let id = || "m".to_owned();
        let judged = |pending: Option<Op>, at: &str, seed: Option<u64>, dequeue_count| {
            let model = Model {
                messages: [(id(), message.clone())].into(),
                pending,
                ..Model::default()
            };
            let seen = SeenMessage {
                content: seed.map(content),
                receipt: "s".to_owned(),
                dequeue_count,
                times: 1,
            };
            message_differs(&model, at, Some(&seen)).map(|flaw| flaw.property)
        };
        use Property::{C1, C3};
        assert_eq!(judged(None, "m", Some(1), 4), None);
        assert_eq!(judged(None, "m", Some(1), 3), Some(C1));
        assert_eq!(judged(None, "m", Some(1), 5), Some(C1));
        assert_eq!(judged(None, "m", Some(2), 4), Some(C3));
        assert_eq!(judged(None, "m", None, 4), Some(C3));
        assert_eq!(judged(None, "other", Some(1), 1), Some(C1));
        let update = || {
            let (id, content) = (id(), content(2));
            Some(Op::UpdateMessage { id, content })
        };
        assert_eq!(judged(update(), "m", Some(1), 4), None);
        assert_eq!(judged(update(), "m", Some(2), 4), None);
        assert_eq!(judged(Some(Op::GetMessages), "m", Some(1), 5), None);
        let put = || {
            let content = content(2);
            Some(Op::PutMessage { content })
        };
        assert_eq!(judged(put(), "other", Some(2), 1), None);
        assert_eq!(judged(put(), "other", Some(1), 1), Some(C1));
        // A get that failed and may have counted, and a delete without an answer.
        let model = Model {
            messages: [(id(), message.clone())].into(),
            uncertain_gets: 1,
            pending: Some(Op::DeleteMessage { id: id() }),
            ..Model::default()
        };
        let seen = |dequeue_count| SeenMessage {
            content: Some(content(1)),
            receipt: "s".to_owned(),
            dequeue_count,
            times: 1,
        };
        assert_eq!(message_differs(&model, "m", Some(&seen(5))), None);
        assert!(message_differs(&model, "m", Some(&seen(6))).is_some());
        assert_eq!(message_differs(&model, "m", None), None);
    }
}

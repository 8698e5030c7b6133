//! Determines how many of a connection's last operations a kill has taken: finds the states that
//! explain what exists.

use std::collections::BTreeMap;

use super::content::Content;
use super::history::{Cut, History};
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
    let Some(message) = model.messages.get(id) else {
        let put = match pending {
            Some(Op::PutMessage { content }) => Some(*content),
            _ => None,
        };
        return match seen {
            None => None,
            Some(seen) if put.is_some() && seen.content == put => None,
            Some(_) => flaw(Property::C1, "was deleted or never put"),
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
    let updated = match pending {
        Some(Op::UpdateMessage { id: at, content }) if at == id => Some(*content),
        _ => None,
    };
    let is_known = seen.content == Some(message.content)
        || updated.is_some_and(|new| seen.content == Some(new));
    match is_known {
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

/// Returns how the data differs from a state.
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

/// Returns the states that explain the data, as numbers of operations.
///
/// # Errors
/// When there is none: the nearest state, and how the data differs from it.
pub fn explained(history: &History, seen: &Seen) -> Result<Vec<usize>, (usize, Vec<Flaw>)> {
    let mut all = Vec::new();
    let mut nearest: Option<(usize, Vec<Flaw>)> = None;
    history.each_state(|count, model| {
        let flaws = differences(model, seen);
        if flaws.is_empty() {
            all.push(count);
        }
        // Of two equally near states it prefers the later one, which means less loss.
        if nearest
            .as_ref()
            .is_none_or(|(_, least)| flaws.len() <= least.len())
        {
            nearest = Some((count, flaws));
        }
    });
    match nearest {
        Some(nearest) if all.is_empty() => Err(nearest),
        _ => Ok(all),
    }
}

/// Returns how much of a history exists, and the flaws that no loss of its end explains.
pub fn cut(history: &History, seen: &Seen) -> (Cut, Vec<Flaw>) {
    let of = |first, last| Cut { first, last };
    match explained(history, seen) {
        Ok(all) => {
            let first = all.first().copied().unwrap_or_default();
            (of(first, all.last().copied().unwrap_or(first)), Vec::new())
        }
        Err((count, flaws)) if history.steps.is_empty() => (of(count, count), flaws),
        Err((count, flaws)) => {
            let text = format!("after {count} of {} operations, ", history.steps.len());
            let say = |flaw: Flaw| Flaw::new(flaw.property, text.clone() + &flaw.text);
            (of(count, count), flaws.into_iter().map(say).collect())
        }
    }
}

/// Returns the state at the start of the next round, and records values from the unanswered
/// operation.
pub fn settled(history: &History, seen: &Seen, unique: &Unique, flaws: &mut Vec<Flaw>) -> Model {
    let texts = history.texts();
    let mut model = Model {
        blobs: Known::of(Kind::Blob, history).settled(&seen.blobs, unique, flaws),
        entities: Known::of(Kind::Entity, history).settled(&seen.entities, unique, flaws),
        lease: seen.lease.clone().flatten(),
        ..Model::default()
    };
    for (id, message) in seen.messages.iter().flatten() {
        if !texts.contains_key(id) {
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
    use crate::crash::history::tests::history;
    use crate::crash::items::Version;
    use crate::crash::model::Outcome;

    fn content(seed: u64) -> Content {
        Content { seed, length: 9 }
    }

    fn put(name: &str, seed: u64) -> Op {
        Op::PutBlob {
            name: name.to_owned(),
            content: content(seed),
            mark: seed,
            in_blocks: false,
        }
    }

    fn told(name: &str, etag: &str) -> (String, Option<Version>) {
        (name.to_owned(), Some(Version::Told(etag.to_owned())))
    }

    fn blobs(all: &[(&str, &str)]) -> Seen {
        let mut seen = Seen::default();
        for name in ["a", "b", "c"] {
            seen.blobs.insert(name.to_owned(), None);
        }
        seen.blobs
            .extend(all.iter().map(|(name, etag)| told(name, etag)));
        seen
    }

    fn three() -> History {
        history(vec![
            (put("a", 1), "1"),
            (put("b", 2), "2"),
            (put("a", 3), "3"),
        ])
    }

    fn at(count: usize) -> Cut {
        Cut {
            first: count,
            last: count,
        }
    }

    #[test]
    fn every_end_may_be_lost() {
        let all = three();
        for (count, there) in [
            (0, &[][..]),
            (1, &[("a", "1")]),
            (2, &[("a", "1"), ("b", "2")]),
            (3, &[("a", "3"), ("b", "2")]),
        ] {
            assert_eq!(cut(&all, &blobs(there)), (at(count), Vec::new()));
        }
        assert_eq!((all.lost(at(1)), all.lost(at(3))), (2, 0));
    }

    #[test]
    fn a_hole_in_the_middle_is_a_flaw() {
        let all = three();
        // The last operation exists without the one before it.
        let (at, flaws) = cut(&all, &blobs(&[("a", "3")]));
        assert_eq!((at.last, flaws.len()), (3, 1));
        assert_eq!(flaws[0].property, Property::C1);
        assert!(flaws[0].text.contains("b is gone"), "{}", flaws[0].text);
        // The second exists without the first.
        let (_, flaws) = cut(&all, &blobs(&[("b", "2")]));
        assert_eq!(flaws.len(), 1);
        // A deleted blob exists beside a later one.
        let delete = Op::DeleteBlob {
            name: "a".to_owned(),
        };
        let all = history(vec![(put("a", 1), "1"), (delete, ""), (put("b", 2), "2")]);
        let (_, flaws) = cut(&all, &blobs(&[("a", "1"), ("b", "2")]));
        assert_eq!(flaws[0].property, Property::C2);
    }

    #[test]
    fn half_an_operation_is_a_flaw() {
        // The unanswered operation may have happened, but not in a state that it did not reach.
        let mut all = three();
        all.begin(put("c", 4), 9);
        let mut seen = blobs(&[("a", "3"), ("b", "2")]);
        assert_eq!(cut(&all, &seen).0, Cut { first: 3, last: 4 });
        let unanswered = Some(Version::Unanswered("4".to_owned()));
        seen.blobs.insert("c".to_owned(), unanswered.clone());
        assert_eq!(cut(&all, &seen), (at(4), Vec::new()));
        let mut seen = blobs(&[("a", "1"), ("b", "2")]);
        seen.blobs.insert("c".to_owned(), unanswered);
        assert_eq!(cut(&all, &seen).1.len(), 1);
    }

    #[test]
    fn an_etag_that_was_lost_is_not_given_again() {
        let (mut all, unique) = (three(), Unique::default());
        for etag in ["1", "2", "3"] {
            assert_eq!(unique.note("ETag", etag), None);
        }
        all.begin(put("c", 4), 9);
        let again = |etag: &str| {
            let mut seen = blobs(&[("a", "3"), ("b", "2")]);
            let unanswered = Version::Unanswered(etag.to_owned());
            seen.blobs.insert("c".to_owned(), Some(unanswered));
            let mut flaws = Vec::new();
            let model = settled(&all, &seen, &unique, &mut flaws);
            assert_eq!(model.blobs.len(), 3);
            flaws
        };
        assert_eq!(again("4"), []);
        assert_eq!(again("3")[0].property, Property::C4);
    }

    /// A message that is put, taken and changed, between two blobs.
    fn queue() -> History {
        let mut all = History::default();
        let mut place = 0;
        let mut done = |all: &mut History, op: Op, outcome: Outcome| {
            all.begin(op, place);
            all.acknowledge(outcome, place + 1, place);
            place += 2;
        };
        let outcome = Outcome {
            id: "m".to_owned(),
            receipt: "r1".to_owned(),
            ..Outcome::default()
        };
        done(
            &mut all,
            Op::PutMessage {
                content: content(1),
            },
            outcome,
        );
        let outcome = Outcome {
            taken: vec![("m".to_owned(), "r2".to_owned())],
            ..Outcome::default()
        };
        done(&mut all, Op::GetMessages, outcome);
        let (id, text) = ("m".to_owned(), content(2));
        let outcome = Outcome {
            receipt: "r3".to_owned(),
            ..Outcome::default()
        };
        done(&mut all, Op::UpdateMessage { id, content: text }, outcome);
        let id = "l".to_owned();
        done(&mut all, Op::AcquireLease { id }, Outcome::default());
        let id = "m".to_owned();
        done(&mut all, Op::DeleteMessage { id }, Outcome::default());
        all
    }

    #[test]
    fn messages_and_leases_show_how_much_exists() {
        let all = queue();
        let look = |message: Option<(u64, u32)>, lease: bool| {
            let message = message.map(|(seed, dequeue_count)| SeenMessage {
                content: Some(content(seed)),
                receipt: "r9".to_owned(),
                dequeue_count,
                times: 1,
            });
            let messages = message.map(|message| ("m".to_owned(), message));
            let seen = Seen {
                lease: Some(lease.then(|| "l".to_owned())),
                messages: Some(messages.into_iter().collect()),
                ..Seen::default()
            };
            let (cut, flaws) = cut(&all, &seen);
            flaws.is_empty().then_some(cut)
        };
        assert_eq!(look(None, false), Some(at(0)));
        assert_eq!(look(Some((1, 1)), false), Some(at(1)));
        assert_eq!(look(Some((1, 2)), false), Some(at(2)));
        assert_eq!(look(Some((2, 2)), false), Some(at(3)));
        assert_eq!(look(Some((2, 2)), true), Some(at(4)));
        assert_eq!(look(None, true), Some(at(5)));
        // Changed and not counted; leased before it was changed; another text.
        assert_eq!(look(Some((2, 1)), false), None);
        assert_eq!(look(Some((1, 2)), true), None);
        assert_eq!(look(Some((3, 2)), false), None);
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

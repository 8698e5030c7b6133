//! Checks listings of a container by a weaker rule, because a listing of several pages is not
//! atomic: every entry, and every absence, must have been true at some time between call and
//! answer.
//!
//! The cost is linear in the calls for each blob of a listing; of the writes it only uses the times
//! of call and answer.

use smalt_model::vocabulary::{BlobId, BlobOperation, ContainerOperation, Operation};

use super::linear::Call;
use super::program::LISTED;
use crate::histories::documents::Entry;
use crate::histories::run::Answered;

/// The effect of a write on a blob, if it took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrote<'a> {
    /// The blob has this version; with its ETag, if the answer was seen.
    Version(Option<&'a str>),
    /// The blob does not exist.
    Nothing,
}

/// A write to one blob.
struct Written<'a> {
    wrote: Wrote<'a>,
    called: u64,
    end: u64,
}

impl Written<'_> {
    /// Whether this write ended before the other was sent.
    fn is_before(&self, other: &Written<'_>) -> bool {
        self.end < other.called
    }
}

/// Checks all listings of these calls.
///
/// # Errors
/// The first entry that cannot have been true, with the index of its call.
pub fn check(calls: &[Call]) -> Result<usize, (usize, String)> {
    let mut entries = 0;
    for (place, call) in calls.iter().enumerate() {
        let Operation::Container(_, ContainerOperation::List { .. }) = &call.operation else {
            continue;
        };
        let Some((returned, seen)) = &call.returned else {
            continue;
        };
        let judged = one(calls, (call.called, *returned), seen);
        entries += judged.map_err(|reason| (place, reason))?;
    }
    Ok(entries)
}

fn one(calls: &[Call], during: (u64, u64), seen: &Answered) -> Result<usize, String> {
    let entries = seen
        .entries
        .iter()
        .map(entry)
        .collect::<Result<Vec<_>, _>>()?;
    let mut sorted: Vec<&str> = entries.iter().map(|(name, _)| *name).collect();
    sorted.dedup();
    if sorted.len() != entries.len() || !sorted.is_sorted() {
        return Err(format!("not in order, or a repeated name: {sorted:?}"));
    }
    if let Some(other) = sorted.iter().find(|name| !LISTED.contains(name)) {
        return Err(format!("{other} was never put"));
    }
    for name in LISTED {
        let tag = entries.iter().find(|(listed, _)| *listed == name);
        let tag = tag.map(|(_, tag)| *tag);
        let writes = writes_to(calls, name);
        if !could_be(&writes, tag, during) {
            let what = tag.map_or("not there".to_owned(), |tag| format!("there as {tag}"));
            return Err(format!(
                "{name} was not {what} at any time during the listing"
            ));
        }
    }
    Ok(entries.len())
}

/// Returns name and ETag.
fn entry(entry: &Entry) -> Result<(&str, &str), String> {
    if let Entry::Blob(blob) = entry
        && let (None, Some(tag)) = (&blob.snapshot, &blob.tag)
    {
        return Ok((&blob.name, tag));
    }
    Err(format!("{entry:?} was not requested"))
}

/// Returns the writes to a blob that may have taken effect.
fn writes_to<'a>(calls: &'a [Call], name: &str) -> Vec<Written<'a>> {
    let mut writes = Vec::new();
    for call in calls {
        let Operation::Blob(BlobId { blob, .. }, operation) = &call.operation else {
            continue;
        };
        let seen = call.returned.as_ref().map(|(_, seen)| &seen.answer);
        if blob != name || seen.is_some_and(|seen| seen.header("x-ms-error-code").is_some()) {
            continue;
        }
        let wrote = match operation {
            BlobOperation::Put(..) | BlobOperation::SetMetadata(..) => {
                Wrote::Version(seen.and_then(|seen| seen.header("etag")))
            }
            BlobOperation::Delete { .. } => Wrote::Nothing,
            _ => continue,
        };
        writes.push(Written {
            wrote,
            called: call.called,
            end: call.end(),
        });
    }
    writes
}

/// Whether the blob may have had this state at some time in the interval. Initially it does not
/// exist.
fn could_be(writes: &[Written<'_>], tag: Option<&str>, (called, returned): (u64, u64)) -> bool {
    let began = Written {
        wrote: Wrote::Nothing,
        called: 0,
        end: 0,
    };
    let made_by = |write: &&Written<'_>| match (write.wrote, tag) {
        (Wrote::Version(made), Some(tag)) => made.is_none_or(|made| made == tag),
        (Wrote::Nothing, None) => true,
        _ => false,
    };
    let known = |write: &&Written<'_>| tag.is_some() && write.wrote == Wrote::Version(tag);
    // An ETag in the answer of a call was created by that call and no other.
    let is_known = writes.iter().any(|write| known(&write));
    let mut causes = writes.iter().chain([&began]).filter(made_by);
    causes.any(|cause| {
        let may_be = !is_known || known(&cause);
        let replaced = writes
            .iter()
            .any(|later| cause.is_before(later) && later.end < called);
        may_be && cause.called < returned && !replaced
    })
}

#[cfg(test)]
mod tests {
    use smalt_model::vocabulary::{Content, Guard, Labels};

    use super::*;
    use crate::bursts::judge::said::{ok, tag, tagged};
    use crate::bursts::program::CONTAINER;
    use crate::histories::documents;

    fn call(operation: Operation, called: u64, returned: u64, seen: Answered) -> Call {
        Call {
            client: 0,
            operation,
            called,
            returned: (returned > 0).then_some((returned, seen)),
        }
    }

    fn on_blob(operation: BlobOperation) -> Operation {
        let id = BlobId {
            container: CONTAINER.to_owned(),
            blob: "b0".to_owned(),
        };
        Operation::Blob(id, operation)
    }

    fn put(called: u64, returned: u64, tag: u32) -> Call {
        let content = Content { seed: 0, length: 0 };
        let put = BlobOperation::Put(content, Labels::default(), Guard::default());
        call(on_blob(put), called, returned, tagged(201, tag))
    }

    fn delete(called: u64, returned: u64) -> Call {
        let delete = BlobOperation::Delete {
            snapshot: None,
            snapshots: None,
            guard: Guard::default(),
        };
        call(on_blob(delete), called, returned, ok(202))
    }

    fn list(called: u64, returned: u64, tags: &[u32]) -> Call {
        list_of("b0", called, returned, tags)
    }

    fn list_of(name: &str, called: u64, returned: u64, tags: &[u32]) -> Call {
        let list = ContainerOperation::List {
            prefix: String::new(),
            delimited: false,
            page: 1,
            snapshots: false,
            uncommitted: false,
            deleted: false,
        };
        let mut seen = ok(200);
        let blob = |number: &u32| {
            Entry::Blob(documents::Blob {
                name: name.to_owned(),
                tag: Some(tag(*number)),
                ..documents::Blob::default()
            })
        };
        seen.entries = tags.iter().map(blob).collect();
        call(
            Operation::Container(CONTAINER.to_owned(), list),
            called,
            returned,
            seen,
        )
    }

    fn is_explained(what: &str, calls: impl Into<Vec<Call>>) {
        let judged = check(&calls.into());
        assert!(judged.is_ok(), "{what}: {judged:?}");
    }

    fn is_refuted(what: &str, calls: impl Into<Vec<Call>>) {
        assert!(check(&calls.into()).is_err(), "{what}");
    }

    #[test]
    fn every_entry_was_true_at_some_time() {
        is_explained("put before", [put(1, 2, 7), list(3, 4, &[7])]);
        is_refuted("put before, missing", [put(1, 2, 7), list(3, 4, &[])]);
        is_refuted("another version", [put(1, 2, 7), list(3, 4, &[8])]);
        is_explained("put at once, seen", [put(1, 4, 7), list(2, 3, &[7])]);
        is_explained("put at once, not seen", [put(1, 4, 7), list(2, 3, &[])]);
        is_refuted("put later", [list(1, 2, &[7]), put(3, 4, 7)]);
        is_refuted(
            "replaced before",
            [put(1, 2, 7), put(3, 4, 8), list(5, 6, &[7])],
        );
        is_explained(
            "replaced at once",
            [put(1, 2, 7), put(3, 6, 8), list(4, 5, &[7])],
        );
        is_refuted(
            "deleted before",
            [put(1, 2, 7), delete(3, 4), list(5, 6, &[7])],
        );
        is_explained(
            "deleted at once",
            [put(1, 2, 7), delete(3, 6), list(4, 5, &[])],
        );
        is_explained("lost, seen", [put(1, 0, 7), list(3, 4, &[9])]);
        is_explained("lost, not seen", [put(1, 0, 7), list(3, 4, &[])]);
        is_refuted("a name twice", [put(1, 2, 7), list(3, 4, &[7, 7])]);
        is_refuted("nobody's name", [list_of("b9", 3, 4, &[7])]);
    }
}

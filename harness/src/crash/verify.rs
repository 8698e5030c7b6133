//! Compares a store after a crash with what was acknowledged: blobs.

use std::collections::BTreeSet;

use super::content::Content;
use super::model::{Blob, Model, Op, Unique};
use super::property::{Flaw, Property};
use super::wire::{Client, Read};
use crate::servers::ServerError;

/// Counts and flaws of a verification.
#[derive(Debug, Default)]
pub struct Verified {
    /// Number of blobs, and of names that must be free.
    pub blobs: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of entities, and of rows that must be free.
    pub entities: u64,
    /// Blobs and partitions that exist and cannot be read.
    pub unreadable: Vec<Flaw>,
    /// All other flaws.
    pub flaws: Vec<Flaw>,
}

impl Verified {
    /// Whether everything could be read.
    pub fn all_readable(&self) -> bool {
        self.unreadable.is_empty()
    }

    /// Returns all flaws, for a disk that can be read.
    pub fn all_flaws(self) -> impl Iterator<Item = Flaw> {
        self.unreadable.into_iter().chain(self.flaws)
    }
}

/// Returns what an unanswered operation would have made of a blob; the outer `None` when it would
/// not have changed it.
fn outcome(model: &Model, name: &str) -> Option<Option<(Content, u64)>> {
    match model.pending.as_ref()? {
        Op::PutBlob {
            name: put,
            content,
            mark,
            ..
        } if put == name => Some(Some((*content, *mark))),
        Op::SetMetadata { name: set, mark } if set == name => {
            Some(model.blobs.get(name).map(|blob| (blob.content, *mark)))
        }
        Op::DeleteBlob { name: deleted } if deleted == name => Some(None),
        _ => None,
    }
}

/// Reads every blob, and lists them; afterwards the model contains what exists.
///
/// # Errors
/// When the server does not answer.
pub async fn blobs(
    client: &mut Client,
    model: &mut Model,
    unique: &Unique,
    verified: &mut Verified,
) -> Result<(), ServerError> {
    let mut names: BTreeSet<String> = model.blobs.keys().cloned().collect();
    if let Some(Op::PutBlob { name, .. }) = &model.pending {
        names.insert(name.clone());
    }
    for name in names {
        verified.blobs += 1;
        // A 500 or a body that breaks off, for example because of a checksum, means lost content.
        let found = match client.get_blob(&name).await {
            Err(ServerError::Call(text)) => {
                verified
                    .unreadable
                    .push(Flaw::new(Property::C3, format!("{name}: {text}")));
                client.reconnect().await?;
                continue;
            }
            found => found?,
        };
        let acknowledged = model.blobs.get(&name);
        let judged = judge(&name, acknowledged, outcome(model, &name), found, unique);
        match judged {
            Ok(Some(blob)) => drop(model.blobs.insert(name, blob)),
            Ok(None) => drop(model.blobs.remove(&name)),
            Err(flaw) => verified.flaws.push(flaw),
        }
    }
    let listed = client.list_blobs().await?;
    let expected: Vec<&String> = model.blobs.keys().collect();
    if listed.iter().ne(expected.iter().copied()) {
        let (listed, there) = (listed.len(), expected.len());
        let text = format!("{listed} listed names differ from the {there} existing blobs");
        verified.flaws.push(Flaw::new(Property::C2, text));
    }
    Ok(())
}

/// Checks that a blob is what was acknowledged, or completely what was not.
fn judge(
    name: &str,
    acknowledged: Option<&Blob>,
    outcome: Option<Option<(Content, u64)>>,
    found: Option<Read>,
    unique: &Unique,
) -> Result<Option<Blob>, Flaw> {
    let Some(found) = found else {
        return match (acknowledged, outcome) {
            (None, _) | (_, Some(None)) => Ok(None),
            (Some(_), _) => Err(Flaw::new(Property::C1, format!("{name} is gone"))),
        };
    };
    let is = |content: Content, mark: u64| {
        found.mark == Some(mark) && found.bytes == content.bytes().as_slice()
    };
    if let Some(blob) = acknowledged
        && found.etag == blob.etag
    {
        return if is(blob.content, blob.mark) {
            Ok(Some(blob.clone()))
        } else {
            Err(Flaw::new(
                Property::C3,
                format!("{name} is not what was put"),
            ))
        };
    }
    match outcome {
        Some(Some((content, mark))) if is(content, mark) => {
            match unique.note("ETag", &found.etag) {
                Some(flaw) => Err(flaw),
                None => Ok(Some(Blob {
                    content,
                    mark,
                    etag: found.etag.clone(),
                })),
            }
        }
        _ if acknowledged.is_some() => Err(Flaw::new(
            Property::C1,
            format!("{name} is not the last one put"),
        )),
        _ => Err(Flaw::new(
            Property::C2,
            format!("{name} exists, but was not put"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: Content, mark: u64, etag: &str) -> Option<Read> {
        Some(Read {
            bytes: content.bytes().into(),
            etag: etag.to_owned(),
            mark: Some(mark),
        })
    }

    /// C1 to C3 as a table: what was acknowledged, what was not, what exists.
    #[test]
    fn blobs_are_checked() {
        let (old, new) = (
            Content { seed: 1, length: 9 },
            Content { seed: 2, length: 9 },
        );
        let blob = Blob {
            content: old,
            mark: 1,
            etag: "e1".to_owned(),
        };
        let acknowledged = Some(&blob);
        let ok = |a, o, f| judge("b", a, o, f, &Unique::default()).is_ok();
        // Nothing in flight.
        assert!(ok(acknowledged, None, read(old, 1, "e1")));
        assert!(!ok(acknowledged, None, None));
        assert!(!ok(acknowledged, None, read(old, 2, "e1")));
        assert!(!ok(acknowledged, None, read(new, 1, "e1")));
        assert!(!ok(acknowledged, None, read(old, 1, "e2")));
        assert!(!ok(None, None, read(old, 1, "e1")));
        // An overwrite in flight: one or the other, never a mixture.
        let put = Some(Some((new, 2)));
        assert!(ok(acknowledged, put, read(old, 1, "e1")));
        assert!(ok(acknowledged, put, read(new, 2, "e2")));
        assert!(!ok(acknowledged, put, read(new, 1, "e2")));
        assert!(!ok(acknowledged, put, None));
        // A delete in flight.
        assert!(ok(acknowledged, Some(None), None));
        assert!(ok(acknowledged, Some(None), read(old, 1, "e1")));
        // A first put in flight.
        assert!(ok(None, put, None));
        assert!(ok(None, put, read(new, 2, "e2")));
        let unique = Unique::default();
        assert_eq!(unique.note("ETag", "e2"), None);
        assert!(judge("b", None, put, read(new, 2, "e2"), &unique).is_err());
    }
}

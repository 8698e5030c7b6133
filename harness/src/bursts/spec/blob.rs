//! One block blob: a register with an ETag, metadata, index tags and a lease. Its container stays.

use smalt_model::vocabulary::{BlobOperation, Condition, Content, Guard, Metadata, Operation};
use smalt_protocol::ErrorCode;

use super::lease::{BLOB, Lease};
use super::output::Output;
use super::value::{Taken, Value};
use super::{Done, Refused, hash_of, same, step};
use crate::bursts::linear::Spec;

/// A blob, or the place of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Blob {
    there: Option<Version>,
    taken: Taken,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Version {
    tag: Value,
    content: (u8, u16),
    metadata: Metadata,
    tags: Metadata,
    lease: Lease,
}

/// What an operation answers when it is done.
enum Told {
    /// Nothing but its status.
    Status(u16),
    /// The ETag of what is there.
    Version(u16),
    /// All that is there; with the content, if it was asked for.
    Whole { content: bool },
    /// Index tags.
    Tags,
    /// What the lease has become.
    Lease(super::lease::Leased),
}

impl Blob {
    /// No blob; ETags of these numbers were made by calls whose answers show it.
    pub fn absent(taken: Taken) -> Self {
        Blob { there: None, taken }
    }

    fn here(&mut self) -> Result<&mut Version, Refused> {
        self.there.as_mut().ok_or(ErrorCode::BlobNotFound.into())
    }

    fn act(&mut self, operation: &BlobOperation, seen: Option<&Output>) -> Result<Told, Refused> {
        let made = seen
            .and_then(|seen| seen.tag)
            .map_or(Value::Unseen, Value::Seen);
        match operation {
            BlobOperation::Put(content, metadata, guard) => {
                self.put(*content, metadata, *guard, made)
            }
            BlobOperation::Get { guard, .. } => self.read(*guard, true),
            BlobOperation::Head { guard, .. } => self.read(*guard, false),
            BlobOperation::SetMetadata(metadata, guard) => {
                let version = self.writable(*guard)?;
                version.metadata.clone_from(metadata);
                version.tag = made;
                version.lease = version.lease.after_write();
                Ok(Told::Version(200))
            }
            BlobOperation::Delete { guard, .. } => {
                self.writable(*guard)?;
                self.there = None;
                Ok(Told::Status(202))
            }
            BlobOperation::Lease(action, condition) => {
                let version = self.here()?;
                version.check(*condition)?;
                let shown = seen.and_then(|seen| seen.lease);
                let shown = shown.map_or(Value::Unseen, Value::Seen);
                version.lease.act(*action, shown).map(Told::Lease)
            }
            BlobOperation::SetTags(tags, lease) => {
                let version = self.here()?;
                version.lease.check_guarded(BLOB, *lease)?;
                version.tags.clone_from(tags);
                Ok(Told::Status(204))
            }
            BlobOperation::GetTags(lease) => {
                self.here()?.lease.check_use(BLOB, *lease)?;
                Ok(Told::Tags)
            }
            // No program of a blob burst has them.
            _ => Err(ErrorCode::NotImplemented.into()),
        }
    }

    fn put(
        &mut self,
        content: Content,
        metadata: &Metadata,
        guard: Guard,
        tag: Value,
    ) -> Result<Told, Refused> {
        let lease = self.there.as_ref().map_or(Lease::Free, |there| there.lease);
        lease.check_guarded(BLOB, guard.lease)?;
        match (guard.condition, &self.there) {
            // Who holds the lease replaces the blob all the same.
            (Some(Condition::IfNoneMatch(None)), Some(_)) if guard.lease.is_none() => {
                return Err(ErrorCode::BlobAlreadyExists.into());
            }
            (condition, Some(there)) => there.check(condition)?,
            (Some(Condition::IfMatch(_)), None) => return Err(ErrorCode::ConditionNotMet.into()),
            (_, None) => {}
        }
        self.there = Some(Version {
            tag,
            content: (content.seed, content.length),
            metadata: metadata.clone(),
            tags: Metadata::new(),
            lease: lease.after_write(),
        });
        Ok(Told::Version(201))
    }

    fn writable(&mut self, guard: Guard) -> Result<&mut Version, Refused> {
        let version = self.here()?;
        version.lease.check_guarded(BLOB, guard.lease)?;
        version.check(guard.condition)?;
        Ok(version)
    }

    fn read(&mut self, guard: Guard, content: bool) -> Result<Told, Refused> {
        if guard.condition == Some(Condition::IfNoneMatch(None)) {
            return Err(ErrorCode::UnsatisfiableCondition.into());
        }
        let version = self.here()?;
        version.lease.check_use(BLOB, guard.lease)?;
        match version.check(guard.condition) {
            Err(Refused(code, _)) if matches!(guard.condition, Some(Condition::IfNoneMatch(_))) => {
                Err(Refused(code, Some(304)))
            }
            judged => judged.map(|()| Told::Whole { content }),
        }
    }

    /// Compares what is shown beside status and code.
    fn compare(&mut self, told: Told, seen: &Output) -> Result<(), String> {
        let Some(version) = &mut self.there else {
            return Ok(());
        };
        let mut see_tag = |shown: Option<u32>| {
            let shown = shown.ok_or("no ETag")?;
            let judged = version.tag.see(shown, &mut self.taken);
            judged.map_err(|reason| format!("ETag: {reason}"))
        };
        match told {
            Told::Status(_) => Ok(()),
            Told::Tags => same("tags", &Some(&version.tags), &seen.tags.as_ref()),
            Told::Version(_) => see_tag(seen.tag),
            Told::Lease(leased) => {
                see_tag(seen.tag)?;
                leased.check(seen)
            }
            Told::Whole { content } => {
                see_tag(seen.tag)?;
                same(
                    "metadata",
                    &Some(&version.metadata),
                    &seen.metadata.as_ref(),
                )?;
                let state = seen.lease_state.as_deref();
                same("lease", &Some(version.lease.state()), &state)?;
                let (seed, length) = version.content;
                match content {
                    true => {
                        let bytes = Content { seed, length }.bytes();
                        same("body", &Some(&bytes), &seen.body.as_ref())
                    }
                    false => same("length", &Some(length.to_string()), &seen.length),
                }
            }
        }
    }
}

impl Version {
    fn check(&self, condition: Option<Condition>) -> Result<(), Refused> {
        let holds = match condition {
            Some(Condition::IfMatch(Some(wanted))) => self.tag.is(wanted.0),
            Some(Condition::IfNoneMatch(Some(known))) => !self.tag.is(known.0),
            _ => true,
        };
        match holds {
            true => Ok(()),
            false => Err(ErrorCode::ConditionNotMet.into()),
        }
    }
}

impl Done for Told {
    fn status(&self) -> u16 {
        match self {
            Told::Status(status) | Told::Version(status) => *status,
            Told::Whole { .. } | Told::Tags => 200,
            Told::Lease(leased) => leased.status,
        }
    }
}

impl Spec for Blob {
    type Output = Output;

    fn step(&self, operation: &Operation, seen: Option<&Output>) -> Result<Self, String> {
        let Operation::Blob(_, operation) = operation else {
            return Err("this is no operation on a blob".to_owned());
        };
        let act = |after: &mut Self| after.act(operation, seen);
        step(self, seen, act, Self::compare)
    }

    fn fingerprint(&self) -> u64 {
        hash_of(&(&self.there, &self.taken))
    }
}

//! One container: whether it is there, its metadata, its lease. What is in it is not asked.

use smalt_model::vocabulary::{ContainerOperation, Metadata, Operation};
use smalt_protocol::ErrorCode;

use super::lease::{CONTAINER, Lease, Leased};
use super::output::Output;
use super::value::{Taken, Value};
use super::{Done, Refused, hash_of, same, step};
use crate::bursts::linear::Spec;

/// A container, or the place of one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Container {
    there: Option<Properties>,
    taken: Taken,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Properties {
    tag: Value,
    metadata: Metadata,
    lease: Lease,
}

/// What an operation answers when it is done.
enum Told {
    Status(u16),
    Version(u16),
    Whole,
    Lease(Leased),
}

impl Container {
    /// No container; ETags of these numbers were made by calls whose answers show it.
    pub fn absent(taken: Taken) -> Self {
        Container { there: None, taken }
    }

    fn here(&mut self) -> Result<&mut Properties, Refused> {
        let there = self.there.as_mut();
        there.ok_or(ErrorCode::ContainerNotFound.into())
    }

    fn act(
        &mut self,
        operation: &ContainerOperation,
        seen: Option<&Output>,
    ) -> Result<Told, Refused> {
        let shown = |number: Option<u32>| number.map_or(Value::Unseen, Value::Seen);
        let made = shown(seen.and_then(|seen| seen.tag));
        match operation {
            ContainerOperation::Create(metadata) => {
                if self.there.is_some() {
                    return Err(ErrorCode::ContainerAlreadyExists.into());
                }
                self.there = Some(Properties {
                    tag: made,
                    metadata: metadata.clone(),
                    lease: Lease::Free,
                });
                Ok(Told::Version(201))
            }
            ContainerOperation::Delete(guard) => {
                self.here()?.lease.check_guarded(CONTAINER, guard.lease)?;
                self.there = None;
                Ok(Told::Status(202))
            }
            ContainerOperation::Get { lease } => {
                self.here()?.lease.check_use(CONTAINER, *lease)?;
                Ok(Told::Whole)
            }
            ContainerOperation::SetMetadata(metadata, guard) => {
                let here = self.here()?;
                here.lease.check_use(CONTAINER, guard.lease)?;
                here.metadata.clone_from(metadata);
                here.tag = made;
                Ok(Told::Version(200))
            }
            ContainerOperation::Lease(action, _) => {
                let shown = shown(seen.and_then(|seen| seen.lease));
                self.here()?.lease.act(*action, shown).map(Told::Lease)
            }
            // Judged by the weaker rule of `listing`.
            ContainerOperation::List { .. } => Err(ErrorCode::NotImplemented.into()),
        }
    }

    /// Compares what is shown beside status and code.
    fn compare(&mut self, told: Told, seen: &Output) -> Result<(), String> {
        let Some(here) = &mut self.there else {
            return Ok(());
        };
        if !matches!(told, Told::Status(_)) {
            let shown = seen.tag.ok_or("no ETag")?;
            let judged = here.tag.see(shown, &mut self.taken);
            judged.map_err(|reason| format!("ETag: {reason}"))?;
        }
        match told {
            Told::Status(_) | Told::Version(_) => Ok(()),
            Told::Lease(leased) => leased.check(seen),
            Told::Whole => {
                same("metadata", &Some(&here.metadata), &seen.metadata.as_ref())?;
                let state = seen.lease_state.as_deref();
                same("lease", &Some(here.lease.state()), &state)
            }
        }
    }
}

impl Done for Told {
    fn status(&self) -> u16 {
        match self {
            Told::Status(status) | Told::Version(status) => *status,
            Told::Whole => 200,
            Told::Lease(leased) => leased.status,
        }
    }
}

impl Spec for Container {
    type Output = Output;

    fn step(&self, operation: &Operation, seen: Option<&Output>) -> Result<Self, String> {
        let Operation::Container(_, operation) = operation else {
            return Err("this is no operation on a container".to_owned());
        };
        let act = |after: &mut Self| after.act(operation, seen);
        step(self, seen, act, Self::compare)
    }

    fn fingerprint(&self) -> u64 {
        hash_of(&(&self.there, &self.taken))
    }
}

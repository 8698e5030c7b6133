//! Containers. Source: "Operations on Containers".

use std::collections::BTreeMap;

use smalt_protocol::ErrorCode;

use crate::Model;
use crate::blobs::Blob;
use crate::blocks::Uncommitted;
use crate::conditions::{self, Current};
use crate::expected::{Answer, Expected, Fact, Listed, Refusal, settle};
use crate::lease::{self, Lease, Of};
use crate::vocabulary::{
    Condition, ContainerOperation, Guard, LeaseAction, LeaseId, Metadata, Moment, Tag,
};

/// A container.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    tag: Tag,
    modified_s: u64,
    metadata: Metadata,
    /// Lease.
    pub(crate) lease: Lease,
    /// Blobs by name.
    pub(crate) blobs: BTreeMap<String, Blob>,
    /// Uncommitted blocks by name of their blob, whether or not there is one.
    pub(crate) uncommitted: BTreeMap<String, Uncommitted>,
}

impl Container {
    /// What a condition is judged against.
    pub(crate) fn current(&self) -> Current {
        Current {
            tag: self.tag,
            modified_s: self.modified_s,
        }
    }
}

impl Model {
    /// The container of this name, or 404 `ContainerNotFound`.
    pub(crate) fn find(&mut self, name: &str) -> Result<&mut Container, Refusal> {
        let found = self.containers.get_mut(name);
        found.ok_or(ErrorCode::ContainerNotFound.into())
    }

    pub(crate) fn container(&mut self, name: &str, operation: &ContainerOperation) -> Expected {
        settle(match operation {
            ContainerOperation::Create(metadata) => self.create(name, metadata),
            ContainerOperation::Delete(guard) => self.delete_container(name, *guard),
            ContainerOperation::Get { lease } => self.get(name, *lease),
            ContainerOperation::SetMetadata(metadata, guard) => {
                let tag = self.numbers.tag();
                let now_s = self.now_s;
                self.guarded(name, *guard, false).map(|container| {
                    container.metadata.clone_from(metadata);
                    container.tag = tag;
                    container.modified_s = now_s;
                    Expected::of_version(200, tag, now_s)
                })
            }
            ContainerOperation::Lease(action, condition) => self.lease(name, *action, *condition),
            ContainerOperation::List {
                prefix,
                delimited,
                snapshots,
                uncommitted,
                page: _,
            } => self.list(name, prefix, *delimited, *snapshots, *uncommitted),
        })
    }

    fn create(&mut self, name: &str, metadata: &Metadata) -> Answer {
        if self.containers.contains_key(name) {
            return Err(ErrorCode::ContainerAlreadyExists.into());
        }
        let container = Container {
            tag: self.numbers.tag(),
            modified_s: self.now_s,
            metadata: metadata.clone(),
            lease: Lease::Available,
            blobs: BTreeMap::new(),
            uncommitted: BTreeMap::new(),
        };
        let answer = Expected::of_version(201, container.tag, self.now_s);
        self.containers.insert(name.to_owned(), container);
        Ok(answer)
    }

    fn delete_container(&mut self, name: &str, guard: Guard) -> Answer {
        self.guarded(name, guard, true)?;
        self.containers.remove(name);
        Ok(Expected::ok(202))
    }

    /// The container once lease and condition let the operation pass.
    fn guarded(
        &mut self,
        name: &str,
        guard: Guard,
        needs_lease: bool,
    ) -> Result<&mut Container, Refusal> {
        let now_s = self.now_s;
        let container = self.find(name)?;
        let lease = container.lease.at(now_s);
        if needs_lease {
            lease::check_guarded(Of::Container, lease, guard.lease)?;
        } else {
            lease::check_use(Of::Container, lease, guard.lease)?;
        }
        let current = container.current();
        conditions::check_write(guard.condition, current, ErrorCode::ConditionNotMet)?;
        Ok(container)
    }

    fn get(&mut self, name: &str, given: Option<LeaseId>) -> Answer {
        let now_s = self.now_s;
        let container = self.find(name)?;
        lease::check_use(Of::Container, container.lease.at(now_s), given)?;
        let mut answer = Expected::of_version(200, container.tag, container.modified_s);
        answer.facts.extend(container.lease.facts(now_s));
        Ok(answer.with(Fact::Metadata(container.metadata.clone())))
    }

    fn lease(&mut self, name: &str, action: LeaseAction, condition: Option<Condition>) -> Answer {
        let (now_s, mut numbers) = (self.now_s, self.numbers.clone());
        let container = self.find(name)?;
        let current = container.current();
        conditions::check_write(condition, current, ErrorCode::ConditionNotMet)?;
        let (leased, answer) = lease::act(container.lease, action, now_s, &mut numbers)?;
        container.lease = leased;
        self.numbers = numbers;
        // A lease changes neither tag nor time of what it is on.
        Ok(answer
            .with(Fact::Tag(current.tag))
            .with(Fact::LastModified(current.modified_s)))
    }

    fn list(
        &mut self,
        name: &str,
        prefix: &str,
        delimited: bool,
        with_snapshots: bool,
        with_uncommitted: bool,
    ) -> Answer {
        // "List Blobs": a hierarchy shows no snapshots.
        if delimited && with_snapshots {
            return Err(ErrorCode::InvalidQueryParameterValue.into());
        }
        let now_s = self.now_s;
        let container = self.find(name)?;
        let mut names: Vec<&String> = container.blobs.keys().collect();
        if with_uncommitted {
            let open = container.uncommitted.iter();
            let open = open.filter(|(name, blocks)| {
                blocks.is_kept(now_s) && !container.blobs.contains_key(*name)
            });
            names.extend(open.map(|(name, _)| name));
        }
        names.sort();
        let mut listed: Vec<Listed> = Vec::new();
        for name in names.into_iter().filter(|name| name.starts_with(prefix)) {
            let rest = &name[prefix.len()..];
            if let Some(end) = rest.find('/').filter(|_| delimited) {
                let group = Listed::Prefix(format!("{prefix}{}", &rest[..=end]));
                if listed.last() != Some(&group) {
                    listed.push(group);
                }
                continue;
            }
            match container.blobs.get(name) {
                Some(blob) => listed.extend(blob.listed(name, with_snapshots)),
                None => listed.push(open(name)),
            }
        }
        Ok(Expected::ok(200).with(Fact::Listed(listed)))
    }
}

/// A name under which only uncommitted blocks stand: a blob of no bytes and no tag.
fn open(name: &str) -> Listed {
    entry(name, None, None, 0)
}

/// An entry of a listing.
pub(crate) fn entry(name: &str, snapshot: Option<Moment>, tag: Option<Tag>, length: u64) -> Listed {
    Listed::Blob {
        name: name.to_owned(),
        snapshot,
        tag,
        length,
    }
}

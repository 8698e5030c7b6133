//! Containers. Source: "Operations on Containers".

use std::collections::BTreeMap;

use smalt_protocol::{ErrorCode, Service};

use crate::conditions::{self, Current};
use crate::expected::{Answer, Expected, Fact, Listed, Refusal};
use crate::lease::{self, Lease, Of};
use crate::state::{Container, Model, State};
use crate::vocabulary::{
    Condition, ContainerOperation, Guard, LeaseAction, LeaseId, Metadata, Moment,
};

impl Container {
    /// Returns the values that conditions are evaluated against.
    pub(crate) fn current(&self) -> Current<'_> {
        Current {
            tag: self.tag,
            modified_s: self.modified_s,
            tags: None,
        }
    }

    /// Returns the entries of a name in a listing: snapshots first, the oldest first.
    fn entries(&self, name: &str, snapshots: bool, deleted: bool, now_s: u64) -> Vec<Listed> {
        let mut entries = Vec::new();
        for (moment, kept) in self.snapshots.get(name).into_iter().flatten() {
            let is_dormant = deleted && kept.is_dormant(now_s);
            if snapshots && (kept.is_living() || is_dormant) {
                let is_deleted = !kept.is_living();
                entries.push(entry(name, Some(*moment), Some(&kept.state), is_deleted));
            }
        }
        if let Some(blob) = self.blobs.get(name) {
            entries.push(entry(name, None, Some(&blob.state), false));
        }
        let dormant = self.dormant.get(name).filter(|_| deleted);
        if let Some(kept) = dormant.filter(|kept| kept.is_dormant(now_s)) {
            entries.push(entry(name, None, Some(&kept.state), true));
        }
        entries
    }
}

impl Model {
    /// Returns the container with this name, or 404 `ContainerNotFound`.
    pub(crate) fn find(&mut self, name: &str) -> Result<&mut Container, Refusal> {
        let found = self.containers.get_mut(name);
        found.ok_or(ErrorCode::ContainerNotFound.into())
    }

    pub(crate) fn create_container(&mut self, name: &str, metadata: &Metadata) -> Answer {
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
            snapshots: BTreeMap::new(),
            dormant: BTreeMap::new(),
        };
        let answer = Expected::of_version(201, container.tag, self.now_s);
        self.containers.insert(name.to_owned(), container);
        Ok(answer)
    }

    pub(crate) fn set_container_metadata(
        &mut self,
        name: &str,
        metadata: &Metadata,
        guard: Guard,
    ) -> Answer {
        self.guarded(name, guard, false)?
            .metadata
            .clone_from(metadata);
        self.touch_container(name)
    }

    /// Gives a container a new tag and time; returns the answer of the change.
    pub(crate) fn touch_container(&mut self, name: &str) -> Answer {
        let (now_s, tag) = (self.now_s, self.numbers.tag());
        let container = self.find(name)?;
        container.tag = tag;
        container.modified_s = now_s;
        Ok(Expected::of_version(200, tag, now_s))
    }

    pub(crate) fn delete_container(&mut self, name: &str, guard: Guard) -> Answer {
        self.guarded(name, guard, true)?;
        self.containers.remove(name);
        self.forget_policy(Service::Blob, name);
        Ok(Expected::ok(202))
    }

    /// Returns the container if lease and condition allow the operation.
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

    pub(crate) fn get_container(&mut self, name: &str, given: Option<LeaseId>) -> Answer {
        let now_s = self.now_s;
        let container = self.find(name)?;
        lease::check_use(Of::Container, container.lease.at(now_s), given)?;
        let mut answer = Expected::of_version(200, container.tag, container.modified_s);
        answer.facts.extend(container.lease.facts(now_s));
        Ok(answer.with(Fact::Metadata(container.metadata.clone())))
    }

    pub(crate) fn lease_container(
        &mut self,
        name: &str,
        action: LeaseAction,
        condition: Option<Condition>,
    ) -> Answer {
        let (now_s, mut numbers) = (self.now_s, self.numbers.clone());
        let container = self.find(name)?;
        let current = container.current();
        conditions::check_write(condition, current, ErrorCode::ConditionNotMet)?;
        let (leased, answer) = lease::act(container.lease, action, now_s, &mut numbers)?;
        // A lease changes neither tag nor time of the resource.
        let facts = Expected::of_version(0, container.tag, container.modified_s).facts;
        container.lease = leased;
        self.numbers = numbers;
        Ok(answer.with_all(facts))
    }

    pub(crate) fn list_blobs(&mut self, name: &str, operation: &ContainerOperation) -> Answer {
        let ContainerOperation::List {
            prefix,
            delimited,
            snapshots,
            uncommitted,
            deleted,
            page: _,
        } = operation
        else {
            return Err(ErrorCode::InvalidInput.into());
        };
        // "List Blobs": a hierarchical listing does not show snapshots.
        if *delimited && *snapshots {
            return Err(ErrorCode::InvalidQueryParameterValue.into());
        }
        let now_s = self.now_s;
        let container = self.find(name)?;
        let mut shown: BTreeMap<&str, Vec<Listed>> = BTreeMap::new();
        let known = container.blobs.keys();
        let known = known.chain(container.snapshots.keys());
        for name in known.chain(container.dormant.keys()) {
            shown.insert(name, container.entries(name, *snapshots, *deleted, now_s));
        }
        for (name, open) in &container.uncommitted {
            if *uncommitted && open.is_kept(now_s) && !container.blobs.contains_key(name) {
                // A blob with only uncommitted blocks is listed with length 0 and without a tag,
                // unless a deleted blob of the same name is shown: each name is listed once.
                let entries = shown.entry(name).or_default();
                let hides = |it: &Listed| matches!(it, Listed::Blob { snapshot: None, .. });
                if !entries.last().is_some_and(hides) {
                    entries.push(entry(name, None, None, false));
                }
            }
        }
        let mut listed: Vec<Listed> = Vec::new();
        for (name, entries) in shown {
            let Some(rest) = name.strip_prefix(prefix.as_str()) else {
                continue;
            };
            match rest.find('/').filter(|_| *delimited) {
                Some(end) if !entries.is_empty() => {
                    let group = Listed::Prefix(format!("{prefix}{}", &rest[..=end]));
                    if listed.last() != Some(&group) {
                        listed.push(group);
                    }
                }
                Some(_) => {}
                None => listed.extend(entries),
            }
        }
        Ok(Expected::ok(200).with(Fact::Listed(listed)))
    }
}

fn entry(name: &str, snapshot: Option<Moment>, state: Option<&State>, deleted: bool) -> Listed {
    let detail = |state: &State| {
        let (metadata, tags) = (state.metadata(), state.tags.clone());
        (metadata, tags, state.content.kind())
    };
    Listed::Blob {
        name: name.to_owned(),
        snapshot,
        tag: state.map(|state| state.tag),
        length: state.map_or(0, |state| state.content.length()),
        deleted,
        detail: state.map(detail),
    }
}

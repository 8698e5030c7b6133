//! The account's services. Sources: "List Containers", "List Queues", "Set Blob Service
//! Properties", "Find Blobs by Tags".

use crate::expected::{Answer, Expected, Fact, settle};
use crate::state::{Blob, Model};
use crate::vocabulary::{AccountOperation, Metadata, Names, TAG};

impl Model {
    pub(crate) fn account(&mut self, operation: &AccountOperation) -> Expected {
        match operation {
            AccountOperation::Containers(names) => {
                let all = self.containers.iter();
                listed(names, all.map(|(name, found)| (name, &found.metadata)))
            }
            AccountOperation::Queues(names) => {
                let all = self.queues.iter();
                listed(names, all.map(|(name, found)| (name, &found.metadata)))
            }
            AccountOperation::Find {
                container,
                sign,
                value,
                ..
            } => settle(self.find_blobs(container.as_deref(), (sign, value))),
            AccountOperation::Retain(days) => {
                self.retention_days = *days;
                Expected::ok(202)
            }
        }
    }

    /// Returns `container/blob` and the tag of each blob whose tag compares so with a value, in the
    /// order of containers and of tags.
    fn find_blobs(&mut self, within: Option<&str>, wanted: (&str, &str)) -> Answer {
        if let Some(name) = within {
            self.find(name)?;
        }
        let mut found = Vec::new();
        let scope = self.containers.iter();
        for (container, all) in scope.filter(|(name, _)| within.is_none_or(|it| it == *name)) {
            let tag_of = |blob: &Blob| blob.state.tags.get(TAG).cloned();
            let blobs = all.blobs.iter();
            let blobs = blobs.filter_map(|(name, blob)| Some((tag_of(blob)?, name)));
            let mut blobs: Vec<_> = blobs.filter(|(tag, _)| fits(tag, wanted)).collect();
            blobs.sort_unstable();
            found.extend(blobs.into_iter().map(|(tag, name)| {
                let tags = Metadata::from([(TAG.to_owned(), tag)]);
                (format!("{container}/{name}"), Some(tags))
            }));
        }
        Ok(Expected::ok(200).with(Fact::Resources(found)))
    }
}

/// Whether a tag compares so with a value.
pub(crate) fn fits(tag: &str, (sign, value): (&str, &str)) -> bool {
    match sign {
        "<" => tag < value,
        "<=" => tag <= value,
        ">" => tag > value,
        ">=" => tag >= value,
        _ => tag == value,
    }
}

fn listed<'a>(names: &Names, all: impl Iterator<Item = (&'a String, &'a Metadata)>) -> Expected {
    let all = all.filter(|(name, _)| name.starts_with(&names.prefix));
    let shown = all.map(|(name, found)| (name.clone(), names.metadata.then(|| found.clone())));
    Expected::ok(200).with(Fact::Resources(shown.collect()))
}

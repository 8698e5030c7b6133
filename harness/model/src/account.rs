//! The account's services. Sources: "List Containers", "List Queues", "Set Blob Service
//! Properties", "Find Blobs by Tags".

use crate::expected::{Answer, Expected, Fact, settle};
use crate::state::Model;
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
                container, value, ..
            } => settle(self.find_blobs(container.as_deref(), value)),
            AccountOperation::Retain(days) => {
                self.retention_days = *days;
                Expected::ok(202)
            }
        }
    }

    /// Returns `container/blob` and the queried tag of each blob that has this value of it.
    fn find_blobs(&mut self, within: Option<&str>, value: &str) -> Answer {
        if let Some(name) = within {
            self.find(name)?;
        }
        let mut found = Vec::new();
        let scope = self.containers.iter();
        for (container, all) in scope.filter(|(name, _)| within.is_none_or(|it| it == *name)) {
            let has = |tags: &Metadata| tags.get(TAG).is_some_and(|tag| tag == value);
            let blobs = all.blobs.iter().filter(|(_, blob)| has(&blob.state.tags));
            let tags = Metadata::from([(TAG.to_owned(), value.to_owned())]);
            found
                .extend(blobs.map(|(blob, _)| (format!("{container}/{blob}"), Some(tags.clone()))));
        }
        Ok(Expected::ok(200).with(Fact::Resources(found)))
    }
}

fn listed<'a>(names: &Names, all: impl Iterator<Item = (&'a String, &'a Metadata)>) -> Expected {
    let all = all.filter(|(name, _)| name.starts_with(&names.prefix));
    let shown = all.map(|(name, found)| (name.clone(), names.metadata.then(|| found.clone())));
    Expected::ok(200).with(Fact::Resources(shown.collect()))
}

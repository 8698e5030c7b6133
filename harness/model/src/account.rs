//! The account's services. Sources: "List Containers", "List Queues", "Set Blob Service
//! Properties".

use crate::expected::{Expected, Fact};
use crate::state::Model;
use crate::vocabulary::{AccountOperation, Metadata, Names};

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
            AccountOperation::Retain(days) => {
                self.retention_days = *days;
                Expected::ok(202)
            }
        }
    }
}

fn listed<'a>(names: &Names, all: impl Iterator<Item = (&'a String, &'a Metadata)>) -> Expected {
    let all = all.filter(|(name, _)| name.starts_with(&names.prefix));
    let shown = all.map(|(name, found)| (name.clone(), names.metadata.then(|| found.clone())));
    Expected::ok(200).with(Fact::Resources(shown.collect()))
}

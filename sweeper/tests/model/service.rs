//! The service and the owner: the effects of each call, and the violations that it causes.

use std::sync::Arc;

use smalt_sweeper::state::Document;

use crate::scene::{Copy, CopyState, DUE, Doc, LATER, Mistake, OwnerAction, Small, Version, World};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    NotFound,
    ConditionNotMet,
}

/// A copy's condition on its destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wanted {
    Absent,
    Match(u8),
}

impl World {
    /// Applies an action of the owner; `None` if it is not possible.
    pub(crate) fn owner(&mut self, owner: OwnerAction) -> Option<()> {
        self.owner -= 1;
        let etag = self.etag + 1;
        self.blob = match owner {
            OwnerAction::Deletes => {
                self.blob?;
                None
            }
            OwnerAction::Extends => Some(Version {
                etag,
                due: LATER,
                ..self.blob?
            }),
            OwnerAction::Overwrites => Some(Version {
                etag,
                due: DUE,
                kept: true,
                content: etag,
            }),
        };
        if self.blob.is_some() {
            self.etag = etag;
        }
        Some(())
    }

    /// Ends a copy. A failed copy is a blob without content.
    pub(crate) fn copy_ends(&mut self, slot: u8, whole: bool) -> Option<()> {
        let copy = self.copies.get_mut(&slot)?;
        copy.state = if whole {
            CopyState::Whole
        } else {
            CopyState::Failed
        };
        copy.etag += 1;
        if !whole {
            copy.content = 0;
        }
        Some(())
    }

    /// Delete Blob with `If-Match`.
    pub(crate) fn delete(&mut self, small: &Small, seen: &Version) -> Result<(), Refused> {
        let there = self.blob.ok_or(Refused::NotFound)?;
        if there.etag != seen.etag && !small.makes(Mistake::DeletesUnconditionally) {
            return Err(Refused::ConditionNotMet);
        }
        self.blob = None;
        let is_copy = |copy: &Copy| copy.state == CopyState::Whole && copy.content == there.content;
        self.wrongs.deleted_too_early |= there.due > self.now;
        self.wrongs.deleted_without_copy |= there.kept && !self.copies.values().any(is_copy);
        Ok(())
    }

    /// Copy Blob with `x-ms-source-if-match` and a condition on the destination.
    pub(crate) fn copy(
        &mut self,
        seen: &Version,
        (slot, wanted): (u8, Wanted),
    ) -> Result<(), Refused> {
        let source = self.blob.ok_or(Refused::NotFound)?;
        if source.etag != seen.etag {
            return Err(Refused::ConditionNotMet);
        }
        let there = self.copies.get(&slot);
        let is_met = match wanted {
            Wanted::Absent => there.is_none(),
            Wanted::Match(etag) => there.is_some_and(|there| there.etag == etag),
        };
        if !is_met {
            return Err(Refused::ConditionNotMet);
        }
        let copy = Copy {
            etag: there.map_or(1, |there| there.etag + 1),
            of: *seen,
            content: source.content,
            state: CopyState::Pending,
        };
        self.copies.insert(slot, copy);
        Ok(())
    }

    /// Put Blob of the state document with `If-Match`.
    pub(crate) fn write_state(
        &mut self,
        small: &Small,
        document: &Arc<Document>,
        read: u8,
    ) -> Result<(), Refused> {
        if read != self.document_etag && !small.makes(Mistake::WritesStateUnconditionally) {
            return Err(Refused::ConditionNotMet);
        }
        let rises = document.fence > self.document.0.fence;
        self.wrongs.state_branched |= read != self.document_etag || !rises;
        self.document = Doc(Arc::clone(document));
        self.document_etag += 1;
        Ok(())
    }
}

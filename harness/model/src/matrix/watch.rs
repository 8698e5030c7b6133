//! What was seen of one history.

use std::collections::BTreeMap;

use super::area::{Area, At, Place};
use super::{blobs, sizes};
use crate::vocabulary::BlobId;

/// Derives the cells of the steps of one history.
#[derive(Debug, Default)]
pub struct Watch {
    /// The cells of the current step so far; the flag says that a rejection counts.
    pub(super) found: Vec<(Place, bool)>,
    pub(super) trail: blobs::Trail,
    pub(super) sizes: sizes::Before,
    /// The interface that made each path, in a hierarchical account.
    pub(super) makers: BTreeMap<BlobId, &'static str>,
}

impl Watch {
    /// Notes a cell of the current step.
    pub(super) fn saw(&mut self, area: &Area, at: At) {
        self.found.push((area.place(at), area.counts_refusals));
    }
}

//! Pages of listings that end next to a delimiter, scans that pass many entities, and the place of
//! the change for which a batch is refused.

use smalt_protocol::ErrorCode;

use super::area::{Area, NONE};
use super::watch::Watch;
use crate::expected::{Expected, Fact, Listed};
use crate::state::Model;
use crate::vocabulary::ContainerOperation;
use crate::vocabulary::tables::{Row, TableExpected, TableFilter, TableOperation};

const NAMES: &[&str] = &["stem", "below delimiter", "inside", "above delimiter"];
/// Number of entities that a scan passes before it may leap.
const LEAP: usize = 16;
const FEW: &str = "fewer than 16";
const MANY: &str = "16 or more";

/// The last name of a page, and the first of the next.
pub(super) const PAGES: Area = Area {
    name: "page of names",
    axes: [&["flat", "delimited"], NAMES, NAMES, NONE],
    exists: |[form, last, first, _]| {
        let place = |name| NAMES.iter().position(|known| *known == name);
        // Only a flat listing shows several entries of a name; there are two stems, and two names
        // inside.
        let is_same = last == first && (*form == "flat" || ["stem", "inside"].contains(last));
        place(*last) < place(*first) || is_same
    },
    counts_refusals: false,
};

/// Entities of a partition that a query does not return, and what follows them.
pub(super) const SCANS: Area = Area {
    name: "scan",
    axes: [
        &[FEW, MANY],
        &[
            "entity of the partition",
            "entity of a later one",
            "nothing",
        ],
        &["row key", "both keys"],
        &["one page", "several pages"],
    ],
    exists: |_| true,
    counts_refusals: false,
};

/// The change that a batch is refused for.
pub(super) const BATCHES: Area = Area {
    name: "refused change",
    axes: [
        &[
            "EntityAlreadyExists",
            "ResourceNotFound",
            "UpdateConditionNotSatisfied",
            "InvalidDuplicateRow",
            "CommandsInBatchActOnDifferentPartitions",
        ],
        &["at 0", "at 1", "at 2 to 9", "at 10 or later"],
        &["last", "others follow"],
        NONE,
    ],
    exists: |[code, place, rest, _]| {
        let needs_earlier = code.starts_with("InvalidDuplicate") || code.starts_with("Commands");
        // The answer to a single change has no index.
        *place != "at 0" || !needs_earlier && *rest != "last"
    },
    counts_refusals: true,
};

fn class(entry: &Listed) -> &'static str {
    let (Listed::Blob { name, .. } | Listed::Prefix(name)) = entry;
    match name.as_str() {
        name if name.contains('/') => "inside",
        name if name.ends_with('-') => "below delimiter",
        name if name.ends_with("00") => "above delimiter",
        _ => "stem",
    }
}

impl Watch {
    pub(super) fn listed(&mut self, operation: &ContainerOperation, expected: &Expected) {
        let ContainerOperation::List {
            delimited, page, ..
        } = operation
        else {
            return;
        };
        let form = ["flat", "delimited"][usize::from(*delimited)];
        for fact in &expected.facts {
            let Fact::Listed(listed) = fact else {
                continue;
            };
            let page = usize::try_from(*page).unwrap_or(usize::MAX);
            for first in (page..listed.len()).step_by(page) {
                let (last, first) = (class(&listed[first - 1]), class(&listed[first]));
                self.saw(&PAGES, [form, last, first, ""]);
            }
        }
    }

    pub(super) fn table(
        &mut self,
        model: &Model,
        name: &str,
        operation: &TableOperation,
        expected: &Expected,
    ) {
        let [Fact::Table(expected)] = expected.facts.as_slice() else {
            return;
        };
        self.entities_after(model, name, operation, expected);
        match operation {
            TableOperation::Batch(changes) => self.refused(changes.len(), expected),
            TableOperation::Query {
                filter: Some(filter),
                page,
                ..
            } if expected.code.is_none() => {
                let keys = match (names(filter, "PartitionKey"), names(filter, "RowKey")) {
                    (false, true) => "row key",
                    (true, true) => "both keys",
                    _ => return,
                };
                let is_long = expected.rows.len() > *page as usize;
                let pages = ["one page", "several pages"][usize::from(is_long)];
                self.scanned(&model.tables.rows(name), &expected.rows, keys, pages);
            }
            _ => {}
        }
    }

    fn refused(&mut self, count: usize, expected: &TableExpected) {
        let codes = [
            ErrorCode::EntityAlreadyExists,
            ErrorCode::ResourceNotFound,
            ErrorCode::UpdateConditionNotSatisfied,
            ErrorCode::InvalidDuplicateRow,
            ErrorCode::CommandsInBatchActOnDifferentPartitions,
        ];
        let (Some(code), Some(place)) = (expected.code, expected.place) else {
            return;
        };
        if codes.contains(&code) {
            let at = match place {
                0 => "at 0",
                1 => "at 1",
                2..10 => "at 2 to 9",
                _ => "at 10 or later",
            };
            let rest = ["others follow", "last"][usize::from(place + 1 == count)];
            self.saw(&BATCHES, [code.as_str(), at, rest, ""]);
        }
    }

    /// Counts every run of entities between two that the query returns.
    fn scanned(&mut self, all: &[Row], returned: &[Row], keys: &'static str, pages: &'static str) {
        let mut returned = returned.iter().peekable();
        let mut passed: Option<(usize, &str)> = None;
        for row in all {
            let is_returned = returned.next_if(|next| next.id == row.id).is_some();
            let partition = row.id.partition_key.as_str();
            match passed {
                Some((count, of)) if is_returned => {
                    let then = ["entity of a later one", "entity of the partition"];
                    self.passed(count, then[usize::from(of == partition)], keys, pages);
                    passed = None;
                }
                Some((count, of)) if of == partition => passed = Some((count + 1, of)),
                // A run that ends with its partition counts for what comes later.
                Some((count, _)) if count >= LEAP => {}
                _ if is_returned => {}
                _ => passed = Some((1, partition)),
            }
        }
        if let Some((count, _)) = passed {
            self.passed(count, "nothing", keys, pages);
        }
    }

    fn passed(
        &mut self,
        count: usize,
        then: &'static str,
        keys: &'static str,
        pages: &'static str,
    ) {
        let run = [FEW, MANY][usize::from(count >= LEAP)];
        self.saw(&SCANS, [run, then, keys, pages]);
    }
}

/// Whether a filter compares this property.
fn names(filter: &TableFilter, property: &str) -> bool {
    match filter {
        TableFilter::And(one, other) | TableFilter::Or(one, other) => {
            names(one, property) || names(other, property)
        }
        TableFilter::Not(inner) => names(inner, property),
        TableFilter::Compare { name, .. } | TableFilter::Holds(name) => name == property,
    }
}

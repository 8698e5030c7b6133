//! One difference between two services.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::side::SMALT;
use crate::replay::compare::{Aspect, Difference};
use crate::replay::recording::Interaction;

/// Location of a difference in the first line of a part of a transaction, below the part.
const START_LINE: &str = "start line";
/// Location of the entities on a page.
const ENTITIES: &str = ".value";
/// Prefix of headers that continue a query.
const CONTINUATION: &str = "x-ms-continuation-";

/// The kind of script that shows a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lane {
    /// A trace: a scenario of a client library.
    Traces,
    /// A generated history.
    Histories,
}

/// One difference. When smalt is one of the sides, it fills the fields `smalt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Kind of the script.
    pub lane: Lane,
    /// Name of the script.
    pub script: String,
    /// Index of the exchange in the script, from 0.
    pub exchange: usize,
    /// Operation in the notation of traces: `PUT blob comp=lease acquire`.
    pub operation: String,
    /// Request line, for display.
    pub request: String,
    /// Statuses from smalt and from the other service.
    pub statuses: (u16, u16),
    /// What differs.
    pub aspect: Aspect,
    /// Location: a header's name, or a path in the body.
    pub at: String,
    /// Value from smalt.
    pub smalt: String,
    /// Value from the other service.
    pub other: String,
}

/// The exchange that differs, and the sides.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Kind of the script.
    pub lane: Lane,
    /// Name of the script.
    pub script: &'a str,
    /// Name of the left side.
    pub left: &'a str,
    /// Exchange on the left side.
    pub interaction: &'a Interaction,
}

impl Place<'_> {
    /// Returns the findings of one exchange. The left side counts as the recording.
    pub fn findings(&self, differences: &[Difference]) -> Vec<Finding> {
        let is_left = self.left == SMALT;
        let left = self.interaction.response.status;
        let other = differences.iter().find(|d| d.aspect == Aspect::Status);
        let right = other.and_then(|d| d.live.parse().ok());
        let right = right.unwrap_or(left);
        let statuses = if is_left {
            (left, right)
        } else {
            (right, left)
        };
        let request = &self.interaction.request;
        let finding = |difference: &Difference| {
            let (recorded, live) = (difference.recorded.clone(), difference.live.clone());
            let (smalt, other) = if is_left {
                (recorded, live)
            } else {
                (live, recorded)
            };
            Finding {
                lane: self.lane,
                script: self.script.to_owned(),
                exchange: self.interaction.n,
                operation: self.interaction.operation.clone(),
                request: format!("{} {}", request.method, request.url),
                statuses,
                aspect: difference.aspect,
                at: difference.at.clone(),
                smalt,
                other,
            }
        };
        primary(differences).iter().map(finding).collect()
    }
}

/// Returns the differences that do not follow from another one: a different status implies
/// different headers and body, and a different error code implies a different message.
pub(super) fn primary(differences: &[Difference]) -> Vec<Difference> {
    let of = |aspect| differences.iter().find(|d| d.aspect == aspect);
    let code = of(Aspect::Code);
    if let Some(status) = of(Aspect::Status) {
        let both = |status: &str, code: Option<&String>| match code {
            Some(code) if !code.is_empty() => format!("{status} {code}"),
            _ => status.to_owned(),
        };
        return vec![Difference {
            recorded: both(&status.recorded, code.map(|code| &code.recorded)),
            live: both(&status.live, code.map(|code| &code.live)),
            ..status.clone()
        }];
    }
    let refused = differences.iter().filter(|d| d.at.ends_with(START_LINE));
    let refused: Vec<&str> = refused.map(|d| d.at.trim_end_matches(START_LINE)).collect();
    let follows = |difference: &&Difference| {
        let at = difference.at.as_str();
        let of_code =
            at == "x-ms-error-code" || at.starts_with("/Error") || at.starts_with(".odata.error.");
        let of_line = |part: &&&str| at.starts_with(**part) && !at.ends_with(START_LINE);
        (code.is_some() && difference.aspect != Aspect::Code && of_code)
            || refused.iter().any(|part| of_line(&part))
    };
    let mut own: Vec<Difference> = differences.to_vec();
    own.retain(|difference| !follows(&difference));
    if let Some(key) = own.iter().find(|one| is_key(&one.at)).cloned() {
        own.retain(|one| !one.at.starts_with(ENTITIES));
        own.push(Difference {
            at: ENTITIES.to_owned(),
            ..key
        });
    }
    own
}

/// Whether this is the key of an entity on a page, so that a different entity is in its place.
fn is_key(at: &str) -> bool {
    let is_one = |name: &str| at.ends_with(name);
    at.starts_with(ENTITIES) && (is_one("].PartitionKey") || is_one("].RowKey"))
}

impl Finding {
    /// Whether the two services are in different states from here on, which makes later answers
    /// meaningless. A history uses an ETag again immediately; a trace is short enough to continue.
    pub fn parts_ways(&self, lane: Lane) -> bool {
        let (smalt, other) = self.statuses;
        let reads = ["GET ", "HEAD "]
            .iter()
            .any(|m| self.operation.starts_with(m));
        let one_did_it = (smalt < 300) != (other < 300);
        (self.aspect == Aspect::Relations && lane == Lane::Histories && !self.is_of_a_page())
            || self.parts_in_a_part()
            || self.names_other_entities()
            || self.aspect == Aspect::Call
            || (self.aspect == Aspect::Status && one_did_it && !reads)
    }

    /// Whether the sides continue with different pages, or only one continues.
    pub fn is_of_a_page(&self) -> bool {
        self.at.starts_with(CONTINUATION)
    }

    /// Whether the page has the same number of entities but different ones, whose ETags would be
    /// confused.
    fn names_other_entities(&self) -> bool {
        self.at == ENTITIES && !self.smalt.starts_with("Array(")
    }

    /// Whether only one side has executed a transaction, although both answer 202.
    fn parts_in_a_part(&self) -> bool {
        let did = |line: &str| line.split(' ').nth(1).is_some_and(|s| s.starts_with('2'));
        let is_line = self.at.ends_with(START_LINE);
        let is_number = self.smalt.ends_with(" parts") && self.other.ends_with(" parts");
        self.operation == "POST transaction"
            && self.aspect == Aspect::Body
            && (is_number || (is_line && did(&self.smalt) != did(&self.other)))
    }

    /// Returns the aspect as written in the ledger.
    pub fn aspect_name(&self) -> String {
        let text = serde_json::to_value(self.aspect).ok();
        let text = text.and_then(|value| value.as_str().map(str::to_owned));
        text.unwrap_or_default()
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (smalt, other) = self.statuses;
        let aspect = self.aspect_name();
        writeln!(
            f,
            "{} exchange {}: {} ({smalt} / {other}), {aspect} {}",
            self.script, self.exchange, self.operation, self.at
        )?;
        writeln!(f, "  {}", self.request)?;
        writeln!(f, "  smalt: {}", self.smalt.replace('\n', "\\n"))?;
        writeln!(f, "  other: {}", self.other.replace('\n', "\\n"))
    }
}

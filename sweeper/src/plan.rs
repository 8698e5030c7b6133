//! Plans: blobs, bytes, storage calls and cost of a sweep that is not carried out. Pure.

use std::collections::BTreeMap;

use serde::Serialize;
use smalt_protocol::terminal::one_line;
use smalt_sleeve::port::BlobItem;
use smalt_worker::budget::cost;
use smalt_worker::exit;

use crate::decide::Decision;
use crate::guard::{Burden, Guard};
use crate::outcome::{Class, Outcome};

/// Configurable prices, which differ by region, tier and contract. The default is only the example
/// of the source documents: 0.01 per 10,000 transactions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prices {
    /// Price per 10,000 transactions of any kind except deletes, which Azure does not charge.
    pub per_10k_transactions: f64,
    /// Storage price per GiB and month, to estimate the saving from deleted bytes.
    pub per_gib_month: f64,
}

impl Default for Prices {
    fn default() -> Self {
        Prices {
            per_10k_transactions: 0.01,
            per_gib_month: 0.0,
        }
    }
}

/// The effect of a sweep if it ran now.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Plan {
    /// The service's time of the decisions.
    pub decided_at: String,
    /// Plans of the containers, by label.
    pub containers: BTreeMap<String, ContainerPlan>,
    /// The first blobs that would be removed or need attention.
    pub rows: Vec<PlanRow>,
    /// Whether `rows` omits some of these blobs.
    pub truncated: bool,
    /// Totals over all containers.
    pub total: Totals,
    /// Estimated cost.
    pub cost: Cost,
    /// Whether each blob to remove was checked for snapshots and for a blob at its destination.
    pub deep: bool,
    /// Charged calls of these checks, without the listings.
    pub looks: u64,
    /// Number of containers to plan.
    #[serde(skip)]
    pub containers_all: u64,
    /// Number of containers planned so far.
    #[serde(skip)]
    pub containers_done: u64,
}

/// The effect of a sweep on one container.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ContainerPlan {
    /// Totals of this container.
    pub totals: Totals,
    /// Blobs that stay, by reason.
    pub kept: BTreeMap<Outcome, u64>,
    /// Why the container could not be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where the circuit breaker would stop the sweep. Blobs planned after that point would stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Blobs removed and seen before that point.
    #[serde(skip)]
    burden: Burden,
    /// Moves that a sweep would begin but not complete.
    #[serde(skip)]
    moves_in_vain: u64,
}

/// Totals of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Blobs listed.
    pub seen: u64,
    /// Bytes listed.
    pub seen_bytes: u64,
    /// Blobs to delete.
    pub delete: u64,
    /// Bytes to delete.
    pub delete_bytes: u64,
    /// Blobs to move.
    pub r#move: u64,
    /// Bytes to move.
    pub move_bytes: u64,
    /// Blobs that need attention.
    pub attention: u64,
    /// Pages to list.
    pub pages: u64,
    /// Storage calls that Azure charges.
    pub transactions: u64,
}

/// Estimated cost, in the currency of the prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Prices used for the estimate.
    pub prices: Prices,
    /// Cost of one cycle.
    pub cycle: f64,
    /// Cost of the checks of each blob, which only a deep plan makes.
    pub looks: f64,
    /// Storage cost saved per month by the deleted bytes.
    pub saved_per_month: f64,
}

/// One blob of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanRow {
    /// `delete`, `move`, or the outcome that needs attention.
    pub action: String,
    /// Container name.
    pub container: String,
    /// Blob name.
    pub blob: String,
    /// Length in bytes.
    pub bytes: u64,
    /// When the blob was due; empty if it stays.
    pub due: String,
    /// Place of the copy, as `container/name`; empty unless it is a move.
    pub destination: String,
    /// What the operator needs to know to fix the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

pub(crate) struct Foreseen<'a> {
    pub(crate) decision: &'a Decision,
    /// The outcome that would keep the blob despite the decision.
    pub(crate) keeps: Option<Outcome>,
    pub(crate) detail: Option<String>,
}

/// Charged calls for a page with work: lease, read, write, release and the listing itself.
pub const CALLS_PER_PAGE: u64 = 5;
/// Charged calls for a move: the copy and one HEAD of it. The delete is free.
pub const CALLS_PER_MOVE: u64 = 2;

impl Plan {
    pub(crate) fn blob(
        &mut self,
        label: &str,
        container: &str,
        item: &BlobItem,
        seen: Foreseen<'_>,
    ) {
        let Foreseen {
            decision,
            keeps,
            detail,
        } = seen;
        let bytes = item.properties.length;
        let plan = self.containers.entry(label.to_owned()).or_default();
        let totals = &mut plan.totals;
        totals.seen += 1;
        totals.seen_bytes += bytes;
        let (due, destination) = match decision {
            Decision::Delete { due } => (due.iso_s(), String::new()),
            Decision::Move { due, destination } => {
                let place = format!("{}/{}", destination.container, destination.name);
                (due.iso_s(), place)
            }
            Decision::Keep(_) => (String::new(), String::new()),
        };
        let action = match (decision, &keeps) {
            (Decision::Keep(outcome), _) | (_, Some(outcome)) => {
                plan.moves_in_vain += u64::from(matches!(decision, Decision::Move { .. }));
                *plan.kept.entry(*outcome).or_insert(0) += 1;
                if outcome.class() != Class::Failed {
                    return;
                }
                totals.attention += 1;
                outcome.to_string()
            }
            (Decision::Delete { .. }, None) => {
                totals.delete += 1;
                totals.delete_bytes += bytes;
                "delete".to_owned()
            }
            (Decision::Move { .. }, None) => {
                totals.r#move += 1;
                totals.move_bytes += bytes;
                "move".to_owned()
            }
        };
        self.rows.push(PlanRow {
            action,
            container: container.to_owned(),
            blob: item.name.clone(),
            bytes,
            due,
            destination,
            detail,
        });
    }

    /// Applies the circuit breaker to a page with `seen` blobs of which `due` would be removed, as
    /// a sweep does before it starts the page.
    pub(crate) fn guard(&mut self, guard: &Guard, label: &str, seen: u64, due: u64) {
        let cycle_removed = self.containers.values().map(|c| c.burden.container_removed);
        let cycle_removed = cycle_removed.sum();
        let plan = self.containers.entry(label.to_owned()).or_default();
        if plan.stopped.is_some() {
            return;
        }
        let so_far = Burden {
            cycle_removed,
            ..plan.burden
        };
        if let Some(trip) = guard.judge(so_far, seen, due) {
            plan.stopped = Some(format!("before page {}: {trip}", plan.totals.pages));
            return;
        }
        plan.burden.container_removed += due;
        plan.burden.container_seen += seen;
    }

    /// Returns the exit code that a sweep would have, as far as it is foreseeable.
    pub fn exit_code(&self) -> u8 {
        if self.containers.values().any(|c| c.stopped.is_some()) {
            exit::GUARD
        } else if self.containers.values().any(|c| c.error.is_some()) {
            exit::FAILED_ITEMS
        } else {
            exit::OK
        }
    }

    /// Keeps only the first `rows_max` rows.
    pub fn truncate(&mut self, rows_max: usize) {
        if self.rows.len() > rows_max {
            self.rows.truncate(rows_max);
            self.truncated = true;
        }
    }

    /// Counts a listed page.
    pub fn page(&mut self, label: &str) {
        self.containers
            .entry(label.to_owned())
            .or_default()
            .totals
            .pages += 1;
    }

    /// Calculates the totals and the cost.
    pub fn finish(&mut self, prices: Prices) {
        let mut total = Totals::default();
        for plan in self.containers.values_mut() {
            let totals = &mut plan.totals;
            let moves = totals.r#move + plan.moves_in_vain;
            totals.transactions = totals.pages * CALLS_PER_PAGE + moves * CALLS_PER_MOVE;
            total.seen += totals.seen;
            total.seen_bytes += totals.seen_bytes;
            total.delete += totals.delete;
            total.delete_bytes += totals.delete_bytes;
            total.r#move += totals.r#move;
            total.move_bytes += totals.move_bytes;
            total.attention += totals.attention;
            total.pages += totals.pages;
            total.transactions += totals.transactions;
        }
        self.total = total;
        let gib = total.delete_bytes as f64 / (1u64 << 30) as f64;
        self.cost = Cost {
            prices,
            cycle: cost(total.transactions, prices.per_10k_transactions),
            looks: cost(self.looks, prices.per_10k_transactions),
            saved_per_month: gib * prices.per_gib_month,
        };
    }

    /// Returns the rows as CSV (RFC 4180) with a header.
    pub fn csv(&self) -> String {
        let mut text = String::from("action,container,blob,bytes,due,destination\r\n");
        for row in &self.rows {
            let bytes = row.bytes.to_string();
            let fields = [
                row.action.as_str(),
                &row.container,
                &row.blob,
                &bytes,
                &row.due,
                &row.destination,
            ];
            text.push_str(&fields.map(csv_field).join(","));
            text.push_str("\r\n");
        }
        text
    }

    /// Returns the totals as a text table.
    pub fn table(&self) -> String {
        let columns = [
            "container",
            "pages",
            "blobs",
            "delete",
            "move",
            "attention",
            "freed",
        ];
        let mut lines = vec![columns.map(str::to_owned)];
        for (label, plan) in &self.containers {
            lines.push(table_line(label, &plan.totals));
        }
        lines.push(table_line("total", &self.total));
        let mut text = align(&lines);
        for (label, plan) in &self.containers {
            let label = one_line(label);
            if let Some(error) = &plan.error {
                text.push_str(&format!("{label}: {}\n", one_line(error)));
            }
            if let Some(stopped) = &plan.stopped {
                let line = format!("{label}: the circuit breaker would stop it {stopped}\n");
                text.push_str(&line);
            }
        }
        text.push_str(&format!(
            "about {} charged transactions, {:.4} per cycle at {} per 10,000 (a setting)\n",
            self.total.transactions, self.cost.cycle, self.cost.prices.per_10k_transactions
        ));
        if self.deep {
            let line = format!(
                "{} more for the deep checks of this plan: {:.4}\n",
                self.looks, self.cost.looks
            );
            text.push_str(&line);
        }
        text
    }
}

fn table_line(label: &str, totals: &Totals) -> [String; 7] {
    [
        one_line(label).into_owned(),
        totals.pages.to_string(),
        totals.seen.to_string(),
        totals.delete.to_string(),
        totals.r#move.to_string(),
        totals.attention.to_string(),
        bytes(totals.delete_bytes + totals.move_bytes),
    ]
}

/// Aligns columns to equal width: the first to the left, the others to the right.
fn align<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|at| width(at).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in lines {
        for (at, cell) in line.iter().enumerate() {
            let width = widths[at];
            let cell = if at == 0 {
                format!("{cell:<width$}")
            } else {
                format!("  {cell:>width$}")
            };
            text.push_str(&cell);
        }
        text.push('\n');
    }
    text
}

/// Formats a size in its largest binary unit, for example `1.5 MiB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1_024.0 && unit + 1 < UNITS.len() {
        value /= 1_024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{count} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

fn csv_field(field: &str) -> String {
    let field = one_line(field);
    // Prevents a spreadsheet from evaluating a blob name as a formula.
    let guarded = match field.as_bytes().first() {
        Some(b'=' | b'+' | b'-' | b'@') => format!("'{field}"),
        _ => field.into_owned(),
    };
    if guarded.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", guarded.replace('"', "\"\""))
    } else {
        guarded
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

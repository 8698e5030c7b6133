//! Matches findings with the ledger: explained ones, unexplained ones, stale entries.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::finding::{Finding, Lane};
use super::ledger::{Ledger, Verdict};

/// The result of matching all findings of a run.
#[derive(Debug, Default)]
pub struct Triage {
    /// How often each entry of the ledger explained a finding.
    pub uses: Vec<u64>,
    /// Unexplained findings, grouped by similarity, in the order of first occurrence.
    pub unexplained: Vec<Vec<Finding>>,
    /// Entries that had to occur and did not.
    pub stale: Vec<String>,
}

/// Matches findings. `whole` has the lanes that ran in full: only in these an entry can be stale.
pub fn judge(ledger: &Ledger, findings: &[Finding], whole: &BTreeSet<Lane>) -> Triage {
    let mut seen: BTreeSet<(usize, Lane)> = BTreeSet::new();
    let mut triage = Triage {
        uses: vec![0; ledger.entries.len()],
        ..Triage::default()
    };
    let mut groups: BTreeMap<_, usize> = BTreeMap::new();
    for finding in findings {
        if let Some(index) = ledger.explains(finding) {
            triage.uses[index] += 1;
            seen.insert((index, finding.lane));
            continue;
        }
        let key = (
            finding.operation.clone(),
            finding.statuses,
            finding.aspect,
            finding.at.clone(),
        );
        let group = *groups.entry(key).or_insert(triage.unexplained.len());
        if group == triage.unexplained.len() {
            triage.unexplained.push(Vec::new());
        }
        triage.unexplained[group].push(finding.clone());
    }
    for (index, entry) in ledger.entries.iter().enumerate() {
        let missed = entry.seen_in.intersection(whole);
        let missed = missed.filter(|lane| !seen.contains(&(index, **lane)));
        if missed.count() > 0 {
            triage.stale.push(entry.id.clone());
        }
    }
    triage
}

impl Triage {
    /// Whether everything is explained, and every entry is needed.
    pub fn is_clean(&self) -> bool {
        self.unexplained.is_empty() && self.stale.is_empty()
    }

    /// Returns how many findings the entries with this verdict explained.
    pub fn explained(&self, ledger: &Ledger, verdict: Verdict) -> u64 {
        let uses = self.uses.iter().zip(&ledger.entries);
        uses.filter(|(_, entry)| entry.verdict == verdict)
            .map(|(uses, _)| *uses)
            .sum()
    }

    /// Renders unexplained findings, each with an entry to paste, and stale entries.
    pub fn report(&self, today: &str) -> String {
        let mut text = String::new();
        for group in &self.unexplained {
            let Some(first) = group.first() else { continue };
            // Writing to a string does not fail.
            let _ = writeln!(text, "unexplained, {} times\n{first}", group.len());
            text += &entry(group, today);
            text.push('\n');
        }
        for id in &self.stale {
            let _ = writeln!(
                text,
                "stale: {id} explains no difference any more; remove it"
            );
        }
        text
    }
}

/// Renders the entry that would explain similar findings. Values that differ among them are
/// omitted; verdict and evidence are left blank.
fn entry(group: &[Finding], today: &str) -> String {
    let Some(first) = group.first() else {
        return String::new();
    };
    let lanes: BTreeSet<String> = group
        .iter()
        .filter_map(|one| serde_json::to_string(&one.lane).ok())
        .collect();
    let lanes: Vec<String> = lanes.into_iter().collect();
    let mut text = format!(
        "[[difference]]\nid = {}\noperation = {}\naspect = {}\nat = {}\n",
        quoted(&name(first)),
        quoted(&first.operation),
        quoted(&first.aspect_name()),
        quoted(&first.at),
    );
    let same = |of: fn(&Finding) -> &str| group.iter().all(|one| of(one) == of(first));
    if same(|one| &one.smalt) {
        text += &format!("smalt = {}\n", quoted(&first.smalt));
    }
    if same(|one| &one.other) {
        text += &format!("azurite = {}\n", quoted(&first.other));
    }
    text += &format!(
        "status = {}\nverdict = \"\" # ours-wrong, azurite-wrong, ambiguous\nevidence = \"\"\n\
         date = {}\nseen_in = [{}]\n",
        first.statuses.0,
        quoted(today),
        lanes.join(", ")
    );
    text
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Returns a name for an entry, from the operation and the difference.
fn name(finding: &Finding) -> String {
    let text = format!("{} {}", finding.operation, finding.at).to_lowercase();
    let words: Vec<&str> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.join("-")
}

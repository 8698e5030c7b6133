//! The ledger of differences: the known differences between smalt and Azurite, which of them is
//! right, and the evidence.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::finding::{Finding, Lane};
use crate::replay::compare::Aspect;

/// Minimum length of evidence: shorter text cannot name a document or a recording.
const EVIDENCE_CHARACTERS_MIN: usize = 20;

/// Who is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// smalt is wrong and must be fixed.
    OursWrong,
    /// Azurite is wrong.
    AzuriteWrong,
    /// The evidence does not decide, or both are allowed.
    Ambiguous,
}

impl Verdict {
    /// Returns the verdict as written in the ledger.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::OursWrong => "ours-wrong",
            Verdict::AzuriteWrong => "azurite-wrong",
            Verdict::Ambiguous => "ambiguous",
        }
    }
}

/// One explained difference. Strings are patterns in which `*` matches anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Unique name.
    pub id: String,
    /// Operation in the notation of traces: `PUT blob comp=lease *`.
    pub operation: String,
    /// Request line: `*comp=list*include=*snapshots*`; `None` matches all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// What differs.
    pub aspect: Aspect,
    /// Location: a header's name, or a path in the body.
    pub at: String,
    /// Value from smalt; `None` matches all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smalt: Option<String>,
    /// Value from Azurite; `None` matches all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azurite: Option<String>,
    /// Status from smalt; `None` matches all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Name of the script; `None` matches all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Which service is right.
    pub verdict: Verdict,
    /// The document or recording that proves the verdict.
    pub evidence: String,
    /// Date of the verdict: `2026-11-21`.
    pub date: String,
    /// Lanes in which the difference must occur; otherwise the entry is stale.
    pub seen_in: BTreeSet<Lane>,
}

/// All entries, in the order of matching.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// The entries.
    #[serde(default, rename = "difference")]
    pub entries: Vec<Entry>,
    /// Traces that are not run against Azurite.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

/// A trace that cannot run against Azurite.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Name: `blob/versions`.
    pub script: String,
    /// Why it cannot run.
    pub reason: String,
}

/// Why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file cannot be read.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// The file is not a valid ledger.
    #[error("{0}: {1}")]
    Form(String, Box<toml::de::Error>),
    /// An entry violates the rules of the ledger.
    #[error("{0}: {1}: {2}")]
    Entry(String, String, &'static str),
}

impl Ledger {
    /// Parses a ledger.
    pub fn parse(name: &str, text: &str) -> Result<Ledger, LedgerError> {
        let read = toml::from_str(text);
        let ledger: Ledger = read.map_err(|e| LedgerError::Form(name.to_owned(), Box::new(e)))?;
        let mut ids = BTreeSet::new();
        for entry in &ledger.entries {
            let problem = entry.problem().or_else(|| {
                (!ids.insert(entry.id.as_str())).then_some("another entry has this id")
            });
            if let Some(problem) = problem {
                let id = entry.id.clone();
                return Err(LedgerError::Entry(name.to_owned(), id, problem));
            }
        }
        Ok(ledger)
    }

    /// Whether a trace is left out.
    pub fn leaves_out(&self, script: &str) -> bool {
        self.left_out.iter().any(|one| one.script == script)
    }

    /// Returns the index of the first entry that explains a finding.
    pub fn explains(&self, finding: &Finding) -> Option<usize> {
        self.entries
            .iter()
            .position(|entry| entry.explains(finding))
    }
}

impl Entry {
    fn problem(&self) -> Option<&'static str> {
        let is_date = self.date.len() == 10
            && self.date.char_indices().all(|(at, c)| match at {
                4 | 7 => c == '-',
                _ => c.is_ascii_digit(),
            });
        if self.id.is_empty() || self.id.contains(char::is_whitespace) {
            return Some("the id is empty or has blanks");
        }
        if self.operation == "*" && self.at == "*" {
            return Some("it would match every difference");
        }
        if self.evidence.chars().count() < EVIDENCE_CHARACTERS_MIN {
            return Some("the evidence is too short to name a document or a recording");
        }
        if self.seen_in.is_empty() {
            return Some("seen_in is empty: it could never be stale");
        }
        (!is_date).then_some("the date is not like 2026-11-21")
    }

    fn explains(&self, finding: &Finding) -> bool {
        let any = |pattern: &Option<String>, text: &str| {
            pattern
                .as_ref()
                .is_none_or(|pattern| matches(pattern, text))
        };
        self.aspect == finding.aspect
            && self
                .status
                .is_none_or(|status| status == finding.statuses.0)
            && matches(&self.operation, &finding.operation)
            && matches(&self.at, &finding.at)
            && any(&self.smalt, &finding.smalt)
            && any(&self.azurite, &finding.other)
            && any(&self.request, &finding.request)
            && any(&self.script, &finding.script)
    }
}

/// Whether a string matches a pattern, in which `*` stands for anything.
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_strings() {
        for (pattern, text, matched) in [
            ("", "", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "anything", true),
            ("PUT * acquire", "PUT blob comp=lease acquire", true),
            ("PUT * acquire", "PUT blob comp=lease acquired", false),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
        ] {
            assert_eq!(matches(pattern, text), matched, "{pattern} {text}");
        }
    }

    const ENTRY: &str = r#"
[[difference]]
id = "a"
operation = "GET blob"
aspect = "header-names"
at = "etag"
verdict = "azurite-wrong"
evidence = "Get Blob: the table of response headers"
date = "2026-11-21"
seen_in = ["traces"]
"#;

    #[test]
    fn entries_need_evidence() {
        assert_eq!(Ledger::parse("f", ENTRY).unwrap().entries.len(), 1);
        let evidence = "Get Blob: the table of response headers";
        for (from, to, problem) in [
            (evidence, "trust me", "too short to name"),
            ("2026-11-21", "yesterday", "not like"),
            ("[\"traces\"]", "[]", "never be stale"),
            ("\"a\"", "\"a b\"", "blanks"),
            ("azurite-wrong", "theirs", "unknown variant"),
            ("at = \"etag\"\n", "", "missing field"),
            ("seen_in", "seen", "unknown field"),
        ] {
            let error = Ledger::parse("f", &ENTRY.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
        let twice = format!("{ENTRY}{ENTRY}");
        let error = Ledger::parse("f", &twice).unwrap_err();
        assert!(error.to_string().contains("another entry"), "{error}");
    }
}

//! The ledger of differences: what is known to differ between smalt and Azurite, who is right, and
//! what says so.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::finding::{Finding, Lane};
use crate::replay::compare::Aspect;

/// Shorter evidence names no document and no recording.
const EVIDENCE_CHARACTERS_MIN: usize = 20;

/// Who is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// smalt is wrong and is to be repaired.
    OursWrong,
    /// Azurite is wrong.
    AzuriteWrong,
    /// Nothing that is known decides, or both are allowed.
    Ambiguous,
}

impl Verdict {
    /// As the ledger writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::OursWrong => "ours-wrong",
            Verdict::AzuriteWrong => "azurite-wrong",
            Verdict::Ambiguous => "ambiguous",
        }
    }
}

/// One difference that is explained. Texts are patterns: `*` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its name, unique.
    pub id: String,
    /// What was asked, in the words of traces: `PUT blob comp=lease *`.
    pub operation: String,
    /// The request's line: `*comp=list*include=*snapshots*`; any where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// What differs.
    pub aspect: Aspect,
    /// Where: a header's name, a path in the body.
    pub at: String,
    /// What smalt gives; anything where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smalt: Option<String>,
    /// What Azurite gives; anything where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub azurite: Option<String>,
    /// The status that smalt gives; any where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The scripts that it is about; all where it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Who is right.
    pub verdict: Verdict,
    /// The document or recording that says so.
    pub evidence: String,
    /// When that was decided, `2026-11-21`.
    pub date: String,
    /// Where it has to be seen, or it is stale.
    pub seen_in: BTreeSet<Lane>,
}

/// All of them, in the order in which they are tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// The entries.
    #[serde(default, rename = "difference")]
    pub entries: Vec<Entry>,
    /// Traces that Azurite is not asked.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
}

/// A trace that cannot be asked of Azurite.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Its name: `blob/versions`.
    pub script: String,
    /// Why.
    pub reason: String,
}

/// Why a ledger is of no use.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// It cannot be read.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// It is not what this page says.
    #[error("{0}: {1}")]
    Form(String, Box<toml::de::Error>),
    /// An entry contradicts the rules of the ledger.
    #[error("{0}: {1}: {2}")]
    Entry(String, String, &'static str),
}

impl Ledger {
    /// Reads a ledger.
    ///
    /// # Errors
    /// With the line or the entry that is wrong.
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

    /// The first entry that explains a finding.
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
            return Some("it explains everything");
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

/// Whether a text is as a pattern says, in which `*` stands for anything.
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
    fn patterns_match_whole_texts() {
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
    fn entries_must_prove_what_they_say() {
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

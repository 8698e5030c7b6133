//! Known deviations: `fixtures/conform.toml`. Each has a reason, and is reported once it no longer
//! occurs.

use serde::{Deserialize, Serialize};

use super::checks::{Outcome, Played};

/// The built-in ledger.
const LEDGER: &str = include_str!("../../../fixtures/conform.toml");
/// Matches every scenario, or every check of one.
const ANY: &str = "*";

/// A deviation of one target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deviation {
    /// Name of the target.
    pub target: String,
    /// Name of the scenario; `*` for any.
    pub scenario: String,
    /// The failing expectations, as written; `*` for any.
    pub checks: Vec<String>,
    /// What the target does instead, and why that is known to be wrong.
    pub reason: String,
}

/// Why the ledger cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("invalid ledger of deviations: {0}")]
pub struct LedgerError(#[from] toml::de::Error);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    deviation: Vec<Deviation>,
}

/// Parses the built-in ledger.
pub fn built_in() -> Result<Vec<Deviation>, LedgerError> {
    parse(LEDGER)
}

/// Parses a ledger.
pub fn parse(text: &str) -> Result<Vec<Deviation>, LedgerError> {
    let file: File = toml::from_str(text)?;
    Ok(file.deviation)
}

impl Deviation {
    fn covers(&self, scenario: &str, check: &str) -> bool {
        let fits = |pattern: &str, text: &str| pattern == ANY || pattern == text;
        fits(&self.scenario, scenario) && self.checks.iter().any(|known| fits(known, check))
    }

    /// Returns the named checks that failed nowhere.
    fn unmet<'a>(&'a self, met: &[bool]) -> Vec<&'a str> {
        let checks = self.checks.iter().zip(met);
        checks
            .filter(|(_, met)| !**met)
            .map(|(check, _)| check.as_str())
            .collect()
    }
}

/// Marks known failures as expected and returns the deviations that no longer occur. Those of
/// scenarios that did not run are ignored.
pub fn apply(ledger: &[Deviation], target: &str, played: &mut [Played]) -> Vec<String> {
    let mut stale = Vec::new();
    for deviation in ledger.iter().filter(|one| one.target == target) {
        let mut met = vec![false; deviation.checks.len()];
        let mut ran = false;
        for one in played.iter_mut().filter(|one| one.skipped.is_none()) {
            if deviation.scenario != ANY && deviation.scenario != one.name {
                continue;
            }
            ran = true;
            let name = one.name.clone();
            for check in one.calls.iter_mut().flat_map(|call| &mut call.checks) {
                let is_failed = matches!(check.outcome, Outcome::Failed | Outcome::Expected);
                if !is_failed || !deviation.covers(&name, &check.text) {
                    continue;
                }
                check.outcome = Outcome::Expected;
                for (known, met) in deviation.checks.iter().zip(&mut met) {
                    *met |= known == ANY || *known == check.text;
                }
            }
        }
        if ran {
            let unmet = deviation.unmet(&met);
            stale.extend(unmet.iter().map(|check| {
                format!(
                    "{}: {:?} holds now, or does not run",
                    deviation.scenario, check
                )
            }));
        }
    }
    stale
}

/// Returns why a failed check of this scenario was expected.
pub fn reason<'a>(
    ledger: &'a [Deviation],
    target: &str,
    scenario: &str,
    check: &str,
) -> Option<&'a str> {
    let mut of_target = ledger.iter().filter(|one| one.target == target);
    let found = of_target.find(|one| one.covers(scenario, check));
    found.map(|one| one.reason.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::checks::{Called, Check};
    use crate::cases::expect::Aspect;

    fn played(outcome: Outcome) -> Played {
        Played {
            name: "one".to_owned(),
            area: "a".to_owned(),
            service: "blob".to_owned(),
            source: "Put Blob".to_owned(),
            skipped: None,
            calls: vec![Called {
                operation: "BlockBlob_Upload".to_owned(),
                request: "PUT /c/b".to_owned(),
                answer: "200".to_owned(),
                checks: vec![Check {
                    text: "201".to_owned(),
                    aspect: Aspect::Status,
                    outcome,
                    got: None,
                }],
            }],
        }
    }

    fn ledger() -> Vec<Deviation> {
        let text = "[[deviation]]\ntarget = \"x\"\nscenario = \"one\"\nchecks = [\"201\"]\n\
                    reason = \"answers 200\"\n";
        parse(text).unwrap()
    }

    #[test]
    fn known_deviation_is_expected_and_stale_one_is_reported() {
        let mut failing = [played(Outcome::Failed)];
        assert_eq!(apply(&ledger(), "x", &mut failing), [""; 0]);
        assert_eq!(failing[0].calls[0].checks[0].outcome, Outcome::Expected);
        assert_eq!(reason(&ledger(), "x", "one", "201"), Some("answers 200"));
        let mut passing = [played(Outcome::Passed)];
        assert_eq!(apply(&ledger(), "x", &mut passing).len(), 1);
        // A deviation only applies to its target.
        let mut other = [played(Outcome::Failed)];
        assert_eq!(apply(&ledger(), "y", &mut other), [""; 0]);
        assert_eq!(other[0].calls[0].checks[0].outcome, Outcome::Failed);
    }

    #[test]
    fn every_deviation_has_a_reason() {
        for deviation in built_in().unwrap() {
            assert!(deviation.reason.len() > 10, "{deviation:?}");
            assert_ne!(
                deviation.target, "smalt",
                "fix smalt instead: {deviation:?}"
            );
        }
    }
}

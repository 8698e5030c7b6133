//! Tests sleep only on tokio's paused clock, where an hour passes at once and no machine is too
//! slow.

use crate::finding::Finding;
use crate::places::has_word;
use crate::sizes::{self, Function};
use crate::tree::Source;

/// A file whose tests wait in real time, and why. An exemption that is no longer needed is a
/// finding.
pub(crate) type Exempt = (&'static str, &'static str);

/// Tests that wait for something outside this process's clock.
pub(crate) const EXEMPT: &[Exempt] = &[(
    "listener/tests/listener/handlers.rs",
    "waits for the end of a child process or a connection, which no test clock controls",
)];

/// Returns sleeps of tests in real time, and stale exemptions.
pub(crate) fn judge(sources: &[Source], exempt: &[Exempt]) -> Vec<Finding> {
    let mut findings: Vec<_> = sources.iter().flat_map(real_sleeps).collect();
    let stale: Vec<_> = exempt
        .iter()
        .filter(|(path, _)| !findings.iter().any(|f| f.path == *path))
        .map(|(path, _)| Finding::new(path, 0, "is exempt but no longer sleeps"))
        .collect();
    findings.retain(|f| !exempt.iter().any(|(path, _)| f.path == *path));
    findings.extend(stale);
    findings
}

fn real_sleeps(source: &Source) -> Vec<Finding> {
    let functions = sizes::functions(&source.code);
    let tests = source.code.iter().enumerate().skip(source.tests_from() - 1);
    tests
        .filter(|(_, line)| has_word(line, "sleep") && line.contains("sleep("))
        .filter(|(at, line)| line.contains("thread::sleep(") || !is_paused(source, &functions, *at))
        .map(|(at, _)| Finding::new(&source.path, at + 1, "a test sleeps in real time"))
        .collect()
}

/// Returns whether the clock is paused where this line runs. For a test its own attribute decides;
/// for other code the tests and runtimes of its file do.
fn is_paused(source: &Source, functions: &[Function], at: usize) -> bool {
    let around = functions
        .iter()
        .filter(|f| (f.line..f.line + f.lines).contains(&(at + 1)));
    let test = around
        .filter_map(|f| test_attribute(&source.code, f.line))
        .next_back();
    match test {
        Some(attribute) => attribute.contains("start_paused = true"),
        None => !source.code.iter().any(|line| runs_in_real_time(line)) || builds_paused(source),
    }
}

fn runs_in_real_time(line: &str) -> bool {
    let is_test = line.contains("#[tokio::test") && !line.contains("start_paused = true");
    is_test || line.contains("Builder::new_current_thread") || line.contains("new_multi_thread")
}

fn builds_paused(source: &Source) -> bool {
    let has = |what| source.code.iter().any(|line| line.contains(what));
    has("start_paused(true)") && !has("#[tokio::test]")
}

/// Returns the test attribute of the function that starts in this line, if it has one.
fn test_attribute(code: &[String], function_line: usize) -> Option<&str> {
    let above = code[..function_line - 1].iter().rev();
    above
        .map(|line| line.trim())
        .take_while(|line| line.starts_with("#[") || line.is_empty())
        .find(|line| line.starts_with("#[tokio::test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let sources = [Source::new("a/tests/a.rs", text)];
        judge(&sources, &[]).iter().map(|f| f.line).collect()
    }

    const REAL: &str = "#[tokio::test]\nasync fn a() {\n    tokio::time::sleep(s).await;\n}\n";
    const PAUSED: &str =
        "#[tokio::test(start_paused = true)]\nasync fn b() {\n    sleep(s).await;\n}\n";
    const HELPER: &str = "async fn c() {\n    sleep(s).await;\n}\n";

    #[test]
    fn a_real_sleep_is_found() {
        assert_eq!(lines(REAL), [3]);
        assert_eq!(lines(&format!("{PAUSED}{REAL}")), [7]);
        assert_eq!(
            lines(&format!("{HELPER}#[tokio::test]\nasync fn d() {{}}\n")),
            [2]
        );
        let built = "fn e() {\n    Builder::new_current_thread();\n}\n";
        assert_eq!(lines(&format!("{HELPER}{built}")), [2]);
        assert_eq!(
            lines("#[test]\nfn f() {\n    std::thread::sleep(s);\n}\n"),
            [3]
        );
    }

    #[test]
    fn a_sleep_on_the_paused_clock_is_not_found() {
        assert_eq!(lines(&format!("{PAUSED}{HELPER}")), [0_usize; 0]);
        let built =
            "fn e() {\n    Builder::new_current_thread()\n        .start_paused(true);\n}\n";
        assert_eq!(lines(&format!("{HELPER}{built}")), [0_usize; 0]);
        let source = Source::new("a/src/a.rs", HELPER);
        assert_eq!(judge(&[source], &[]), [], "not a test");
    }

    #[test]
    fn a_stale_exemption_is_found() {
        let sources = [Source::new("a/tests/a.rs", REAL)];
        assert_eq!(judge(&sources, &[("a/tests/a.rs", "a process")]), []);
        let stale = judge(&sources, &[("a/tests/a.rs", "x"), ("b/tests/b.rs", "x")]);
        assert_eq!(
            stale[0].to_string(),
            "b/tests/b.rs:0: is exempt but no longer sleeps"
        );
    }
}

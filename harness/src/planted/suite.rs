//! Runs the tests of a package and parses their output: the store's tests on a disk that loses
//! writes and fails, and those of the workers and their client.

use std::cell::Cell;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use smalt_planted::Detector;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::{Instant, timeout_at};

use super::detect::{Caught, Shrunk, Tests};

/// Time limit for a test binary, which normally takes some twenty seconds: a bug can make a test
/// wait forever and keep later ones from running.
const LIMIT: Duration = Duration::from_secs(120);
/// Time limit for the remaining tests once one has failed: the bug is caught, but the test's output
/// comes only at the end.
const LIMIT_AFTER_FAILURE: Duration = Duration::from_secs(10);

/// Result of a failed test in the output.
const FAILED: &str = "FAILED";

/// Runs the test binaries of a check until one fails; each test is a case.
///
/// # Errors
/// When there are no binaries, one cannot run or does not end without a failed test, or its output
/// cannot be parsed.
pub fn run(detector: Detector, all: &[Tests], tried: &Cell<u64>) -> Result<Option<Caught>, String> {
    let Some((package, filter)) = detector.tests() else {
        return Err(format!(
            "{} is not a check that runs tests",
            detector.name()
        ));
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let mut programs: Vec<&Tests> = all.iter().filter(|t| t.package == package).collect();
    // A library's unit tests are fast and test one thing each: a bug that makes other tests hang
    // fails there.
    programs.sort_by_key(|tests| !is_of_the_library(tests));
    for tests in programs {
        let caught = runtime.block_on(one(&tests.program, filter, tried))?;
        if caught.is_some() {
            return Ok(caught);
        }
    }
    match tried.get() {
        0 => Err(format!(
            "no test binary of {package}: ci/planted.sh passes --tests"
        )),
        _ => Ok(None),
    }
}

/// Whether this is the test binary of the package's library, by cargo's naming scheme.
fn is_of_the_library(tests: &Tests) -> bool {
    let name = tests.program.file_name().unwrap_or_default();
    let library = tests.package.replace('-', "_") + "-";
    name.to_string_lossy().starts_with(&library)
}

async fn one(program: &Path, filter: &str, tried: &Cell<u64>) -> Result<Option<Caught>, String> {
    let named = |error: std::io::Error| format!("{}: {error}", program.display());
    let (told, status) = told(program, filter).await.map_err(named)?;
    let read = read(&told, filter);
    tried.set(tried.get() + read.ran);
    if status.is_some_and(|status| status.success()) {
        return Ok(None);
    }
    if read.failed.is_empty() {
        let last = told.lines().last().unwrap_or_default();
        let end = status.map_or("did not end in time".to_owned(), |s| s.to_string());
        return Err(format!("{}: {end}: {last}", program.display()));
    }
    Ok(Some(Caught {
        what: read.failed.join(", "),
        shrunk: read.shrunk,
        story: told,
    }))
}

/// Returns the output, and the exit status if the program ends in time.
async fn told(program: &Path, filter: &str) -> std::io::Result<(String, Option<ExitStatus>)> {
    let mut child = Command::new(program)
        .arg(filter)
        .env("RUST_BACKTRACE", "0")
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = child
        .stdout
        .take()
        .map(|out| BufReader::new(out).split(b'\n'));
    let mut told = String::new();
    let mut end = Instant::now() + LIMIT;
    while let Some(lines) = &mut lines {
        let Ok(line) = timeout_at(end, lines.next_segment()).await else {
            break;
        };
        let Some(line) = line? else {
            break;
        };
        let line = String::from_utf8_lossy(&line);
        if result_of(&line).is_some_and(|(_, result)| result == FAILED) {
            end = end.min(Instant::now() + LIMIT_AFTER_FAILURE);
        }
        told.push_str(&line);
        told.push('\n');
    }
    let status = timeout_at(end, child.wait()).await.ok().transpose()?;
    if status.is_none() {
        child.kill().await?;
    }
    Ok((told, status))
}

/// Parses a line with a test and its result.
fn result_of(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("test ")?.rsplit_once(" ... ")
}

/// The results in the output.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    ran: u64,
    failed: Vec<String>,
    shrunk: Option<Shrunk>,
}

fn read(told: &str, filter: &str) -> Read {
    let mut read = Read::default();
    for (name, result) in told.lines().filter_map(result_of) {
        match result {
            "ok" => read.ran += 1,
            FAILED => {
                read.ran += 1;
                read.failed.push(name.trim_start_matches(filter).to_owned());
            }
            _ => {}
        }
    }
    read.shrunk = smallest(told);
    read
}

/// Returns the number of steps in the first input that proptest reduced.
fn smallest(told: &str) -> Option<Shrunk> {
    let (_, input) = told.split_once("minimal failing input: steps = [")?;
    let (steps, _) = input.split_once("\n]").or_else(|| input.split_once(']'))?;
    let is_step = |line: &&str| {
        let inside = line.strip_prefix("    ");
        inside.is_some_and(|inside| inside.starts_with(|c: char| c.is_uppercase() || c == '('))
    };
    Some(Shrunk {
        length: steps.lines().filter(is_step).count(),
        of: "steps".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_output_is_parsed() {
        let told = "\
running 3 tests
test store::tests::crash::one ... ok
test store::tests::crash::two ... FAILED
test store::view::three ... ignored

---- store::tests::crash::two stdout ----
minimal failing input: steps = [
    Put(
        9000,
    ),
    Maintain(
        1,
    ),
], dies_at = 3, luck = 1
";
        let expected = Read {
            ran: 2,
            failed: vec!["tests::crash::two".to_owned()],
            shrunk: Some(Shrunk {
                length: 2,
                of: "steps".to_owned(),
            }),
        };
        assert_eq!(read(told, "store::"), expected);
        assert_eq!(read("nothing", ""), Read::default());
        let pairs = "minimal failing input: steps = [\n    (\n        0,\n        1,\n    ),\n]\n";
        assert_eq!(smallest(pairs).map(|shrunk| shrunk.length), Some(1));
        let short = "minimal failing input: steps = [], dies_at = 1";
        assert_eq!(smallest(short).map(|shrunk| shrunk.length), Some(0));
    }

    #[test]
    fn library_tests_are_recognized_by_name() {
        for (text, expected) in [
            ("smalt-sweeper=deps/smalt_sweeper-0a1b", true),
            ("smalt-sweeper=deps/sweeper-0a1b", false),
            ("smalt=deps/smalt-0a1b", true),
            ("smalt=deps/smalt_sweeper-0a1b", false),
        ] {
            assert_eq!(
                is_of_the_library(&Tests::parse(text).unwrap()),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn missing_tests_are_an_error() {
        let tried = Cell::new(0);
        let of = |package: &str| [Tests::parse(&format!("{package}=no-such-tests")).unwrap()];
        let check = Detector::StoreCrash;
        assert!(run(check, &[], &tried).is_err());
        assert!(run(check, &of("smalt-sweeper"), &tried).is_err());
        assert!(run(check, &of("smalt"), &tried).is_err());
    }
}

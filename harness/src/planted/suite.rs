//! The store's own tests, on the disk that loses and refuses: run as they were built, and read.

use std::cell::Cell;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::detect::{Caught, Shrunk};

/// Tests of the store within those of the package.
const FILTER: &str = "store::";
/// Longest that they may take, in place of some ten seconds: a bug can leave a test waiting for
/// ever, and those after it unasked.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs them; each is a case.
///
/// # Errors
/// When they cannot be run, do not end though none has failed, or say nothing that is understood.
pub fn run(tests: Option<&Path>, tried: &Cell<u64>) -> Result<Option<Caught>, String> {
    let tests =
        tests.ok_or("the store's tests are not named: ci/planted.sh gives --store-tests")?;
    let named = |error: std::io::Error| format!("{}: {error}", tests.display());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(named)?;
    let (told, status) = runtime.block_on(told(tests)).map_err(named)?;
    let read = read(&told);
    tried.set(read.ran);
    if status.is_some_and(|status| status.success()) && read.ran > 0 {
        return Ok(None);
    }
    if read.failed.is_empty() {
        let last = told.lines().last().unwrap_or_default();
        let end = status.map_or("did not end in time".to_owned(), |s| s.to_string());
        return Err(format!("{}: {end}: {last}", tests.display()));
    }
    Ok(Some(Caught {
        what: read.failed.join(", "),
        shrunk: read.shrunk,
        story: told,
    }))
}

/// What they print, and how they end if they do in time.
async fn told(tests: &Path) -> std::io::Result<(String, Option<ExitStatus>)> {
    let mut child = Command::new(tests)
        .arg(FILTER)
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
    let ended = tokio::time::timeout(LIMIT, async {
        while let Some(lines) = &mut lines {
            let Some(line) = lines.next_segment().await? else {
                break;
            };
            told.push_str(&String::from_utf8_lossy(&line));
            told.push('\n');
        }
        child.wait().await
    });
    let status = ended.await.ok().transpose()?;
    if status.is_none() {
        child.kill().await?;
    }
    Ok((told, status))
}

/// What the tests said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    ran: u64,
    failed: Vec<String>,
    shrunk: Option<Shrunk>,
}

fn read(told: &str) -> Read {
    let mut read = Read::default();
    for line in told.lines() {
        let Some((name, result)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.rsplit_once(" ... "))
        else {
            continue;
        };
        match result {
            "ok" => read.ran += 1,
            "FAILED" => {
                read.ran += 1;
                read.failed.push(name.trim_start_matches(FILTER).to_owned());
            }
            _ => {}
        }
    }
    read.shrunk = smallest(told);
    read
}

/// The steps of the first input that proptest made small.
fn smallest(told: &str) -> Option<Shrunk> {
    let (_, input) = told.split_once("minimal failing input: steps = [")?;
    let (steps, _) = input.split_once("\n]").or_else(|| input.split_once(']'))?;
    let is_step = |line: &&str| {
        let inside = line.strip_prefix("    ");
        inside.is_some_and(|inside| inside.starts_with(char::is_uppercase))
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
    fn what_the_tests_say_is_read() {
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
        assert_eq!(read(told), expected);
        assert_eq!(read("nothing"), Read::default());
        let short = "minimal failing input: steps = [], dies_at = 1";
        assert_eq!(smallest(short).map(|shrunk| shrunk.length), Some(0));
    }

    #[test]
    fn tests_that_are_not_there_are_no_verdict() {
        let tried = Cell::new(0);
        assert!(run(None, &tried).is_err());
        assert!(run(Some(Path::new("no-such-tests")), &tried).is_err());
    }
}

//! Effects of signals on a running listener, observed from outside.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// An account that no service answers for, so that `run` keeps retrying.
const NOBODY: &str = "--account a --account-key c2VjcmV0 --endpoint http://127.0.0.1:1/a";

/// Starts a listener and returns it with the lines of its log.
fn running(mut command: Command) -> (Child, impl Iterator<Item = String>) {
    command
        .args("run --queue orders --exec cat".split(' '))
        .args(NOBODY.split(' '))
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(lines.any(|line| line.contains("state=Active")));
    (child, lines)
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Returns the listener as a shell starts it. Under `nohup` these tests inherit an ignored SIGHUP,
/// and the listener would too.
fn listener() -> Command {
    let program = env!("CARGO_BIN_EXE_smalt-listener");
    let mut command = if ignores_hangup() {
        let mut command = Command::new("env");
        command.args(["--default-signal=HUP", program]);
        command
    } else {
        Command::new(program)
    };
    command.env_clear().env("PATH", "/usr/bin:/bin");
    command
}

/// Returns whether this process ignores SIGHUP, the lowest bit of the mask; known on Linux only.
#[expect(clippy::disallowed_methods, reason = "no file of a store")]
fn ignores_hangup() -> bool {
    let facts = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = facts
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

/// A closing terminal sends SIGHUP twice, which must not abort.
#[test]
fn hangups_drain() {
    let (mut child, lines) = running(listener());
    send(&child, Signal::HUP);
    send(&child, Signal::HUP);
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:?}");
    for says in [
        "stopping; signal again to abort",
        "state=Draining",
        "ended=Drained",
    ] {
        assert!(rest.iter().any(|l| l.contains(says)), "{says} in {rest:?}");
    }
}

/// Under `nohup` the listener continues after SIGHUP, and SIGTERM stops it.
#[cfg(target_os = "linux")]
#[test]
fn an_ignored_hangup_stays_ignored() {
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_smalt-listener"));
    let (mut child, mut lines) = running(command);
    send(&child, Signal::HUP);
    // Polling continues after it: the second failed get is logged a while later.
    assert!(
        lines
            .by_ref()
            .filter(|l| l.contains("get failed"))
            .nth(1)
            .is_some()
    );
    send(&child, Signal::TERM);
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:?}");
}

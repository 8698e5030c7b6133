//! A command as a handler: body on stdin, properties in `MSG_*`, verdict by exit status.
//!
//! | exit status | verdict |
//! | --- | --- |
//! | 0 | ok |
//! | 65 (`EX_DATAERR`) | reject |
//! | 75 (`EX_TEMPFAIL`) | retry |
//! | 126, 127 (the shell's "cannot be run" and "not found") | the handler cannot run |
//! | any other, or killed by a signal | retry |
//!
//! A command that cannot be started because it does not exist or is not a program cannot run
//! either: its message is given back and the listener stops. Too many processes, or too little
//! memory, lead to a retry.
//!
//! The environment contains `MSG_ID`, `MSG_QUEUE`, `MSG_DEQUEUE_COUNT`, `MSG_MAX_DEQUEUE`,
//! `MSG_INSERTED`, `MSG_EXPIRES` (empty for never) and `MSG_TIMEOUT_S`, and from the listener's own
//! environment [`BASE_ENVIRONMENT`] and the variables named by [`ExecHandler::passing`]. Nothing
//! else is inherited, because the listener's environment contains its credentials. The command
//! shares the listener's standard output and error but no other descriptor. A cancelled run gets
//! SIGTERM, then SIGKILL when its time to end is over; both go to the whole process group.

use std::convert::Infallible;
use std::process::{ExitStatus, Stdio};

use async_trait::async_trait;
use smalt_protocol::Timestamp;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};

use super::process_group::ProcessGroup;
use super::{Context, Handler, Message, Verdict};

/// Exit status that rejects a message (`EX_DATAERR` of sysexits).
pub const EXIT_REJECT: i32 = 65;
/// Exit status that asks for another attempt (`EX_TEMPFAIL` of sysexits).
pub const EXIT_RETRY: i32 = 75;
/// Exit status of a shell whose command exists but cannot be run (POSIX, Shell Command Language).
pub const EXIT_NOT_RUN: i32 = 126;
/// Exit status of a shell that does not find its command.
pub const EXIT_NOT_FOUND: i32 = 127;

/// Variables of the listener that every command gets: paths of programs and temporary files, the
/// user, language, time zone and terminal.
#[cfg(not(windows))]
pub const BASE_ENVIRONMENT: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
];
/// Variables of the listener that every command gets.
#[cfg(windows)]
pub const BASE_ENVIRONMENT: &[&str] = &[
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "PATH",
    "PATHEXT",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// The command to run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(untagged)]
pub enum CommandLine {
    /// A command line for the shell (`sh -c`, on Windows `cmd /C`).
    Shell(String),
    /// A program and its arguments, without a shell.
    Argv(Vec<String>),
}

/// Runs a command per message.
#[derive(Clone, Debug)]
pub struct ExecHandler {
    line: CommandLine,
    passed: Vec<String>,
}

impl ExecHandler {
    /// Creates a handler that runs `line`.
    pub fn new(line: CommandLine) -> Self {
        ExecHandler {
            line,
            passed: Vec::new(),
        }
    }

    /// Also passes these variables of the listener's environment to the command.
    #[must_use]
    pub fn passing(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.passed.extend(names);
        self
    }

    fn command(&self, message: &Message, ctx: &Context) -> Command {
        let mut command = match &self.line {
            CommandLine::Shell(line) => shell(line),
            CommandLine::Argv(argv) => {
                let mut command = Command::new(argv.first().map_or("", String::as_str));
                command.args(argv.iter().skip(1));
                command
            }
        };
        let passed = self.passed.iter().map(String::as_str);
        let kept = BASE_ENVIRONMENT.iter().copied().chain(passed);
        let kept = kept.filter_map(|name| Some((name, std::env::var_os(name)?)));
        command
            .env_clear()
            .envs(kept)
            .envs(environment(message, ctx))
            .stdin(Stdio::piped());
        command
    }
}

#[async_trait]
impl Handler for ExecHandler {
    async fn handle(&self, message: &Message, ctx: &Context) -> Verdict {
        let mut group = match ProcessGroup::spawn(self.command(message, ctx)) {
            Ok(group) => group,
            Err(error) => return not_started(&error),
        };
        let stdin = group.child.stdin.take();
        let ended = tokio::select! {
            biased;
            status = group.child.wait() => Some(status),
            // The command may end without reading its input, so `feed` never resolves.
            never = feed(stdin, &message.body) => match never {},
            () = ctx.cancelled() => None,
        };
        let Some(status) = ended else {
            group.terminate();
            let _ = group.child.wait().await;
            // Dropping the group kills its remaining processes.
            return Verdict::retry("cancelled");
        };
        group.release();
        match status {
            Ok(status) => verdict(status),
            Err(error) => Verdict::retry(format!("cannot wait for the command: {error}")),
        }
    }
}

fn shell(line: &str) -> Command {
    let (program, flag) = if cfg!(windows) {
        ("cmd", "/C")
    } else {
        ("sh", "-c")
    };
    let mut command = Command::new(program);
    command.arg(flag).arg(line);
    command
}

fn environment(message: &Message, ctx: &Context) -> [(&'static str, String); 7] {
    let expires = match message.expires {
        Timestamp::MAX => String::new(),
        at => at.iso_s(),
    };
    [
        ("MSG_ID", message.id.clone()),
        ("MSG_QUEUE", message.queue.clone()),
        ("MSG_DEQUEUE_COUNT", message.dequeue_count.to_string()),
        ("MSG_MAX_DEQUEUE", ctx.max_dequeue.to_string()),
        ("MSG_INSERTED", message.inserted.iso_s()),
        ("MSG_EXPIRES", expires),
        ("MSG_TIMEOUT_S", ctx.timeout.as_secs().to_string()),
    ]
}

async fn feed(stdin: Option<ChildStdin>, body: &[u8]) -> Infallible {
    if let Some(mut stdin) = stdin {
        // A command may close its input early; its exit status decides.
        let _ = stdin.write_all(body).await;
        let _ = stdin.shutdown().await;
    }
    std::future::pending().await
}

/// Returns the verdict of a command that did not start: permanently or for the moment.
fn not_started(error: &std::io::Error) -> Verdict {
    use std::io::ErrorKind;
    /// `ENOEXEC`, a file that is not a program; it has no `ErrorKind`.
    const NO_PROGRAM: i32 = 8;
    let reason = format!("cannot start the command: {error}");
    let itself = matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::InvalidInput
    );
    match itself || (cfg!(unix) && error.raw_os_error() == Some(NO_PROGRAM)) {
        true => Verdict::unable(reason),
        false => Verdict::retry(reason),
    }
}

fn verdict(status: ExitStatus) -> Verdict {
    match status.code() {
        Some(0) => Verdict::Ok,
        Some(EXIT_REJECT) => Verdict::reject(status.to_string()),
        Some(code @ EXIT_NOT_RUN) => Verdict::unable(format!(
            "the command cannot be executed (exit status {code})"
        )),
        Some(code @ EXIT_NOT_FOUND) => {
            Verdict::unable(format!("the command is not found (exit status {code})"))
        }
        _ => Verdict::retry(status.to_string()),
    }
}

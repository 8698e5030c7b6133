//! Exit codes, and how an error is shown.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use smalt_listener::handler::http::ConnectError;
use smalt_listener::partition::PartitionError;
use smalt_listener::{ConfigError, Ended, ListenerError, Report};
use smalt_sleeve::port::{ErrorKind, PortError};

/// Some messages were not handled, or some could not be put.
pub(crate) const FAILED_ITEMS: u8 = 1;
/// Usage or configuration.
pub(crate) const USAGE: u8 = 2;
/// The credential is refused.
pub(crate) const DENIED: u8 = 3;
/// Storage or queue cannot be reached.
pub(crate) const UNREACHABLE: u8 = 4;
/// The day's money is spent.
pub(crate) const GUARD: u8 = 5;
/// Handlers had to be cancelled.
pub(crate) const GRACE_EXCEEDED: u8 = 7;
/// A second interrupt.
pub(crate) const INTERRUPTED: u8 = 130;

/// Shows an error with its causes; its exit code.
pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    let mut stderr = std::io::stderr();
    let colour = stderr.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let (red, plain) = if colour {
        ("\u{1b}[1;31m", "\u{1b}[0m")
    } else {
        ("", "")
    };
    // Nobody is left to tell when this fails.
    let _ = writeln!(stderr, "{red}error:{plain} {error:#}");
    if let Some(hint) = error.chain().find_map(hint) {
        let _ = writeln!(stderr, "hint: {hint}");
    }
    ExitCode::from(code(error))
}

/// Shows several errors, a line each; the code of the first.
pub(crate) fn all(errors: &[anyhow::Error]) -> ExitCode {
    let codes: Vec<ExitCode> = errors.iter().map(failed).collect();
    codes.first().copied().unwrap_or(ExitCode::from(USAGE))
}

/// The code of an error, by the first of its causes that has one.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of).unwrap_or(USAGE)
}

/// Another listener's address that does not answer, or a map that is not there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreached(pub(crate) String);

/// `once` did not come to the queue's end.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BudgetSpent(String);

fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if let Some(error) = cause.downcast_ref::<ListenerError>() {
        return Some(match error {
            ListenerError::Denied(_) => DENIED,
            ListenerError::Refused(_) | ListenerError::HandlerUnable(_) => USAGE,
            ListenerError::QueueMissing(_) | ListenerError::Unreachable(_) => UNREACHABLE,
        });
    }
    if let Some(PartitionError::Storage(error)) = cause.downcast_ref() {
        return code_of(error);
    }
    if let Some(PartitionError::Listener(error)) = cause.downcast_ref() {
        return code_of(error);
    }
    if let Some(error) = cause.downcast_ref::<PortError>() {
        return Some(match error.kind {
            ErrorKind::Denied => DENIED,
            ErrorKind::Invalid => USAGE,
            // A value that the service does not take.
            ErrorKind::Refused if error.status == Some(400) => USAGE,
            _ => UNREACHABLE,
        });
    }
    if cause.is::<Unreached>() {
        return Some(UNREACHABLE);
    }
    if cause.is::<BudgetSpent>() {
        return Some(GUARD);
    }
    let usage = cause.is::<ConfigError>() || cause.is::<ConnectError>();
    usage.then_some(USAGE)
}

const UNREACHABLE_HINT: &str = "is the endpoint right, and the emulator running?";
const UNTRUSTED_HINT: &str =
    "is the endpoint right? --ca-file FILE trusts another authority's certificates";
const DENIED_HINT: &str =
    "check the key; a SAS needs process (p) and, to poison, add (a) and create (c)";

fn hint(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    if let Some(PartitionError::Storage(error)) = cause.downcast_ref() {
        return hint(error);
    }
    if let Some(error) = cause.downcast_ref::<PortError>() {
        return match error.kind {
            ErrorKind::Unreachable => Some(UNREACHABLE_HINT),
            ErrorKind::Untrusted => Some(UNTRUSTED_HINT),
            ErrorKind::Denied => Some("check the key, or what the SAS permits"),
            _ => None,
        };
    }
    match cause.downcast_ref::<ListenerError>()? {
        ListenerError::QueueMissing(_) => Some("--create-queue creates it"),
        ListenerError::Denied(_) => Some(DENIED_HINT),
        ListenerError::Unreachable(error) => hint(error),
        ListenerError::Refused(_) | ListenerError::HandlerUnable(_) => None,
    }
}

/// The exit code of reports: of `once`, failures count, and that the day's money did not suffice,
/// which is `spent` in words.
pub(crate) fn of_reports(reports: &[Report], once: bool, spent: Option<String>) -> ExitCode {
    if reports.iter().any(|r| r.ended == Ended::GraceExceeded) {
        return ExitCode::from(GRACE_EXCEEDED);
    }
    if reports.iter().any(|r| r.ended == Ended::BudgetSpent) {
        // Without words when another day has begun since.
        let words = spent.unwrap_or_else(|| "the day's budget was spent".to_owned());
        return failed(&BudgetSpent(words).into());
    }
    if once && reports.iter().any(|r| r.failures() > 0) {
        return ExitCode::from(FAILED_ITEMS);
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, kind: ErrorKind) -> u8 {
        let error = PortError {
            kind,
            status: Some(status),
            code: None,
            retry_after: None,
            operation: "Put Message",
            resource: "orders".to_owned(),
            message: String::new(),
        };
        code(&anyhow::Error::new(error).context("put"))
    }

    /// A value that the service does not take is the caller's to change.
    #[test]
    fn a_refused_value_is_usage() {
        assert_eq!(answer(400, ErrorKind::Refused), USAGE);
        assert_eq!(answer(409, ErrorKind::Refused), UNREACHABLE);
        assert_eq!(answer(403, ErrorKind::Denied), DENIED);
        assert_eq!(answer(404, ErrorKind::NotFound), UNREACHABLE);
    }
}

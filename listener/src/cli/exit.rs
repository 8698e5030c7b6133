//! Exit codes, and how errors are printed.

use std::process::ExitCode;

use smalt_listener::handler::http::ConnectError;
use smalt_listener::partition::PartitionError;
use smalt_listener::{ConfigError, Ended, ListenerError, Report};
use smalt_protocol::terminal::one_line;
use smalt_sleeve::port::{ErrorKind, PortError};
use smalt_worker::exit::{self, DENIED, FAILED_ITEMS, GRACE, GUARD, UNREACHABLE, USAGE};

/// Prints an error with its causes and returns its exit code.
pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    exit::show(&line(error), error.chain().find_map(hint));
    ExitCode::from(code(error))
}

/// Formats an error with its causes. A refused credential gets the same text whichever component
/// reports it.
pub(super) fn line(error: &anyhow::Error) -> String {
    let line = one_line(&format!("{error:#}")).into_owned();
    match code(error) == DENIED && !line.contains(REFUSED) {
        true => format!("{REFUSED}{line}"),
        false => line,
    }
}

/// Prints each error on its own line and returns the exit code of the first.
pub(crate) fn all(errors: &[anyhow::Error]) -> ExitCode {
    let codes: Vec<ExitCode> = errors.iter().map(failed).collect();
    codes.first().copied().unwrap_or(ExitCode::from(USAGE))
}

/// Returns the exit code of the first cause that has one.
pub(crate) fn code(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of).unwrap_or(USAGE)
}

/// Another listener's address does not answer, or a partition map does not exist.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unreached(pub(crate) String);

/// `once` stopped before the queue was empty.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BudgetSpent(String);

/// Returns the error inside of a partitioned queue's.
fn of_partitions<'a>(
    cause: &'a (dyn std::error::Error + 'static),
) -> Option<&'a (dyn std::error::Error + 'static)> {
    match cause.downcast_ref()? {
        PartitionError::Storage(error) => Some(error),
        PartitionError::Listener(error) => Some(error),
        _ => None,
    }
}

fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if let Some(error) = cause.downcast_ref::<ListenerError>() {
        return Some(match error {
            ListenerError::Denied(_) => DENIED,
            ListenerError::Refused(_) | ListenerError::HandlerUnable(_) => USAGE,
            ListenerError::QueueMissing(_) | ListenerError::Unreachable(_) => UNREACHABLE,
        });
    }
    if let Some(error) = of_partitions(cause) {
        return code_of(error);
    }
    if let Some(error) = cause.downcast_ref::<PortError>() {
        return Some(match error.kind {
            // The service rejected a value from the command line.
            ErrorKind::Refused if error.status == Some(400) => USAGE,
            _ => exit::of_port(error),
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

/// The text that [`ListenerError::Denied`] begins with.
const REFUSED: &str = "access denied: ";
/// 403: the credential lacks a permission.
const FORBIDDEN_HINT: &str = "\
    check the key; a SAS needs process (p) and, to poison, add (a) and create (c); an identity \
    needs the role Storage Queue Data Contributor";

fn hint(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    if let Some(error) = of_partitions(cause) {
        return hint(error);
    }
    if let Some(error) = cause.downcast_ref::<PortError>() {
        return exit::hint(error, FORBIDDEN_HINT);
    }
    match cause.downcast_ref::<ListenerError>()? {
        ListenerError::QueueMissing(_) => Some("--create-queue creates it"),
        ListenerError::Denied(error) | ListenerError::Unreachable(error) => hint(error),
        ListenerError::Refused(_) | ListenerError::HandlerUnable(_) => None,
    }
}

/// Returns the exit code for reports. For `once`, failed messages and a spent daily budget count;
/// `spent` describes the latter.
pub(crate) fn of_reports(reports: &[Report], once: bool, spent: Option<String>) -> ExitCode {
    if reports.iter().any(|r| r.ended == Ended::GraceExceeded) {
        return ExitCode::from(GRACE);
    }
    if reports.iter().any(|r| r.ended == Ended::BudgetSpent) {
        // `None` if a new day has begun since.
        let words = spent.unwrap_or_else(|| "the daily budget was spent".to_owned());
        return failed(&BudgetSpent(words).into());
    }
    of_items(once && reports.iter().any(|r| r.failures() > 0))
}

/// Returns the exit code of a command that is done, whether or not some of its items failed.
pub(crate) fn of_items(have_failed: bool) -> ExitCode {
    match have_failed {
        true => ExitCode::from(FAILED_ITEMS),
        false => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: Option<u16>, kind: ErrorKind) -> PortError {
        PortError {
            status,
            ..PortError::new(kind, "Put Message", "orders", "no")
        }
    }

    fn answer(status: u16, kind: ErrorKind) -> u8 {
        code(&anyhow::Error::new(refusal(Some(status), kind)).context("put"))
    }

    /// A 401 has one hint and a 403 another, whichever command and error type reports it.
    #[test]
    fn a_refused_credential_has_one_text() {
        for (status, wanted) in [
            (Some(401), "did not accept the credential"),
            (None, "did not accept the credential"),
            (Some(403), "a SAS needs process (p)"),
        ] {
            let port = || refusal(status, ErrorKind::Denied);
            let listener = || ListenerError::Denied(port());
            let errors: [anyhow::Error; 4] = [
                port().into(),
                listener().into(),
                PartitionError::Storage(port()).into(),
                PartitionError::Listener(listener()).into(),
            ];
            for error in errors {
                assert_eq!(
                    line(&error),
                    "access denied: Put Message orders: Denied: no"
                );
                let hint = error.chain().find_map(hint).unwrap();
                assert!(hint.contains(wanted), "{hint}");
                assert_eq!(code(&error), DENIED);
            }
        }
        let other = refusal(Some(404), ErrorKind::NotFound).into();
        assert_eq!(line(&other), "Put Message orders: NotFound: no");
    }

    /// A value that the service rejects is a usage error.
    #[test]
    fn a_rejected_value_is_a_usage_error() {
        assert_eq!(answer(400, ErrorKind::Refused), USAGE);
        assert_eq!(answer(409, ErrorKind::Refused), UNREACHABLE);
        assert_eq!(answer(403, ErrorKind::Denied), DENIED);
        assert_eq!(answer(404, ErrorKind::NotFound), UNREACHABLE);
    }
}

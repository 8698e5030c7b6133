//! Exit codes of the workers, which are part of their interface, and how errors are shown.

use std::io::Write;

use smalt_protocol::terminal::one_line;
use smalt_sleeve::{ErrorKind, PortError};

/// All is well; also after a clean stop.
pub const OK: u8 = 0;
/// Finished, but some items failed.
pub const FAILED_ITEMS: u8 = 1;
/// Usage or configuration.
pub const USAGE: u8 = 2;
/// The credential is refused.
pub const DENIED: u8 = 3;
/// Storage, queue or state document cannot be reached or read.
pub const UNREACHABLE: u8 = 4;
/// The circuit breaker or the budget stopped the work.
pub const GUARD: u8 = 5;
/// This machine's clock and the service's differ too much.
pub const CLOCK_SKEW: u8 = 6;
/// Work was still open when the time for stopping was over.
pub const GRACE: u8 = 7;
/// Aborted by a second signal.
pub const INTERRUPTED: u8 = 130;

/// The exit code for a failed storage call.
pub fn of_port(error: &PortError) -> u8 {
    match error.kind {
        ErrorKind::Denied => DENIED,
        ErrorKind::Invalid => USAGE,
        _ => UNREACHABLE,
    }
}

/// What may help with a failed storage call. `forbidden` says what the worker's credential must
/// permit.
pub fn hint(error: &PortError, forbidden: &'static str) -> Option<&'static str> {
    match error.kind {
        ErrorKind::Unreachable => Some("is the endpoint right, and the emulator running?"),
        ErrorKind::Untrusted => {
            Some("is the endpoint right? --ca-file FILE trusts another authority's certificates")
        }
        ErrorKind::Denied if error.status == Some(403) => Some(forbidden),
        // 401, or no token at all.
        ErrorKind::Denied => Some(
            "the service does not know who asks: check the account's name, that a credential is \
             given, and --auth with its AZURE_* variables",
        ),
        _ => None,
    }
}

/// Shows an error and a hint on standard error, each on one line.
pub fn show(error: &str, hint: Option<&str>) {
    let (red, plain) = match crate::log::is_coloured() {
        true => ("\u{1b}[1;31m", "\u{1b}[0m"),
        false => ("", ""),
    };
    let mut stderr = std::io::stderr();
    // When this fails, there is nobody left to tell.
    let _ = writeln!(stderr, "{red}error:{plain} {}", one_line(error));
    if let Some(hint) = hint {
        let _ = writeln!(stderr, "hint: {hint}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_code_and_hint() {
        for (kind, status, code, says) in [
            (ErrorKind::Denied, Some(403), DENIED, Some("needs")),
            (ErrorKind::Denied, Some(401), DENIED, Some("who asks")),
            (ErrorKind::Denied, None, DENIED, Some("who asks")),
            (ErrorKind::Untrusted, None, UNREACHABLE, Some("--ca-file")),
            (ErrorKind::Unreachable, None, UNREACHABLE, Some("running?")),
            (ErrorKind::Invalid, None, USAGE, None),
            (ErrorKind::NotFound, Some(404), UNREACHABLE, None),
        ] {
            let error = PortError {
                kind,
                status,
                code: None,
                retry_after: None,
                operation: "Put Message",
                resource: "orders".to_owned(),
                message: String::new(),
            };
            assert_eq!(of_port(&error), code, "{error:?}");
            let hint = hint(&error, "the SAS needs more");
            assert_eq!(hint.is_some(), says.is_some(), "{error:?}");
            assert!(hint.unwrap_or_default().contains(says.unwrap_or_default()));
        }
    }
}

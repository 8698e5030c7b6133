//! Exit codes of the workers, which are part of their interface, and the output of errors.

use std::io::Write;

use smalt_protocol::terminal::one_line;
use smalt_sleeve::{ErrorKind, PortError};

/// Success, also after a clean stop.
pub const OK: u8 = 0;
/// Finished, but some items failed.
pub const FAILED_ITEMS: u8 = 1;
/// Invalid usage or configuration.
pub const USAGE: u8 = 2;
/// The service denied access.
pub const DENIED: u8 = 3;
/// Storage, queue or state document is unreachable or unreadable.
pub const UNREACHABLE: u8 = 4;
/// The circuit breaker or the budget stopped the work.
pub const GUARD: u8 = 5;
/// This machine's clock differs too much from the service's.
pub const CLOCK_SKEW: u8 = 6;
/// The stop grace period ended before all work was finished.
pub const GRACE: u8 = 7;
/// Aborted by a second signal.
pub const INTERRUPTED: u8 = 130;

/// Returns the exit code for a failed storage call.
pub fn of_port(error: &PortError) -> u8 {
    match error.kind {
        ErrorKind::Denied => DENIED,
        ErrorKind::Invalid => USAGE,
        _ => UNREACHABLE,
    }
}

/// Returns advice for a failed storage call. `forbidden` names what to check if the credential
/// lacks a permission.
pub fn hint(error: &PortError, forbidden: &'static str) -> Option<&'static str> {
    match error.kind {
        ErrorKind::Unreachable => Some("check the endpoint, and that the emulator is running"),
        ErrorKind::Untrusted => {
            Some("check the endpoint; use --ca-file FILE to trust another authority")
        }
        ErrorKind::Denied if error.status == Some(403) => Some(forbidden),
        // 401, or no token was available.
        ErrorKind::Denied => Some(
            "the service did not accept the credential: check the account name, that a credential \
             is given, and --auth with its AZURE_* variables",
        ),
        _ => None,
    }
}

/// Prints an error and a hint to standard error, each on one line.
pub fn show(error: &str, hint: Option<&str>) {
    let (red, plain) = match crate::log::is_coloured() {
        true => ("\u{1b}[1;31m", "\u{1b}[0m"),
        false => ("", ""),
    };
    let mut stderr = std::io::stderr();
    // A failure to write cannot be reported anywhere.
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
            (ErrorKind::Denied, Some(401), DENIED, Some("credential")),
            (ErrorKind::Denied, None, DENIED, Some("credential")),
            (ErrorKind::Untrusted, None, UNREACHABLE, Some("--ca-file")),
            (ErrorKind::Unreachable, None, UNREACHABLE, Some("emulator")),
            (ErrorKind::Invalid, None, USAGE, None),
            (ErrorKind::NotFound, Some(404), UNREACHABLE, None),
        ] {
            let mut error = PortError::new(kind, "Put Message", "orders", "");
            error.status = status;
            assert_eq!(of_port(&error), code, "{error:?}");
            let hint = hint(&error, "the SAS needs more");
            assert_eq!(hint.is_some(), says.is_some(), "{error:?}");
            assert!(hint.unwrap_or_default().contains(says.unwrap_or_default()));
        }
    }
}

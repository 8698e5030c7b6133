//! Shared Key and Shared Key Lite, and the date that they sign.
//!
//! Source: "Authorize with Shared Key". The signed date may differ by 15 minutes either way.

use http::header::DATE;
use smalt_protocol::signing::sas::refused;
use smalt_protocol::signing::shared_key::{self, Scheme, SigningInput};
use smalt_protocol::{StorageError, Timestamp, limits};

use super::Identity;
use crate::call::Call;
use crate::config::Account;
use crate::core::Core;

/// Checks the `Authorization` header against the account's keys.
pub fn authenticate(
    core: &Core,
    call: &Call,
    account: &Account,
    scheme: Scheme,
    name: &str,
    signature: &str,
) -> Result<Identity, StorageError> {
    check_date(core, call)?;
    check_signature(call, account, scheme, name, signature)?;
    Ok(Identity::Owner)
}

fn check_signature(
    call: &Call,
    account: &Account,
    scheme: Scheme,
    name: &str,
    signature: &str,
) -> Result<(), StorageError> {
    let headers: Vec<(&str, &str)> = call
        .headers
        .iter()
        .map(|(name, value)| {
            (
                name.as_str(),
                std::str::from_utf8(value.as_bytes()).unwrap_or(""),
            )
        })
        .collect();
    let input = SigningInput {
        service: call.service(),
        scheme,
        version: call.version,
        method: call.sent_method.as_str(),
        account: call.account(),
        path: &call.target.raw_path,
        query: &call.query,
        headers: &headers,
    };
    let is_signed = |key: &[u8]| shared_key::verify_request(&input, key, signature);
    if name == call.account() && account.keys.iter().any(|key| is_signed(key.as_bytes())) {
        return Ok(());
    }
    // Azure returns its string to sign, which helps to correct a client; it leaves out the
    // signature, the only secret.
    let string = shared_key::string_to_sign(&input);
    Err(refused(&format!(
        "The MAC signature found in the HTTP request is not the same as any computed signature. \
         Server used following string to sign: '{string}'."
    )))
}

/// Rejects a signed request whose date differs by more than fifteen minutes.
fn check_date(core: &Core, call: &Call) -> Result<(), StorageError> {
    let given = match call.header("x-ms-date")? {
        Some(date) => Some(date),
        None => call.headers.get(DATE).and_then(|date| date.to_str().ok()),
    };
    let now = if core.config.strict_skew {
        call.arrival
    } else {
        core.clock.wall()
    };
    let date = given.and_then(Timestamp::parse_rfc1123);
    let far =
        |date: Timestamp| now.since(date).max(date.since(now)).as_secs() > limits::CLOCK_SKEW_S_MAX;
    match date {
        Some(date) if !far(date) => Ok(()),
        Some(_) => Err(refused(&format!(
            "Request date header too old: '{}'",
            given.unwrap_or_default()
        ))),
        None => Err(refused(
            "The date header in the request is missing or incorrect.",
        )),
    }
}

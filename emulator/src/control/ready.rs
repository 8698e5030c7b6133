//! `/ready`: whether the store accepts writes and its time advances, with the reasons if not.

use http::StatusCode;
use serde_json::{Value, json};

use crate::core::Core;

/// Returns 200 when ready, otherwise 503 with every reason.
pub(super) fn read(core: &Core) -> (StatusCode, Value) {
    let troubles = core.store.troubles();
    let status = match troubles.is_empty() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let reasons: Vec<Value> = troubles
        .iter()
        .map(|trouble| json!({ "reason": trouble.name(), "message": trouble.to_string() }))
        .collect();
    let ready = troubles.is_empty();
    (status, json!({ "ready": ready, "reasons": reasons }))
}

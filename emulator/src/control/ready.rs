//! `/ready`: whether writes are taken and time goes on, and if not, why.

use http::StatusCode;
use serde_json::{Value, json};

use crate::core::Core;

/// 200 when nothing is wrong; 503 with every reason else.
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

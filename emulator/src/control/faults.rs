//! `/faults`: adds a fault rule.

use http::StatusCode;

use super::Refusal;
use crate::core::Core;
use crate::faults::Rule;
use crate::register;

pub(super) fn add(core: &Core, rule: Rule) -> Result<(), Refusal> {
    let known = rule.operation == "*" || register::all().any(|entry| entry.id == rule.operation);
    if !known {
        let message = format!(
            "unknown operation {}; use an id such as Blob_Delete or Messages_Dequeue, or *",
            rule.operation
        );
        return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    }
    core.faults.add(rule);
    Ok(())
}

//! `/faults`: adds a fault rule.

use http::StatusCode;

use super::Refusal;
use crate::core::Core;
use crate::faults::{EVENTS_DELIVER, Rule};
use crate::register;

pub(super) fn add(core: &Core, rule: Rule) -> Result<(), Refusal> {
    let of_events = rule.operation == EVENTS_DELIVER;
    if of_events != rule.fault.is_of_events() {
        let message = format!(
            "event_drop, event_duplicate and event_delay are faults of {EVENTS_DELIVER}, which has \
             no others"
        );
        return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    }
    let known = of_events
        || rule.operation == "*"
        || register::all()
            .chain(register::data_lake())
            .any(|entry| entry.id == rule.operation);
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

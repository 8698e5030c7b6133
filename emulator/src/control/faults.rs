//! `/faults`: adds a fault rule.

use http::StatusCode;
use serde_json::{Map, Value};

use super::Refusal;
use crate::core::Core;
use crate::faults::{EVENTS_DELIVER, Fault, Rule, When};
use crate::register;

/// Adds the rule that a document describes; its `when` has the rule's conditions.
pub(super) fn add(core: &Core, mut asked: Map<String, Value>) -> Result<(), Refusal> {
    let invalid = |error| Refusal::new(StatusCode::BAD_REQUEST, format!("invalid body: {error}"));
    let when = asked.remove("when").map(serde_json::from_value::<When>);
    let when = when.transpose().map_err(invalid)?.unwrap_or_default();
    let rule: Rule = serde_json::from_value(Value::Object(asked)).map_err(invalid)?;
    let refuse = |message: &str| Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    if let Err(message) = when.validate() {
        return refuse(message);
    }
    if let Fault::Error {
        status: Some(status),
        ..
    } = rule.fault
        && !(status == 304 || (400..=599).contains(&status))
    {
        return refuse("invalid status: use 304 or 400 to 599");
    }
    let of_events = rule.operation == EVENTS_DELIVER;
    if of_events != rule.fault.is_of_events() {
        let message = format!(
            "event_drop, event_duplicate and event_delay are faults of {EVENTS_DELIVER}, which has \
             no others"
        );
        return refuse(&message);
    }
    if of_events && !when.headers.is_empty() {
        return refuse("the delivery of an event has no headers: remove `headers`");
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
        return refuse(&message);
    }
    core.faults.add_when(rule, when);
    Ok(())
}

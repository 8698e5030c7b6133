//! The JSON of an event in the two schemas.
//!
//! Source: "Azure Blob Storage as an Event Grid source". Production leaves `dataVersion` empty.

use serde_json::{Value, json};

use crate::records::{DeliveryRecord, EventRecord};
use crate::rules::subscription::Schema;

/// Returns the event in a schema.
pub fn render(event: &EventRecord, schema: Schema) -> Value {
    let (id, subject, data) = (&event.id, &event.subject, &event.data);
    let (topic, time) = (topic(&event.account), event.at.iso_ticks());
    match schema {
        Schema::EventGridSchema => json!({
            "topic": topic,
            "subject": subject,
            "eventType": event.kind,
            "eventTime": time,
            "id": id,
            "data": data,
            "dataVersion": "",
            "metadataVersion": "1",
        }),
        Schema::CloudEvents => json!({
            "source": topic,
            "subject": subject,
            "type": event.kind,
            "time": time,
            "id": id,
            "data": data,
            "specversion": "1.0",
        }),
    }
}

/// Returns the `topic`: the id that the account would have as a resource of Azure.
pub fn topic(account: &str) -> String {
    format!(
        "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/smalt/providers/\
         Microsoft.Storage/storageAccounts/{account}"
    )
}

/// Returns an event that was given up, with what became of it. CloudEvents allows only lower-case
/// names.
pub fn dead_letter(delivery: &DeliveryRecord, schema: Schema) -> Value {
    let mut event = render(&delivery.event, schema);
    let (at, outcome) = match &delivery.last {
        Some((at, outcome)) => (Some(at.iso_ticks()), Some(outcome.as_str())),
        None => (None, None),
    };
    let more = [
        ("deadLetterReason", json!(delivery.given_up)),
        ("deliveryAttempts", json!(delivery.attempts)),
        ("lastDeliveryOutcome", json!(outcome)),
        ("publishTime", json!(delivery.event.at.iso_ticks())),
        ("lastDeliveryAttemptTime", json!(at)),
    ];
    for (name, value) in more {
        let name = match schema {
            Schema::EventGridSchema => name.to_owned(),
            Schema::CloudEvents => name.to_lowercase(),
        };
        if !value.is_null() {
            event[name] = value;
        }
    }
    event
}

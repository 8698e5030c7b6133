//! The JSON of an event in the two schemas.
//!
//! Source: "Azure Blob Storage as an Event Grid source". Production leaves `dataVersion` empty.

use serde_json::{Value, json};

use crate::records::EventRecord;
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
fn topic(account: &str) -> String {
    format!(
        "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/smalt/providers/\
         Microsoft.Storage/storageAccounts/{account}"
    )
}

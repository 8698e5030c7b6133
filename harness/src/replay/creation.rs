//! What one request creates, and when a recording begins.

use smalt_protocol::Timestamp;

use super::recording::{Interaction, Recording};
use crate::wire::url::Url;

/// Returns the recorded account and the name of the container, queue or table that a request tries
/// to create.
pub fn creates(interaction: &Interaction) -> Option<(String, String)> {
    let request = &interaction.request;
    let url = Url::parse(&request.url)?;
    let (account, service) = url.account_and_service()?;
    let segments = url.segments();
    let name = match (service, request.method.as_str(), segments.as_slice()) {
        ("blob", "PUT", [name])
            if url.param("restype").as_deref() == Some("container")
                && (!url.has_param("comp") || url.param("comp").as_deref() == Some("rename")) =>
        {
            name.clone()
        }
        ("queue", "PUT", [name]) if !url.has_param("comp") => name.clone(),
        ("table", "POST", [collection]) if collection.starts_with("Tables") => {
            new_table(&request.body)?
        }
        _ => return None,
    };
    Some((account.to_owned(), name))
}

/// Returns the name of the table to create, from a JSON object or an Atom entry.
pub fn new_table(body: &[u8]) -> Option<String> {
    if let Ok(body) = serde_json::from_slice::<serde_json::Value>(body) {
        return body.get("TableName")?.as_str().map(str::to_owned);
    }
    let text = std::str::from_utf8(body).ok()?;
    let (_, rest) = text.split_once("<d:TableName")?;
    let (_, rest) = rest.split_once('>')?;
    let (name, _) = rest.split_once('<')?;
    Some(name.to_owned())
}

/// Returns the time one second before the recording's first answer, when everything that must exist
/// is created.
pub fn start_of(recording: &Recording) -> Timestamp {
    let first = recording.interactions.first().map(|i| i.date);
    first
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .minus(std::time::Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_in_json_and_in_atom() {
        let atom = "<entry><content><m:properties xml:space=\"preserve\">\
            <d:TableName m:type=\"Edm.String\">people</d:TableName></m:properties></content>\
            </entry>";
        for body in ["{\"TableName\":\"people\"}", atom] {
            assert_eq!(new_table(body.as_bytes()).as_deref(), Some("people"));
        }
        for body in ["{}", "<entry/>", "<d:TableName", ""] {
            assert_eq!(new_table(body.as_bytes()), None, "{body}");
        }
    }
}

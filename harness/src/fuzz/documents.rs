//! Fuzzes every parser of `smalt-protocol`, and the round trip of rendered values.

use smalt_protocol::signing::shared_key;
use smalt_protocol::table::format::BodyFormat;
use smalt_protocol::table::{address, batch, continuation, filter, payload, query};
use smalt_protocol::xml::read::{ELEMENTS_MAX, read_document};
use smalt_protocol::xml::{
    KeyInfo, ServicePropertiesUpdate, SignedIdentifiersDocument, read_block_list,
    read_queue_message,
};
use smalt_protocol::{
    ByteRange, ConnectionString, ETag, Permissions, Sas, Service, Timestamp, names, uri,
};

/// Parses an input as every kind of text that a client may send.
///
/// # Panics
/// When a parser panics, rejects with a status other than 4xx, or does not read back its own
/// output.
pub fn documents(input: &[u8]) {
    xml(input);
    entities(input);
    if let Ok(text) = std::str::from_utf8(input) {
        texts(text);
    }
}

fn xml(input: &[u8]) {
    refused_by_4xx(read_document(input, ELEMENTS_MAX));
    refused_by_4xx(read_block_list(input));
    refused_by_4xx(read_queue_message(input));
    if let Some(key) = refused_by_4xx(KeyInfo::read(input)) {
        assert_eq!(KeyInfo::read(&key.render()), Ok(key));
    }
    refused_by_4xx(SignedIdentifiersDocument::read(input));
    for service in Service::ALL {
        refused_by_4xx(ServicePropertiesUpdate::read(input, service));
    }
}

fn entities(input: &[u8]) {
    for format in [BodyFormat::Json, BodyFormat::Atom] {
        refused_by_4xx(payload::read_entity(format, input));
        refused_by_4xx(payload::read_table_name(format, input));
    }
    refused_by_4xx(batch::read("multipart/mixed; boundary=b", input));
}

fn texts(text: &str) {
    refused_by_4xx(filter::Filter::parse(text));
    refused_by_4xx(query::Select::parse(text));
    refused_by_4xx(address::parse_path(text));
    refused_by_4xx(continuation::read(text));
    refused_by_4xx(continuation::read_table(text));
    refused_by_4xx(shared_key::parse_authorization(text));
    if let Some(pairs) = refused_by_4xx(uri::parse_query(text)) {
        refused_by_4xx(Sas::parse(&pairs));
    }
    if let Some(decoded) = refused_by_4xx(uri::percent_decode(text)) {
        let again = uri::percent_decode(&uri::encode_query(&decoded));
        assert_eq!(again, Ok(decoded));
    }
    if let Some(time) = Timestamp::parse_iso(text) {
        assert_eq!(Timestamp::parse_iso(&time.iso_ticks()), Some(time));
    }
    if let Some(permissions) = Permissions::parse(text) {
        assert_eq!(
            Permissions::parse(&format!("{permissions}")),
            Some(permissions)
        );
    }
    let _ = (ByteRange::parse(text), ETag::parse(text));
    let _ = ConnectionString::parse(text);
    refused_by_4xx(names::validate_container_name(text));
    refused_by_4xx(names::validate_blob_name(text));
}

/// Returns the parsed value; panics unless the parser rejects with 4xx.
fn refused_by_4xx<T>(read: Result<T, smalt_protocol::StorageError>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(error) => {
            assert!((400..500).contains(&error.status()), "{error:?}");
            None
        }
    }
}

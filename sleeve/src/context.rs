//! The operation context on the wire: `x-ms-client-request-id`.
//!
//! The id is the caller's own JSON (Gridwich: the *operation context*), a GUID, or empty. Muting is
//! part of the id, so that the receiver of the storage notification still sees it (G8, G9):
//!
//! | context | muted, on the wire |
//! | --- | --- |
//! | `{"job":7}` | `{"muted":true,"job":7}` |
//! | `8a1c`, or an object with its own `muted` | `{"id":"8a1c","muted":true}` |
//!
//! Both forms give the context back byte for byte.

use serde_json::{Map, Value};

use crate::port::{CallContext, Conditions, Tag};

/// The service truncates or rejects longer ids (Set Blob Expiry: "1-KiB character limit").
pub const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

/// JSON member that marks the call as muted.
const MUTED: &str = "muted";
/// JSON member that holds an id which is not itself a JSON object (a GUID, a word).
const WRAPPED: &str = "id";
/// Start of the wire form of a muted JSON object.
const MARKED: &str = r#"{"muted":true"#;

/// Why a text cannot be a client request id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    /// The wire form exceeds [`CLIENT_REQUEST_ID_BYTES_MAX`] (DG6).
    #[error(
        "client request id has {bytes} bytes, more than {CLIENT_REQUEST_ID_BYTES_MAX}: \
         shorten the operation context"
    )]
    TooLong {
        /// Length of the wire form.
        bytes: usize,
    },
    /// A header cannot carry the character.
    #[error("client request id has the character {0:?}: write the context as JSON on one line")]
    Unsendable(char),
    /// HTTP drops spaces at the ends of a header.
    #[error("client request id starts or ends with a space, which HTTP drops: trim it")]
    Padded,
}

impl CallContext {
    /// Creates a context from an operation context or from the id of a notification. A mark of
    /// muting moves to [`CallContext::muted`]; characters outside of ASCII become JSON escapes.
    ///
    /// # Errors
    /// [`ContextError`] if no header can carry the text.
    pub fn new(text: &str) -> Result<Self, ContextError> {
        let context = Self::unmarked(text);
        header_value(&context).map(|_| context)
    }

    /// Creates a context like [`CallContext::new`]; a text that no header can carry becomes an
    /// empty context, which is muted if the text is.
    pub fn safe(text: &str) -> Self {
        let context = Self::unmarked(text.trim());
        match header_value(&context) {
            Ok(_) => context,
            Err(_) => CallContext {
                client_request_id: String::new(),
                ..context
            },
        }
    }

    fn unmarked(text: &str) -> Self {
        let (mut client_request_id, mut muted) = (escape_non_ascii(text), false);
        // Each mark is shorter than the text that holds it, so this ends.
        while let Some(inner) = unmark(&client_request_id) {
            (client_request_id, muted) = (escape_non_ascii(&inner), true);
        }
        CallContext {
            client_request_id,
            muted,
        }
    }

    /// Returns the same operation context, muted or not.
    ///
    /// # Errors
    /// [`ContextError::TooLong`] if the mark does not fit.
    pub fn with_muted(&self, muted: bool) -> Result<Self, ContextError> {
        let context = CallContext {
            client_request_id: self.client_request_id.clone(),
            muted,
        };
        header_value(&context).map(|_| context)
    }

    /// Returns the operation context as a JSON object, without the mark: a text that is not an
    /// object is the member `id` of one, and an empty context is an empty object.
    pub fn json(&self) -> Map<String, Value> {
        match object(&self.client_request_id) {
            Some(object) => object,
            None if self.client_request_id.is_empty() => Map::new(),
            None => Map::from_iter([(WRAPPED.to_owned(), self.client_request_id.clone().into())]),
        }
    }
}

/// What the calls of a sleeve send: the operation context, and the ETag that they track (G6). A
/// value: a call changes no context, and returns the one that follows (DG5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageContext {
    call: CallContext,
    etag: Option<Tag>,
    tracking: bool,
}

impl From<CallContext> for StorageContext {
    fn from(call: CallContext) -> Self {
        StorageContext {
            call,
            etag: None,
            tracking: false,
        }
    }
}

impl StorageContext {
    /// Returns the operation context and muting.
    pub fn call(&self) -> &CallContext {
        &self.call
    }

    /// Returns the ETag of the last response that had one; `None` after a delete (DG2).
    pub fn etag(&self) -> Option<&Tag> {
        self.etag.as_ref()
    }

    /// Returns whether the next request sends the ETag.
    pub fn is_tracking(&self) -> bool {
        self.tracking
    }

    /// Returns the context whose next request sends the ETag, if there is one, or does not.
    #[must_use]
    pub fn with_tracking(&self, tracking: bool) -> Self {
        StorageContext {
            tracking,
            ..self.clone()
        }
    }

    /// Returns the context with this ETag; an empty one is the same as none (G13).
    #[must_use]
    pub fn with_etag(&self, etag: Option<Tag>) -> Self {
        StorageContext {
            etag: etag.filter(|etag| !etag.0.trim().is_empty()),
            ..self.clone()
        }
    }

    /// Returns the context without an ETag and without tracking.
    #[must_use]
    pub fn reset(&self) -> Self {
        self.call.clone().into()
    }

    /// Returns what the next request requires of the resource.
    pub fn conditions(&self) -> Conditions {
        Conditions {
            if_match: self.etag.clone().filter(|_| self.tracking),
            ..Conditions::default()
        }
    }
}

/// Returns the header's value, `None` for an empty context, or why the context is invalid.
pub(crate) fn header_value(cx: &CallContext) -> Result<Option<String>, ContextError> {
    let text = match cx.muted {
        true => mark(&cx.client_request_id),
        false => escape_non_ascii(&cx.client_request_id),
    };
    if let Some(c) = text.chars().find(|c| !matches!(c, ' '..='~')) {
        return Err(ContextError::Unsendable(c));
    }
    if text.trim() != text {
        return Err(ContextError::Padded);
    }
    let bytes = text.len();
    if bytes > CLIENT_REQUEST_ID_BYTES_MAX {
        return Err(ContextError::TooLong { bytes });
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

/// Returns the wire form of a muted id. [`unmark`] gives the id back.
fn mark(id: &str) -> String {
    let id = escape_non_ascii(id);
    let open = id.strip_prefix('{');
    match (object(&id), open) {
        (Some(object), Some(rest)) if !object.contains_key(MUTED) => match object.is_empty() {
            true => format!("{MARKED}{rest}"),
            false => format!("{MARKED},{rest}"),
        },
        _ => Value::from_iter([(WRAPPED, Value::from(id)), (MUTED, true.into())]).to_string(),
    }
}

/// Returns the id inside the mark, or `None` if the text is not marked.
fn unmark(text: &str) -> Option<String> {
    let mut all = object(text)?;
    if all.remove(MUTED)? != true {
        return None;
    }
    let wrapped = match all.get(WRAPPED) {
        Some(Value::String(id)) => Some(id.clone()),
        _ => None,
    };
    let marked = text.strip_prefix(MARKED);
    let marked = marked.map(|rest| format!("{{{}", rest.strip_prefix(',').unwrap_or(rest)));
    let mut exact = [wrapped, marked].into_iter().flatten();
    let exact = exact.find(|id| mark(id) == text);
    // The mark of another writer, at another place.
    Some(exact.unwrap_or_else(|| Value::Object(all).to_string()))
}

/// Replaces characters that a header cannot carry with JSON escapes. Other text has no such escapes
/// and passes unchanged; the caller's check then rejects it.
fn escape_non_ascii(text: &str) -> String {
    if text.is_ascii() || !text.starts_with('{') {
        return text.to_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c.is_ascii() {
            escaped.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(id: &str, muted: bool) -> CallContext {
        CallContext {
            client_request_id: id.to_owned(),
            muted,
        }
    }

    /// G6, G9: muting is part of the id and nothing else.
    #[test]
    fn muting_is_part_of_the_id() {
        let table = [
            ("", false, None),
            ("", true, Some(r#"{"id":"","muted":true}"#)),
            ("{}", true, Some(r#"{"muted":true}"#)),
            (r#"{"worker":"w1"}"#, false, Some(r#"{"worker":"w1"}"#)),
            (
                r#"{"worker":"w1"}"#,
                true,
                Some(r#"{"muted":true,"worker":"w1"}"#),
            ),
            ("8a1c", true, Some(r#"{"id":"8a1c","muted":true}"#)),
            (
                r#"{"id":"8a1c"}"#,
                true,
                Some(r#"{"muted":true,"id":"8a1c"}"#),
            ),
            (
                r#"{"n":"é😀"}"#,
                false,
                Some(r#"{"n":"\u00e9\ud83d\ude00"}"#),
            ),
            (
                r#"{"muted":0}"#,
                true,
                Some(r#"{"id":"{\"muted\":0}","muted":true}"#),
            ),
        ];
        for (id, muted, expected) in table {
            let text = header_value(&of(id, muted)).unwrap();
            assert_eq!(text.as_deref(), expected, "{id} {muted}");
            if let Some(text) = text {
                let back = CallContext::new(&text).unwrap();
                assert_eq!(back, of(&escape_non_ascii(id), muted), "{id} {muted}");
            }
        }
    }

    /// G9: the mark of another writer counts at any place, and unmuting removes it.
    #[test]
    fn marks_of_other_writers_count() {
        for (text, id) in [
            (r#"{"a":1,"muted":true}"#, r#"{"a":1}"#),
            (r#"{ "muted" : true }"#, "{}"),
            (r#"{"id":"é","muted":true}"#, r#"{"id":"\u00e9"}"#),
            (r#"{"muted":true,"muted":true,"a":1}"#, r#"{"a":1}"#),
            (r#"{"id":"{\"muted\":true}","muted":true}"#, "{}"),
        ] {
            let context = CallContext::new(text).unwrap();
            assert_eq!(context, of(id, true), "{text}");
            let unmuted = context.with_muted(false).unwrap();
            assert_eq!(header_value(&unmuted).unwrap().unwrap(), id, "{text}");
        }
    }

    /// DG6: exactly 1 KiB is allowed, with the mark; the error is typed.
    #[test]
    fn the_limit_is_enforced() {
        let long = |bytes| CallContext::new(&"x".repeat(bytes));
        assert!(long(1024).is_ok());
        assert_eq!(long(1025), Err(ContextError::TooLong { bytes: 1025 }));
        let full = long(1024).unwrap().with_muted(true);
        assert_eq!(full, Err(ContextError::TooLong { bytes: 1046 }));
        assert!(long(1002).unwrap().with_muted(true).is_ok());
        let new = CallContext::new;
        assert_eq!(new("a\nb"), Err(ContextError::Unsendable('\n')));
        assert_eq!(new("é"), Err(ContextError::Unsendable('é')));
        assert_eq!(new(" a"), Err(ContextError::Padded));
    }

    /// G6: foreign ids (GUIDs, empty, garbage) never cause an error and are not muted.
    #[test]
    fn safe_construction_never_fails() {
        for text in ["", "{", "null", "[true]", r#"{"muted":"true"}"#, "0-0-0"] {
            assert_eq!(CallContext::safe(text), of(text, false));
        }
        let guid = "67ac0ccd-7d3f-4a2c-8c4e-6fb0e1d8a1c0";
        let json = serde_json::json!({ "id": guid });
        assert_eq!(Value::from(CallContext::safe(guid).json()), json);
        assert!(CallContext::safe("").json().is_empty());
        assert_eq!(CallContext::safe(" a "), of("a", false));
        let long = format!(r#"{{"muted":true,"a":"{}"}}"#, "x".repeat(2_000));
        assert_eq!(CallContext::safe(&long), of("", true));
    }

    /// G10, G13: the ETag is sent only while tracking, and never an empty one.
    #[test]
    fn etags_are_sent_only_while_tracking() {
        let tag = |text: &str| Some(Tag(text.to_owned()));
        let fresh = StorageContext::from(of("a", true));
        assert!(!fresh.is_tracking(), "the default");
        let with = fresh.with_etag(tag("\"1\""));
        assert_eq!(with.conditions().if_match, None);
        let tracking = with.with_tracking(true);
        assert_eq!(tracking.conditions().if_match, tag("\"1\""));
        for none in [tag(""), tag(" "), None] {
            assert_eq!(tracking.with_etag(none).conditions().if_match, None);
        }
        assert_eq!(tracking.reset(), fresh, "the id and muting stay");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// G6-G9: every context comes back byte for byte, muted as it was, from its wire form; the
        /// muted and the unmuted one carry the same operation context.
        #[test]
        fn contexts_survive_the_wire(
            text in prop_oneof![
                ".{0,40}",
                concat!(
                    r#"\{("muted"|"id"|"a") ?: ?(true|1|"é"|"[ -~]{0,9}")"#,
                    r#"(,("muted"|"id"|"b"):(true|"x"|\{\}))?\}"#,
                ),
            ],
            muted in any::<bool>(),
        ) {
            let context = CallContext::safe(&text);
            let Ok(context) = context.with_muted(muted) else { return Ok(()) };
            let wire = header_value(&context).unwrap();
            // The header may pass another parser and writer of HTTP, which trims it.
            let back = CallContext::new(wire.as_deref().unwrap_or_default().trim()).unwrap();
            prop_assert_eq!(&back, &context);
            prop_assert_eq!(back.json(), context.with_muted(false).unwrap().json());
            let flag = |text: &str| serde_json::from_str::<Value>(text).map(|v| v["muted"] == true);
            prop_assert_eq!(wire.is_some_and(|wire| flag(&wire).unwrap_or(false)), muted);
        }
    }
}

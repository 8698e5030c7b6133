//! Preferences of requests to the Table service, and the wording of its refusals.
//!
//! Recorded: an operation's refusal has the format of its responses, and no header with its code. A
//! refusal before the operation is known, or one about settings of the service or a table, comes
//! from another component and has the header.

use smalt_protocol::table::Format;
use smalt_protocol::table::format::{Asked, Kind};
use smalt_protocol::xml::{ErrorDocument, XmlWriter};
use smalt_protocol::{ErrorCode, Service, StorageError};

use super::{Common, Content, Reply};
use crate::auth::NO_ACCOUNT;
use crate::call::Call;

/// The XML namespace of errors.
const METADATA: &str = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether the response to a write contains the written entity or table. *Setting the Prefer header
/// to manage response echo on insert operations*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// No known preference.
    Unstated,
    /// `return-content`.
    Content,
    /// `return-no-content`.
    NoContent,
}

impl Preference {
    /// Returns the preference of a request; an unknown value counts as unstated.
    pub fn of(call: &Call) -> Self {
        let text = call.headers.get("prefer").and_then(|v| v.to_str().ok());
        Self::parse(text.unwrap_or_default())
    }

    /// Parses the `Prefer` header.
    pub fn parse(text: &str) -> Self {
        let is = |name: &str| text.trim().eq_ignore_ascii_case(name);
        if is("return-no-content") {
            Preference::NoContent
        } else if is("return-content") {
            Preference::Content
        } else {
            Preference::Unstated
        }
    }

    /// Returns the value of `Preference-Applied`; `None` when nothing is stated.
    pub const fn applied(self) -> Option<&'static str> {
        match self {
            Preference::Unstated => None,
            Preference::Content => Some("return-content"),
            Preference::NoContent => Some("return-no-content"),
        }
    }
}

/// Returns the format of the response to a call.
///
/// # Errors
/// 415 for an unsupported format.
pub fn format(call: &Call) -> Result<Format, StorageError> {
    let text = |name: &str| call.headers.get(name).and_then(|v| v.to_str().ok());
    Format::negotiate(&Asked {
        accept: text("accept"),
        format: call.query("$format"),
        max_data_service_version: text("maxdataserviceversion"),
        data_service_version: text("dataserviceversion"),
        version: call.version,
    })
}

/// The form of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `<Error>`, of the Blob and the Queue service.
    Plain,
    /// JSON, of the Data Lake interface of the Blob service.
    DataLake,
    /// Multi-line XML, for a request to the Table service that could not be parsed.
    Unread,
    /// `<m:error>`, for settings of the Table service or of a table.
    Settings,
    /// JSON or Atom, for operations on tables and entities.
    Data(Format, Preference),
}

impl Form {
    /// Returns the form of refusals of a call.
    pub fn of(call: &Call) -> Self {
        if call.target.data_lake {
            return Form::DataLake;
        }
        if call.service() != Service::Table {
            return Form::Plain;
        }
        if call.query("comp").is_some() || call.query("restype").is_some() {
            return Form::Settings;
        }
        let format = format(call).unwrap_or(Format::of_version(call.version));
        let inserts = call.method == http::Method::POST;
        let preference = Preference::of(call);
        Form::Data(
            format,
            if inserts {
                preference
            } else {
                Preference::Unstated
            },
        )
    }
}

/// Renders a refusal of the Table service.
pub(super) fn refusal(error: &StorageError, common: &Common<'_>, form: Form) -> Reply {
    let id = common.request_id.to_string();
    let document = ErrorDocument {
        error,
        request_id: &id,
        time: common.now,
    };
    let status = error.status();
    if error.elements().iter().any(|(name, _)| *name == NO_ACCOUNT) {
        // The account does not exist, so no service gives the refusal its own form.
        return Reply::xml(status, document.render());
    }
    match form {
        Form::Data(format, preference) if !is_early(error.code()) => {
            let reply = Reply::new(status)
                .header("content-type", format.content_type(Kind::Error))
                .header("x-content-type-options", "nosniff");
            let is_read_first =
                [ErrorCode::InvalidInput, ErrorCode::ConditionNotMet].contains(&error.code());
            let cache = (!is_read_first).then_some("no-cache");
            let applied = preference.applied().filter(|_| !is_read_first);
            let body = match format {
                Format::Json(_) => json(&document).into_bytes(),
                Format::Atom => xml(&document, ""),
            };
            reply
                .maybe("cache-control", cache)
                .maybe("preference-applied", applied)
                .content(Content::Bytes(body.into()))
        }
        Form::Data(Format::Json(_), _) => Reply::new(status)
            .header("content-type", "application/json")
            .content(Content::Bytes(json(&document).into())),
        Form::Unread => Reply::new(status)
            .header("content-type", "application/xml")
            .content(Content::Bytes(unread(&document).into())),
        _ => Reply::new(status)
            .header("content-type", "application/xml")
            .content(Content::Bytes(xml(&document, "m:").into())),
    }
}

/// Returns whether a refusal has its code in a header.
pub(super) fn tells_code(code: ErrorCode, form: Form) -> bool {
    match form {
        Form::Data(..) => is_early(code),
        Form::Unread => false,
        Form::Plain | Form::DataLake | Form::Settings => true,
    }
}

/// Returns whether a refusal with this code occurs before the operation is known.
fn is_early(code: ErrorCode) -> bool {
    use ErrorCode as E;
    matches!(
        code,
        E::AuthenticationFailed
            | E::AuthorizationProtocolMismatch
            | E::AuthorizationResourceTypeMismatch
            | E::AuthorizationServiceMismatch
            | E::AuthorizationSourceIPMismatch
            | E::InvalidAuthenticationInfo
            | E::InvalidUri
            | E::NoAuthenticationInformation
            | E::UnsupportedHttpVerb
            | E::XMethodIncorrectCount
            | E::XMethodIncorrectValue
            | E::XMethodNotUsingPost
    )
}

/// Renders `{"odata.error":{"code":..,"message":{"lang":"en-US","value":..}}}`.
fn json(document: &ErrorDocument<'_>) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let (code, message) = (
        text(document.error.code().as_str()),
        text(&document.message()),
    );
    format!(
        "{{\"odata.error\":{{\"code\":{code},\"message\":{{\"lang\":\"en-US\",\
         \"value\":{message}}}}}}}"
    )
}

/// Renders `<error>` or `<m:error>` on one line.
fn xml(document: &ErrorDocument<'_>, prefix: &str) -> Vec<u8> {
    let name = |name: &str| format!("{prefix}{name}");
    let space = if prefix.is_empty() {
        "xmlns"
    } else {
        "xmlns:m"
    };
    let mut xml = XmlWriter::new();
    xml.open_with(&name("error"), &[(space, METADATA)]);
    xml.element(&name("code"), document.error.code().as_str());
    xml.open_with(&name("message"), &[("xml:lang", "en-US")]);
    xml.text(&document.message());
    xml.close(&name("message"));
    xml.close(&name("error"));
    let bytes = xml.finish();
    match bytes.strip_prefix(BYTE_ORDER_MARK) {
        Some(bare) => bare.to_vec(),
        None => bytes,
    }
}

/// Renders the document for a request that could not be parsed: several lines, with a byte order
/// mark.
fn unread(document: &ErrorDocument<'_>) -> Vec<u8> {
    let line = xml(document, "");
    let line = String::from_utf8_lossy(&line);
    let lines = line
        .replace(
            "encoding=\"utf-8\"?>",
            "encoding=\"utf-8\" standalone=\"yes\"?>\r\n",
        )
        .replace("<code>", "\r\n  <code>")
        .replace("</code>", "</code>\r\n  ")
        .replace("</message>", "</message>\r\n");
    [BYTE_ORDER_MARK, lines.as_bytes()].concat()
}

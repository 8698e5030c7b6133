//! Errors with Azure's status, code and message.
//!
//! Rules and operations return a [`StorageError`]: a code from the error table and the details of
//! the request. The code determines status and wire name; `message` overrides the table's message
//! where Azure has several for one code; `elements` are the extra elements of the XML body
//! (`HeaderName`, `QueryParameterValue`, ...); `cause` is logged and never sent to a client.

mod table;

use std::fmt;

pub use table::ErrorCode;

macro_rules! error_codes {
    ($($code:ident $status:literal $message:literal,)*) => {
        /// An error code of Azure Storage: the `x-ms-error-code` header and the `Code` element.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each variant's text stands in its message")]
        pub enum ErrorCode { $($code,)* }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$code,)*];

            /// Returns the name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$code => stringify!($code),)* }
            }

            /// Returns the default HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(ErrorCode::$code => $status,)* }
            }

            /// Returns the default message.
            pub const fn message(self) -> &'static str {
                match self { $(ErrorCode::$code => $message,)* }
            }
        }
    };
}
use error_codes;

impl ErrorCode {
    /// Returns the code with this wire name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error response of Azure Storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageError(Box<Detail>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Detail {
    code: ErrorCode,
    status: u16,
    message: Option<String>,
    elements: Vec<(&'static str, String)>,
    headers: Vec<(&'static str, String)>,
    cause: Option<String>,
}

impl StorageError {
    /// Returns an error with the table's status and message.
    pub fn new(code: ErrorCode) -> Self {
        StorageError(Box::new(Detail {
            code,
            status: code.status(),
            message: None,
            elements: Vec::new(),
            headers: Vec::new(),
            cause: None,
        }))
    }

    /// Returns 400 `InvalidHeaderValue`, naming the header.
    pub fn invalid_header(name: &str, value: &str) -> Self {
        Self::new(ErrorCode::InvalidHeaderValue)
            .with_element("HeaderName", name)
            .with_element("HeaderValue", value)
    }

    /// Returns 400 `MissingRequiredHeader`, naming the header.
    pub fn missing_header(name: &str) -> Self {
        Self::new(ErrorCode::MissingRequiredHeader).with_element("HeaderName", name)
    }

    /// Returns 400 `MissingRequiredQueryParameter`, naming the parameter.
    pub fn missing_query(name: &str) -> Self {
        Self::new(ErrorCode::MissingRequiredQueryParameter).with_element("QueryParameterName", name)
    }

    /// Returns 400 `InvalidQueryParameterValue` with the parameter, the value and, where Azure
    /// gives one, the reason.
    pub fn invalid_query(name: &str, value: &str, reason: &str) -> Self {
        let error = Self::new(ErrorCode::InvalidQueryParameterValue)
            .with_element("QueryParameterName", name)
            .with_element("QueryParameterValue", value);
        if reason.is_empty() {
            error
        } else {
            error.with_element("Reason", reason)
        }
    }

    /// Returns 400 `InvalidQueryParameterValue` for a value that names an unknown operation. The
    /// body then has an empty element for the reason, as recorded.
    pub fn no_such_operation(name: &str, value: &str) -> Self {
        Self::invalid_query(name, value, "").with_element("Reason", "")
    }

    /// Returns 400 `OutOfRangeQueryParameterValue` with the permitted range.
    pub fn query_out_of_range(name: &str, value: &str, least: i64, most: i64) -> Self {
        Self::new(ErrorCode::OutOfRangeQueryParameterValue)
            .with_element("QueryParameterName", name)
            .with_element("QueryParameterValue", value)
            .with_element("MinimumAllowed", &least.to_string())
            .with_element("MaximumAllowed", &most.to_string())
    }

    /// Returns 500 `InternalError`. The cause is only logged.
    pub fn internal(cause: impl fmt::Display) -> Self {
        let mut error = Self::new(ErrorCode::InternalError);
        error.0.cause = Some(cause.to_string());
        error
    }

    /// Replaces the table's status (304 instead of 412 for reads).
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = status;
        self
    }

    /// Replaces the table's message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = Some(message.into());
        self
    }

    /// Adds an element to the XML body.
    #[must_use]
    pub fn with_element(mut self, name: &'static str, value: &str) -> Self {
        self.0.elements.push((name, value.to_owned()));
        self
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.0.headers.push((name, value.to_owned()));
        self
    }

    /// Sets the cause, which is only logged.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<String>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Returns the error code.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Returns the HTTP status.
    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// Returns the message that is sent to the client.
    pub fn message(&self) -> &str {
        self.0
            .message
            .as_deref()
            .unwrap_or_else(|| self.0.code.message())
    }

    /// Returns the extra elements of the XML body, in order.
    pub fn elements(&self) -> &[(&'static str, String)] {
        &self.0.elements
    }

    /// Returns the extra headers of the response.
    pub fn headers(&self) -> &[(&'static str, String)] {
        &self.0.headers
    }

    /// Returns the cause, which must only be logged.
    pub fn cause(&self) -> Option<&str> {
        self.0.cause.as_deref()
    }
}

impl From<ErrorCode> for StorageError {
    fn from(code: ErrorCode) -> Self {
        Self::new(code)
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.status(), self.code(), self.message())
    }
}

impl std::error::Error for StorageError {}

const _: () = assert!(
    size_of::<StorageError>() <= 24,
    "errors travel in every Result"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back_and_has_an_error_status() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::parse(code.as_str()), Some(*code));
            assert!((300..=599).contains(&code.status()), "{code}");
            assert!(!code.message().is_empty(), "{code}");
        }
    }
}

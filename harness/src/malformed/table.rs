//! The cases, as `fixtures/malformed/*.toml` has them.

use std::path::Path;

use serde::Deserialize;
use smalt_protocol::Service;

use crate::servers::files;

/// One request and its answer. Texts are templates, see [`super::template`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What is wrong with the request; unique.
    pub name: String,
    /// Where the answer comes from: a recording, a document, a standard.
    pub source: String,
    /// `blob`, `queue` or `table`.
    #[serde(default = "queue", deserialize_with = "service")]
    pub service: Service,
    /// Method.
    #[serde(default = "get")]
    pub method: String,
    /// Path and query behind the account: `{queue}/messages?peekonly=true`. One that begins with a
    /// slash is sent as it is.
    #[serde(default)]
    pub path: String,
    /// How it is allowed.
    #[serde(default)]
    pub signed: Signed,
    /// `x-ms-version`; empty for none.
    #[serde(default = "version")]
    pub version: String,
    /// Further header lines.
    #[serde(default)]
    pub headers: Vec<String>,
    /// Body.
    #[serde(default)]
    pub body: Option<String>,
    /// `Content-Length`: without it that of the body; `none` sends no such header.
    #[serde(default)]
    pub length: Option<String>,
    /// The whole request, in place of everything above but the service.
    #[serde(default)]
    pub raw: Option<String>,
    /// What the client does after it has sent this.
    #[serde(default)]
    pub then: Then,
    /// The operation that is asked for, where the register may not have it built yet: then the
    /// answer is 501 with this name, and no other case may get one.
    #[serde(default)]
    pub operation: Option<String>,
    /// The status; 0 where the connection is closed without an answer.
    pub status: u16,
    /// `x-ms-error-code`; empty where none is given, because HTTP itself refuses.
    pub code: String,
}

/// What the client does after it has sent the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// Waits for the answer.
    #[default]
    Wait,
    /// Closes its side, and waits for the answer.
    Finish,
    /// Goes away.
    Leave,
}

/// How a request is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signed {
    /// By an account SAS that is appended to the path.
    #[default]
    Sas,
    /// By the account's key: what no SAS permits.
    Key,
    /// Not at all, or as the case says.
    No,
}

fn queue() -> Service {
    Service::Queue
}

fn get() -> String {
    "GET".to_owned()
}

fn version() -> String {
    "2021-12-02".to_owned()
}

fn service<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Service, D::Error> {
    let name = String::deserialize(deserializer)?;
    let found = Service::ALL
        .into_iter()
        .find(|service| service.as_str() == name);
    found.ok_or_else(|| serde::de::Error::custom("blob, queue or table"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

/// Why the table cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// A file or the directory cannot be read.
    #[error("{0}: {1}")]
    Io(String, std::io::Error),
    /// A file is not a table of cases.
    #[error("{0}: {1}")]
    Format(String, toml::de::Error),
    /// Two cases have one name.
    #[error("two cases are called {0:?}")]
    Twice(String),
}

/// Reads every case of a directory; the area is the name of the file.
///
/// # Errors
/// When a file cannot be read, is no table, or repeats a name.
pub fn read(dir: &Path) -> Result<Vec<(String, Case)>, TableError> {
    let texts = files::texts(dir, "toml")
        .map_err(|error| TableError::Io(dir.display().to_string(), error))?;
    let mut cases: Vec<(String, Case)> = Vec::new();
    for (area, text) in texts {
        let file: File =
            toml::from_str(&text).map_err(|error| TableError::Format(area.clone(), error))?;
        for case in file.case {
            if cases.iter().any(|(_, other)| other.name == case.name) {
                return Err(TableError::Twice(case.name));
            }
            cases.push((area.clone(), case));
        }
    }
    Ok(cases)
}

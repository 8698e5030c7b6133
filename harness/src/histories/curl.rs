//! Requests as shell commands that anyone can run against their own smalt.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use smalt_protocol::Service;

use super::render::{Credential, Request};
use super::server::{START_S, moment};

/// Maximum length of a body that is shown as text in a command; documents of tables are always
/// shown, because their content is needed to see what is wrong.
const SHOWN_BYTES_MAX: usize = 500;

/// Sets the variables of the commands, unless they are set already. The status of each answer is
/// printed below it, and the recorded status stands behind the command.
const VARIABLES: &str = r#"# For bash and a fresh smalt. Tags, ids, receipts and
# times of snapshots that the service made up are others there: put in those of its answers.
BLOB=${BLOB:-http://127.0.0.1:10000/devstoreaccount1}
QUEUE=${QUEUE:-http://127.0.0.1:10001/devstoreaccount1}
TABLE=${TABLE:-http://127.0.0.1:10002/devstoreaccount1}
CONTROL=${CONTROL:-http://127.0.0.1:10003}
SAS=${SAS:-$(harness sas --permissions rwdlacuptf)}
curl() { command curl -sS -w '\n# %{http_code}\n' "$@"; }
"#;

/// Returns a script: the variables, the start time of every history, and the commands.
pub fn script(transcript: &str) -> String {
    format!("{VARIABLES}{}\n{transcript}", time(START_S))
}

/// Returns a command that stops smalt's clock at this time, with a comment that shows it.
pub(super) fn time(now_s: u64) -> String {
    let now = moment(now_s).iso_ticks();
    let change = format!("{{\"now\": \"{now}\", \"mode\": \"frozen\"}}");
    format!("curl -X PUT \"$CONTROL/clock\" -d '{change}'\n# 200")
}

/// Returns a request as a command. `$BLOB`, `$QUEUE`, `$TABLE` are endpoints with the account,
/// `$SAS` is a signature.
pub(super) fn command(request: &Request) -> String {
    let endpoint = match request.service {
        Service::Queue => "$QUEUE",
        Service::Table => "$TABLE",
        Service::Blob => "$BLOB",
    };
    let url = match request.credential {
        Credential::Own => addressed(endpoint, &request.path),
        Credential::Account | Credential::Key => signed(endpoint, &request.path),
    };
    let (piped, body) = body(request);
    // With `-X HEAD`, curl would wait for a body.
    let method = match request.method {
        Method::HEAD => "--head".to_owned(),
        _ => format!("-i -X {}", request.method),
    };
    let mut line = format!("{piped}curl {method} \"{url}\"");
    if request.path.contains(['[', ']', '{', '}']) {
        line += " --globoff";
    }
    for (name, value) in &request.headers {
        // Writing to a string does not fail.
        let _ = match (name.as_str(), value.as_str()) {
            // A copy source is a URL with its own signature.
            ("x-ms-copy-source", path) => write!(line, " -H \"{name}: {}\"", signed("$BLOB", path)),
            (_, "") => write!(line, " -H '{name};'"),
            (_, value) => write!(line, " -H {}", quoted(&format!("{name}: {value}"))),
        };
    }
    line + &body
}

/// Returns a signed URL for double quotes.
fn signed(endpoint: &str, path: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{}{separator}$SAS", addressed(endpoint, path))
}

/// Returns a URL for double quotes.
fn addressed(endpoint: &str, path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for c in path.chars() {
        // `$batch` and `$filter` are not shell variables.
        if matches!(c, '$' | '`' | '"' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    format!("{endpoint}/{escaped}")
}

/// Returns the text in front of `curl`, and that behind the headers.
fn body(request: &Request) -> (String, String) {
    let body = request.body.as_slice();
    let nothing = String::new();
    if body.is_empty() {
        // The service requires a length, which curl otherwise omits.
        let is_bare = matches!(request.method, Method::GET | Method::HEAD | Method::DELETE);
        let length = if is_bare {
            ""
        } else {
            " -H 'Content-Length: 0'"
        };
        return (nothing, length.to_owned());
    }
    let has_type = request
        .headers
        .iter()
        .any(|(name, _)| name == "content-type");
    // Without this, curl would send the content type of a form.
    let no_type = if has_type { "" } else { " -H 'Content-Type:'" };
    let is_shown = request.service == Service::Table || body.len() < SHOWN_BYTES_MAX;
    match text(body).filter(|_| is_shown) {
        Some(text) => (nothing, format!("{no_type} --data-binary {}", quoted(text))),
        None => (piped(body), format!("{no_type} --data-binary @-")),
    }
}

/// Returns a body that can be an argument; curl reads a file if it begins with `@`.
fn text(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    let is_plain = |c: char| !c.is_control() || matches!(c, '\r' | '\n');
    (!text.starts_with('@') && text.chars().all(is_plain)).then_some(text)
}

/// Returns a command that writes the bytes to a pipe.
fn piped(body: &[u8]) -> String {
    match body.first() {
        Some(first) if body.iter().all(|byte| byte == first) => {
            let length = body.len();
            format!("head -c {length} /dev/zero | tr '\\0' '\\{first:03o}' | ")
        }
        _ => format!("base64 -d <<< '{}' | ", BASE64.encode(body)),
    }
}

/// Quotes a word for the shell.
fn quoted(text: &str) -> String {
    if !text.contains(['\r', '\n']) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let text = text.replace('\\', "\\\\").replace('\'', "\\'");
    format!("$'{}'", text.replace('\r', "\\r").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests;

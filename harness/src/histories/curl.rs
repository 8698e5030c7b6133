//! Requests as commands for a shell, which anybody can run against a smalt of their own.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use smalt_protocol::Service;

use super::render::Request;
use super::server::{START_S, moment};

/// Longest text that stands in a command as it is; documents of tables do at any length, as what is
/// wrong with them cannot be seen otherwise.
const SHOWN_BYTES_MAX: usize = 500;

/// How the variables of the commands are set. What is set already is left as it is. Behind each
/// answer its status is shown, as it was noted behind the command.
const VARIABLES: &str = r#"# For bash and a fresh smalt. Tags, ids, receipts and
# times of snapshots that the service made up are others there: put in those of its answers.
BLOB=${BLOB:-http://127.0.0.1:10000/devstoreaccount1}
QUEUE=${QUEUE:-http://127.0.0.1:10001/devstoreaccount1}
TABLE=${TABLE:-http://127.0.0.1:10002/devstoreaccount1}
CONTROL=${CONTROL:-http://127.0.0.1:10003}
SAS=${SAS:-$(harness sas --permissions rwdlacuptf)}
curl() { command curl -sS -w '\n# %{http_code}\n' "$@"; }
"#;

/// What was sent as one script: the variables, the time at which every history begins, and the
/// commands.
pub fn script(transcript: &str) -> String {
    format!("{VARIABLES}{}\n{transcript}", time(START_S))
}

/// Smalt's clock is set to this time and stands still, and says so.
pub(super) fn time(now_s: u64) -> String {
    let now = moment(now_s).iso_ticks();
    let change = format!("{{\"now\": \"{now}\", \"mode\": \"frozen\"}}");
    format!("curl -X PUT \"$CONTROL/clock\" -d '{change}'\n# 200")
}

/// The request as a command. `$BLOB`, `$QUEUE`, `$TABLE` are endpoints with the account, `$SAS` a
/// signature.
pub(super) fn command(request: &Request) -> String {
    let endpoint = match request.service {
        Service::Queue => "$QUEUE",
        Service::Table => "$TABLE",
        Service::Blob => "$BLOB",
    };
    let url = signed(endpoint, &request.path);
    let (piped, body) = body(request);
    // Of an answer to HEAD curl would wait for the body.
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
            // A source is an address with a signature of its own.
            ("x-ms-copy-source", path) => write!(line, " -H \"{name}: {}\"", signed("$BLOB", path)),
            (_, "") => write!(line, " -H '{name};'"),
            (_, value) => write!(line, " -H {}", quoted(&format!("{name}: {value}"))),
        };
    }
    line + &body
}

/// An address within double quotes.
fn signed(endpoint: &str, path: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    let mut escaped = String::with_capacity(path.len());
    for c in path.chars() {
        // `$batch` and `$filter` are no variables of the shell's.
        if matches!(c, '$' | '`' | '"' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    format!("{endpoint}/{escaped}{separator}$SAS")
}

/// What stands before `curl`, and what behind the headers.
fn body(request: &Request) -> (String, String) {
    let body = request.body.as_slice();
    let nothing = String::new();
    if body.is_empty() {
        // Without it curl sends no length, which the service asks for.
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
    // Curl would call it a form.
    let no_type = if has_type { "" } else { " -H 'Content-Type:'" };
    let is_shown = request.service == Service::Table || body.len() < SHOWN_BYTES_MAX;
    match text(body).filter(|_| is_shown) {
        Some(text) => (nothing, format!("{no_type} --data-binary {}", quoted(text))),
        None => (piped(body), format!("{no_type} --data-binary @-")),
    }
}

/// A body that can stand in a command: behind `@` curl looks for a file.
fn text(body: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(body).ok()?;
    let is_plain = |c: char| !c.is_control() || matches!(c, '\r' | '\n');
    (!text.starts_with('@') && text.chars().all(is_plain)).then_some(text)
}

/// The bytes out of a pipe.
fn piped(body: &[u8]) -> String {
    match body.first() {
        Some(first) if body.iter().all(|byte| byte == first) => {
            let length = body.len();
            format!("head -c {length} /dev/zero | tr '\\0' '\\{first:03o}' | ")
        }
        _ => format!("base64 -d <<< '{}' | ", BASE64.encode(body)),
    }
}

/// One word of a shell.
fn quoted(text: &str) -> String {
    if !text.contains(['\r', '\n']) {
        return format!("'{}'", text.replace('\'', "'\\''"));
    }
    let text = text.replace('\\', "\\\\").replace('\'', "\\'");
    format!("$'{}'", text.replace('\r', "\\r").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests;

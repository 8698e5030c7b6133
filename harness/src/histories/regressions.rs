//! Histories that once got a wrong answer, kept as traces in `fixtures/regressions`.

use std::path::Path;

use bytes::Bytes;
use http::Method;
use smalt_protocol::Service;

use super::campaign::runtime;
use super::render::{Credential, Request};
use super::server::{START_S, Server};
use crate::replay::corpus;
use crate::traces::body::Body;
use crate::traces::format::{Exchange, Response, Trace};

/// Beginning of the signed query in every URL of a history.
const SIGNED: &str = "sv=";

/// Sends the requests in the trace of a failed history to the current smalt, and replaces the
/// recorded answers. Equal requests in equal order give equal ids and ETags. Returns the number of
/// changed answers.
///
/// # Errors
/// When the file is not the trace of a history, or cannot be read or written.
pub fn again(path: &Path) -> anyhow::Result<usize> {
    let text = corpus::read(path)?;
    let mut trace = Trace::parse(&path.display().to_string(), &text)?;
    let server = Server::in_memory().map_err(anyhow::Error::msg)?;
    let runtime = runtime().map_err(anyhow::Error::msg)?;
    let mut changed = 0;
    for exchange in &mut trace.exchanges {
        let request = request(exchange, trace.header.service)?;
        server.set_time(START_S + exchange.t / 1_000);
        let answer = runtime.block_on(server.send(&request));
        let answer = answer.map_err(anyhow::Error::msg)?;
        let response = Response {
            status: answer.status,
            headers: answer.headers.pairs(),
            body: Body::of(&answer.body),
        };
        changed += usize::from(response.status != exchange.response.status);
        exchange.response = response;
    }
    corpus::write(path, &trace.write()?)?;
    Ok(changed)
}

fn request(exchange: &Exchange, service: Service) -> anyhow::Result<Request> {
    let body = exchange
        .request
        .body
        .as_ref()
        .map_or(Ok(Bytes::new()), Body::bytes)?;
    let ours = ["authorization", "content-length", "x-ms-version"];
    let headers = exchange.request.headers.iter();
    let headers = headers.filter(|(name, _)| !ours.contains(&name.as_str()));
    let bare = |(name, value): &(String, String)| {
        let is_source = name == "x-ms-copy-source";
        let value = if is_source {
            unsigned(value)
        } else {
            value.clone()
        };
        (name.clone(), value)
    };
    Ok(Request {
        service,
        credential: Credential::Account,
        method: Method::from_bytes(exchange.request.method.as_bytes())?,
        path: unsigned(&exchange.request.url),
        headers: headers.map(bare).collect(),
        body: body.to_vec(),
    })
}

/// Returns path and query behind the account, without the signature.
fn unsigned(url: &str) -> String {
    let rest = url.splitn(4, '/').nth(3).unwrap_or_default();
    let signed = rest
        .find(&format!("?{SIGNED}"))
        .or_else(|| rest.find(&format!("&{SIGNED}")));
    rest[..signed.unwrap_or(rest.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::replay::player::play;
    use crate::target::in_process::InProcess;

    /// The current smalt answers every regression correctly.
    #[tokio::test]
    async fn every_regression_replays_completely() {
        let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures/regressions");
        let names = corpus::names(&directory).unwrap();
        assert!(names.len() >= 3, "{names:?}");
        for name in names {
            let recording = corpus::load(&directory, &name).unwrap();
            let played = play(Arc::new(InProcess::default()), &recording).await;
            played.assert_whole(&recording, &name);
        }
    }

    #[test]
    fn signatures_are_removed() {
        let base = "https://account.blob.core.windows.net";
        for (url, bare) in [
            ("/c/b?sv=1&sig=REDACTED", "c/b"),
            ("/c?restype=container&sv=1&sig=x", "c?restype=container"),
            ("/c/b", "c/b"),
        ] {
            assert_eq!(unsigned(&format!("{base}{url}")), bare);
        }
    }
}

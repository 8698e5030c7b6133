//! One history: every operation sent, every answer compared, everything that was sent kept.

use std::fmt::Write as _;

use smalt_model::vocabulary::{ContainerOperation, Operation};
use smalt_model::{Expected, Model};
use smalt_protocol::uri::encode_query;

use super::check::check;
use super::coverage::Coverage;
use super::documents::{self, Entry};
use super::names::Names;
use super::render::{self, Request};
use super::server::{Answer, START_S, Server};

/// Pages that one listing may take: more is a marker that leads in a circle.
const PAGES_MAX: usize = 100;

/// Longest body that a transcript shows.
const BODY_SHOWN_BYTES_MAX: usize = 500;

/// A history that was not answered as it must be.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Number of the step, from 0.
    pub step: usize,
    /// The step.
    pub operation: Operation,
    /// What is wrong with its answer.
    pub difference: String,
    /// All that was sent, as commands for a shell.
    pub transcript: String,
}

/// Runs a history from its beginning.
///
/// # Errors
/// The first step that was answered wrongly.
pub async fn run(
    mut server: Server,
    history: &[Operation],
    coverage: &mut Coverage,
) -> Result<(), Failure> {
    let mut model = Model::new(START_S);
    let mut names = Names::default();
    let mut transcript = String::new();
    for (step, operation) in history.iter().enumerate() {
        let expected = model.step(operation);
        coverage.note(operation, &expected);
        let told = exchange(
            &mut server,
            operation,
            &model,
            &expected,
            &mut names,
            &mut transcript,
        );
        told.await.map_err(|difference| Failure {
            step,
            operation: operation.clone(),
            difference,
            transcript: transcript.clone(),
        })?;
    }
    Ok(())
}

async fn exchange(
    server: &mut Server,
    operation: &Operation,
    model: &Model,
    expected: &Expected,
    names: &mut Names,
    transcript: &mut String,
) -> Result<(), String> {
    let Some(request) = render::request(operation, names) else {
        if *operation == Operation::Restart {
            note(transcript, "# restart");
            return server.restart();
        }
        note(transcript, &format!("# time is {} s", model.now_s()));
        server.set_time(model.now_s());
        return Ok(());
    };
    let answer = send(server, &request, transcript).await?;
    let mut entries = Vec::new();
    if is_listing(operation) && answer.status == 200 {
        entries = pages(server, &request, &answer, transcript).await?;
    }
    check(expected, &answer, &entries, names)
}

fn is_listing(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Container(_, ContainerOperation::List { .. })
    )
}

/// The entries of all pages from the first one on.
async fn pages(
    server: &Server,
    first: &Request,
    answer: &Answer,
    transcript: &mut String,
) -> Result<Vec<Entry>, String> {
    let (mut entries, mut marker) = documents::listing(&answer.body)?;
    for _ in 0..PAGES_MAX {
        if marker.is_empty() {
            return Ok(entries);
        }
        let mut next = first.clone();
        next.path = format!("{}&marker={}", first.path, encode_query(&marker));
        let answer = send(server, &next, transcript).await?;
        let (more, after) = documents::listing(&answer.body)?;
        entries.extend(more);
        marker = after;
    }
    Err(format!("a listing of more than {PAGES_MAX} pages"))
}

async fn send(
    server: &Server,
    request: &Request,
    transcript: &mut String,
) -> Result<Answer, String> {
    note(transcript, &curl(request));
    let answer = server.send(request).await?;
    let code = answer.header("x-ms-error-code").unwrap_or_default();
    note(transcript, &format!("# {} {code}", answer.status));
    Ok(answer)
}

fn note(transcript: &mut String, line: &str) {
    transcript.push_str(line);
    transcript.push('\n');
}

/// The request as a command. `$BLOB`, `$QUEUE` are endpoints with the account, `$SAS` a signature.
fn curl(request: &Request) -> String {
    let endpoint = match request.service {
        smalt_protocol::Service::Queue => "$QUEUE",
        _ => "$BLOB",
    };
    let separator = if request.path.contains('?') { '&' } else { '?' };
    let mut line = format!(
        "curl -i -X {} \"{endpoint}/{}{separator}$SAS\"",
        request.method, request.path
    );
    for (name, value) in &request.headers {
        // Writing to a string does not fail.
        let _ = write!(line, " -H '{name}: {value}'");
    }
    if !request.body.is_empty() {
        let text = String::from_utf8_lossy(&request.body);
        let _ = match text.is_ascii() && request.body.len() < BODY_SHOWN_BYTES_MAX {
            true => write!(line, " --data-binary '{text}'"),
            false => write!(line, " --data-binary @{}-bytes", request.body.len()),
        };
    }
    line
}

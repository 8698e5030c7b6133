//! Sends operations to a server, and runs one history.

use std::fmt::Write as _;
use std::sync::Arc;

use smalt_model::Expected;
use smalt_model::matrix;
use smalt_model::outcomes::describe_in;
use smalt_model::vocabulary::tables::TableOperation;
use smalt_model::vocabulary::{BlobOperation, Operation, PathOperation};
use smalt_protocol::Service;
use smalt_protocol::terminal;
use smalt_protocol::uri::encode_query;

use super::check::check;
use super::check::tables::{self, Seen};
use super::coverage::Coverage;
use super::documents::{self, Entry};
use super::generate::{Step, is_listing};
use super::invariants::{self, Watch};
use super::names::Names;
use super::render::tables::next_page;
use super::render::{self, Request};
use super::server::{Server, moment};
use crate::wire::Answer;

/// Maximum number of pages of a listing or query; more means that a marker leads in a circle.
const PAGES_MAX: usize = 100;
/// Maximum length of a body that a transcript shows; documents of tables are always shown, because
/// their content is needed to see what is wrong.
const SHOWN_BYTES_MAX: usize = 500;

/// The answer to an operation.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The first answer; for a listing, its first page.
    pub answer: Answer,
    /// The entries of all pages of a listing.
    pub entries: Vec<Entry>,
    /// The answer of the Table service, with all pages of a query.
    pub table: Option<Seen>,
    /// The requests and answers as text.
    transcript: String,
}

impl Answered {
    /// Returns an answer that no service sent, to test the checks of answers.
    pub fn of(answer: Answer) -> Self {
        Answered {
            answer,
            entries: Vec::new(),
            table: None,
            transcript: String::new(),
        }
    }

    /// Returns status and error code.
    pub fn summary(&self) -> String {
        let table = self.table.as_ref().map(Seen::summary);
        table.unwrap_or_else(|| self.answer.summary())
    }

    /// Returns the requests with their answers, as text.
    pub fn transcript(&self) -> &str {
        &self.transcript
    }

    /// Sends an operation that makes a request.
    ///
    /// # Errors
    /// When there is no answer, or a listing does not end.
    pub async fn to(server: &Server, operation: &Operation, names: &Names) -> Result<Self, String> {
        let request = render::request(operation, names);
        let request = request.ok_or_else(|| format!("{operation:?} sends no request"))?;
        let mut transcript = String::new();
        let answer = send(server, &request, &mut transcript).await?;
        let mut entries = Vec::new();
        if is_listing(operation) && answer.status == 200 {
            entries = pages(server, &request, &answer, &mut transcript).await?;
        }
        let mut table = None;
        if let Operation::Access(Service::Table, ..) = operation {
            // Only status and code are of interest, as with an operation without entities.
            table = Some(tables::read(&TableOperation::Delete, &answer, &[])?);
        }
        if let Operation::Table(_, operation) = operation {
            let further = match operation {
                TableOperation::Query { .. } => {
                    further(server, &request, &answer, &mut transcript).await?
                }
                _ => Vec::new(),
            };
            table = Some(tables::read(operation, &answer, &further)?);
        }
        Ok(Answered {
            answer,
            entries,
            table,
            transcript,
        })
    }
}

/// Sends operations in sequence and compares every answer.
pub struct Player {
    server: Arc<Server>,
    transcript: String,
    watch: Watch,
}

impl Player {
    /// Returns a player for this server.
    pub fn new(server: Arc<Server>) -> Self {
        Player {
            server,
            transcript: String::new(),
            watch: Watch::default(),
        }
    }

    /// Returns the server.
    pub fn server(&self) -> Arc<Server> {
        self.server.clone()
    }

    /// Returns everything that was sent, with the answers, as text.
    pub fn transcript(&self) -> &str {
        &self.transcript
    }

    /// Sends an operation, and records the values that the service generated.
    ///
    /// # Errors
    /// When the answer is not the expected one.
    pub async fn play(
        &mut self,
        operation: &Operation,
        expected: &Expected,
        names: &mut Names,
    ) -> Result<(), String> {
        let answered = Answered::to(&self.server, operation, names).await?;
        self.transcript.push_str(&answered.transcript);
        let seen = names.tags_seen();
        check(expected, &answered, names)?;
        let is_new = names.tags_seen() > seen;
        self.watch.tag(is_new, answered.answer.header("etag"))
    }

    /// Sets the clock.
    pub fn set_time(&mut self, now_s: u64) {
        let now = moment(now_s).iso_ticks();
        note(
            &mut self.transcript,
            &format!("# the clock is set to {now}"),
        );
        self.server.set_time(now_s);
    }

    /// Restarts the server.
    pub fn restart(&mut self) -> Result<(), String> {
        note(
            &mut self.transcript,
            "# smalt stops here, and starts again with the same --location",
        );
        let server = Arc::get_mut(&mut self.server);
        server.ok_or("another player uses the server")?.restart()
    }
}

/// A history with a wrong answer.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Index of the step, from 0.
    pub step: usize,
    /// Operation of the step.
    pub operation: Operation,
    /// What is wrong with the answer.
    pub difference: String,
    /// The expected answer.
    pub expected: Expected,
    /// Everything that was sent, with the answers, as text.
    pub transcript: String,
}

/// How a history is checked.
#[derive(Clone, Copy, Debug)]
pub struct Judging {
    /// Number of steps after which invariants are checked, besides the end; 0 means never.
    pub every: usize,
    /// Runs only the generator and the model, without a service.
    pub dry: bool,
}

/// Runs a history from the start.
///
/// # Errors
/// The first step with a wrong answer.
pub async fn run(
    server: Server,
    history: &[Step],
    judging: Judging,
    coverage: &mut Coverage,
) -> Result<Arc<Server>, Failure> {
    let mut model = server.model();
    let mut names = Names::default();
    let mut watch = matrix::Watch::default();
    let mut player = Player::new(Arc::new(server));
    for (number, step) in history.iter().enumerate() {
        let operation = &step.operation;
        let row = describe_in(&model, operation);
        watch.before(&model, operation);
        let expected = model.step(operation);
        let noted = coverage.note(step, row, &expected);
        let seen = watch.after(&model, operation, &expected);
        let noted = noted.and(coverage.note_places(seen));
        let mut told = match operation {
            Operation::Advance { .. } => {
                player.set_time(model.now_s());
                Ok(())
            }
            Operation::Restart => player.restart(),
            _ if judging.dry => Ok(()),
            _ => player.play(operation, &expected, &mut names).await,
        };
        let is_last = number + 1 == history.len();
        let is_due =
            judging.every > 0 && (is_last || (number + 1).checked_rem(judging.every) == Some(0));
        // The answer to Undelete Blob does not show the restored snapshots, and that of a path the
        // directories made above it, so the invariants must read them before an operation can name
        // one.
        let is_told_later = match operation {
            Operation::Blob(_, BlobOperation::Undelete) => true,
            Operation::Blob(_, BlobOperation::Put(..))
            | Operation::Path(_, PathOperation::Create { .. }) => model.is_hierarchical(),
            _ => false,
        };
        if told.is_ok() && !judging.dry && (is_due || is_told_later) {
            let questions = match is_last {
                true => invariants::all(&model),
                false => invariants::questions(&model, operation),
            };
            told = invariants::check(&mut player, &mut model, &mut names, questions).await;
        }
        told.and(noted).map_err(|difference| Failure {
            step: number,
            operation: operation.clone(),
            difference,
            expected,
            transcript: player.transcript().to_owned(),
        })?;
    }
    Ok(player.server())
}

/// Returns the entries of all pages of a listing.
async fn pages(
    server: &Server,
    first: &Request,
    answer: &Answer,
    transcript: &mut String,
) -> Result<Vec<Entry>, String> {
    let (mut entries, mut marker) = documents::page(answer)?;
    for _ in 0..PAGES_MAX {
        if marker.is_empty() {
            return Ok(entries);
        }
        let mut next = first.clone();
        let marked = encode_query(&marker);
        // Each of the interfaces has a name for it, and ignores that of the other.
        next.path = format!("{}&marker={marked}&continuation={marked}", first.path);
        let answer = send(server, &next, transcript).await?;
        let (more, after) = documents::page(&answer)?;
        entries.extend(more);
        marker = after;
    }
    Err(format!("a listing of more than {PAGES_MAX} pages"))
}

/// Requests the further pages of a query of entities.
async fn further(
    server: &Server,
    first: &Request,
    answer: &Answer,
    transcript: &mut String,
) -> Result<Vec<Answer>, String> {
    let mut further: Vec<Answer> = Vec::new();
    while let Some(next) = next_page(first, further.last().unwrap_or(answer)) {
        if further.len() == PAGES_MAX {
            return Err("a query that does not end".to_owned());
        }
        further.push(send(server, &next, transcript).await?);
    }
    Ok(further)
}

async fn send(
    server: &Server,
    request: &Request,
    transcript: &mut String,
) -> Result<Answer, String> {
    let signed = server.signed(request);
    let request = signed.as_ref().unwrap_or(request);
    note(transcript, &written(request));
    let answer = server.send(request).await?;
    let mut told = format!("# {}", answer.summary());
    if request.service == Service::Table {
        // Errors of the Table service are in the body.
        for line in String::from_utf8_lossy(&answer.body).lines() {
            let _ = write!(told, "\n# {line}");
        }
    }
    note(transcript, &told);
    Ok(answer)
}

/// Returns a request as text: method, service and path, then headers and body.
fn written(request: &Request) -> String {
    let service = request.service.as_str();
    let mut text = format!("{} {service} /{}", request.method, request.path);
    for (name, value) in &request.headers {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {name}: {value}");
    }
    let body = String::from_utf8_lossy(&request.body);
    let is_shown = request.service == Service::Table || body.len() < SHOWN_BYTES_MAX;
    let _ = match (body.is_empty(), is_shown) {
        (true, _) => Ok(()),
        (false, true) => write!(text, "\n  {}", terminal::lines(&body)),
        (false, false) => write!(text, "\n  {} bytes", request.body.len()),
    };
    text
}

fn note(transcript: &mut String, line: &str) {
    transcript.push_str(line);
    transcript.push('\n');
}

//! Operations sent to a server: the whole exchange, what was sent, and one history of it.

use std::fmt::Write as _;
use std::sync::Arc;

use smalt_model::outcomes::describe_in;
use smalt_model::vocabulary::tables::TableOperation;
use smalt_model::vocabulary::{BlobOperation, Operation};
use smalt_model::{Expected, Model};
use smalt_protocol::Service;
use smalt_protocol::uri::encode_query;

use super::check::check;
use super::coverage::Coverage;
use super::curl;
use super::documents::{self, Entry};
use super::generate::{Step, is_listing};
use super::invariants::{self, Watch};
use super::names::Names;
use super::render::{self, Request};
use super::server::{START_S, Server};
use crate::table_histories::answers::{self, Seen};
use crate::table_histories::{self, requests};
use crate::wire::Answer;

/// Pages that one listing may take: more is a marker that leads in a circle.
const PAGES_MAX: usize = 100;

/// What an operation was answered.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The first answer; of a listing the first page.
    pub answer: Answer,
    /// The entries of all pages of a listing.
    pub entries: Vec<Entry>,
    /// What the Table service showed, all pages of a query.
    pub table: Option<Seen>,
    /// What was sent, as commands for a shell.
    transcript: String,
}

impl Answered {
    /// An answer that nobody sent: for tests of what judges answers.
    pub fn of(answer: Answer) -> Self {
        Answered {
            answer,
            entries: Vec::new(),
            table: None,
            transcript: String::new(),
        }
    }

    /// Status and error code.
    pub fn summary(&self) -> String {
        let table = self.table.as_ref().map(Seen::summary);
        table.unwrap_or_else(|| self.answer.summary())
    }

    /// What was sent, as commands for a shell.
    pub fn transcript(&self) -> &str {
        &self.transcript
    }

    /// Sends an operation that asks something of the service.
    ///
    /// # Errors
    /// When there is no answer, or a listing that does not end.
    pub async fn to(server: &Server, operation: &Operation, names: &Names) -> Result<Self, String> {
        let request = render::request(operation, names);
        let request = request.ok_or_else(|| format!("{operation:?} asks nothing"))?;
        let mut transcript = String::new();
        let answer = send(server, &request, &mut transcript).await?;
        let mut entries = Vec::new();
        if is_listing(operation) && answer.status == 200 {
            entries = pages(server, &request, &answer, &mut transcript).await?;
        }
        let mut table = None;
        if let Operation::Table(_, operation) = operation {
            let further = match operation {
                TableOperation::Query { .. } => {
                    further(server, &request, &answer, &mut transcript).await?
                }
                _ => Vec::new(),
            };
            table = Some(answers::read(operation, &answer, &further)?);
        }
        Ok(Answered {
            answer,
            entries,
            table,
            transcript,
        })
    }
}

/// Sends operations one after the other and compares every answer.
pub struct Player {
    server: Arc<Server>,
    transcript: String,
    watch: Watch,
}

impl Player {
    /// Plays to this server.
    pub fn new(server: Arc<Server>) -> Self {
        Player {
            server,
            transcript: String::new(),
            watch: Watch::default(),
        }
    }

    /// The server.
    pub fn server(&self) -> Arc<Server> {
        self.server.clone()
    }

    /// All that was sent, as commands for a shell.
    pub fn transcript(&self) -> &str {
        &self.transcript
    }

    /// Sends an operation, and learns the texts of what the service made up.
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

    /// Time becomes this one.
    pub fn set_time(&mut self, now_s: u64) {
        note(&mut self.transcript, &curl::time(now_s));
        self.server.set_time(now_s);
    }

    /// The server stops and starts.
    ///
    /// # Errors
    /// When it does not.
    pub fn restart(&mut self) -> Result<(), String> {
        note(
            &mut self.transcript,
            "# smalt stops here, and starts again with the same --location",
        );
        let server = Arc::get_mut(&mut self.server);
        server.ok_or("somebody else uses the server")?.restart()
    }
}

/// A history that was not answered as it must be.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Number of the step, from 0.
    pub step: usize,
    /// The step.
    pub operation: Operation,
    /// What is wrong with its answer.
    pub difference: String,
    /// What it has to be answered.
    pub expected: Expected,
    /// All that was sent, as commands for a shell.
    pub transcript: String,
}

/// How a history is judged.
#[derive(Clone, Copy, Debug)]
pub struct Judging {
    /// Invariants are looked at after so many steps, and at the end; 0: never.
    pub every: usize,
    /// Nobody is asked: what the generator and the model reach by themselves.
    pub dry: bool,
}

/// Runs a history from its beginning.
///
/// # Errors
/// The first step that was answered wrongly.
pub async fn run(
    server: Server,
    history: &[Step],
    judging: Judging,
    coverage: &mut Coverage,
) -> Result<Arc<Server>, Failure> {
    let mut model = Model::new(START_S);
    let mut names = Names::default();
    let mut player = Player::new(Arc::new(server));
    for (number, step) in history.iter().enumerate() {
        let operation = &step.operation;
        let row = describe_in(&model, operation);
        let expected = model.step(operation);
        let noted = coverage.note(step, row, &expected);
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
        // Its answer tells no snapshot that came back: who is to name one has to look.
        let is_told_later = matches!(operation, Operation::Blob(_, BlobOperation::Undelete));
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

/// The pages of a query of entities after the first one.
async fn further(
    server: &Server,
    first: &Request,
    answer: &Answer,
    transcript: &mut String,
) -> Result<Vec<Answer>, String> {
    let mut further: Vec<Answer> = Vec::new();
    while let Some(next) = requests::next_page(first, further.last().unwrap_or(answer)) {
        if further.len() == table_histories::PAGES_MAX {
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
    note(transcript, &curl::command(request));
    let answer = server.send(request).await?;
    let mut told = format!("# {}", answer.summary());
    if request.service == Service::Table {
        // What is wrong with an answer of the Table service stands in its body.
        for line in String::from_utf8_lossy(&answer.body).lines() {
            let _ = write!(told, "\n# {line}");
        }
    }
    note(transcript, &told);
    Ok(answer)
}

fn note(transcript: &mut String, line: &str) {
    transcript.push_str(line);
    transcript.push('\n');
}

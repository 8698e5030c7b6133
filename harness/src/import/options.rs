//! The command `harness import`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::node::{self, Node, Wrong};
use super::raw::Raw;
use super::{build, har, nock, proxy, vcr};
use crate::replay::corpus;
use crate::traces::format::Trace;

/// Files that can be recordings.
const EXTENSIONS: [&str; 4] = ["yaml", "yml", "json", "har"];

/// Options of `harness import`.
///
/// Reads cassettes of vcrpy (YAML, JSON), recordings of the Azure SDKs' test proxy (JSON), HTTP
/// archives (HAR 1.2) and recordings of nock as objects (JSON): what a file is, it says itself.
/// What it writes is replayed by `harness replay --corpus DIR --operations all`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A recording, or a directory with recordings in it.
    #[arg(required = true, value_name = "PATH")]
    pub from: Vec<PathBuf>,
    /// Where the traces go: `DIR/blob/NAME.ndjson`, and beside it `queue` and `table`.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

/// A document of any format.
struct Format {
    is_one: fn(&Node) -> bool,
    read: fn(&Node) -> Result<Vec<Raw>, Wrong>,
}

const FORMATS: [Format; 4] = [
    Format {
        is_one: vcr::is_one,
        read: vcr::read,
    },
    Format {
        is_one: proxy::is_one,
        read: proxy::read,
    },
    Format {
        is_one: har::is_one,
        read: har::read,
    },
    Format {
        is_one: nock::is_one,
        read: nock::read,
    },
];

/// The traces in a recording's text. `is_yaml` is what its name says.
///
/// # Errors
/// With the place of what is wrong.
pub fn import(text: &str, is_yaml: bool) -> Result<Vec<Trace>, Wrong> {
    let document = if is_yaml {
        node::yaml(text)
    } else {
        node::json(text.trim_start_matches('\u{feff}'))
    }?;
    let format = FORMATS.iter().find(|format| (format.is_one)(&document));
    let format = format.ok_or_else(|| Wrong {
        at: "1:1".to_owned(),
        problem: "neither a cassette of vcrpy, nor a recording of the test proxy, nor HAR, nor \
                  objects of nock"
            .to_owned(),
    })?;
    build::traces(&(format.read)(&document)?)
}

/// Imports every recording that is named.
///
/// # Errors
/// When a path cannot be read or a trace cannot be written.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command talks to its caller"
)]
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let (mut written, mut refused, mut notes) = (0, 0, 0);
    for path in files(options)? {
        let name = path.display();
        let text = corpus::read(&path)?;
        let is_yaml = path.extension().is_some_and(|e| e == "yaml" || e == "yml");
        let traces = match import(&text, is_yaml) {
            Ok(traces) if traces.is_empty() => {
                eprintln!("{name}: no exchange with a blob or queue service");
                refused += 1;
                continue;
            }
            Ok(traces) => traces,
            Err(wrong) => {
                eprintln!("{name}:{wrong}");
                refused += 1;
                continue;
            }
        };
        for trace in traces {
            let service = trace.header.service.as_str();
            let to = options.out.join(service).join(file_name(&path));
            corpus::write(&to, &trace.write()?)?;
            let (exchanges, lacks) = (trace.exchanges.len(), trace.header.notes.len());
            println!("{}: {exchanges} exchanges, {lacks} notes", to.display());
            written += 1;
            notes += lacks;
        }
    }
    println!("{written} traces with {notes} notes, {refused} files refused");
    Ok(if refused == 0 && written > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The files to read, those of directories in order.
fn files(options: &Options) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for from in &options.from {
        if from.is_dir() {
            files.extend(corpus::files(from, &EXTENSIONS)?);
        } else {
            files.push(from.clone());
        }
    }
    Ok(files)
}

/// The name of a trace: that of its recording.
fn file_name(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    PathBuf::from(format!("{}.ndjson", stem.to_string_lossy()))
}

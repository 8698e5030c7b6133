//! The command `harness facts`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::table::{self, Facts};
use crate::check::exit_code;
use crate::replay::corpus::{self, CorpusError};

/// Options of `harness facts`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of recordings. May be repeated.
    #[arg(long, value_name = "DIR", required = true)]
    pub corpus: Vec<PathBuf>,
    /// The file of facts.
    #[arg(long, value_name = "FILE", default_value = "fixtures/facts.tsv")]
    pub file: PathBuf,
    /// Write the file instead of comparing it with the recordings.
    #[arg(long)]
    pub write: bool,
}

/// Distils the recordings, and writes the facts or compares them with the file.
pub fn run_command(options: &Options) -> anyhow::Result<ExitCode> {
    let facts = distilled(&options.corpus)?;
    let (rows, exchanges) = (facts.len(), facts.values().map(|fact| fact.exchanges));
    let exchanges: u64 = exchanges.sum();
    let text = table::write(&facts);
    if options.write {
        corpus::write(&options.file, &text)?;
    }
    let is_current = corpus::read(&options.file)? == text;
    println!("{rows} facts from {exchanges} exchanges");
    if !is_current {
        let file = options.file.display();
        println!("{file} is not what the recordings say: run this command with --write");
    }
    Ok(exit_code(is_current))
}

fn distilled(corpora: &[PathBuf]) -> Result<Facts, CorpusError> {
    let mut facts = Facts::new();
    for dir in corpora {
        for name in corpus::names(dir)? {
            table::add(&mut facts, &corpus::load(dir, &name)?);
        }
    }
    table::settle(&mut facts);
    Ok(facts)
}

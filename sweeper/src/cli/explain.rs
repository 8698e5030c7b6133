//! `explain`: tells what will happen to one blob, when and why.

use anyhow::Result;
use clap::Args;
use smalt_sweeper::{Class, Explained, Outcome, Target};
use smalt_worker::exit;

use super::common::{self, Common, print_json};
use crate::show::printable;

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Blob, as CONTAINER/BLOB or URL.
    #[arg(value_name = "URL|CONTAINER/BLOB")]
    blob: Target,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
}

/// Prints the explanation. Returns exit code 1 for a blob that needs attention.
pub(crate) async fn explain(args: &ExplainArgs) -> Result<u8> {
    let (sweeper, _) = common::sweeper(&args.common)?;
    let told = sweeper.explain(&args.blob).await?;
    match args.json {
        true => print_json(&told)?,
        false => print!("{}", text(&told)),
    }
    Ok(match told.outcome.class() {
        Class::Failed => exit::FAILED_ITEMS,
        Class::Done | Class::Kept => exit::OK,
    })
}

pub(super) fn text(told: &Explained) -> String {
    let mut lines = vec![told.url.clone(), format!("  {}", verdict(told))];
    let deciding = told.deciding();
    for check in &told.checks {
        let mark = match check.keeps {
            Some(_) if deciding == Some(check) => '!',
            Some(_) => '*',
            None => ' ',
        };
        lines.push(format!("{mark} {:<13} {}", check.check, check.found));
    }
    let lines = lines.iter();
    lines.map(|line| printable(&format!("{line}\n"))).collect()
}

/// Returns the summary line, for example "will be deleted by the sweep of ...".
fn verdict(told: &Explained) -> String {
    let at = match (&told.next_mark, told.swept) {
        (Some(mark), true) => format!(" by the sweep of {mark}"),
        _ => " as soon as its container is swept".to_owned(),
    };
    let to = told.destination.as_deref().unwrap_or_default();
    match told.outcome {
        Outcome::Deleted => format!("will be deleted{at}"),
        Outcome::Moved => format!("will be moved to {to}{at}"),
        Outcome::NotDue => match &told.goes_from {
            Some(from) => format!("stays until {from}, then is removed{at}"),
            None => "stays forever: it is never due".to_owned(),
        },
        other => format!("stays: {other}"),
    }
}

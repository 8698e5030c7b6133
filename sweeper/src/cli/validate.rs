//! `validate`: shows the effective configuration, the source of each value, and every error in it.

use anyhow::Result;
use clap::Args;
use smalt_sleeve::redact;
use smalt_sweeper::inspect::ProbeResult;
use smalt_sweeper::settings::{self, SettingsError};
use smalt_worker::exit;
use smalt_worker::settings::Setting;

use super::common::{self, Common, print_json};
use crate::connect;
use crate::show::printable;

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Also query each container and the state document. Writes nothing.
    #[arg(long)]
    connect: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    common: Common,
}

/// Shows the configuration. Connects to nothing without `--connect`.
pub(crate) async fn validate(args: &ValidateArgs) -> Result<u8> {
    common::log(&args.common)?;
    let (config, flags) = (args.common.config.as_deref(), args.common.flags());
    let (settings, values) = match connect::effective(config, flags) {
        Ok(read) => read,
        Err(error) => return refused(error, &connect::origin(config)),
    };
    let mut findings = connect::faults(&settings);
    let answers = match args.connect && findings.is_empty() {
        true => connect::sweeper(&settings)?.probe().await?,
        false => Vec::new(),
    };
    findings.extend(settings::findings(&settings.sweeper));
    match args.json {
        true => {
            let all = serde_json::json!({
                "settings": values,
                "findings": findings,
                "answers": answers,
            });
            print_json(&all)?;
        }
        false => print!("{}", text(&values, &answers)),
    }
    if settings.sweeper.containers.is_empty() {
        tracing::info!("no containers are configured; the state document lists them");
    }
    say(&findings, "");
    match findings.is_empty() {
        true => Ok(worst(&answers)),
        false => Ok(exit::USAGE),
    }
}

/// Prints every fault of invalid settings; returns any other error unchanged.
fn refused(error: anyhow::Error, origin: &str) -> Result<u8> {
    let faults = match error.downcast_ref::<SettingsError>() {
        Some(wrong) => &wrong.faults,
        None => return Err(error),
    };
    say(faults, &format!("{origin}: "));
    Ok(exit::USAGE)
}

fn say(faults: &[String], origin: &str) {
    for fault in faults {
        eprintln!("error: {}", printable(&redact(&format!("{origin}{fault}"))));
    }
}

pub(super) fn text(values: &[Setting], answers: &[ProbeResult]) -> String {
    let width = values.iter().map(|v| v.key.len()).max().unwrap_or(0);
    let value = |v: &Setting| format!("{:<width$}  {:<28}  {}\n", v.key, v.value, v.source);
    let answer = |a: &ProbeResult| {
        let said = a.error.as_deref().or(a.note.as_deref());
        let said = said.unwrap_or("answers");
        format!("{}: {said}\n", a.place)
    };
    let values = values.iter().map(value);
    let lines = values.chain(answers.iter().map(answer));
    lines.map(|line| printable(&line)).collect()
}

fn worst(answers: &[ProbeResult]) -> u8 {
    let failed: Vec<u8> = answers.iter().filter_map(|a| a.exit_code).collect();
    match failed.first() {
        None => exit::OK,
        Some(code) if failed.iter().all(|other| other == code) => *code,
        Some(_) => exit::FAILED_ITEMS,
    }
}

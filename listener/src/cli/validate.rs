//! `validate`: prints the settings of `run` with the source of each, or all problems.

use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};
use serde_json::json;
use smalt_listener::config::connection::{NamedBy, connection};
use smalt_listener::config::effective::settings;
use smalt_listener::config::file::ConfigFile;
use smalt_protocol::service::Service;
use smalt_protocol::terminal::one_line;
use smalt_worker::process::Process;
use smalt_worker::settings::{Setting, Source};
use smalt_worker::span;

use super::dry_run::{self, Mode};
use super::flags::ListenFlags;
use super::on::On;
use super::plan::{self, Plan};
use super::{Common, exit};

#[derive(Args, Clone)]
pub(crate) struct ValidateFlags {
    #[command(flatten)]
    listen: ListenFlags,
    /// Also check each queue and address, as `run --dry-run` does.
    #[arg(long)]
    connect: bool,
    /// Print one JSON object in place of text.
    #[arg(long)]
    json: bool,
}

pub(crate) async fn validate(
    common: &Common,
    flags: &ValidateFlags,
    matches: &ArgMatches,
) -> anyhow::Result<ExitCode> {
    let file = common.file()?;
    let plan = plan::make(&file, &flags.listen);
    let account = account(common, &file);
    let (plan, account) = match (plan, account) {
        (Ok(plan), Ok(account)) => (plan, account),
        (plan, account) => {
            let problems = plan.err().into_iter().flatten().chain(account.err());
            return Ok(exit::all(&problems.collect::<Vec<_>>()));
        }
    };
    let given = |flag: &str| given(matches, flag);
    let variable = |flag: &str| match given(flag) {
        Some(Source::Environment(name)) => Some(name),
        _ => None,
    };
    let process = process(&plan, &file, account, &given);
    match flags.json {
        true => println!("{}", as_json(&plan, &process, &variable)),
        false => print!("{}", as_text(&plan, &process, &variable)),
    }
    if flags.connect {
        return dry_run::look(common, &file, &plan, Mode::Run).await;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the account without its secrets.
pub(super) fn account(common: &Common, file: &ConfigFile) -> anyhow::Result<Setting> {
    let given = connection(common.connection_layer(), file.storage.clone(), &Process)?;
    given.access.account(Service::Queue, &Process)?;
    Ok(Setting {
        key: "storage".to_owned(),
        value: given.masked(&Process)?,
        source: match given.named_by {
            NamedBy::Flag => Source::Flag,
            NamedBy::Environment => {
                Source::Environment("AZURE_STORAGE_CONNECTION_STRING".to_owned())
            }
            NamedBy::File => Source::File,
        },
    })
}

/// Returns the source of a flag's value; `None` if there is no such flag or it is not given.
fn given(matches: &ArgMatches, flag: &str) -> Option<Source> {
    let (name, matches) = matches.subcommand()?;
    let command = ValidateFlags::augment_args(Command::new(name.to_owned()));
    let arg = command.get_arguments().find(|arg| arg.get_id() == flag)?;
    match matches.value_source(flag)? {
        ValueSource::EnvVariable => {
            let variable = arg.get_env()?.to_string_lossy();
            Some(Source::Environment(variable.into_owned()))
        }
        ValueSource::CommandLine => Some(Source::Flag),
        _ => None,
    }
}

fn process(
    plan: &Plan,
    file: &ConfigFile,
    account: Setting,
    given: &dyn Fn(&str) -> Option<Source>,
) -> Vec<Setting> {
    let in_file = &file.listener;
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let grace = plan.queues.first().map(|queue| queue.config.grace);
    let grace = grace.map_or_else(String::new, span::format);
    let price = shown(&plan.price.map(|price| price.to_string()));
    let cost = plan.budget.map_or(0.0, |budget| budget.max_cost_per_day);
    let cost = cost.to_string();
    let token = plan.token.as_ref().map_or("-", |_| "***").to_owned();
    let rate = plan.account_rate.to_string();
    let rows = [
        ("worker", in_file.worker.is_some(), plan.worker.clone()),
        ("grace", in_file.grace.is_some(), grace),
        ("health", in_file.health.is_some(), shown(&plan.health)),
        ("metrics", in_file.metrics.is_some(), shown(&plan.metrics)),
        ("notify_token", in_file.notify_token.is_some(), token),
        ("account_rate", in_file.account_rate.is_some(), rate),
        ("price", in_file.price.is_some(), price),
        ("max_cost_per_day", in_file.max_cost_per_day.is_some(), cost),
    ];
    let rows = rows.into_iter().map(|(key, by_file, value)| {
        let flag = if key == "worker" { "worker_id" } else { key };
        let below = if by_file {
            Source::File
        } else {
            Source::Default
        };
        Setting {
            key: key.to_owned(),
            value,
            source: given(flag).unwrap_or(below),
        }
    });
    std::iter::once(account).chain(rows).collect()
}

fn of_queue(queue: &plan::Queue, variable: &dyn Fn(&str) -> Option<String>) -> Vec<Setting> {
    settings(&queue.config, &queue.merged, &queue.layers, variable)
}

pub(super) fn row(s: &Setting) -> String {
    let row = format!("  {:<22}{:<28}  {}", s.key, s.value, s.source);
    format!("{}\n", one_line(&row))
}

fn as_text(plan: &Plan, process: &[Setting], variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut text: String = process.iter().map(row).collect();
    for queue in &plan.queues {
        text.push_str(&format!("queue {}\n", queue.config.queue));
        let settings = of_queue(queue, variable);
        text.extend(settings.iter().map(row));
    }
    for (event, settings) in plan.on.iter().map(On::shown) {
        text.push_str(&format!(
            "{}\n",
            one_line(&format!("on {event}: {settings}"))
        ));
    }
    text
}

fn as_json(
    plan: &Plan,
    process: &[Setting],
    variable: &dyn Fn(&str) -> Option<String>,
) -> serde_json::Value {
    let object = |settings: &[Setting]| {
        let entry = |s: &Setting| {
            let value = json!({ "value": s.value, "source": s.source.to_string() });
            (s.key.clone(), value)
        };
        serde_json::Value::Object(settings.iter().map(entry).collect())
    };
    let queues = plan.queues.iter().map(|queue| {
        let settings = of_queue(queue, variable);
        json!({ "queue": queue.config.queue, "settings": object(&settings) })
    });
    let on = plan.on.iter().map(|on| {
        let (event, settings) = on.shown();
        json!({ "event": event, "settings": settings })
    });
    json!({
        "process": object(process),
        "queues": queues.collect::<Vec<_>>(),
        "on": on.collect::<Vec<_>>(),
    })
}

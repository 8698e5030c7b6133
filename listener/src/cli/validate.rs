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

/// Prints the settings, or all problems.
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
    let variable = |flag: &str| variable(matches, flag);
    let process = process(&plan, &file, flags, account, &variable);
    match flags.json {
        true => println!("{}", as_json(&plan, &process, flags, &variable)),
        false => print!("{}", as_text(&plan, &process, flags, &variable)),
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

/// Returns the environment variable that gave a flag its value, if one did.
fn variable(matches: &ArgMatches, flag: &str) -> Option<String> {
    let (name, matches) = matches.subcommand()?;
    let command = ValidateFlags::augment_args(Command::new(name.to_owned()));
    let arg = command.get_arguments().find(|arg| arg.get_id() == flag)?;
    let by_variable = matches.value_source(flag) == Some(ValueSource::EnvVariable);
    let variable = arg.get_env().filter(|_| by_variable)?;
    Some(variable.to_string_lossy().into_owned())
}

/// Whether a flag sets the value, and whether the file does.
type Said = (bool, bool);

fn process(
    plan: &Plan,
    file: &ConfigFile,
    flags: &ValidateFlags,
    account: Setting,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<Setting> {
    let (scale, look) = (&flags.listen.scale, &flags.listen.look);
    let in_file = &file.listener;
    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let grace = plan.queues.first().map(|queue| queue.config.grace);
    let grace = grace.map_or_else(String::new, span::format);
    let price = plan.price.map_or_else(|| "-".to_owned(), |p| p.to_string());
    let max_cost = plan.budget.map_or(0.0, |budget| budget.max_cost_per_day);
    let token = plan.token.as_ref().map_or("-", |_| "***").to_owned();
    let worker = (scale.worker_id.is_some(), in_file.worker.is_some());
    let of_grace = (scale.grace.is_some(), in_file.grace.is_some());
    let health = (look.health.is_some(), in_file.health.is_some());
    let metrics = (look.metrics.is_some(), in_file.metrics.is_some());
    let of_price = (scale.price.is_some(), in_file.price.is_some());
    let of_cost = (
        scale.max_cost_per_day.is_some(),
        in_file.max_cost_per_day.is_some(),
    );
    let by_file = |is_set: bool| (false, is_set);
    let rate = plan.account_rate.to_string();
    let rows: [(&'static str, &str, String, Said); 8] = [
        ("worker", "worker_id", plan.worker.clone(), worker),
        ("grace", "grace", grace, of_grace),
        ("health", "health", shown(&plan.health), health),
        ("metrics", "metrics", shown(&plan.metrics), metrics),
        (
            "notify_token",
            "",
            token,
            by_file(in_file.notify_token.is_some()),
        ),
        (
            "account_rate",
            "",
            rate,
            by_file(in_file.account_rate.is_some()),
        ),
        ("price", "price", price, of_price),
        (
            "max_cost_per_day",
            "max_cost_per_day",
            max_cost.to_string(),
            of_cost,
        ),
    ];
    let rows = rows.into_iter().map(|(key, flag, value, said)| Setting {
        key: key.to_owned(),
        value,
        source: match said {
            (true, _) => variable(flag).map_or(Source::Flag, Source::Environment),
            (false, true) => Source::File,
            (false, false) => Source::Default,
        },
    });
    std::iter::once(account).chain(rows).collect()
}

fn of_queue(
    queue: &plan::Queue,
    flags: &ValidateFlags,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<Setting> {
    let by_flags = flags.listen.layer();
    settings(
        &queue.config,
        &queue.merged,
        &by_flags,
        &queue.below,
        variable,
    )
}

/// Formats one setting for people.
pub(super) fn row(s: &Setting) -> String {
    let row = format!("  {:<22}{:<28}  {}", s.key, s.value, s.source);
    format!("{}\n", one_line(&row))
}

fn as_text(
    plan: &Plan,
    process: &[Setting],
    flags: &ValidateFlags,
    variable: &dyn Fn(&str) -> Option<String>,
) -> String {
    let mut text: String = process.iter().map(row).collect();
    for queue in &plan.queues {
        text.push_str(&format!("queue {}\n", queue.config.queue));
        let settings = of_queue(queue, flags, variable);
        text.extend(settings.iter().map(row));
    }
    text
}

fn as_json(
    plan: &Plan,
    process: &[Setting],
    flags: &ValidateFlags,
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
        let settings = of_queue(queue, flags, variable);
        json!({ "queue": queue.config.queue, "settings": object(&settings) })
    });
    json!({ "process": object(process), "queues": queues.collect::<Vec<_>>() })
}

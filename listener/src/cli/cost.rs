//! `cost`: estimates the cost of polling, the capacity of a queue, and the monthly cost of a
//! running listener.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use smalt_listener::config::file::TRIGGER_EVERY;
use smalt_listener::rules::cost::{
    Calendar, Capacity, DAYS_PER_MONTH, EXAMPLE_PRICE_PER_10K, IDLE_HOURS, Polling, Push, cost,
    message_requests, sentinel_requests,
};
use smalt_worker::span;

use super::web;

/// The listener's default longest idle interval, shown for comparison.
const LONG_INTERVAL_S: f64 = 30.0;
/// Interval between two attempts to acquire a sentinel's lease.
const LEASE_EVERY_S: f64 = 30.0;
/// The listener's default interval between two looks of the watchdog.
const WATCHDOG_S: f64 = 60.0;
const LARGEST_BATCH: f64 = 32.0;
const DAY_S: f64 = 86_400.0;

pub(crate) const EXAMPLES: &str = "\
Examples:
  200 tasks that poll once a second, 22 idle hours a day:
    smalt-listener cost --tasks 200
  With your price, 22 working days and 8 idle ones, and a million messages a month:
    smalt-listener cost --tasks 8 --interval 30s --days 22 --idle-days 8 --messages 1000000 \\
      --price 0.004
  A month at the rate of a running listener since its start:
    smalt-listener cost --from-metrics http://127.0.0.1:9100/metrics
  How many queues for 3,000 messages a second:
    smalt-listener cost --target 3000 --rate 2000";

#[derive(Args, Clone)]
pub(crate) struct CostFlags {
    /// Tasks that poll, summed over all processes.
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    tasks: f64,
    /// Interval between two polls of a task, for example 30s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::parse)]
    interval: Duration,
    /// Idle hours of a working day, from 0 to 24.
    #[arg(long, value_name = "H", default_value_t = IDLE_HOURS, value_parser = hours)]
    hours: f64,
    /// Working days per month.
    #[arg(long, value_name = "N", default_value_t = DAYS_PER_MONTH, value_parser = amount)]
    days: f64,
    /// Additional days per month without any work.
    #[arg(long, value_name = "N", default_value = "0", value_parser = amount)]
    idle_days: f64,
    /// Price of 10,000 requests. The default is an example from 2012, not a quotation.
    #[arg(long, value_name = "PRICE", default_value_t = EXAMPLE_PRICE_PER_10K)]
    #[arg(value_parser = amount, env = "LISTENER_PRICE")]
    price: f64,
    /// Messages that are put and processed in a month.
    #[arg(long, value_name = "N", default_value = "0", value_parser = amount)]
    messages: f64,
    /// Events that senders publish in a month; compares push with polling.
    #[arg(long, value_name = "N", default_value = "0", value_parser = amount)]
    events: f64,
    /// Processes that get every event.
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    processes: f64,
    /// Lock renewals per message.
    #[arg(long, value_name = "N", default_value = "0", value_parser = amount)]
    renewals: f64,
    /// Requests per second that the service accepts for one queue.
    #[arg(long, value_name = "N", default_value = "500", value_parser = positive)]
    rate: f64,
    /// Messages per second to process; prints how many queues that needs.
    #[arg(long, value_name = "N", value_parser = positive)]
    target: Option<f64>,
    /// Estimate from a running listener: the URL of its /metrics.
    #[arg(long = "from-metrics", visible_alias = "metrics", value_name = "URL")]
    from_metrics: Option<String>,
    /// Estimate from a run's report: the value of `requests` in its log line `finished`.
    #[arg(long, value_name = "N", value_parser = amount, requires = "run_time")]
    requests: Option<f64>,
    /// Duration of that run, for example 10m.
    #[arg(long, value_name = "TIME", value_parser = span::parse, requires = "requests")]
    run_time: Option<Duration>,
    /// Print one JSON object in place of a table.
    #[arg(long)]
    json: bool,
}

fn amount(text: &str) -> Result<f64, String> {
    match text.replace(['_', ','], "").parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err("must be a number of 0 or more".to_owned()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    amount(text).and_then(|number| match number {
        0.0 => Err("must be greater than 0".to_owned()),
        number => Ok(number),
    })
}

fn hours(text: &str) -> Result<f64, String> {
    amount(text).and_then(|number| match number {
        0.0..=24.0 => Ok(number),
        _ => Err("must be at most 24".to_owned()),
    })
}

#[derive(Debug, PartialEq)]
struct CostRow {
    what: String,
    /// Requests per month.
    requests: f64,
}

/// The counts of a run, from which a month is estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RunCounts {
    requests: f64,
    seconds: f64,
}

pub(crate) async fn print(flags: &CostFlags) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        !flags.interval.is_zero(),
        "--interval must be greater than 0: a task that never pauses has no idle cost"
    );
    let seen = match (&flags.from_metrics, flags.requests, flags.run_time) {
        (Some(url), ..) => Some(live(&web::get(url).await?).context(url.clone())?),
        (None, Some(requests), Some(time)) => Some(RunCounts {
            requests,
            seconds: time.as_secs_f64(),
        }),
        _ => None,
    };
    let seen = seen.map(|seen| monthly(seen, flags)).transpose()?;
    let lines = lines(flags, seen);
    if flags.json {
        println!("{}", as_json(flags, &lines));
    } else {
        print!("{}", as_text(flags, &lines));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the requests since a listener's start from the text of its metrics.
fn live(metrics: &str) -> anyhow::Result<RunCounts> {
    let sum = |name: &str| {
        let lines = metrics.lines().filter(|line| !line.starts_with('#'));
        let values = lines.filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let found = series.split('{').next() == Some(name);
            found.then(|| value.parse::<f64>().ok())?
        });
        values.fold(None, |sum: Option<f64>, value| {
            Some(sum.unwrap_or(0.0) + value)
        })
    };
    let requests = sum("listener_tx_total");
    let seconds = sum("listener_uptime_s");
    match (requests, seconds) {
        (Some(requests), Some(seconds)) => Ok(RunCounts { requests, seconds }),
        _ => anyhow::bail!("not the metrics of a listener; give the URL of its /metrics"),
    }
}

/// Returns the requests of a month at the rate of the run.
fn monthly(seen: RunCounts, flags: &CostFlags) -> anyhow::Result<f64> {
    anyhow::ensure!(seen.seconds > 0.0, "the run time is still 0");
    Ok(seen.requests / seen.seconds * DAY_S * (flags.days + flags.idle_days))
}

fn lines(flags: &CostFlags, seen: Option<f64>) -> Vec<CostRow> {
    let calendar = Calendar {
        working_days: flags.days,
        idle_hours: flags.hours,
        idle_days: flags.idle_days,
    };
    let hours = calendar.hours();
    let (tasks, interval_s) = (flags.tasks, flags.interval.as_secs_f64());
    let polling = |interval_s, requests_per_poll| Polling {
        tasks,
        interval_s,
        requests_per_poll,
    };
    let line = |what: String, requests| CostRow { what, requests };
    let polls = |interval_s| {
        line(
            format!("{}, a poll every {interval_s} s", counted(tasks, "task")),
            polling(interval_s, 1.0).requests(hours),
        )
    };
    let mut lines = vec![
        polls(interval_s),
        line(
            "  with a depth query at each poll".to_owned(),
            polling(interval_s, 2.0).requests(hours),
        ),
    ];
    if interval_s < LONG_INTERVAL_S {
        lines.push(polls(LONG_INTERVAL_S));
    }
    lines.push(line(
        format!("one sentinel every {interval_s} s, {tasks} at its lease every 30 s"),
        sentinel_requests(interval_s, tasks, LEASE_EVERY_S, hours),
    ));
    if flags.events > 0.0 {
        let (events, processes) = (
            grouped(flags.events),
            counted(flags.processes, "subscriber"),
        );
        let push = |every_s| Push {
            processes: flags.processes,
            every_s,
            watchdog_s: WATCHDOG_S,
        };
        for (every_s, how) in [
            (Some(TRIGGER_EVERY.as_secs_f64()), "a topic read every 1 s"),
            (Some(LONG_INTERVAL_S), "a topic read every 30 s"),
            (None, "webhooks"),
        ] {
            lines.push(line(
                format!("{events} events to {processes}, {how}"),
                push(every_s).requests(flags.events, hours),
            ));
        }
    }
    if flags.messages > 0.0 {
        for batch in [1.0, LARGEST_BATCH] {
            lines.push(line(
                format!("{} messages, {batch} per get", grouped(flags.messages)),
                message_requests(flags.messages, batch, flags.renewals),
            ));
        }
    }
    lines.extend(seen.map(|month| line("at the observed rate of the listener".to_owned(), month)));
    lines
}

/// Returns messages per get and the capacity, for single gets and for the largest batch.
fn capacities(flags: &CostFlags) -> [(f64, Capacity); 2] {
    [1.0, LARGEST_BATCH].map(|batch| {
        let capacity = Capacity {
            requests_per_s: flags.rate,
            batch,
            renewals: flags.renewals,
        };
        (batch, capacity)
    })
}

fn as_text(flags: &CostFlags, lines: &[CostRow]) -> String {
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    let _ = writeln!(
        text,
        "{} per 10,000 requests{}; {} days with {} idle hours{}\n",
        flags.price,
        match flags.price == EXAMPLE_PRICE_PER_10K {
            true => " (example price; set yours with --price)",
            false => "",
        },
        flags.days,
        flags.hours,
        match flags.idle_days > 0.0 {
            true => format!(", {} idle days", flags.idle_days),
            false => String::new(),
        },
    );
    let _ = writeln!(
        text,
        "{:<52}{:>16}{:>12}",
        "", "requests/month", "cost/month"
    );
    for line in lines {
        let _ = writeln!(
            text,
            "{:<52}{:>16}{:>12.2}",
            line.what,
            grouped(line.requests),
            cost(line.requests, flags.price)
        );
    }
    let _ = writeln!(
        text,
        "\n{:<52}{:>16}{:>12}",
        format!("one queue at {} requests/s", flags.rate),
        "consumed/s",
        "passed/s"
    );
    for (batch, capacity) in capacities(flags) {
        let _ = writeln!(
            text,
            "{:<52}{:>16.1}{:>12.1}",
            format!("{batch} per get, {} renewals", flags.renewals),
            capacity.consumed_per_s(),
            capacity.passed_per_s()
        );
        if let Some(target) = flags.target {
            let queues = capacity.partitions(target);
            let queues = counted(queues, "queue");
            let _ = writeln!(text, "  for {target} messages/s: {queues}");
        }
    }
    text
}

fn as_json(flags: &CostFlags, lines: &[CostRow]) -> serde_json::Value {
    let lines: Vec<_> = lines
        .iter()
        .map(|line| {
            json!({
                "what": line.what.trim(),
                "requests_per_month": line.requests,
                "cost_per_month": cost(line.requests, flags.price),
            })
        })
        .collect();
    let capacities = capacities(flags).map(|(batch, capacity)| {
        json!({
            "messages_per_get": batch,
            "consumed_per_s": capacity.consumed_per_s(),
            "passed_per_s": capacity.passed_per_s(),
            "queues_for_target": flags.target.map(|target| capacity.partitions(target)),
        })
    });
    json!({ "price_per_10k": flags.price, "polling": lines, "capacity": capacities })
}

fn counted(number: f64, thing: &str) -> String {
    let plural = if number == 1.0 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Formats a whole number with commas between the thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        flags: CostFlags,
    }

    fn flags(words: &[&str]) -> CostFlags {
        let words = ["cost"].iter().chain(words);
        Alone::try_parse_from(words).unwrap().flags
    }

    /// DL1: the table shows 475.20, not the document's 457.20.
    #[test]
    fn dl1_the_table_shows_the_right_sums() {
        let flags = flags(&["--tasks", "200", "--idle-days", "0"]);
        let text = as_text(&flags, &lines(&flags, None));
        for sum in ["475.20", "950.40", "15.84", "18.22", "250.0", "246.2"] {
            assert!(text.contains(sum), "{sum} in\n{text}");
        }
        assert!(!text.contains("457.20"));
        assert!(text.contains("475,200,000"), "{text}");
    }

    #[test]
    fn metrics_of_a_listener_are_summed_over_its_queues() {
        let metrics = "# HELP listener_tx_total x\n\
                       listener_tx_total{queue=\"a\",op=\"Get Messages\"} 100\n\
                       listener_tx_total{queue=\"b\",op=\"Delete Message\"} 20\n\
                       listener_uptime_s 60\n";
        let seen = live(metrics).unwrap();
        assert_eq!((seen.requests, seen.seconds), (120.0, 60.0));
        assert!((monthly(seen, &flags(&[])).unwrap() - 120.0 * 1440.0 * 30.0).abs() < 1e-6);
        assert!(live("other_total 3\n").is_err());
    }

    #[test]
    fn invalid_numbers_are_rejected() {
        for words in [
            ["--tasks", "-1"],
            ["--hours", "25"],
            ["--price", "NaN"],
            ["--rate", "0"],
            ["--requests", "10"],
        ] {
            let words = ["cost"].iter().chain(&words);
            assert!(Alone::try_parse_from(words).is_err());
        }
    }

    #[test]
    fn thousands_are_separated() {
        for (number, text) in [(0.0, "0"), (999.0, "999"), (1000.0, "1,000")] {
            assert_eq!(grouped(number), text);
        }
        assert_eq!(grouped(1_234_567.4), "1,234,567");
    }
}

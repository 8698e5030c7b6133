//! The effective settings of a queue with the source of each, as `validate` shows them.

use smalt_worker::settings::{Layers, Setting, Source};
use smalt_worker::span::{self, Span};

use super::ListenerConfig;
use super::file::{QueueLayer, TRIGGER_EVERY};
use super::profile::Profile;
use crate::handler::exec::CommandLine;
use crate::partition::PartitionSettings;

struct Row {
    key: &'static str,
    /// Name of the flag without dashes; empty if there is none.
    flag: &'static str,
    value: fn(&ListenerConfig, &QueueLayer) -> String,
}

macro_rules! rows {
    ($($key:literal, $flag:literal, $value:expr;)*) => {
        &[$(Row { key: $key, flag: $flag, value: $value }),*]
    };
}

/// Every key of `[[listener.queue]]`.
const ROWS: &[Row] = rows![
    "profile", "profile", |_, l| l.profile.unwrap_or_default().to_string();
    "visibility", "visibility", |c, _| span::format(c.visibility);
    "renew", "", |c, _| c.renew.to_string();
    "max_dequeue", "max_dequeue", |c, _| c.max_dequeue.to_string();
    "retry", "retry", |c, _| list(&c.retry);
    "idle.min", "", |c, _| span::format(c.idle.min);
    "idle.max", "idle_max", |c, _| span::format(c.idle.max);
    "tasks.min", "tasks_min", |c, _| c.tasks.min.to_string();
    "tasks.max", "tasks_max", |c, _| c.tasks.max.to_string();
    "slots", "slots", |c, _| c.slots.to_string();
    "idle_tasks", "idle_tasks", |c, _| match c.sentinel {
            Some(_) => "sentinel".to_owned(),
            None => c.idle_tasks.to_string(),
        };
    "sentinel.container", "", |c, _| c.sentinel.as_ref().map_or_else(none, |s| s.container.clone());
    "sentinel.lease", "", |c, _| c.sentinel.as_ref().map_or_else(none, |s| span::format(s.lease));
    "watchdog", "", |c, _| span::format(c.watchdog);
    "policy", "policy", |c, _| word(&c.policy);
    "drain_target", "", |c, _| span::format(c.drain_target);
    "cooldown", "", |c, _| span::format(c.cooldown);
    "rate", "rate", |c, _| c.rate_per_s.to_string();
    "poison.queue", "poison_queue", |c, _| c.poison_queue();
    "encoding", "encoding", |c, _| word(&c.encoding);
    "create_queue", "create_queue", |c, _| c.create_queue.to_string();
    "call_timeout", "", |c, _| span::format(c.call_timeout);
    "offload.container", "", |c, _| c.offload.as_ref().map_or_else(none, |o| o.container.clone());
    "offload.above", "",
        |c, _| c.offload.as_ref().map_or_else(none, |o| format!("{}B", o.above_bytes));
    "offload.enc", "", |c, _| c.offload.as_ref().map_or_else(none, |o| word(&o.compression));
    "offload.margin", "", |c, _| c.offload.as_ref().map_or_else(none, |o| span::format(o.margin));
    "offload.max", "",
        |c, _| c.offload.as_ref().map_or_else(none, |o| format!("{}B", o.payload_bytes_max));
    "partitions.count", "", |_, l| l.partitions.count.map_or_else(none, |count| count.to_string());
    "partitions.container", "", |_, l| set(l, |set| set.container);
    "partitions.max_age", "", |_, l| set(l, |set| span::format(set.max_age));
    "trigger.queue", "trigger_queue", |_, l| l.trigger.queue.clone().unwrap_or_else(none);
    "trigger.every", "",
        |_, l| span::format(l.trigger.every.map_or(TRIGGER_EVERY, |Span(every)| every));
    "handler.exec", "exec", |_, l| l.handler.exec.as_ref().map_or_else(none, command);
    "handler.env", "exec_env",
        |_, l| l.handler.env.as_ref().map_or_else(none, |names| names.join(","));
    "handler.http", "http", |_, l| l.handler.http.as_deref().map_or_else(none, without_secrets);
    "handler.timeout", "timeout", |c, _| span::format(c.handler_timeout);
    "handler.content_type", "", |_, l| l.handler.content_type.clone().unwrap_or_else(none);
    "handler.on_4xx", "", |_, l| word(&l.handler.on_4xx.unwrap_or_default());
];

fn none() -> String {
    "-".to_owned()
}

/// Returns a setting of a partitioned queue, or `-` for any other queue.
fn set(layer: &QueueLayer, value: impl Fn(PartitionSettings) -> String) -> String {
    let set = layer
        .partitions
        .settings(layer.name.as_deref().unwrap_or_default());
    set.ok().flatten().map_or_else(none, value)
}

fn word(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}").to_ascii_lowercase()
}

fn list(delays: &[std::time::Duration]) -> String {
    let delays: Vec<String> = delays.iter().map(|delay| span::format(*delay)).collect();
    delays.join(",")
}

fn command(line: &CommandLine) -> String {
    match line {
        CommandLine::Shell(line) => line.clone(),
        CommandLine::Argv(words) => words.join(" "),
    }
}

/// Masks the parts of a URL that may hold secrets: user information and query.
fn without_secrets(url: &str) -> String {
    let (bare, query) = match url.split_once('?') {
        Some((bare, _)) => (bare, "?***"),
        None => (url, ""),
    };
    let (scheme, rest) = bare.split_once("://").unwrap_or(("", bare));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (mark, host) = match authority.rsplit_once('@') {
        Some((_, host)) => ("***@", host),
        None => ("", authority),
    };
    let slash = if rest.contains('/') { "/" } else { "" };
    format!("{scheme}://{mark}{host}{slash}{path}{query}")
}

/// Returns every setting of a queue with its source. `merged` and `layers` are those of
/// [`merge`](super::file::merge), and `config` is made of them; `variable` returns the environment
/// variable that gave a flag its value.
pub fn settings(
    config: &ListenerConfig,
    merged: &QueueLayer,
    layers: &Layers,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<Setting> {
    let unsaid = unsaid(merged.profile.unwrap_or_default(), &config.queue);
    let row = |row: &Row| Setting {
        key: row.key.to_owned(),
        value: (row.value)(config, merged),
        source: match layers.source(row.key) {
            Source::Flag => variable(row.flag).map_or(Source::Flag, Source::Environment),
            Source::Default => unsaid(row),
            source => source,
        },
    };
    ROWS.iter().map(row).collect()
}

/// Returns the source of a value that neither flags nor file set: the profile if it changes the
/// default.
fn unsaid(profile: Profile, queue: &str) -> impl Fn(&Row) -> Source {
    let (preset, default) = (profile.config(queue), ListenerConfig::new(queue));
    let nothing = QueueLayer::default();
    move |row| {
        let value = |config| (row.value)(config, &nothing);
        match value(&preset) == value(&default) {
            true => Source::Default,
            false => Source::Profile(profile.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::merge;

    /// Each key, a file that sets it to another value than the default (a profile would change
    /// others), and the value as shown.
    const FILE: &str = r#"
profile | profile = "default" | default
visibility | visibility = "90s" | 1m30s
renew | renew = false | false
max_dequeue | max_dequeue = 7 | 7
retry | retry = ["1s", "2m"] | 1s,2m
idle.min | idle = { min = "1s" } | 1s
idle.max | idle = { max = "1m" } | 1m
tasks.min | tasks = { min = 2 } | 2
tasks.max | tasks = { max = 9 } | 9
slots | slots = 4 | 4
idle_tasks | idle_tasks = 0 | 0
sentinel.container | sentinel = { container = "posts" }; idle_tasks = "sentinel" | posts
sentinel.lease | sentinel = { lease = "20s" }; idle_tasks = "sentinel" | 20s
watchdog | watchdog = "5m" | 5m
policy | policy = "aimd" | aimd
drain_target | drain_target = "3s" | 3s
cooldown | cooldown = "20s" | 20s
rate | rate = 100 | 100
poison.queue | poison = { queue = "dead" } | dead
encoding | encoding = "base64" | base64
create_queue | create_queue = true | true
call_timeout | call_timeout = "5s" | 5s
offload.container | offload = { container = "big" } | big
offload.above | offload = { container = "big", above = "9B" } | 9B
offload.enc | offload = { container = "big", enc = "gzip" } | gzip
offload.margin | offload = { container = "big", margin = "2h" } | 2h
offload.max | offload = { container = "big", max = "9B" } | 9B
partitions.count | partitions = 3 | 3
partitions.container | partitions = { count = 2, container = "ops" } | ops
partitions.max_age | partitions = { count = 2, max_age = "30s" } | 30s
trigger.queue | trigger = { queue = "events" } | events
trigger.every | trigger = { every = "2s" } | 2s
handler.exec | handler = { exec = ["a", "b"] } | a b
handler.env | handler = { env = ["A_URL", "B"] } | A_URL,B
handler.http | handler = { http = "http://u:p@h/x?sig=s" } | http://***@h/x?***
handler.timeout | handler = { timeout = "1m" } | 1m
handler.content_type | handler = { content_type = "text/plain" } | text/plain
handler.on_4xx | handler = { on_4xx = "retry" } | retry
"#;

    fn of(flags: &QueueLayer, file: &QueueLayer) -> Vec<Setting> {
        let (merged, layers) = merge(flags, file).unwrap();
        let config = merged.settings("w").unwrap();
        let variable = |flag: &str| (flag == "slots").then(|| "LISTENER_SLOTS".to_owned());
        settings(&config, &merged, &layers, &variable)
    }

    fn names(toml: &str, key: &str) -> bool {
        match key {
            "offload.container" => toml.contains("container = \"big\""),
            "idle_tasks" => toml.contains("idle_tasks = "),
            "partitions.count" => toml.contains("count = 2"),
            _ => false,
        }
    }

    /// A new setting does not compile here until it has its row.
    #[test]
    fn every_setting_has_a_row() {
        let QueueLayer {
            name: _,
            profile: _,
            visibility: _,
            renew: _,
            max_dequeue: _,
            retry: _,
            idle: _,
            tasks: _,
            slots: _,
            idle_tasks: _,
            sentinel: _,
            watchdog: _,
            policy: _,
            drain_target: _,
            cooldown: _,
            rate: _,
            poison: _,
            encoding: _,
            create_queue: _,
            call_timeout: _,
            offload: _,
            partitions: _,
            trigger: _,
            handler: _,
        } = QueueLayer::default();
        let tables: std::collections::BTreeSet<_> = ROWS
            .iter()
            .map(|row| row.key.split('.').next().unwrap())
            .collect();
        assert_eq!(tables.len(), 23, "all but the name");
    }

    #[test]
    fn each_setting_shows_its_value_and_source() {
        let lines: Vec<Vec<_>> = FILE
            .trim()
            .lines()
            .map(|l| l.split(" | ").collect())
            .collect();
        assert!(
            lines
                .iter()
                .map(|line| line[0])
                .eq(ROWS.iter().map(|row| row.key))
        );
        for line in lines {
            let (key, toml, value) = (line[0], line[1].replace("; ", "\n"), line[2]);
            let file: QueueLayer = toml::from_str(&format!("name = \"orders\"\n{toml}")).unwrap();
            let none = QueueLayer::default();
            for setting in of(&none, &file) {
                let is_it = setting.key == key;
                let is_named = is_it || names(&toml, &setting.key);
                let wanted = if is_named {
                    Source::File
                } else {
                    Source::Default
                };
                assert_eq!(setting.source, wanted, "{} by {toml}", setting.key);
                assert!(!is_it || setting.value == value, "{setting:?}");
            }
            let flag = QueueLayer {
                name: None,
                ..file.clone()
            };
            let found = of(&flag, &file);
            let found = found.iter().find(|setting| setting.key == key).unwrap();
            let wanted = match key {
                "slots" => Source::Environment("LISTENER_SLOTS".to_owned()),
                _ => Source::Flag,
            };
            assert_eq!(found.source, wanted, "{key}");
        }
    }

    /// A flag that names a handler replaces the other kind from the file.
    #[test]
    fn a_handler_that_is_replaced_has_no_source() {
        let file: QueueLayer =
            toml::from_str("name = \"q-1\"\nhandler = { http = \"http://h\" }").unwrap();
        let flags: QueueLayer = toml::from_str("handler = { exec = \"cat\" }").unwrap();
        let found = of(&flags, &file);
        let http = found.iter().find(|s| s.key == "handler.http").unwrap();
        assert_eq!((http.value.as_str(), &http.source), ("-", &Source::Default));
    }
}

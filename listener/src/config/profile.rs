//! Profiles: named sets of defaults.
//!
//! A profile has the lowest precedence: each key that a flag, a variable or the file sets wins over
//! it. Keys that it does not change keep the built-in default.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Idle, ListenerConfig, Policy, SLOTS_MAX, Tasks};

/// A named set of defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The built-in defaults.
    #[default]
    Default,
    /// The source article's listener: its steps of 10, 50 and 100 tasks (L30), gets of 32 (L23),
    /// and a sleep of at most a second (L27). Its defects stay fixed: requests respect the rate
    /// (DL14), and tasks stay for the cooldown (DL20).
    Seed,
    /// A message that arrives after an idle time waits at most one second.
    LowLatency,
    /// A queue that always has work: as many requests as it can take, and few of them gets.
    Throughput,
    /// Few requests: a message that arrives after an idle time may wait for minutes.
    Frugal,
}

/// Requests per second that a queue can take, the service's target of 2,000 messages a second.
const QUEUE_RATE_PER_S: u32 = 2_000;

impl Profile {
    /// Returns the profile's settings for `queue`.
    pub fn config(self, queue: impl Into<String>) -> ListenerConfig {
        let base = ListenerConfig::new(queue);
        let tasks = |max| Tasks { max, ..base.tasks };
        let idle_max = |max| Idle { max, ..base.idle };
        match self {
            Profile::Default => base,
            Profile::Seed => ListenerConfig {
                policy: Policy::Seed,
                tasks: tasks(100),
                slots: SLOTS_MAX,
                idle: idle_max(Duration::from_secs(1)),
                ..base
            },
            Profile::LowLatency => ListenerConfig {
                idle: idle_max(Duration::from_secs(1)),
                ..base
            },
            Profile::Throughput => ListenerConfig {
                tasks: tasks(32),
                slots: SLOTS_MAX,
                rate_per_s: QUEUE_RATE_PER_S,
                ..base
            },
            Profile::Frugal => ListenerConfig {
                slots: SLOTS_MAX,
                idle: Idle {
                    min: Duration::from_secs(5),
                    max: Duration::from_secs(300),
                },
                ..base
            },
        }
    }
}

/// The name that flags and files use.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use smalt_worker::settings::{Setting, Source};

    use super::*;
    use crate::config::effective::settings;
    use crate::config::file::{QueueLayer, merge};
    use crate::rules::backoff::{Backoff, IDLE_STEP};

    /// Returns what a profile changes, as `validate` shows it.
    fn changed(profile: Profile) -> Vec<(String, String)> {
        let given = QueueLayer {
            name: Some("orders".to_owned()),
            profile: Some(profile),
            ..QueueLayer::default()
        };
        let (merged, layers) = merge(&QueueLayer::default(), &given).unwrap();
        let config = merged.settings("w").unwrap();
        let rows = settings(&config, &merged, &layers, &|_| None);
        let by_profile = |row: &Setting| row.source == Source::Profile(profile.to_string());
        let rows = rows.into_iter().filter(by_profile);
        rows.map(|row| (row.key, row.value)).collect()
    }

    #[test]
    fn each_profile_changes_its_settings() {
        let wanted: [&[(&str, &str)]; 5] = [
            &[],
            &[
                ("idle.max", "1s"),
                ("tasks.max", "100"),
                ("slots", "32"),
                ("policy", "seed"),
            ],
            &[("idle.max", "1s")],
            &[("tasks.max", "32"), ("slots", "32"), ("rate", "2000")],
            &[("idle.min", "5s"), ("idle.max", "5m"), ("slots", "32")],
        ];
        for (profile, wanted) in Profile::value_variants().iter().zip(wanted) {
            let found = changed(*profile);
            let found: Vec<_> = found
                .iter()
                .map(|(key, v)| (key.as_str(), v.as_str()))
                .collect();
            assert_eq!(found, wanted, "{profile}");
            profile.config("orders").validate().unwrap();
        }
        assert_eq!(Profile::Default.config("q-1"), ListenerConfig::new("q-1"));
    }

    /// L27: with the profile `seed`, an idle task sleeps a second at most.
    #[test]
    fn l27_the_seed_sleeps_at_most_a_second() {
        let idle = Profile::Seed.config("orders").idle;
        let curve = Backoff::new(idle.min, idle.max, IDLE_STEP);
        let ms = |k, jitter| curve.delay(k, jitter).as_millis();
        assert_eq!([0, 1, 2].map(|k| ms(k, 1_000)), [100, 200, 400]);
        for k in 4..100 {
            assert!(
                (900..=1_000).contains(&ms(k, 800)) && ms(k, 1_200) == 1_000,
                "{k}"
            );
        }
    }

    #[test]
    fn an_unknown_profile_error_lists_the_profiles() {
        let in_file = toml::from_str::<QueueLayer>("profile = \"compat\"").unwrap_err();
        let wanted = "unknown variant `compat`, expected one of `default`, `seed`, `low-latency`, \
                      `throughput`, `frugal`";
        assert_eq!(in_file.message(), wanted);
    }

    /// Accepts a `tasks.max` below the profile's, and a `tasks.min` above the profile's
    /// `tasks.max`.
    #[test]
    fn bounds_of_tasks_fit_together() {
        let of = |text: &str| {
            let layer: QueueLayer = toml::from_str(&format!("name = \"orders\"\n{text}")).unwrap();
            layer.settings("w").map(|c| (c.tasks.min, c.tasks.max))
        };
        let throughput = "profile = \"throughput\"";
        assert_eq!(of(throughput).unwrap(), (1, 32));
        let few = of(&format!("{throughput}\ntasks = {{ max = 4 }}"));
        assert_eq!(few.unwrap(), (1, 4));
        let many = of(&format!("{throughput}\ntasks = {{ min = 40 }}"));
        assert_eq!(many.unwrap(), (40, 40));
    }
}

//! The cost of polling and the capacity of one queue, on which the listener's defaults are based.
//!
//! Every request is billed, including an empty get. The document that the listener's rules come
//! from calculates with 22 idle hours a day (six of eight working hours, and sixteen at night), one
//! get a second and $0.01 per 10,000 requests: 79,200 gets a day and $2.38 a month and task. Its
//! next step, "200 tasks cost $457.20", is a misprint: 200 times $2.376 is **$475.20**, two digits
//! are swapped (DL1). The vectors in the tests are the correct ones.
//!
//! Prices change and differ by region: [`EXAMPLE_PRICE_PER_10K`] is the document's and an example,
//! not a quotation.

use std::time::Duration;

use crate::config::ListenerConfig;

const HOUR_S: f64 = 3600.0;
/// Number of requests that a price refers to.
const PRICED_REQUESTS: f64 = 10_000.0;
/// The document's price of 10,000 requests in dollars, as an example.
pub const EXAMPLE_PRICE_PER_10K: f64 = 0.01;
/// Days in the document's month.
pub const DAYS_PER_MONTH: f64 = 30.0;
/// The document's idle hours of a working day: 6 of 8 working hours, and 16.
pub const IDLE_HOURS: f64 = 22.0;
/// Factor by which planned capacity exceeds the target.
pub const HEADROOM: f64 = 1.25;

/// Tasks that poll an empty queue at a fixed interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Polling {
    /// Polling tasks, summed over all processes.
    pub tasks: f64,
    /// Seconds between two polls of a task.
    pub interval_s: f64,
    /// Requests per poll: 1, or 2 with a depth query at each poll (DL2).
    pub requests_per_poll: f64,
}

impl Polling {
    /// Returns the requests while the queue is empty for `hours`.
    pub fn requests(&self, hours: f64) -> f64 {
        self.tasks * hours * HOUR_S / self.interval_s * self.requests_per_poll
    }
}

/// The idle hours of a month (DL25: not every day is a working day).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calendar {
    /// Days with work.
    pub working_days: f64,
    /// Idle hours of each working day.
    pub idle_hours: f64,
    /// Days without work, idle for 24 hours.
    pub idle_days: f64,
}

impl Calendar {
    /// Returns the total idle hours.
    pub fn hours(&self) -> f64 {
        self.working_days * self.idle_hours + self.idle_days * 24.0
    }
}

/// Returns the requests of a fleet with one poller: it polls at the interval, the other listeners
/// only try to acquire its lease.
///
/// This pays off at short intervals; at long ones, polling by every task is cheaper (200 tasks at
/// 30 s cost $15.84, a sentinel at 1 s with 200 lease attempts per 30 s $18.22).
pub fn sentinel_requests(interval_s: f64, tasks: f64, lease_every_s: f64, hours: f64) -> f64 {
    let one = Polling {
        tasks: 1.0,
        interval_s,
        requests_per_poll: 1.0,
    };
    one.requests(hours) + tasks * hours * HOUR_S / lease_every_s
}

/// Listeners that sleep until an event (L13: notifications are billed as well).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Push {
    /// Processes that get every event.
    pub processes: f64,
    /// Seconds between two looks at the queue of a subscription; `None` for webhooks, which cost no
    /// requests to storage.
    pub every_s: Option<f64>,
    /// Seconds between two looks of a watchdog.
    pub watchdog_s: f64,
}

impl Push {
    /// Returns the requests of `events` events and of `hours` hours of waiting for them. An event
    /// costs a look at the depth, and a put and a delete for each subscription.
    pub fn requests(&self, events: f64, hours: f64) -> f64 {
        let looks = |every_s: f64| self.processes * hours * HOUR_S / every_s;
        let copies = match self.every_s {
            Some(_) => 2.0 * self.processes,
            None => 0.0,
        };
        events * (1.0 + copies) + looks(self.watchdog_s) + self.every_s.map_or(0.0, looks)
    }
}

/// Returns the requests of a listener in an idle hour, with its tasks at their longest intervals.
/// `map` is the number of queues of a partitioned queue and its map's `max_age`; `trigger` is the
/// polling interval of a subscription. Jitter does not change the mean.
pub fn idle_requests_per_hour(
    config: &ListenerConfig,
    map: Option<(u32, Duration)>,
    trigger: Option<Duration>,
) -> f64 {
    let every = |pause: Duration| HOUR_S / pause.as_secs_f64();
    let looks = match &config.sentinel {
        // The holder of the lease renews it three times per lease length.
        Some(sentinel) => every(config.idle.max) + every(sentinel.lease / 3),
        None if config.idle_tasks > 0 => f64::from(config.idle_tasks) * every(config.idle.max),
        None => every(config.watchdog),
    };
    let of_queues = match map {
        // The map is refreshed twice per `max_age`, and each refresh reads it twice: to retire
        // queues and to follow the map.
        Some((queues, max_age)) => f64::from(queues) * looks + 2.0 * every(max_age / 2),
        None => looks,
    };
    of_queues + trigger.map_or(0.0, every)
}

/// Returns the cost of the requests in the currency of the price.
pub fn cost(requests: f64, price_per_10k: f64) -> f64 {
    requests / PRICED_REQUESTS * price_per_10k
}

/// Returns the requests to put and process `messages`: a put and a delete each, a get per batch,
/// and the renewals.
pub fn message_requests(messages: f64, batch: f64, renewals: f64) -> f64 {
    messages * (2.0 + 1.0 / batch + renewals)
}

/// The limits of one queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Requests per second that the service accepts for one queue. Sources differ on whether it
    /// counts requests or messages, so this is a setting.
    pub requests_per_s: f64,
    /// Messages per get.
    pub batch: f64,
    /// Renewals per message.
    pub renewals: f64,
}

impl Capacity {
    /// Returns the messages per second that consumers alone can process.
    pub fn consumed_per_s(&self) -> f64 {
        self.requests_per_s / (1.0 + 1.0 / self.batch + self.renewals)
    }

    /// Returns the messages per second that producers and consumers together can process.
    pub fn passed_per_s(&self) -> f64 {
        self.requests_per_s / (2.0 + 1.0 / self.batch + self.renewals)
    }

    /// Returns the number of queues that process `messages_per_s` with [`HEADROOM`], at least one.
    pub fn partitions(&self, messages_per_s: f64) -> f64 {
        (messages_per_s / self.passed_per_s() * HEADROOM)
            .ceil()
            .max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_requests_depend_on_the_pollers() {
        let s = Duration::from_secs;
        let config = ListenerConfig::new("orders");
        let asleep = ListenerConfig {
            idle_tasks: 0,
            ..config.clone()
        };
        let fleet = ListenerConfig {
            sentinel: Some(Default::default()),
            ..config.clone()
        };
        for (config, map, trigger, wanted) in [
            (&config, None, None, 120.0),
            (&asleep, None, None, 60.0),
            (&asleep, None, Some(s(10)), 420.0),
            (&fleet, None, None, 480.0),
            (&config, Some((4, s(60))), None, 720.0),
        ] {
            assert_eq!(idle_requests_per_hour(config, map, trigger), wanted);
        }
    }

    fn month(tasks: f64, interval_s: f64, requests_per_poll: f64) -> f64 {
        let polling = Polling {
            tasks,
            interval_s,
            requests_per_poll,
        };
        cost(
            polling.requests(IDLE_HOURS) * DAYS_PER_MONTH,
            EXAMPLE_PRICE_PER_10K,
        )
    }

    fn same(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
    }

    /// DL1: the document's sums, with its misprint corrected. DL2, DL3: the cost of the depth
    /// query, and the savings of a longer interval.
    #[test]
    fn dl1_the_documents_sums() {
        let one = Polling {
            tasks: 1.0,
            interval_s: 1.0,
            requests_per_poll: 1.0,
        };
        same(one.requests(IDLE_HOURS), 79_200.0);
        same(month(1.0, 1.0, 1.0), 2.376);
        same(month(200.0, 1.0, 1.0), 475.20);
        assert!((month(200.0, 1.0, 1.0) - 457.20).abs() > 17.0, "misprint");
        same(month(200.0, 1.0, 2.0), 950.40);
        same(month(200.0, 30.0, 1.0), 15.84);
    }

    #[test]
    fn a_sentinel_pays_at_short_intervals_only() {
        let daily = sentinel_requests(1.0, 200.0, 30.0, IDLE_HOURS);
        same(cost(daily * DAYS_PER_MONTH, EXAMPLE_PRICE_PER_10K), 18.216);
        let longer = sentinel_requests(30.0, 200.0, 30.0, IDLE_HOURS);
        assert!(longer > 200.0 * IDLE_HOURS * HOUR_S / 30.0);
    }

    /// L13: what push saves, and at how many events it saves nothing more.
    #[test]
    fn l13_push_against_polling() {
        let polling = Polling {
            tasks: 200.0,
            interval_s: 1.0,
            requests_per_poll: 1.0,
        };
        let polled = polling.requests(IDLE_HOURS);
        let webhook = Push {
            processes: 200.0,
            every_s: None,
            watchdog_s: 60.0,
        };
        // 200 watchdogs once a minute for 22 hours, and one look at the depth per event.
        same(webhook.requests(0.0, IDLE_HOURS), 264_000.0);
        same(webhook.requests(1_000.0, IDLE_HOURS), 265_000.0);
        let topic = |every_s| Push {
            every_s: Some(every_s),
            ..webhook
        };
        same(topic(60.0).requests(1.0, IDLE_HOURS), 528_401.0);
        // A topic that is read as often as the queue would be saves nothing for one queue.
        assert!(topic(1.0).requests(0.0, IDLE_HOURS) > polled);
        let (few, many) = (10_000.0, 40_000.0);
        assert!(topic(60.0).requests(few, IDLE_HOURS) < polled);
        assert!(topic(60.0).requests(many, IDLE_HOURS) > polled);
    }

    /// DL25: 22 working days and 8 idle days.
    #[test]
    fn dl25_not_every_day_is_a_working_day() {
        let calendar = Calendar {
            working_days: 22.0,
            idle_hours: IDLE_HOURS,
            idle_days: 8.0,
        };
        same(calendar.hours(), 676.0);
        let one = Polling {
            tasks: 1.0,
            interval_s: 1.0,
            requests_per_poll: 1.0,
        };
        let month = cost(one.requests(calendar.hours()), EXAMPLE_PRICE_PER_10K);
        same(month, 2.4336);
    }

    #[test]
    fn the_capacity_of_one_queue() {
        for (requests_per_s, batch, consumed, passed) in [
            (500.0, 1.0, 250.0, 166.7),
            (500.0, 32.0, 484.8, 246.2),
            (2000.0, 1.0, 1000.0, 666.7),
            (2000.0, 32.0, 1939.4, 984.6),
        ] {
            let capacity = Capacity {
                requests_per_s,
                batch,
                renewals: 0.0,
            };
            let tenths = |rate: f64| (rate * 10.0).round() / 10.0;
            same(tenths(capacity.consumed_per_s()), consumed);
            same(tenths(capacity.passed_per_s()), passed);
        }
        let queue = Capacity {
            requests_per_s: 500.0,
            batch: 32.0,
            renewals: 0.0,
        };
        same(queue.partitions(1.0), 1.0);
        same(queue.partitions(1000.0), 6.0);
        let renewing = Capacity {
            renewals: 2.0,
            ..queue
        };
        // A message costs its share of a get, two renewals and a delete, and for producers a put.
        same(renewing.consumed_per_s(), 500.0 / (3.0 + 1.0 / 32.0));
        same(renewing.passed_per_s(), 500.0 / (4.0 + 1.0 / 32.0));
    }

    #[test]
    fn messages_are_billed_at_both_ends() {
        // The document's L6: a put is one request, a consume two.
        same(message_requests(1.0, 1.0, 0.0), 3.0);
        same(message_requests(64.0, 32.0, 1.0), 64.0 * 3.0 + 2.0);
    }
}

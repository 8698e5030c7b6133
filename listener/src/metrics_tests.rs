//! Tests of the counts, their text and the readiness.

use super::*;

fn call(operation: &'static str, error: Option<ErrorKind>) -> Called {
    Called {
        operation,
        error,
        throttled: error == Some(ErrorKind::Busy),
    }
}

fn decision(outcome: Outcome) -> Decision {
    Decision {
        id: "m".to_owned(),
        dequeue_count: 1,
        outcome,
        reason: String::new(),
        handler_time: Some(Duration::from_millis(250)),
        renewals: 0,
        expiring: false,
    }
}

fn look(metrics: &Metrics) -> QueueMetrics<'_> {
    QueueMetrics {
        queue: metrics.queue(),
        counts: metrics.counts(),
        pool: Some(PoolStatus {
            tasks: 1,
            ..PoolStatus::default()
        }),
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_text_shows_the_counts() {
    let metrics = Metrics::new("orders");
    metrics.called(&call("Get Messages", None));
    metrics.called(&call("Get Messages", Some(ErrorKind::Busy)));
    metrics.received(&Fetched {
        asked: 8,
        got: 2,
        oldest_age: Some(Duration::from_secs(3)),
    });
    metrics.decided(&decision(Outcome::Done));
    metrics.decided(&decision(Outcome::LostLock));
    metrics.renewed(&Renewed {
        id: "m",
        succeeded: false,
    });
    let text = prometheus(&[look(&metrics)], Duration::from_secs(9), Some(0.5), None);
    for line in [
        "# TYPE listener_received counter",
        "listener_received{queue=\"orders\"} 2",
        "listener_handled{queue=\"orders\",verdict=\"done\"} 1",
        "listener_handled{queue=\"orders\",verdict=\"poisoned\"} 0",
        "listener_lost_lock{queue=\"orders\"} 1",
        "listener_renewals{queue=\"orders\",result=\"failed\"} 1",
        "listener_renewals{queue=\"orders\",result=\"ok\"} 0",
        "listener_handler_s_sum{queue=\"orders\"} 0.5",
        "listener_oldest_age_s{queue=\"orders\"} 3",
        "listener_throttled{queue=\"orders\"} 1",
        "listener_tx_total{queue=\"orders\",op=\"Get Messages\"} 2",
        "listener_cost_estimate{queue=\"orders\"} 0.0001",
        "listener_uptime_s 9",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\nin\n{text}");
    }
}

/// Each name of the guide's list appears once, with help and type before its series.
#[tokio::test]
async fn every_name_of_the_guide_is_in_the_text() {
    let metrics = Metrics::new("q");
    metrics.called(&call("Get Messages", None));
    let text = prometheus(&[look(&metrics)], Duration::ZERO, Some(1.0), None);
    for name in [
        "received",
        "handled",
        "lost_lock",
        "duplicates_suppressed",
        "renewals",
        "poisoned",
        "oldest_age_s",
        "visible_estimate",
        "inflight",
        "tasks",
        "idle_delay_s",
        "empty_gets",
        "throttled",
        "tx_total",
        "cost_estimate",
    ] {
        let kind = format!("# TYPE listener_{name} ");
        assert_eq!(text.matches(&kind).count(), 1, "{name}");
        assert!(text.contains(&format!("\nlistener_{name}{{queue=\"q\"")));
    }
    assert!(!prometheus(&[], Duration::ZERO, None, None).contains("cost"));
}

/// A subscription shows only its requests, which are billed like any other.
#[tokio::test(start_paused = true)]
async fn a_queue_without_a_pool_shows_its_requests() {
    let metrics = Metrics::new("events");
    metrics.called(&call("Get Messages", None));
    let look = QueueMetrics {
        pool: None,
        ..look(&metrics)
    };
    let text = prometheus(&[look], Duration::ZERO, Some(1.0), None);
    let series: Vec<_> = text.lines().filter(|l| l.contains("events")).collect();
    let wanted = [
        "listener_throttled{queue=\"events\"} 0",
        "listener_tx_total{queue=\"events\",op=\"Get Messages\"} 1",
        "listener_cost_estimate{queue=\"events\"} 0.0001",
    ];
    assert_eq!(series, wanted);
}

#[tokio::test(start_paused = true)]
async fn idle_delay_ends_with_work() {
    let metrics = Metrics::new("q");
    metrics.idle(&Idle {
        empty_gets: 3,
        pause: Duration::from_secs(7),
    });
    assert_eq!(metrics.counts().idle_delay, Duration::from_secs(7));
    metrics.received(&Fetched {
        asked: 1,
        got: 1,
        oldest_age: None,
    });
    assert_eq!(metrics.counts().idle_delay, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn ready_means_that_storage_answers() {
    let interval = Duration::from_secs(30);
    let metrics = Metrics::new("q");
    let ready = |in_flight| metrics.readiness(interval, in_flight).is_ok();
    assert!(!ready(0), "before the first answer");
    metrics.called(&call("Get Messages", None));
    assert!(ready(0));
    metrics.called(&call("Delete Message", Some(ErrorKind::ReceiptMismatch)));
    metrics.called(&call("Get Messages", Some(ErrorKind::Busy)));
    tokio::time::advance(Duration::from_secs(89)).await;
    assert!(ready(0), "a failure now and then");
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(!ready(0) && !ready(5), "three intervals without an answer");
    metrics.called(&call("Get Messages", None));
    assert!(ready(0));
    metrics.called(&call("Get Messages", Some(ErrorKind::Denied)));
    assert!(!ready(0), "denied, at once");
    metrics.called(&call("Get Messages", None));
    tokio::time::advance(Duration::from_secs(500)).await;
    assert!(ready(1), "a long handler needs no calls");
    assert!(!ready(0));
    metrics.called(&call("Get Messages", Some(ErrorKind::NotFound)));
    assert!(!ready(1), "the queue is missing");
}

//! `--dry-run` and `validate --connect`: inspect the account and print the planned pools. They make
//! no get, because a get counts as an attempt.

use std::process::ExitCode;
use std::sync::Arc;

use smalt_listener::config::file::ConfigFile;
use smalt_listener::partition::{PartitionError, Partitions};
use smalt_listener::rules::cost::{EXAMPLE_PRICE_PER_10K, cost, idle_requests_per_hour};
use smalt_sleeve::port::{ErrorKind, Storage};
use smalt_worker::face::can_bind;
use smalt_worker::span;

use super::plan::{Plan, Queue};
use super::stats::Subject;
use super::storage::{self, Retries};
use super::{Common, exit};

/// When the listeners would end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Run,
    Once,
}

/// Inspects each queue of a plan and the addresses, and prints what exists and which pool would
/// process each queue.
pub(crate) async fn look(
    common: &Common,
    file: &ConfigFile,
    plan: &Plan,
    mode: Mode,
) -> anyhow::Result<ExitCode> {
    let storage = storage::open(common, file, Retries::OfTheClient).await?;
    let mut problems = Vec::new();
    for queue in &plan.queues {
        match seen(&storage, queue).await {
            Ok(text) => println!("{text}"),
            Err(error) => problems.push(error),
        }
        println!("  {}", pool(plan, queue, mode));
        if let Some((trigger, _)) = queue.trigger().filter(|_| mode == Mode::Run) {
            println!("  subscribes to the topic {trigger}");
        }
    }
    for address in [&plan.health, &plan.metrics].into_iter().flatten() {
        if let Err(error) = can_bind(address).await {
            println!("warning: {address}: {error}; `run` would continue without it");
        }
    }
    Ok(match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => exit::all(&problems),
    })
}

/// Returns a queue's counts as `stats` shows them.
async fn seen(storage: &Arc<dyn Storage>, queue: &Queue) -> anyhow::Result<String> {
    let (config, set) = (&queue.config, queue.partitions.clone());
    let name = config.queue.as_str();
    let queues = match &set {
        None => vec![name.to_owned()],
        Some(set) => match known_queues(storage, set.clone()).await? {
            Some(queues) => queues,
            None => {
                let count = set.partitions;
                return Ok(format!(
                    "{name}: no partition map yet; one of {count} queues will be created"
                ));
            }
        },
    };
    let poison_queue = config.poison_queue();
    let subject = Subject {
        storage,
        queue: name,
        set,
        poison_queue: &poison_queue,
    };
    match subject.look_at(queues, None).await {
        Ok(look) => Ok(subject.text(&look)),
        Err(error) if error.kind == ErrorKind::NotFound && config.create_queue => {
            Ok(format!("{name}: does not exist, will be created"))
        }
        Err(error) => Err(error.into()),
    }
}

async fn known_queues(
    storage: &Arc<dyn Storage>,
    set: smalt_listener::partition::PartitionSettings,
) -> Result<Option<Vec<String>>, PartitionError> {
    let set = Partitions::new(Arc::clone(storage), set)?;
    Ok(set.known_map().await?.map(|map| map.read()))
}

fn pool(plan: &Plan, queue: &Queue, mode: Mode) -> String {
    let config = &queue.config;
    let each = match &queue.partitions {
        Some(_) => "for each of its queues ",
        None => "",
    };
    let policy = format!("{:?}", config.policy).to_ascii_lowercase();
    let (tasks, slots, rate) = (config.tasks, config.slots, config.rate_per_s);
    let bounds = format!(
        "{each}{} to {} tasks of {slots} messages by `{policy}`, {rate} requests/s at most",
        tasks.min, tasks.max,
    );
    let idle = match mode {
        Mode::Once => "; ends when the queue is empty".to_owned(),
        Mode::Run => {
            let trigger = queue.trigger().map(|(_, every)| every);
            let set = queue.partitions.as_ref();
            let map = set.map(|set| (set.partitions, set.max_age));
            let requests = idle_requests_per_hour(config, map, trigger);
            let price = plan.price.unwrap_or(EXAMPLE_PRICE_PER_10K);
            let sleep = span::format(config.longest_sleep());
            let money = cost(requests, price);
            format!("; idle polls at most {sleep} apart: {requests:.0} requests/h, {money:.6}")
        }
    };
    let budget = plan.budget.map_or_else(String::new, |budget| {
        format!("; at most {} a day", budget.max_cost_per_day)
    });
    format!("{bounds}{idle}{budget}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::plan;
    use crate::cli::support::{FakeStorage, QUEUE, s};
    use crate::cli::tests::listen_flags;

    fn planned(file: &str, line: &str) -> Plan {
        let file = toml::from_str(file).unwrap();
        plan::make(&file, &listen_flags(line)).ok().unwrap()
    }

    /// A dry run hides no message and counts no attempt.
    #[tokio::test(start_paused = true)]
    async fn a_dry_run_receives_no_message() {
        let fake = Arc::new(FakeStorage::new(&[QUEUE]));
        let storage = Arc::clone(&fake) as Arc<dyn Storage>;
        fake.put(QUEUE, "one");
        fake.put(QUEUE, "two");
        tokio::time::advance(s(3)).await;
        let plan = planned("", "run --queue orders --exec cat");
        let text = seen(&storage, &plan.queues[0]).await.unwrap();
        assert!(text.starts_with("orders: 2 messages"), "{text}");
        assert!(text.contains("oldest visible 3 s"), "{text}");
        assert!(fake.steal(QUEUE, s(1)).iter().all(|m| m.dequeue_count == 1));
        assert_eq!(fake.calls(crate::cli::support::Op::Get), 0);
        let missing = planned("", "run --queue mails --exec cat");
        assert!(seen(&storage, &missing.queues[0]).await.is_err());
        let made = planned("", "run --queue mails --exec cat --create-queue");
        let text = seen(&storage, &made.queues[0]).await.unwrap();
        assert_eq!(text, "mails: does not exist, will be created");
        let cx = smalt_sleeve::port::CallContext::housekeeping();
        assert!(storage.queue_properties(&cx, "mails").await.is_err());
    }

    #[test]
    fn a_pool_is_described_in_one_line() {
        let file = "[listener]\nprice = 1.0\nmax_cost_per_day = 2.0";
        let plan = planned(file, "run --queue orders --exec cat --idle-max 10s");
        assert_eq!(
            pool(&plan, &plan.queues[0], Mode::Run),
            "1 to 8 tasks of 8 messages by `little`, 500 requests/s at most; idle polls at \
             most 10s apart: 360 requests/h, 0.036000; at most 2 a day"
        );
        let plan = planned("", "run --queue orders --exec cat --policy seed");
        let once = pool(&plan, &plan.queues[0], Mode::Once);
        assert!(once.ends_with("by `seed`, 500 requests/s at most; ends when the queue is empty"));
    }
}

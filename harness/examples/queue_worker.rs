//! Tests of a queue worker: no order may be lost, whatever goes wrong on the way.
//!
//! `cargo run -p smalt-harness --example queue_worker` tells the story once;
//! `cargo test -p smalt-harness --example queue_worker` runs the tests.

use std::error::Error;
use std::time::Duration;

use azure_core::http::StatusCode;
use azure_storage_queue::QueueClient;
use azure_storage_queue::models::{
    QueueClientReceiveMessagesOptions, QueueMessage, ReceivedMessage,
};
use smalt_harness::testing::{TestAccount, Work};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

// ---- somebody's own code -------------------------------------------------------------------

/// Charges orders that arrive in a queue.
struct OrderWorker {
    orders: QueueClient,
    poison: QueueClient,
    /// Attempts after which an order is put aside.
    attempts: i64,
}

impl OrderWorker {
    /// Works the queue off until it finds nothing.
    async fn work_off(&self, charge: &impl AsyncFn(&str) -> Outcome) -> Outcome {
        loop {
            let options = QueueClientReceiveMessagesOptions {
                number_of_messages: Some(4),
                visibility_timeout: Some(30),
                ..Default::default()
            };
            let taken = self.orders.receive_messages(Some(options)).await?;
            let taken = taken.into_model()?.items.unwrap_or_default();
            if taken.is_empty() {
                return Ok(());
            }
            for message in taken {
                self.handle(message, charge).await?;
            }
        }
    }

    /// Charges first and deletes afterwards: what fails in between comes back.
    async fn handle(
        &self,
        message: ReceivedMessage,
        charge: &impl AsyncFn(&str) -> Outcome,
    ) -> Outcome {
        let text = message.message_text.clone().unwrap_or_default();
        if message.dequeue_count.unwrap_or(0) > self.attempts {
            self.poison.send_message(order(&text)?, None).await?;
            return acknowledge(&self.orders, &message).await;
        }
        match charge(&text).await {
            Ok(()) => acknowledge(&self.orders, &message).await,
            // It becomes visible again, and is tried again.
            Err(_) => Ok(()),
        }
    }
}

async fn acknowledge(queue: &QueueClient, message: &ReceivedMessage) -> Outcome {
    let id = message
        .message_id
        .as_deref()
        .ok_or("a message without id")?;
    let receipt = message
        .pop_receipt
        .as_deref()
        .ok_or("a message without receipt")?;
    match queue.delete_message(id, receipt, None).await {
        Ok(_) => Ok(()),
        // The answer to an earlier try was lost.
        Err(error) if error.http_status() == Some(StatusCode::NotFound) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn order(
    text: &str,
) -> azure_core::Result<azure_core::http::RequestContent<QueueMessage, azure_core::http::XmlFormat>>
{
    let message_text = Some(text.to_owned());
    QueueMessage { message_text }.try_into()
}

// ---- its tests -----------------------------------------------------------------------------

/// A worker on fresh queues with `count` orders.
async fn shop(account: &TestAccount, count: usize) -> Outcome<OrderWorker> {
    let worker = OrderWorker {
        orders: account.queue("orders").await?,
        poison: account.queue("orders-poison").await?,
        attempts: 3,
    };
    for number in 0..count {
        let text = format!("order-{number}");
        worker.orders.send_message(order(&text)?, None).await?;
    }
    Ok(worker)
}

/// A second on each order; the one of this number always fails.
async fn charge(work: &Work, text: &str, broken: &str) -> Outcome {
    let running = work.begin(text);
    tokio::time::sleep(Duration::from_secs(1)).await;
    if text == broken {
        return Err("the card was refused".into());
    }
    running.done();
    Ok(())
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Outcome {
    let account = TestAccount::open()?;
    let work = account.work();
    let worker = shop(&account, 10).await?;
    account.fault("MessageId_Delete").nth(3).answer_lost();
    account.fault("Messages_Dequeue").nth(2).server_busy(None);
    for _ in 0..6 {
        worker
            .work_off(&async |text: &str| charge(&work, text, "order-7").await)
            .await?;
        tokio::time::sleep(Duration::from_secs(31)).await;
    }
    account.assert_faults_fired();
    account.assert_no_message_lost("orders", &work);
    work.assert_one_at_a_time();
    let done = work.runs().iter().filter(|run| run.done).count();
    let poison = account.messages("orders-poison").standing_now().count();
    println!("10 orders: {done} done, {poison} put aside, none lost");
    println!(
        "{} exchanges with the service, 2 planned faults fired",
        account.history().len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lost_answer_loses_no_order() -> Outcome {
        let account = TestAccount::open()?;
        let work = account.work();
        let worker = shop(&account, 5).await?;
        account
            .fault("MessageId_Delete")
            .nth(2)
            .times(2)
            .answer_lost();
        worker
            .work_off(&async |text: &str| charge(&work, text, "").await)
            .await?;
        account.assert_faults_fired();
        account.assert_no_message_lost("orders", &work);
        assert_eq!(account.messages("orders").standing_now().count(), 0);
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_crash_loses_no_order() -> Outcome {
        // It dies after each possible number of seconds in turn, and another takes over.
        for death_s in 1..6 {
            let account = TestAccount::open()?;
            let work = account.work();
            let worker = shop(&account, 5).await?;
            let life = async |text: &str| charge(&work, text, "").await;
            let died = Duration::from_millis(death_s * 1_000 - 500);
            let _ = tokio::time::timeout(died, worker.work_off(&life)).await;
            tokio::time::sleep(Duration::from_secs(31)).await;
            worker.work_off(&life).await?;
            account.assert_no_message_lost("orders", &work);
            assert_eq!(account.messages("orders").standing_now().count(), 0);
        }
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_that_always_fails_is_put_aside() -> Outcome {
        let account = TestAccount::open()?;
        let work = account.work();
        let worker = shop(&account, 3).await?;
        for _ in 0..5 {
            worker
                .work_off(&async |text: &str| charge(&work, text, "order-1").await)
                .await?;
            tokio::time::sleep(Duration::from_secs(31)).await;
        }
        account.assert_no_message_lost("orders", &work);
        let aside = account.messages("orders-poison");
        let aside: Vec<_> = aside.standing_now().map(|m| m.text.as_str()).collect();
        assert_eq!(aside, ["order-1"]);
        Ok(())
    }

    /// A hasty variant, which deletes first. The harness must tell.
    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "1 of 5 messages of the queue orders were lost")]
    async fn deleting_first_is_caught() {
        let account = TestAccount::open().unwrap();
        let work = account.work();
        let worker = shop(&account, 5).await.unwrap();
        let hasty = async {
            loop {
                let taken = worker.orders.receive_messages(None).await.unwrap();
                let taken = taken.into_model().unwrap().items.unwrap_or_default();
                let Some(message) = taken.into_iter().next() else {
                    break;
                };
                acknowledge(&worker.orders, &message).await.unwrap();
                let text = message.message_text.unwrap_or_default();
                charge(&work, &text, "").await.unwrap();
            }
        };
        // It dies in the middle of the first, which nobody will see again.
        let _ = tokio::time::timeout(Duration::from_millis(500), hasty).await;
        account.assert_no_message_lost("orders", &work);
    }
}

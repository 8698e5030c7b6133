//! Support for tests of your own code: an in-process account, faults on request, and assertions
//! about what your code did.
//!
//! ```
//! use smalt_harness::testing::TestAccount;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let account = TestAccount::open()?;
//! let orders = account.queue("orders").await?; // Microsoft's client
//! account.fault("MessageId_Delete").nth(2).answer_lost();
//! let work = account.work();
//!
//! // Your code goes here. It takes messages from `orders` and calls, in the test,
//! // `let running = work.begin(text)` when it starts and `running.done()` when it is done.
//!
//! # for text in ["a", "b"] {
//! #     let message_text = Some(text.to_owned());
//! #     let message = azure_storage_queue::models::QueueMessage { message_text };
//! #     orders.send_message(message.try_into()?, None).await?;
//! # }
//! # let options = azure_storage_queue::models::QueueClientReceiveMessagesOptions {
//! #     number_of_messages: Some(2), ..Default::default()
//! # };
//! # let taken = orders.receive_messages(Some(options)).await?.into_model()?;
//! # for message in taken.items.unwrap_or_default() {
//! #     work.begin(message.message_text.as_deref().unwrap_or_default()).done();
//! #     let (id, receipt) = (message.message_id.unwrap(), message.pop_receipt.unwrap());
//! #     let _ = orders.delete_message(&id, &receipt, None).await;
//! # }
//! account.assert_faults_fired();
//! account.assert_no_message_lost("orders", &work);
//! # Ok(())
//! # }
//! ```
//!
//! Time is tokio's: with `#[tokio::test(start_paused = true)]` an hour passes at once, for your
//! code and for the service. [`TestAccount::advance`] moves only the service's clock, as if it were
//! wrong. [`TestAccount::serve`] opens sockets for clients in any language; the account then needs
//! [`smalt::Clock::system`].
//!
//! The same seed and the same requests give the same answers, ids included.
//!
//! # Assertions
//! - [`Messages`]: no message is lost, and none is acknowledged before its work is done.
//! - [`Work`]: no message is processed twice at once.
//! - [`LeasedSection`]: a lease is never held twice, and nobody continues without it.
//! - [`TestAccount::assert_no_blind_write`]: nobody overwrites content that they have not read.
//!
//! The assertions use the requests that the service executed, including those whose answers were
//! lost. See `docs/testing-your-code.md`; `examples/` has a queue worker, a leader elected by lease
//! and a shared document.

mod account;
mod blind;
mod faults;
mod messages;
mod section;
mod served;
#[cfg(test)]
mod tests;
mod work;

pub use account::{OpenError, TestAccount};
pub use faults::FaultPlan;
pub use messages::{Ended, Message, Messages};
pub use section::{Inside, LeasedSection};
pub use served::Served;
pub use work::{Run, Running, Work};

#[track_caller]
#[expect(
    clippy::panic,
    reason = "assertions for tests: a panic is how a test fails"
)]
fn fail(what: String) -> ! {
    panic!("{what}")
}

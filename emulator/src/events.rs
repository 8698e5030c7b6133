//! Events of blobs, as Azure Event Grid delivers them.
//!
//! The register says which operation can raise which event. [`outbox`] writes the event in the
//! commit of the change, once for each subscription that wants it; [`deliver`] delivers it at least
//! once. Subscriptions are part of the stored state.

pub mod deliver;
pub mod outbox;
pub mod schedule;
pub mod schema;
pub mod send;
pub mod waiting;
pub mod wake;

use std::collections::BTreeMap;

use serde_json::Value;
use smalt_protocol::{StorageError, Timestamp};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::emulator::Emulator;
use crate::events::send::Validation;
use crate::keys;
use crate::records::{Record, SubscriptionRecord};
use crate::rules::event_filter::Filter;
use crate::rules::subscription::{self, Destination, Schema, Subscription};

/// How long a webhook may confirm its validation by hand. Source: "Endpoint validation with Event
/// Grid event schema".
const MANUAL_VALIDATION_S: u64 = 600;

/// Why a subscription is rejected.
#[derive(Debug, thiserror::Error)]
pub enum SubscribeError {
    /// The name or a setting is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The store cannot write.
    #[error(transparent)]
    Store(#[from] StorageError),
}

impl Emulator {
    /// Creates a subscription, or changes the settings of the one with this name, which keeps the
    /// events that it has not delivered yet. Asks a webhook first whether it wants the events.
    ///
    /// # Errors
    /// When a setting is invalid, a webhook does not pass its validation, or the store cannot
    /// write.
    pub async fn subscribe(
        &self,
        name: &str,
        settings: Subscription,
    ) -> Result<(), SubscribeError> {
        self.subscribe_or_await(name, settings, None)
            .await
            .map(drop)
    }

    /// Like [`Emulator::subscribe`], but a webhook that accepts its validation without answering it
    /// may open its `validationUrl` later, which is `confirm` with a code. Returns until when;
    /// `None` when the subscription exists.
    ///
    /// # Errors
    /// As [`Emulator::subscribe`].
    pub(crate) async fn subscribe_or_await(
        &self,
        name: &str,
        settings: Subscription,
        confirm: Option<&str>,
    ) -> Result<Option<Timestamp>, SubscribeError> {
        let core = self.core();
        self.check_subscription(name, &settings)?;
        let asked = send::validate(core, (name, &settings), confirm).await;
        match asked.map_err(SubscribeError::Invalid)? {
            Validation::Passed => {
                self.subscribe_trusted(name, settings).await?;
                Ok(None)
            }
            Validation::Awaits(code) => {
                let until = core.store.now().plus_s(MANUAL_VALIDATION_S);
                core.events.expect(name, (code, until, settings));
                Ok(Some(until))
            }
        }
    }

    /// Creates the subscription that awaits this code. Returns whether there is one.
    ///
    /// # Errors
    /// When the store cannot write.
    pub(crate) async fn confirm(&self, name: &str, code: &str) -> Result<bool, SubscribeError> {
        let core = self.core();
        match core.events.expected(name, code, core.store.now()) {
            Some(settings) => self.subscribe_trusted(name, settings).await.map(|()| true),
            None => Ok(false),
        }
    }

    fn check_subscription(
        &self,
        name: &str,
        settings: &Subscription,
    ) -> Result<(), SubscribeError> {
        let config = &self.core().config;
        let valid = subscription::validate_name(name).map_err(str::to_owned);
        valid
            .and_then(|()| settings.validate(|account| config.account(account).is_some()))
            .map_err(SubscribeError::Invalid)
    }

    /// Creates or changes a subscription without the validation of a webhook.
    ///
    /// # Errors
    /// When a setting is invalid or the store cannot write.
    pub(crate) async fn subscribe_trusted(
        &self,
        name: &str,
        settings: Subscription,
    ) -> Result<(), SubscribeError> {
        let core = self.core();
        self.check_subscription(name, &settings)?;
        let key = keys::subscription(name);
        let subscribed = core.store.commit(move |tx, stamp| {
            let old = SubscriptionRecord::load(tx, &key)?;
            let generation = old.map_or(stamp.tick.ticks(), |old| old.generation);
            let new = SubscriptionRecord {
                generation,
                settings,
            };
            Ok(new.save(tx, key)?)
        });
        subscribed.await?;
        core.events.note_subscription();
        Ok(())
    }

    /// Creates a subscription whose events go to the returned receiver, as JSON of the schema. They
    /// are sent by [`Emulator::deliver_events`]. After a restart the receiver must be opened again.
    ///
    /// # Errors
    /// When the name or the filter is invalid, or the store cannot write.
    pub async fn event_channel(
        &self,
        name: &str,
        filter: Filter,
        schema: Schema,
    ) -> Result<UnboundedReceiver<Value>, SubscribeError> {
        let settings = Subscription {
            filter,
            schema,
            ..Subscription::to(Destination::Channel)
        };
        self.subscribe_trusted(name, settings).await?;
        Ok(self.core().events.open(name))
    }

    /// Deletes a subscription and the events that it has not delivered. Returns whether there was
    /// one.
    ///
    /// # Errors
    /// When the store cannot write.
    pub async fn unsubscribe(&self, name: &str) -> Result<bool, StorageError> {
        let key = keys::subscription(name);
        let deleted = self.core().store.commit(move |tx, _| {
            let Some(old) = SubscriptionRecord::load(tx, &key)? else {
                return Ok(false);
            };
            tx.delete(key);
            tx.put(keys::garbage(old.generation), Vec::new());
            Ok(true)
        });
        deleted.await
    }

    /// Returns every subscription by name.
    ///
    /// # Errors
    /// When the store cannot read.
    pub fn subscriptions(&self) -> Result<BTreeMap<String, Subscription>, StorageError> {
        let all = self.core().store.read(outbox::subscriptions)?;
        let settings = all
            .into_iter()
            .map(|(name, record)| (name, record.settings));
        Ok(settings.collect())
    }

    /// Delivers every event that is due by the emulator's clock. Returns when the next one is;
    /// `None` if there is no other. The binary calls it by itself; a test in process calls it after
    /// its changes, and after it has moved the clock.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn deliver_events(&self) -> Result<Option<Timestamp>, StorageError> {
        deliver::deliver(self.core()).await
    }
}

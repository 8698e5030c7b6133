//! Events of blobs, as Azure Event Grid delivers them.
//!
//! The register says which operation can raise which event. [`outbox`] writes the event in the
//! commit of the change, once for each subscription that wants it; [`deliver`] delivers it at least
//! once. Subscriptions are part of the stored state.

pub mod deliver;
pub mod outbox;
pub mod schema;
pub mod wake;

use std::collections::BTreeMap;

use smalt_protocol::{StorageError, Timestamp};

use crate::emulator::Emulator;
use crate::keys;
use crate::records::{Record, SubscriptionRecord};
use crate::rules::subscription::{self, Subscription};

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
    /// events that it has not delivered yet.
    ///
    /// # Errors
    /// When a setting is invalid or the store cannot write.
    pub async fn subscribe(
        &self,
        name: &str,
        settings: Subscription,
    ) -> Result<(), SubscribeError> {
        let core = self.core();
        let invalid = |what: &str| SubscribeError::Invalid(what.to_owned());
        subscription::validate_name(name).map_err(invalid)?;
        let valid = settings.validate(|account| core.config.account(account).is_some());
        valid.map_err(|what| invalid(&what))?;
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
        Ok(subscribed.await?)
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

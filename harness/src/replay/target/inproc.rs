//! The emulator in this process: no socket, a manual clock, fresh for every recording.

use std::sync::Arc;

use async_trait::async_trait;
use http_body_util::BodyExt;
use smalt::fetch::FetchError;
use smalt::header_case::HeaderCase;
use smalt::{Account, Body, Clock, Config, DefaultTier, Emulator, OAuth, Sku};
use smalt_protocol::Timestamp;
use smalt_protocol::signing::AccountKey;
use tokio::sync::RwLock;

use super::{RETENTION_DAYS, Target, TargetError, answer, builder};
use crate::replay::earlier::BEING_DELETED_S;
use crate::replay::hosts::{Addressing, account_key_base64};
use crate::replay::settings::AccountSettings;
use crate::replay::sources::ELSEWHERE;
use crate::replay::uri::Url;
use crate::replay::wire::{Request, Response};

/// Ids need not differ between recordings, only within one.
const SEED: u64 = 1;

/// An emulator that lives as long as one recording.
#[derive(Default)]
pub struct InProcess(RwLock<Option<Emulator>>);

impl InProcess {
    /// A clone of the running emulator: a call that hangs holds no lock.
    async fn emulator(&self) -> Result<Emulator, TargetError> {
        let running = self.0.read().await.clone();
        running.ok_or_else(|| TargetError::Control("called before it was reset".to_owned()))
    }
}

/// What the recording shows of the account, as the emulator takes it.
fn account_settings(settings: &AccountSettings) -> smalt::AccountSettings {
    smalt::AccountSettings {
        public_access: !settings.public_access_forbidden,
        default_tier: if settings.premium {
            DefaultTier::Premium
        } else if settings.default_tier_cool {
            DefaultTier::Cool
        } else {
            DefaultTier::Hot
        },
        versioning: settings.versioning,
        container_retention_days: settings.container_soft_delete.then_some(RETENTION_DAYS),
        last_access_tracking: settings.last_access_tracking,
        version_immutability: settings.version_immutability,
        blob_expiry: settings.blob_expiry,
        sku: Sku::ALL
            .into_iter()
            .find(|sku| Some(sku.as_str()) == settings.sku.as_deref())
            .unwrap_or_default(),
        encryption_scopes: Some(settings.encryption_scopes.clone()),
    }
}

/// A page of the web, as its URL says that it is.
fn page(uri: &http::Uri) -> Result<http::Response<Body>, FetchError> {
    let unreachable = || FetchError::Unreachable(uri.to_string());
    let url = Url::parse(&uri.to_string()).ok_or_else(unreachable)?;
    let length = url.param("length").and_then(|length| length.parse().ok());
    let length: usize = length
        .filter(|_| url.authority == ELSEWHERE)
        .ok_or_else(unreachable)?;
    let mut page = http::Response::builder();
    for (name, value) in url.decoded_query() {
        if name != "length" {
            page = page.header(name, value);
        }
    }
    page.body(smalt::body::full(vec![0; length]))
        .map_err(|error| FetchError::Malformed(error.to_string()))
}

#[async_trait]
impl Target for InProcess {
    fn addressing(&self) -> Addressing {
        Addressing::Host
    }

    async fn reset(&self, settings: &AccountSettings, start: Timestamp) -> Result<(), TargetError> {
        let account = |name: &String| {
            let key = AccountKey::parse(&account_key_base64(name))?;
            let mut account = Account::with_key(key);
            account.settings = Arc::new(account_settings(settings));
            Some((name.clone(), account))
        };
        let config = Config {
            accounts: settings.accounts.iter().filter_map(account).collect(),
            host_style: true,
            strict_api_version: true,
            strict_skew: true,
            oauth: OAuth::Basic,
            being_deleted_s: if settings.deletes_at_once {
                0
            } else {
                BEING_DELETED_S
            },
            ..Config::default()
        };
        let clock = Clock::manual(start);
        let opened = Emulator::builder()
            .config(config)
            .clock(clock)
            .seed(SEED)
            .fetch_sources_by(|request: http::Request<()>| async move { page(request.uri()) })
            .open();
        let emulator = opened.map_err(|e| TargetError::Control(e.to_string()))?;
        *self.0.write().await = Some(emulator);
        Ok(())
    }

    async fn set_clock(&self, now: Timestamp) -> Result<(), TargetError> {
        self.emulator().await?.clock().set(now);
        Ok(())
    }

    async fn call(&self, request: Request) -> Result<Response, TargetError> {
        let emulator = self.emulator().await?;
        let wire = builder(&request, &request.url)?
            .extension(HeaderCase::of(request.headers.with_capitals()))
            .body(smalt::body::full(request.body.clone()))
            .map_err(|e| TargetError::Request(e.to_string()))?;
        let response = emulator
            .call(wire)
            .await
            .map_err(|e| TargetError::Call(e.to_string()))?;
        let (head, body) = response.into_parts();
        let body = body
            .collect()
            .await
            .map_err(|e| TargetError::Call(e.to_string()))?;
        Ok(answer(head.status.as_u16(), &head.headers, body.to_bytes()))
    }
}

//! Documents that several databases share.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use smalt_protocol::metadata::HEADER_PREFIX;
use smalt_protocol::xml::{
    CorsRule, DeleteRetention, LogVersion, Logging, Metrics, Retention, ServiceProperties,
    SignedIdentifier, StaticWebsite,
};
use smalt_protocol::{ETag, Metadata, Timestamp};
use uuid::Uuid;

use crate::rules::lease::LeaseState;

/// Duration of an expired lease that does not record one, in seconds: the maximum.
const LEASE_S: u32 = 60;
/// Times from this year on mean never.
const NEVER: &str = "9999-";

pub(super) type Pairs = BTreeMap<String, String>;

pub(super) fn metadata(pairs: Option<&Pairs>) -> Result<Metadata, String> {
    let headers: Vec<_> = pairs
        .into_iter()
        .flatten()
        .map(|(name, value)| (format!("{HEADER_PREFIX}{name}"), value))
        .collect();
    let headers = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    Metadata::from_headers(headers).map_err(|error| format!("metadata: {error}"))
}

pub(super) fn time(text: &str) -> Result<Timestamp, String> {
    if text.starts_with(NEVER) {
        return Ok(Timestamp::MAX);
    }
    Timestamp::parse_iso(text).ok_or_else(|| format!("{text:?} is not a time"))
}

pub(super) fn maybe_time(text: Option<&String>) -> Result<Option<Timestamp>, String> {
    text.map(|text| time(text)).transpose()
}

pub(super) fn etag(text: &str) -> Result<ETag, String> {
    ETag::parse(text).ok_or_else(|| format!("{text:?} is not an ETag"))
}

/// Converts bytes to Base64 from their JSON form: a `Uint8Array`, a `Buffer` or a Base64 string.
pub(super) fn base64(value: &Value) -> Option<String> {
    let byte = |value: &Value| u8::try_from(value.as_u64()?).ok();
    let bytes: Option<Vec<u8>> = match value {
        Value::String(text) => return Some(text.clone()),
        Value::Object(fields) => match fields.get("data") {
            Some(Value::Array(bytes)) => bytes.iter().map(byte).collect(),
            _ => (0..fields.len())
                .map(|place| byte(fields.get(&place.to_string())?))
                .collect(),
        },
        _ => None,
    };
    bytes.map(|bytes| STANDARD.encode(bytes))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Lease {
    lease_id: Option<String>,
    lease_duration_seconds: Option<f64>,
    lease_expire_time: Option<String>,
    lease_break_time: Option<String>,
}

impl Lease {
    /// Converts the lease; its state and kind of duration are among the resource's properties.
    pub(super) fn state(
        &self,
        state: Option<&str>,
        duration: Option<&str>,
    ) -> Result<LeaseState, String> {
        let id = || {
            let text = self.lease_id.as_deref().unwrap_or_default();
            Uuid::parse_str(text).map_err(|_| format!("lease id {text:?} is not a GUID"))
        };
        // At most 60.
        let seconds = self.lease_duration_seconds.map(|seconds| seconds as u32);
        Ok(match state.unwrap_or("available") {
            "available" => LeaseState::Available,
            "leased" if duration == Some("infinite") => LeaseState::Leased {
                id: id()?,
                duration_s: None,
                until: Timestamp::MAX,
            },
            "leased" => LeaseState::Leased {
                id: id()?,
                duration_s: Some(seconds.unwrap_or(LEASE_S)),
                until: maybe_time(self.lease_expire_time.as_ref())?.unwrap_or_default(),
            },
            "breaking" => LeaseState::Breaking {
                id: id()?,
                until: maybe_time(self.lease_break_time.as_ref())?.unwrap_or_default(),
            },
            "broken" => LeaseState::Broken { id: id()? },
            "expired" => LeaseState::Expired {
                id: id()?,
                duration_s: seconds.unwrap_or(LEASE_S),
            },
            other => return Err(format!("unknown lease state {other:?}")),
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Policy {
    id: String,
    #[serde(default)]
    access_policy: Option<AccessPolicy>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AccessPolicy {
    start: Option<String>,
    expiry: Option<String>,
    permission: Option<String>,
}

pub(super) fn policies(policies: Option<&Vec<Policy>>) -> Result<Vec<SignedIdentifier>, String> {
    let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let read = |policy: &Policy| {
        let none = AccessPolicy::default();
        let access = policy.access_policy.as_ref().unwrap_or(&none);
        Ok(SignedIdentifier {
            id: policy.id.clone(),
            start: maybe_time(filled(&access.start).as_ref())?,
            expiry: maybe_time(filled(&access.expiry).as_ref())?,
            permissions: filled(&access.permission),
        })
    };
    policies.into_iter().flatten().map(read).collect()
}

/// The service properties of an account.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Service {
    #[serde(alias = "account")]
    pub(super) account_name: String,
    logging: Option<ServiceLogging>,
    hour_metrics: Option<ServiceMetrics>,
    minute_metrics: Option<ServiceMetrics>,
    #[serde(default)]
    cors: Option<Vec<ServiceCors>>,
    delete_retention_policy: Option<ServiceRetention>,
    static_website: Option<ServiceWebsite>,
    default_service_version: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServiceLogging {
    #[serde(default)]
    read: bool,
    #[serde(default)]
    write: bool,
    #[serde(default)]
    delete_property: bool,
    retention_policy: Option<ServiceRetention>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServiceMetrics {
    #[serde(default)]
    enabled: bool,
    #[serde(rename = "includeAPIs")]
    include_apis: Option<bool>,
    retention_policy: Option<ServiceRetention>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ServiceRetention {
    enabled: bool,
    days: Option<u32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ServiceCors {
    allowed_origins: String,
    allowed_methods: String,
    allowed_headers: Option<String>,
    exposed_headers: Option<String>,
    max_age_in_seconds: u32,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ServiceWebsite {
    enabled: bool,
    index_document: Option<String>,
    #[serde(rename = "errorDocument404Path")]
    error_document: Option<String>,
    default_index_document_path: Option<String>,
}

impl Service {
    pub(super) fn account(&self) -> &str {
        &self.account_name
    }

    /// Converts the properties; missing ones get the defaults of a new account.
    pub(super) fn properties(&self) -> ServiceProperties {
        let new = ServiceProperties::default();
        let logging = self.logging.as_ref().map(|logging| Logging {
            version: LogVersion::default(),
            read: logging.read,
            write: logging.write,
            delete: logging.delete_property,
            retention: retention(logging.retention_policy.as_ref()),
        });
        let website = self
            .static_website
            .as_ref()
            .filter(|website| website.enabled);
        let cors = self.cors.iter().flatten().map(|rule| CorsRule {
            methods: list(&rule.allowed_methods),
            origins: list(&rule.allowed_origins),
            allowed_headers: list(rule.allowed_headers.as_deref().unwrap_or_default()),
            exposed_headers: list(rule.exposed_headers.as_deref().unwrap_or_default()),
            max_age_s: rule.max_age_in_seconds,
        });
        let known = |version: &String| smalt_protocol::ApiVersion::parse(version).is_some();
        ServiceProperties {
            logging: logging.unwrap_or(new.logging),
            hour_metrics: self.hour_metrics.as_ref().map_or(new.hour_metrics, metrics),
            minute_metrics: self
                .minute_metrics
                .as_ref()
                .map_or(new.minute_metrics, metrics),
            cors: cors.collect(),
            delete_retention: DeleteRetention {
                retention: retention(self.delete_retention_policy.as_ref()),
                allow_permanent_delete: false,
            },
            static_website: website.map(|website| StaticWebsite {
                index_document: website.index_document.clone(),
                error_document: website.error_document.clone(),
                default_index_document: website.default_index_document_path.clone(),
            }),
            default_version: self.default_service_version.clone().filter(known),
        }
    }
}

fn metrics(metrics: &ServiceMetrics) -> Metrics {
    Metrics {
        include_apis: metrics
            .enabled
            .then(|| metrics.include_apis.unwrap_or_default()),
        retention: retention(metrics.retention_policy.as_ref()),
    }
}

fn retention(policy: Option<&ServiceRetention>) -> Retention {
    Retention(
        policy
            .filter(|policy| policy.enabled)
            .and_then(|policy| policy.days),
    )
}

fn list(text: &str) -> Vec<String> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

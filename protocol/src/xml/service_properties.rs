//! Properties of a service: the body of Set and the answer of Get Blob/Queue/Table Service
//! Properties.
//!
//! Source: *Set Blob Service Properties*; recordings for the order of elements and the reasons of
//! errors. A section that Set omits keeps its value.

use serde::{Deserialize, Serialize};

use crate::error::StorageError;
use crate::limits::{CORS_RULES_MAX, RETENTION_DAYS};
use crate::service::Service;
use crate::version::ApiVersion;
use crate::xml::read::{ELEMENTS_MAX, Element, read_document};
use crate::xml::write::XmlWriter;

/// The first version that shows minute metrics and CORS.
const HAS_CORS: ApiVersion = ApiVersion::V2013_08_15;
/// The first version that shows soft delete.
const HAS_DELETE_RETENTION: ApiVersion = ApiVersion::V2017_07_29;
/// The first version that shows the static website.
const HAS_STATIC_WEBSITE: ApiVersion = ApiVersion::V2018_03_28;
/// The first version that shows whether a permanent delete is allowed, as recorded.
const HAS_PERMANENT_DELETE: ApiVersion = ApiVersion::V2020_02_10;
/// Maximum characters of all CORS rules. *Cross-Origin Resource Sharing*: 2 KiB.
const CORS_CHARS_MAX: usize = 2 * 1024;
/// Maximum characters of a path of the static website: smalt's own limit, that of a blob's name.
const PATH_CHARS_MAX: usize = 1024;

/// `RetentionPolicy`: its number of days; `None` if it is disabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Retention(pub Option<u32>);

/// A format of the logs. Source: "Storage Analytics log format".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogVersion {
    /// `1.0`.
    #[default]
    V1,
    /// `2.0`, which adds what a Microsoft Entra ID token says. The Table service does not have it.
    V2,
}

impl LogVersion {
    /// Returns the version as documents and logs name it.
    pub fn as_str(self) -> &'static str {
        match self {
            LogVersion::V1 => "1.0",
            LogVersion::V2 => "2.0",
        }
    }
}

/// `Logging`: which requests are logged, and for how long logs are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Logging {
    /// `Version`: the format of the logs.
    pub version: LogVersion,
    /// `Read`: whether reads are logged.
    pub read: bool,
    /// `Write`: whether writes are logged.
    pub write: bool,
    /// `Delete`: whether deletions are logged.
    pub delete: bool,
    /// `RetentionPolicy` of the logs.
    pub retention: Retention,
}

/// `HourMetrics` and `MinuteMetrics`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    /// `IncludeAPIs`; `None` if the metrics are disabled.
    pub include_apis: Option<bool>,
    /// `RetentionPolicy` of the metrics.
    pub retention: Retention,
}

/// `CorsRule`. Lists are in the order in which they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CorsRule {
    /// `AllowedMethods`.
    pub methods: Vec<String>,
    /// `AllowedOrigins`; `*` allows every origin.
    pub origins: Vec<String>,
    /// `AllowedHeaders`; a trailing `*` is a wildcard.
    pub allowed_headers: Vec<String>,
    /// `ExposedHeaders`.
    pub exposed_headers: Vec<String>,
    /// `MaxAgeInSeconds`.
    pub max_age_s: u32,
}

/// `DeleteRetentionPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeleteRetention {
    /// Days that a deleted blob is kept.
    pub retention: Retention,
    /// `AllowPermanentDelete`.
    pub allow_permanent_delete: bool,
}

/// `StaticWebsite`, if it is enabled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StaticWebsite {
    /// `IndexDocument`.
    pub index_document: Option<String>,
    /// `ErrorDocument404Path`.
    pub error_document: Option<String>,
    /// `DefaultIndexDocumentPath`.
    pub default_index_document: Option<String>,
}

/// All properties of a service. Queues and tables have only the first four.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceProperties {
    /// `Logging`.
    pub logging: Logging,
    /// `HourMetrics`.
    pub hour_metrics: Metrics,
    /// `MinuteMetrics`.
    pub minute_metrics: Metrics,
    /// `Cors`.
    pub cors: Vec<CorsRule>,
    /// `DeleteRetentionPolicy`.
    pub delete_retention: DeleteRetention,
    /// `StaticWebsite`; `None` if it is disabled.
    pub static_website: Option<StaticWebsite>,
    /// `DefaultServiceVersion`.
    pub default_version: Option<String>,
}

impl Default for ServiceProperties {
    /// Returns the properties of a new account, as recorded: only hour metrics are enabled.
    fn default() -> Self {
        ServiceProperties {
            logging: Logging::default(),
            hour_metrics: Metrics {
                include_apis: Some(true),
                retention: Retention(Some(7)),
            },
            minute_metrics: Metrics::default(),
            cors: Vec::new(),
            delete_retention: DeleteRetention::default(),
            static_website: None,
            default_version: None,
        }
    }
}

/// The body of Set: sections that are `None` keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServicePropertiesUpdate {
    logging: Option<Logging>,
    hour_metrics: Option<Metrics>,
    minute_metrics: Option<Metrics>,
    cors: Option<Vec<CorsRule>>,
    delete_retention: Option<DeleteRetention>,
    static_website: Option<Option<StaticWebsite>>,
    default_version: Option<String>,
}

impl ServicePropertiesUpdate {
    /// Parses the body of Set.
    ///
    /// # Errors
    /// 400 `InvalidXmlDocument` for an element that is missing, unknown, or has an invalid value.
    pub fn read(body: &[u8], service: Service) -> Result<Self, StorageError> {
        let root = read_document(body, ELEMENTS_MAX)?;
        if root.name != "StorageServiceProperties" {
            return Err(root.unexpected());
        }
        // The service's reader expects an end tag of the root, even of an empty one.
        if root.children.is_empty() && body.trim_ascii_end().ends_with(b"/>") {
            return Err(root.refuse_end());
        }
        let mut update = ServicePropertiesUpdate::default();
        for section in &root.children {
            match section.name {
                "Logging" => update.logging = Some(read_logging(section, service)?),
                // The element's name before there were minute metrics.
                "HourMetrics" | "Metrics" => update.hour_metrics = Some(read_metrics(section)?),
                "MinuteMetrics" => update.minute_metrics = Some(read_metrics(section)?),
                "Cors" => update.cors = Some(read_cors(section)?),
                _ if service != Service::Blob => return Err(section.unexpected()),
                "DeleteRetentionPolicy" => {
                    update.delete_retention = Some(read_delete_retention(section)?);
                }
                "StaticWebsite" => update.static_website = Some(read_website(section)?),
                "DefaultServiceVersion" => update.default_version = Some(read_version(section)?),
                _ => return Err(section.unexpected()),
            }
        }
        Ok(update)
    }

    /// Applies the sections that the body contains.
    pub fn apply(self, to: &mut ServiceProperties) {
        fn set<T>(to: &mut T, given: Option<T>) {
            if let Some(given) = given {
                *to = given;
            }
        }
        set(&mut to.logging, self.logging);
        set(&mut to.hour_metrics, self.hour_metrics);
        set(&mut to.minute_metrics, self.minute_metrics);
        set(&mut to.cors, self.cors);
        set(&mut to.delete_retention, self.delete_retention);
        set(&mut to.static_website, self.static_website);
        if self.default_version.is_some() {
            to.default_version = self.default_version;
        }
    }
}

impl ServiceProperties {
    /// Writes the answer of Get, as this version shows it.
    pub fn render(&self, service: Service, version: ApiVersion) -> Vec<u8> {
        let mut xml = XmlWriter::new();
        xml.open("StorageServiceProperties");
        xml.open("Logging");
        xml.element("Version", self.logging.version.as_str());
        xml.boolean("Read", self.logging.read);
        xml.boolean("Write", self.logging.write);
        xml.boolean("Delete", self.logging.delete);
        push_retention(&mut xml, "RetentionPolicy", self.logging.retention);
        xml.close("Logging");
        if version < HAS_CORS {
            push_metrics(&mut xml, "Metrics", &self.hour_metrics);
        } else {
            push_metrics(&mut xml, "HourMetrics", &self.hour_metrics);
            push_metrics(&mut xml, "MinuteMetrics", &self.minute_metrics);
            push_cors(&mut xml, &self.cors);
        }
        if service == Service::Blob {
            self.push_blob(&mut xml, version);
        }
        xml.close("StorageServiceProperties");
        xml.finish()
    }

    fn push_blob(&self, xml: &mut XmlWriter, version: ApiVersion) {
        if version >= HAS_DELETE_RETENTION {
            xml.open("DeleteRetentionPolicy");
            push_days(xml, self.delete_retention.retention);
            if version >= HAS_PERMANENT_DELETE {
                let allowed = self.delete_retention.allow_permanent_delete;
                xml.boolean("AllowPermanentDelete", allowed);
            }
            xml.close("DeleteRetentionPolicy");
        }
        if version >= HAS_STATIC_WEBSITE {
            xml.open("StaticWebsite");
            xml.boolean("Enabled", self.static_website.is_some());
            if let Some(site) = &self.static_website {
                xml.optional("IndexDocument", site.index_document.as_deref());
                xml.optional("ErrorDocument404Path", site.error_document.as_deref());
                let default = site.default_index_document.as_deref();
                xml.optional("DefaultIndexDocumentPath", default);
            }
            xml.close("StaticWebsite");
        }
        xml.optional("DefaultServiceVersion", self.default_version.as_deref());
    }
}

fn push_metrics(xml: &mut XmlWriter, name: &str, metrics: &Metrics) {
    xml.open(name);
    xml.element("Version", "1.0");
    xml.boolean("Enabled", metrics.include_apis.is_some());
    if let Some(include) = metrics.include_apis {
        xml.boolean("IncludeAPIs", include);
    }
    push_retention(xml, "RetentionPolicy", metrics.retention);
    xml.close(name);
}

fn push_retention(xml: &mut XmlWriter, name: &str, retention: Retention) {
    xml.open(name);
    push_days(xml, retention);
    xml.close(name);
}

fn push_days(xml: &mut XmlWriter, Retention(days): Retention) {
    xml.boolean("Enabled", days.is_some());
    xml.optional("Days", days.map(|days| days.to_string()).as_deref());
}

/// Writes `Cors`, in the form that Get and Set share.
pub fn push_cors(xml: &mut XmlWriter, rules: &[CorsRule]) {
    if rules.is_empty() {
        return xml.empty("Cors");
    }
    xml.open("Cors");
    for rule in rules {
        xml.open("CorsRule");
        xml.element("AllowedMethods", &rule.methods.join(","));
        xml.element("AllowedOrigins", &rule.origins.join(","));
        xml.element("AllowedHeaders", &rule.allowed_headers.join(","));
        xml.element("ExposedHeaders", &rule.exposed_headers.join(","));
        xml.element("MaxAgeInSeconds", &rule.max_age_s.to_string());
        xml.close("CorsRule");
    }
    xml.close("Cors");
}

fn read_logging(section: &Element<'_>, service: Service) -> Result<Logging, StorageError> {
    let version = section.required("Version")?;
    let is_v2 = version.text == LogVersion::V2.as_str() && service != Service::Table;
    Ok(Logging {
        version: if is_v2 {
            LogVersion::V2
        } else {
            LogVersion::V1
        },
        read: flag(section.required("Read")?)?,
        write: flag(section.required("Write")?)?,
        delete: flag(section.required("Delete")?)?,
        retention: read_retention(section.required("RetentionPolicy")?)?,
    })
}

fn read_metrics(section: &Element<'_>) -> Result<Metrics, StorageError> {
    section.required("Version")?;
    let include_apis = if flag(section.required("Enabled")?)? {
        Some(flag(section.required("IncludeAPIs")?)?)
    } else {
        None
    };
    Ok(Metrics {
        include_apis,
        retention: read_retention(section.required("RetentionPolicy")?)?,
    })
}

/// Requires `Days` exactly if the policy is enabled.
fn read_retention(policy: &Element<'_>) -> Result<Retention, StorageError> {
    if !flag(policy.required("Enabled")?)? {
        return match policy.child("Days") {
            Some(days) => Err(days.unexpected()),
            None => Ok(Retention(None)),
        };
    }
    let days = policy.required("Days")?;
    match days.trimmed().parse::<i64>() {
        Ok(count) if RETENTION_DAYS.contains(&count) => Ok(Retention(u32::try_from(count).ok())),
        _ => Err(days
            .refuse("Retention days must be greater than 0 and less than or equal to 365 days.")),
    }
}

fn read_delete_retention(section: &Element<'_>) -> Result<DeleteRetention, StorageError> {
    let allowed = section
        .child("AllowPermanentDelete")
        .map(flag)
        .transpose()?;
    Ok(DeleteRetention {
        retention: read_retention(section)?,
        allow_permanent_delete: allowed.unwrap_or_default(),
    })
}

fn read_website(section: &Element<'_>) -> Result<Option<StaticWebsite>, StorageError> {
    if !flag(section.required("Enabled")?)? {
        return Ok(None);
    }
    let path = |name| match section.child(name) {
        Some(path) if path.trimmed().chars().count() > PATH_CHARS_MAX => {
            Err(path.refuse("The path is too long."))
        }
        Some(path) if !path.trimmed().is_empty() => Ok(Some(path.trimmed().to_owned())),
        _ => Ok(None),
    };
    Ok(Some(StaticWebsite {
        index_document: path("IndexDocument")?,
        error_document: path("ErrorDocument404Path")?,
        default_index_document: path("DefaultIndexDocumentPath")?,
    }))
}

fn read_version(section: &Element<'_>) -> Result<String, StorageError> {
    let version = ApiVersion::parse(section.trimmed());
    let version = version.ok_or_else(|| section.refuse("The version is not supported."))?;
    Ok(version.to_string())
}

fn read_cors(section: &Element<'_>) -> Result<Vec<CorsRule>, StorageError> {
    let mut rules = Vec::new();
    let mut chars = 0;
    for rule in &section.children {
        if rule.name != "CorsRule" {
            return Err(rule.unexpected());
        }
        chars += rule
            .children
            .iter()
            .map(|part| part.text.chars().count())
            .sum::<usize>();
        if rules.len() == CORS_RULES_MAX || chars > CORS_CHARS_MAX {
            return Err(rule.refuse("The rules of CORS exceed their limit."));
        }
        rules.push(read_rule(rule)?);
    }
    Ok(rules)
}

fn read_rule(rule: &Element<'_>) -> Result<CorsRule, StorageError> {
    const METHODS: [&str; 8] = [
        "DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH",
    ];
    let methods = rule.required("AllowedMethods")?;
    let origins = rule.required("AllowedOrigins")?;
    let age = rule.required("MaxAgeInSeconds")?;
    let read = CorsRule {
        methods: list(methods),
        origins: list(origins),
        allowed_headers: literals_first(list(rule.required("AllowedHeaders")?)),
        exposed_headers: literals_first(list(rule.required("ExposedHeaders")?)),
        max_age_s: age
            .trimmed()
            .parse()
            .map_err(|_| age.refuse("The age is not a number of seconds."))?,
    };
    if read.methods.is_empty() || !read.methods.iter().all(|m| METHODS.contains(&m.as_str())) {
        return Err(methods.refuse("The methods are not valid."));
    }
    if read.origins.is_empty() {
        return Err(origins.refuse("An origin is required."));
    }
    Ok(read)
}

fn list(element: &Element<'_>) -> Vec<String> {
    let parts = element.trimmed().split(',').map(str::trim);
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Sorts literal headers before those that end in `*`, as the service shows them.
fn literals_first(headers: Vec<String>) -> Vec<String> {
    let is_prefix = |header: &String| header.len() > 1 && header.ends_with('*');
    let (prefixes, mut ordered): (Vec<_>, Vec<_>) = headers.into_iter().partition(is_prefix);
    ordered.extend(prefixes);
    ordered
}

fn flag(element: &Element<'_>) -> Result<bool, StorageError> {
    match element.trimmed().to_ascii_lowercase().as_str() {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(element.refuse("The value is not a valid Boolean value.")),
    }
}

#[cfg(test)]
#[path = "service_properties_tests.rs"]
mod tests;

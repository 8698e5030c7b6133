//! What an account must be like before a recording starts: read off the recording itself.

use std::collections::BTreeSet;

use smalt_protocol::{Service, Timestamp};

use super::recording::Recording;
use super::uri::Url;

/// Settings of the recorded account that the recording does not make itself. The first group lives
/// in Azure's management plane, the second is set by a Set Service Properties beforehand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountSettings {
    /// Names of the accounts at the target.
    pub accounts: BTreeSet<String>,
    /// Writes to blobs keep the earlier version.
    pub versioning: bool,
    /// Deleted containers are kept and can be undeleted.
    pub container_soft_delete: bool,
    /// Reads are noted.
    pub last_access_tracking: bool,
    /// Containers may carry policies for single versions.
    pub version_immutability: bool,
    /// Encryption scopes that exist.
    pub encryption_scopes: BTreeSet<String>,
    /// Deleted blobs are kept: `DeleteRetentionPolicy` on.
    pub blob_soft_delete: bool,
    /// A CORS rule exists for every origin.
    pub cors: bool,
}

/// Reads the settings off a recording.
pub fn infer(recording: &Recording, accounts: BTreeSet<String>) -> AccountSettings {
    let mut settings = AccountSettings {
        accounts,
        versioning: recording.has_flag("account_versioning_on"),
        ..AccountSettings::default()
    };
    let mut sets_properties = false;
    for interaction in &recording.interactions {
        let (request, response) = (&interaction.request, &interaction.response);
        let answered = |name: &str| response.headers.get(name);
        let ok = response.status < 300;
        settings.last_access_tracking |= answered("x-ms-last-access-time").is_some();
        settings.version_immutability |=
            answered("x-ms-immutable-storage-with-versioning-enabled") == Some("true");
        settings.container_soft_delete |= ok && request.headers.has("x-ms-deleted-container-name");
        if let (true, Some(scope)) = (ok, request.headers.get("x-ms-encryption-scope")) {
            settings.encryption_scopes.insert(scope.to_owned());
        }
        if let (true, Some(scope)) = (ok, request.headers.get("x-ms-default-encryption-scope")) {
            settings.encryption_scopes.insert(scope.to_owned());
        }
        if !sets_properties {
            // From the first Set Service Properties on the recording decides for itself.
            settings.blob_soft_delete |= answered("x-ms-delete-type-permanent") == Some("false");
            settings.cors |= answered("access-control-allow-origin").is_some()
                || answered("vary") == Some("Origin");
        }
        let url = Url::parse(&request.url);
        let comp = url.and_then(|url| url.param("comp"));
        sets_properties |= request.method == "PUT" && comp.as_deref() == Some("properties");
    }
    settings
}

/// The body of a Set Service Properties that turns the inferred settings on; `None` when there is
/// nothing to turn on.
pub fn service_properties(settings: &AccountSettings, service: Service) -> Option<String> {
    let retention = settings.blob_soft_delete && service == Service::Blob;
    if !retention && !settings.cors {
        return None;
    }
    let mut body =
        String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?><StorageServiceProperties>");
    if settings.cors {
        body.push_str(
            "<Cors><CorsRule><AllowedOrigins>*</AllowedOrigins>\
             <AllowedMethods>GET,PUT,POST,DELETE,HEAD,OPTIONS,MERGE,PATCH</AllowedMethods>\
             <MaxAgeInSeconds>86400</MaxAgeInSeconds><ExposedHeaders>*</ExposedHeaders>\
             <AllowedHeaders>*</AllowedHeaders></CorsRule></Cors>",
        );
    }
    if retention {
        body.push_str(
            "<DeleteRetentionPolicy><Enabled>true</Enabled><Days>7</Days></DeleteRetentionPolicy>",
        );
    }
    body.push_str("</StorageServiceProperties>");
    Some(body)
}

/// A second before the recording's first answer: when everything that must exist is made.
pub fn start_of(recording: &Recording) -> Timestamp {
    let first = recording.interactions.first().map(|i| i.date);
    first
        .unwrap_or(Timestamp::UNIX_EPOCH)
        .minus(std::time::Duration::from_secs(1))
}

//! The settings of an account before a recording starts, derived from the recording itself.

use std::collections::BTreeSet;

use smalt::{DefaultTier, Sku};
use smalt_protocol::{Service, Timestamp};

use super::creation::creates;
use super::hosts::account;
use super::recording::{HIERARCHICAL, Interaction, Recording};
use super::superset;
use super::{earlier, multipart, properties};
use crate::target::Setup;
use crate::wire::url::Url;
use crate::wire::{Answer, Request};

/// Default number of days for which Azure keeps a deleted container.
const RETENTION_DAYS: u32 = 7;

/// Settings of the recorded account that the recording does not make itself: those of Azure's
/// management plane, and those that an earlier Set Service Properties made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountSettings {
    /// Names of the accounts at the target.
    pub accounts: BTreeSet<String>,
    /// Settings of the management plane.
    pub managed: smalt::AccountSettings,
    /// Whether deleted blobs are kept: `DeleteRetentionPolicy`.
    pub blob_soft_delete: bool,
    /// Whether deleted blobs can be deleted permanently: `AllowPermanentDelete`.
    pub permanent_delete: bool,
    /// Sections of the service properties that the recording shows: name, document.
    pub sections: Vec<(&'static str, String)>,
    /// `DefaultServiceVersion`, from the answer to a request without a version.
    pub default_version: Option<String>,
    /// The CORS rule, if there is one.
    pub cors: Option<CorsRule>,
    /// Whether deleted resources can be created again at once, as with emulators but not with
    /// Azure.
    pub deletes_at_once: bool,
}

impl AccountSettings {
    /// Returns the initial state of a target at this time.
    pub fn setup(&self, now: Timestamp) -> Setup {
        let accounts = self.accounts.iter();
        Setup {
            accounts: accounts.filter_map(|name| account(name)).collect(),
            settings: self.managed.clone(),
            being_deleted_s: if self.deletes_at_once {
                0
            } else {
                earlier::BEING_DELETED_S
            },
            now,
        }
    }
}

/// A CORS rule, as far as the answers to requests without `Origin` show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CorsRule {
    /// Some origin is allowed: only `Vary: Origin` is sent.
    OneOrigin,
    /// Every origin is allowed and sees the headers that browsers always show.
    EveryOrigin,
    /// Every origin is allowed and sees every header.
    EveryOriginExposing,
}

impl CorsRule {
    /// Derives the rule from an answer.
    fn of(answer: &Answer) -> Option<Self> {
        let has = |name| answer.headers.get(name).is_some();
        if has("access-control-expose-headers") {
            Some(CorsRule::EveryOriginExposing)
        } else if has("access-control-allow-origin") {
            Some(CorsRule::EveryOrigin)
        } else {
            has("vary").then_some(CorsRule::OneOrigin)
        }
    }

    /// Returns the rule as an element of Set Service Properties.
    fn document(self) -> String {
        let (origin, exposed) = match self {
            CorsRule::OneOrigin => ("https://example.org", ""),
            CorsRule::EveryOrigin => ("*", ""),
            CorsRule::EveryOriginExposing => ("*", "*"),
        };
        format!(
            "<Cors><CorsRule><AllowedOrigins>{origin}</AllowedOrigins>\
             <AllowedMethods>GET,PUT,POST,DELETE,HEAD,OPTIONS,MERGE</AllowedMethods>\
             <MaxAgeInSeconds>86400</MaxAgeInSeconds><ExposedHeaders>{exposed}</ExposedHeaders>\
             <AllowedHeaders>*</AllowedHeaders></CorsRule></Cors>",
        )
    }
}

const IMMUTABLE: &str = "x-ms-immutable-storage-with-versioning-enabled";

/// Derives the settings from a recording.
pub fn infer(recording: &Recording, accounts: BTreeSet<String>) -> AccountSettings {
    let mut settings = AccountSettings {
        accounts,
        managed: smalt::AccountSettings {
            versioning: recording.has_flag("account_versioning_on"),
            hierarchical_namespace: recording.has_flag(HIERARCHICAL),
            encryption_scopes: Some(encryption_scopes(recording)),
            ..smalt::AccountSettings::default()
        },
        sections: properties::before(recording),
        deletes_at_once: earlier::makes_again_at_once(recording),
        ..AccountSettings::default()
    };
    let mut sets_retention = false;
    // With versioning, the deletion of a blob that leaves an earlier version is not permanent
    // either. A permanent deletion that the request did not ask for shows that nothing deleted is
    // kept.
    let mut keeps_nothing = false;
    let mut sets_cors = false;
    for interaction in &recording.interactions {
        let (request, response) = (&interaction.request, &interaction.response);
        let answered = |name: &str| response.headers.get(name);
        let ok = response.status < 300;
        let managed = &mut settings.managed;
        managed.public_access &=
            response.error_code().as_deref() != Some("PublicAccessNotPermitted");
        managed.last_access_tracking |= answered("x-ms-last-access-time").is_some()
            || String::from_utf8_lossy(&response.body).contains("<LastAccessTime>");
        let names_version = request.headers.has("x-ms-version") || request.url.contains("sv=");
        if let (false, Some(version)) = (names_version, answered("x-ms-version")) {
            settings.default_version.get_or_insert(version.to_owned());
        }
        if ok && has_page_tier(request) {
            managed.default_tier = DefaultTier::Premium;
        } else if managed.default_tier == DefaultTier::Hot && infers_cool(response) {
            managed.default_tier = DefaultTier::Cool;
        }
        if ok && request.headers.has("x-ms-deleted-container-name") {
            managed.container_retention_days = Some(RETENTION_DAYS);
        }
        // After a Set Service Properties with a section, the recording itself determines that
        // section.
        if !sets_retention {
            settings.blob_soft_delete |= answered("x-ms-delete-type-permanent") == Some("false");
        }
        if !sets_cors {
            settings.cors = settings.cors.max(CorsRule::of(response));
        }
        let url = Url::parse(&request.url);
        let delete_type = url.as_ref().and_then(|url| url.param("deletetype"));
        settings.permanent_delete |= ok && delete_type.is_some();
        keeps_nothing |= !sets_retention
            && delete_type.is_none()
            && answered("x-ms-delete-type-permanent") == Some("true");
        let comp = url.and_then(|url| url.param("comp"));
        managed.version_immutability |=
            answered(IMMUTABLE) == Some("true") || (ok && protects(request, comp.as_deref()));
        managed.blob_expiry |= ok && comp.as_deref() == Some("expiry");
        if ok && request.method == "PUT" && comp.as_deref() == Some("properties") {
            let body = String::from_utf8_lossy(&request.body);
            sets_retention |= body.contains("<DeleteRetentionPolicy");
            sets_cors |= body.contains("<Cors");
        }
    }
    settings.blob_soft_delete &= !keeps_nothing;
    if let Some(sku) = sku(recording) {
        settings.managed.sku = sku;
    }
    settings
}

/// Returns the encryption scopes that the recording used without error.
fn encryption_scopes(recording: &Recording) -> BTreeSet<String> {
    let used = recording.interactions.iter();
    let used = used.filter(|one| one.response.status < 300);
    let scopes = used.flat_map(|one| {
        ["x-ms-encryption-scope", "x-ms-default-encryption-scope"]
            .map(|name| one.request.headers.get(name))
    });
    scopes.flatten().map(str::to_owned).collect()
}

/// Returns the kind of account in the first answer that names one.
fn sku(recording: &Recording) -> Option<Sku> {
    let mut answers = recording.interactions.iter().map(|one| &one.response);
    let named = answers.find_map(|answer| answer.header("x-ms-sku-name"))?;
    Sku::ALL.into_iter().find(|sku| sku.as_str() == named)
}

/// Whether a request gives a blob a tier of premium page blobs, such as `P10`.
fn has_page_tier(request: &Request) -> bool {
    let tier = request.headers.get("x-ms-access-tier").unwrap_or_default();
    let number = tier.strip_prefix('P').unwrap_or_default();
    number.parse::<u8>().is_ok()
}

/// Whether a request gives a version of a blob an immutability policy or a legal hold.
fn protects(request: &Request, comp: Option<&str>) -> bool {
    let by_itself = comp.is_some_and(|comp| {
        comp.eq_ignore_ascii_case("immutabilityPolicies") || comp.eq_ignore_ascii_case("legalhold")
    });
    let headers = ["x-ms-immutability-policy-until-date", "x-ms-legal-hold"];
    by_itself || headers.iter().any(|name| request.headers.has(name))
}

/// Whether an answer shows a blob that is cool because its account is.
fn infers_cool(answer: &Answer) -> bool {
    const LISTED: &[u8] = b"<AccessTier>Cool</AccessTier><AccessTierInferred>true<";
    let has = |name, value| answer.headers.get(name) == Some(value);
    (has("x-ms-access-tier", "Cool") && has("x-ms-access-tier-inferred", "true"))
        || answer.body.windows(LISTED.len()).any(|part| part == LISTED)
}

/// Returns the body of a Set Service Properties with the derived settings; `None` when there are
/// none.
pub fn service_properties(settings: &AccountSettings, service: Service) -> Option<String> {
    let mut sections = settings.sections.clone();
    let mut infer = |name, section: String| {
        if sections.iter().all(|(shown, _)| *shown != name) {
            sections.push((name, section));
        }
    };
    if let Some(rule) = settings.cors {
        infer("Cors", rule.document());
    }
    if settings.blob_soft_delete && service == Service::Blob {
        let days = "<Enabled>true</Enabled><Days>7</Days>";
        let permanent = if settings.permanent_delete {
            "<AllowPermanentDelete>true</AllowPermanentDelete>"
        } else {
            ""
        };
        let name = "DeleteRetentionPolicy";
        infer(name, format!("<{name}>{days}{permanent}</{name}>"));
    }
    if let (Some(version), Service::Blob) = (&settings.default_version, service) {
        let name = "DefaultServiceVersion";
        infer(name, format!("<{name}>{version}</{name}>"));
    }
    if sections.is_empty() {
        return None;
    }
    let sections: String = sections.into_iter().map(|(_, section)| section).collect();
    let root = "StorageServiceProperties";
    Some(format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><{root}>{sections}</{root}>"
    ))
}

/// A container, queue or table that exists before a recording starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Existing {
    /// Name of the recorded account; `None` for that of the first request.
    pub account: Option<String>,
    /// Name of the resource.
    pub name: String,
    /// Whether it was deleted just before and is still being deleted.
    pub being_deleted: bool,
}

/// Returns what must exist beforehand: what the recording uses but neither creates nor makes by
/// renaming, what exists at its first attempt to create it, and other things in its listings.
pub fn existing(recording: &Recording) -> Vec<Existing> {
    let is_renamed = |name: &&String| {
        let made = recording
            .interactions
            .iter()
            .filter(|one| one.response.status < 300);
        made.filter_map(creates).any(|(_, made)| made == **name)
    };
    let listed = recording.uncreated.iter().filter(|name| !is_renamed(name));
    let listed = listed.map(|name| Existing {
        account: None,
        name: name.clone(),
        being_deleted: false,
    });
    let mut found: Vec<Existing> = listed.collect();
    let gone = earlier::only_deleted(recording);
    if recording.has_flag("account_listing") {
        let foreign = superset::foreign_names(recording).into_iter();
        let foreign = foreign.filter(|name| !gone.contains(name));
        found.extend(foreign.map(|name| Existing {
            account: None,
            name,
            being_deleted: false,
        }));
    }
    let made: BTreeSet<_> = recording.interactions.iter().filter_map(creates).collect();
    let batched = recording.interactions.iter().flat_map(in_batch);
    let searched = recording.interactions.iter().filter_map(earlier::searched);
    // Names of tables are case-insensitive; other names have no capitals.
    let is_made = |(account, name): &(String, String)| {
        let mut made = made.iter();
        made.any(|(by, made)| by == account && made.eq_ignore_ascii_case(name))
    };
    let foreign: BTreeSet<_> = batched
        .chain(searched)
        .filter(|place| !is_made(place) && !recording.uncreated.contains(&place.1))
        .collect();
    found.extend(foreign.into_iter().map(|(account, name)| Existing {
        account: Some(account),
        name,
        being_deleted: false,
    }));
    let mut attempted = BTreeSet::new();
    for interaction in &recording.interactions {
        let Some((account, name)) = creates(interaction) else {
            continue;
        };
        if !attempted.insert((account.clone(), name.to_lowercase())) {
            continue;
        }
        let code = interaction.response.error_code().unwrap_or_default();
        let being_deleted = code.ends_with("BeingDeleted");
        let known =
            found.iter().any(|one| one.name.eq_ignore_ascii_case(&name)) || gone.contains(&name);
        if (being_deleted || code.ends_with("AlreadyExists")) && !known {
            found.push(Existing {
                account: Some(account),
                name,
                being_deleted,
            });
        }
    }
    found
}

/// Returns account and container of each part of a batch, unless the answer is that it does not
/// exist.
fn in_batch(interaction: &Interaction) -> Vec<(String, String)> {
    let url = Url::parse(&interaction.request.url);
    let batch = url.filter(|url| url.param("comp").as_deref() == Some("batch"));
    let account = batch.as_ref().and_then(|url| url.account_and_service());
    let Some((account, "blob")) = account else {
        return Vec::new();
    };
    let answer = String::from_utf8_lossy(&interaction.response.body);
    if answer.contains("ContainerNotFound") {
        return Vec::new();
    }
    let mut found = Vec::new();
    multipart::rewrite(&interaction.request.body, |part| {
        let path = part.target.trim_start_matches('/');
        if let Some((container, _)) = path.split_once('/') {
            found.push((account.to_owned(), container.to_owned()));
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn recording(lines: &[(&'static str, &str, u16, &'static str)]) -> Recording {
        let line = |(method, path, status, header): &(&'static str, &str, u16, &'static str)| {
            let (name, value) = header.split_once(": ").unwrap();
            let url = format!("https://account.blob.core.windows.net{path}");
            (*method, url, *status, vec![(name, value.to_owned())])
        };
        let mut recording = samples::blobs(&lines.iter().map(line).collect::<Vec<_>>());
        recording.uncreated = vec!["u".to_owned(), "e".to_owned()];
        recording
    }

    #[test]
    fn finds_what_must_exist_beforehand() {
        let exists = "x-ms-error-code: ContainerAlreadyExists";
        let deleting = "x-ms-error-code: ContainerBeingDeleted";
        let played = recording(&[
            ("PUT", "/a?restype=container", 409, exists),
            ("PUT", "/b?restype=container", 409, deleting),
            ("PUT", "/c?restype=container", 201, "x: y"),
            ("PUT", "/c?restype=container", 409, exists),
            ("PUT", "/u?restype=container", 409, exists),
            ("PUT", "/d?restype=container&comp=rename", 409, exists),
            ("PUT", "/e?restype=container&comp=rename", 200, "x: y"),
        ]);
        let found: Vec<(String, bool)> = existing(&played)
            .into_iter()
            .map(|e| (e.name, e.being_deleted))
            .collect();
        let expected = [("u", false), ("a", false), ("b", true), ("d", false)];
        assert_eq!(
            found,
            expected.map(|(name, deleting)| (name.to_owned(), deleting))
        );
    }

    /// A table that the recording creates did not exist, whatever the case of its name in a search
    /// for an entity.
    #[test]
    fn table_names_are_case_insensitive() {
        let at = |path: &str| format!("https://account.table.core.windows.net/{path}");
        let missing = vec![("x-ms-error-code", "ResourceNotFound".to_owned())];
        let lines = [
            ("POST", at("Tables"), 204, Vec::new()),
            (
                "GET",
                at("orders(PartitionKey='a',RowKey='b')"),
                404,
                missing.clone(),
            ),
            (
                "GET",
                at("blogs(PartitionKey='a',RowKey='b')"),
                404,
                missing,
            ),
        ];
        let mut played = samples::recording("table", &lines);
        let made = b"{\"TableName\":\"Orders\"}";
        played.interactions[0].request.body = made.to_vec().into();
        let found: Vec<String> = existing(&played).into_iter().map(|e| e.name).collect();
        assert_eq!(found, ["blogs"]);
    }

    #[test]
    fn reads_settings_until_the_recording_sets_its_own() {
        let properties = ("PUT", "/?restype=service&comp=properties", 202, "x: y");
        let kept = ("DELETE", "/c/b", 202, "x-ms-delete-type-permanent: false");
        let cors = ("GET", "/c/b", 200, "Vary: Origin");
        let settings = |lines: &[_], body: &[u8]| {
            let mut recording = recording(lines);
            recording.interactions[0].request.body = body.to_vec().into();
            infer(&recording, BTreeSet::new())
        };
        let before = settings(&[properties, kept, cors], b"<Logging>");
        assert!(before.blob_soft_delete);
        assert_eq!(before.cors, Some(CorsRule::OneOrigin));
        let body = service_properties(&before, Service::Blob).unwrap();
        assert!(body.contains("<Days>7</Days>") && body.contains("<CorsRule>"));
        let both = b"<Cors /><DeleteRetentionPolicy>";
        let after = settings(&[properties, kept, cors], both);
        assert!(!after.blob_soft_delete && after.cors.is_none());
        assert_eq!(service_properties(&after, Service::Blob), None);
    }
}

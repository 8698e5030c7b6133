//! The contents of the account before a recording, derived from its answers: blobs and deleted
//! containers.

use std::collections::{BTreeMap, BTreeSet};

use smalt_protocol::Timestamp;

use super::creation::start_of;
use super::recording::{Interaction, Recording};
use super::reruns::{created, deletes};
use super::superset;
use crate::wire::url::Url;

/// Seconds for which Azure reports a deleted container or queue as *being deleted*, about.
pub const BEING_DELETED_S: u64 = 30;

/// A blob that exists before a recording starts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExistingBlob {
    /// Creation time.
    pub created: Timestamp,
    /// Name of the recorded account.
    pub account: String,
    /// Path, percent-encoded.
    pub path: String,
    /// `x-ms-blob-type`: block or append blob.
    pub kind: &'static str,
}

/// The blob types for which an empty blob is enough.
const KINDS: [&str; 2] = ["BlockBlob", "AppendBlob"];

/// Returns the blobs that existed before, oldest first: those whose recorded creation time is
/// before the recording, which an overwrite keeps, and those that are deleted before anything else
/// happens to them.
pub fn blobs(recording: &Recording) -> Vec<ExistingBlob> {
    let start = start_of(recording);
    let mut found = BTreeSet::new();
    let mut touched = BTreeSet::new();
    for interaction in &recording.interactions {
        let url = Url::parse(&interaction.request.url);
        let account = url.as_ref().and_then(|url| url.account_and_service());
        let (Some(url), Some((account, "blob"))) = (&url, account) else {
            continue;
        };
        let is_first = touched.insert((account.to_owned(), url.path.clone()));
        let known = described(interaction, start)
            .or_else(|| (is_first && deletes_blob(interaction, url)).then_some((start, KINDS[0])));
        if let Some((created, kind)) = known {
            found.insert(ExistingBlob {
                created,
                account: account.to_owned(),
                path: url.path.clone(),
                kind,
            });
        }
    }
    found.into_iter().collect()
}

/// Returns the creation time and type of a blob that an answer shows to be older than the
/// recording.
fn described(interaction: &Interaction, start: Timestamp) -> Option<(Timestamp, &'static str)> {
    let answered = |name| interaction.response.headers.get(name);
    let created = answered("x-ms-creation-time").and_then(Timestamp::parse_rfc1123);
    let kind = answered("x-ms-blob-type")?;
    let kind = KINDS.into_iter().find(|known| *known == kind)?;
    Some((created.filter(|created| *created < start)?, kind))
}

fn deletes_blob(interaction: &Interaction, url: &Url) -> bool {
    interaction.request.method == "DELETE"
        && interaction.response.status == 202
        && url.segments().len() > 1
        && !url.has_param("versionid")
        && !url.has_param("snapshot")
}

/// A container that was deleted before a recording starts and can be restored in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeletedContainer {
    /// Time of the deletion.
    pub at: Timestamp,
    /// Time of the last modification, at the latest that of the deletion.
    pub changed: Timestamp,
    /// Name of the recorded account.
    pub account: String,
    /// Name of the container.
    pub name: String,
}

/// Returns the deleted containers in listings, oldest first.
pub fn deleted_containers(recording: &Recording) -> Vec<DeletedContainer> {
    let start = start_of(recording);
    let mut found = BTreeSet::new();
    for (account, listing) in listings(recording) {
        for entry in listing.split("<Container>").skip(1) {
            let time = |name| element(entry, name).and_then(Timestamp::parse_rfc1123);
            if let (Some(name), Some(at)) = (element(entry, "Name"), time("DeletedTime"))
                && at < start
            {
                found.insert(DeletedContainer {
                    at,
                    changed: time("Last-Modified").map_or(at, |changed| changed.min(at)),
                    account: account.clone(),
                    name: name.to_owned(),
                });
            }
        }
    }
    found.into_iter().collect()
}

/// Returns the names of containers that listings show only as deleted.
pub fn only_deleted(recording: &Recording) -> BTreeSet<String> {
    let (mut gone, mut living) = (BTreeSet::new(), BTreeSet::new());
    for (_, listing) in listings(recording) {
        for entry in listing.split("<Container>").skip(1) {
            let names = match element(entry, "DeletedTime") {
                Some(_) => &mut gone,
                None => &mut living,
            };
            names.extend(element(entry, "Name").map(str::to_owned));
        }
    }
    gone.retain(|name| !living.contains(name));
    gone
}

/// Whether a container, queue or table is created again within the time in which Azure would still
/// be deleting it.
pub fn makes_again_at_once(recording: &Recording) -> bool {
    let mut deleted = BTreeMap::new();
    recording.interactions.iter().any(|one| {
        if let Some(place) = deletes(one) {
            deleted.insert(place, one.date);
            return false;
        }
        let at = created(one).and_then(|place| deleted.get(&place));
        at.is_some_and(|at| one.date.since(*at).as_secs() < BEING_DELETED_S)
    })
}

/// Iterates over the listings of containers, with their accounts.
fn listings(recording: &Recording) -> impl Iterator<Item = (String, String)> {
    recording.interactions.iter().filter_map(|interaction| {
        if !superset::lists_account(&interaction.request) {
            return None;
        }
        let url = Url::parse(&interaction.request.url)?;
        let (account, service) = url.account_and_service()?;
        let listing = String::from_utf8_lossy(&interaction.response.body);
        (service == "blob").then(|| (account.to_owned(), listing.into_owned()))
    })
}

fn element<'a>(entry: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = entry.split_once(&format!("<{name}>"))?;
    rest.split('<').next()
}

/// Returns the account and name of the table in which a request does not find an entity: the
/// service has another error code for a missing table.
pub fn searched(interaction: &Interaction) -> Option<(String, String)> {
    let url = Url::parse(&interaction.request.url)?;
    let (account, "table") = url.account_and_service()? else {
        return None;
    };
    let segments = url.segments();
    let (name, _) = segments.first()?.split_once("(PartitionKey=")?;
    let is_missing = interaction.response.status == 404
        && interaction.response.error_code().as_deref() == Some("ResourceNotFound");
    is_missing.then(|| (account.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    #[test]
    fn an_older_creation_time_shows_an_existing_blob() {
        let url = |name: &str| format!("https://account.blob.core.windows.net/c/{name}");
        let described = |created: &str| {
            let kind = ("x-ms-blob-type", "BlockBlob".to_owned());
            vec![kind, ("x-ms-creation-time", created.to_owned())]
        };
        let older = "Wed, 08 May 2019 00:57:59 GMT";
        let played = samples::blobs(&[
            ("HEAD", url("new"), 200, described(samples::DATE)),
            ("HEAD", url("old"), 200, described(older)),
            ("GET", url("old"), 200, described(older)),
        ]);
        let found = blobs(&played);
        let paths: Vec<&str> = found.iter().map(|blob| blob.path.as_str()).collect();
        assert_eq!(paths, ["/c/old"]);
        assert_eq!(found[0].created.rfc1123(), older);
    }

    #[test]
    fn a_deletion_shows_an_existing_blob_unless_it_was_used_before() {
        let url = |path: &str| format!("https://account.blob.core.windows.net{path}");
        let played = samples::blobs(&[
            ("DELETE", url("/c/there"), 202, vec![]),
            ("PUT", url("/c/made"), 201, vec![]),
            ("DELETE", url("/c/made"), 202, vec![]),
            ("DELETE", url("/c/missing"), 404, vec![]),
            ("DELETE", url("/c/v?versionid=1"), 202, vec![]),
            ("DELETE", url("/c?restype=container"), 202, vec![]),
        ]);
        let found = blobs(&played);
        let paths: Vec<&str> = found.iter().map(|blob| blob.path.as_str()).collect();
        assert_eq!(paths, ["/c/there"]);
    }

    #[test]
    fn creation_soon_after_deletion_is_found() {
        let blob = |name: &str| format!("https://account.blob.core.windows.net/{name}");
        let container = |name: &str| blob(&format!("{name}?restype=container"));
        let queue = |name: &str| format!("https://account.queue.core.windows.net/{name}");
        let table = |path: &str| format!("https://account.table.core.windows.net/{path}");
        let again = |service, first, second: (&'static str, String)| {
            let (method, url) = second;
            let answers = [("DELETE", first, 204, vec![]), (method, url, 201, vec![])];
            let mut played = samples::recording(service, &answers);
            played.interactions[1].request.body = "{\"TableName\":\"Orders\"}".into();
            makes_again_at_once(&played)
        };
        assert!(again("blob", container("c"), ("PUT", container("c"))));
        assert!(!again("blob", container("c"), ("PUT", container("d"))));
        assert!(!again("blob", blob("c/b"), ("PUT", blob("c/b"))));
        assert!(again("queue", queue("q"), ("PUT", queue("q"))));
        let orders = || table("Tables('orders')");
        assert!(again("table", orders(), ("POST", table("Tables"))));
        let other = table("Tables('others')");
        assert!(!again("table", other, ("POST", table("Tables"))));
    }

    #[test]
    fn listings_show_deleted_containers() {
        let url = "https://account.blob.core.windows.net/?comp=list&include=deleted".to_owned();
        let mut played = samples::blobs(&[("GET", url, 200, vec![])]);
        let deleted = |name: &str, at: &str| {
            format!("<Container><Name>{name}</Name><DeletedTime>{at}</DeletedTime></Container>")
        };
        let body = format!(
            "<Containers><Container><Name>alive</Name></Container>{}{}</Containers>",
            deleted("late", "Fri, 01 Jan 2100 00:00:00 GMT"),
            deleted("gone", "Wed, 08 May 2019 00:57:59 GMT"),
        );
        played.interactions[0].response.body = body.into();
        let found = deleted_containers(&played);
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["gone"]);
        let only: Vec<String> = only_deleted(&played).into_iter().collect();
        assert_eq!(only, ["gone", "late"]);
    }
}

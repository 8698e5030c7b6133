//! Headers that the recorder of Data Lake traffic dropped: ids of leases, and sources of renames.
//!
//! As with [`sources`](super::sources), nothing is invented that could explain an answer: an id
//! stands where the answer shows that there was one, and a source is the path whose ETag the answer
//! repeats.

use std::collections::BTreeMap;

use super::recording::{HIERARCHICAL, Interaction, Recording};
use crate::wire::url::Url;

const LEASE_ID: &str = "x-ms-lease-id";
const RENAME_SOURCE: &str = "x-ms-rename-source";

/// Restores the headers.
pub fn restore(recording: &mut Recording) {
    if recording.has_flag(HIERARCHICAL) {
        restore_leases(recording);
        restore_sources(recording);
    }
}

fn restore_leases(recording: &mut Recording) {
    let mut held: BTreeMap<String, String> = BTreeMap::new();
    for (index, one) in recording.interactions.iter_mut().enumerate() {
        let Some(path) = path(one) else {
            continue;
        };
        let invented = format!("00000000-0000-4000-8000-{index:012}");
        let action = one.request.headers.get("x-ms-lease-action");
        let action = action.unwrap_or_default().to_ascii_lowercase();
        let succeeded = one.response.status < 300;
        if action == "acquire" && succeeded && !one.response.headers.has(LEASE_ID) {
            one.response.headers.push(LEASE_ID, &invented);
            held.insert(path, invented);
            continue;
        }
        let is_read = matches!(one.request.method.as_str(), "GET" | "HEAD");
        let is_sent = one.request.headers.has(LEASE_ID);
        let lacks_id = one.response.error_code().as_deref() == Some("LeaseIdMissing");
        let Some(id) = held
            .get(&path)
            .filter(|_| !is_read && !is_sent && !lacks_id)
        else {
            continue;
        };
        if action != "break" {
            one.request.headers.push(LEASE_ID, id);
        }
        match action.as_str() {
            "renew" => one.response.headers.push(LEASE_ID, id),
            "change" if succeeded => {
                let headers = &mut one.request.headers;
                headers.push("x-ms-proposed-lease-id", &invented);
                one.response.headers.push(LEASE_ID, &invented);
                held.insert(path, invented);
            }
            "release" | "break" if succeeded => {
                held.remove(&path);
            }
            _ => {}
        }
    }
}

fn restore_sources(recording: &mut Recording) {
    for index in 0..recording.interactions.len() {
        let (before, rest) = recording.interactions.split_at_mut(index);
        if let Some((one, _)) = rest.split_first_mut()
            && is_rename_without_source(one)
            && let Some(source) = source(before, one)
        {
            one.request.headers.push(RENAME_SOURCE, source);
        }
    }
}

fn is_rename_without_source(one: &Interaction) -> bool {
    let request = &one.request;
    let url = Url::parse(&request.url);
    let is_rename = url.is_some_and(|url| url.has_param("mode") && !url.has_param("action"));
    request.method == "PUT"
        && is_rename
        && !request.headers.has(RENAME_SOURCE)
        && one.response.status < 300
}

/// Returns the path that had the ETag of a rename's answer.
fn source(before: &[Interaction], rename: &Interaction) -> Option<String> {
    let tag = rename.response.headers.get("etag")?;
    let own = path(rename)?;
    let mut before = before.iter().rev();
    let found = before.find(|one| {
        one.response.headers.get("etag") == Some(tag) && path(one).is_some_and(|path| path != own)
    })?;
    Url::parse(&found.request.url).map(|url| url.path)
}

fn path(one: &Interaction) -> Option<String> {
    Url::parse(&one.request.url).map(|url| url.segments().join("/"))
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn url(path: &str) -> String {
        format!("https://account.blob.core.windows.net{path}")
    }

    fn headers(recording: &Recording, name: &str) -> Vec<Option<String>> {
        let all = recording.interactions.iter();
        all.map(|one| one.request.headers.get(name).map(str::to_owned))
            .collect()
    }

    #[test]
    fn ids_of_leases_are_restored_where_one_was_sent() {
        let mut recording = samples::blobs(&[
            ("PUT", url("/c/a?comp=lease"), 201, Vec::new()),
            ("PUT", url("/c/a"), 201, Vec::new()),
            ("PUT", url("/c/b"), 201, Vec::new()),
            ("PUT", url("/c/a?comp=lease"), 200, Vec::new()),
            ("PUT", url("/c/a"), 201, Vec::new()),
        ]);
        recording.flags.push(HIERARCHICAL.to_owned());
        for (index, action) in [(0, "acquire"), (3, "release")] {
            let headers = &mut recording.interactions[index].request.headers;
            headers.push("x-ms-lease-action", action);
        }
        restore(&mut recording);
        let id = recording.interactions[0].response.headers.get(LEASE_ID);
        let id = id.map(str::to_owned);
        assert!(id.is_some());
        let expected = [None, id.clone(), None, id, None];
        assert_eq!(headers(&recording, LEASE_ID), expected);
    }

    #[test]
    fn source_of_a_rename_is_the_path_with_its_etag() {
        let tag = |tag: &str| vec![("etag", tag.to_owned())];
        let mut recording = samples::blobs(&[
            ("PUT", url("/c/a?resource=file"), 201, tag("1")),
            ("PUT", url("/c/d?resource=directory"), 201, tag("2")),
            ("PUT", url("/c/d%2Fb?mode=legacy"), 201, tag("1")),
        ]);
        recording.flags.push(HIERARCHICAL.to_owned());
        restore(&mut recording);
        let expected = [None, None, Some("/c/a".to_owned())];
        assert_eq!(headers(&recording, RENAME_SOURCE), expected);
    }
}

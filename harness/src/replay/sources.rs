//! Sources of copies that a recording does not show: blobs that its test wrote before the recorder
//! ran, headers that the recorder dropped, web pages.
//!
//! Nothing is invented that could explain an answer: a lost blob is created only when a later
//! answer contains its bytes, and a lost header is restored only as the answers describe it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use smalt_protocol::ByteRange;

use super::recording::{Interaction, Recording};
use crate::target::in_process::ELSEWHERE;
use crate::wire::url::{self, Url};

const COPY_SOURCE: &str = "x-ms-copy-source";
/// Headers of a web page that are known from the copy.
const DESCRIBED: [&str; 5] = [
    "content-type",
    "content-encoding",
    "content-language",
    "cache-control",
    "content-disposition",
];

/// A blob from which copies read and which no request of the recording wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostSource {
    /// Recorded URL of the blob.
    pub url: Url,
    /// Recorded URL of the request that copies it.
    pub near: String,
    /// Blob type; a block blob unless an answer tells another type.
    pub kind: String,
    /// Content of the blob.
    pub content: Bytes,
}

/// One request that creates a lost source: query, headers, and whether it has the bytes as its
/// body.
pub type Step = (&'static str, Vec<(&'static str, String)>, bool);

impl LostSource {
    /// Returns the requests that create the blob.
    pub fn steps(&self) -> Vec<Step> {
        let kind = ("x-ms-blob-type", self.kind.clone());
        let octets = "application/octet-stream".to_owned();
        let media_type = ("x-ms-blob-content-type", octets);
        let length = self.content.len();
        match self.kind.as_str() {
            "AppendBlob" => vec![
                ("", vec![kind, media_type], false),
                ("?comp=appendblock", Vec::new(), true),
            ],
            "PageBlob" => {
                let size = ("x-ms-blob-content-length", length.to_string());
                let range = format!("bytes=0-{}", length.saturating_sub(1));
                let update = ("x-ms-page-write", "update".to_owned());
                vec![
                    ("", vec![kind, media_type, size], false),
                    ("?comp=page", vec![update, ("x-ms-range", range)], true),
                ]
            }
            _ => vec![("", vec![kind, media_type], true)],
        }
    }
}

/// Returns the lost sources whose bytes are known.
pub fn lost(recording: &Recording) -> Vec<LostSource> {
    let (mut written, mut found) = (BTreeSet::new(), BTreeMap::new());
    for interaction in &recording.interactions {
        let (request, response) = (&interaction.request, &interaction.response);
        let source = request.headers.get(COPY_SOURCE).and_then(Url::parse);
        if let Some(url) = source.filter(is_blob)
            && !written.contains(&url.path)
            && !found.contains_key(&url.path)
            && let Some(content) = content_of(recording, &url.path)
        {
            let lost = LostSource {
                near: request.url.clone(),
                kind: kind_of(recording, &url.path),
                content,
                url: url.clone(),
            };
            found.insert(url.path, lost);
        }
        if let Some(url) = Url::parse(&request.url)
            && request.method == "PUT"
            && response.status < 300
        {
            written.insert(url.path);
        }
    }
    found.into_values().collect()
}

fn is_blob(url: &Url) -> bool {
    matches!(url.account_and_service(), Some((_, "blob"))) && url.segments().len() > 1
}

/// Returns the blob type in an answer.
fn kind_of(recording: &Recording, path: &str) -> String {
    let mut told = recording.interactions.iter().filter_map(|interaction| {
        let url = Url::parse(&interaction.request.url)?;
        let kind = interaction.response.headers.get("x-ms-blob-type")?;
        (url.path == path).then(|| kind.to_owned())
    });
    told.next().unwrap_or_else(|| "BlockBlob".to_owned())
}

/// Returns the bytes of a source, if a destination with the same ranges of it was read completely.
fn content_of(recording: &Recording, source: &str) -> Option<Bytes> {
    let copies = recording.interactions.iter().filter(|i| {
        let url = i.request.headers.get(COPY_SOURCE).and_then(Url::parse);
        i.response.status < 300 && url.is_some_and(|url| url.path == source)
    });
    let copies: Vec<&Interaction> = copies.collect();
    let ends = copies.iter().filter_map(|copy| {
        let range = copy.request.headers.get("x-ms-source-range")?;
        ByteRange::parse(range)?.last?.checked_add(1)
    });
    let length = usize::try_from(ends.max()?).ok()?;
    let destinations: BTreeSet<String> = copies
        .iter()
        .filter_map(|copy| Some(Url::parse(&copy.request.url)?.path))
        .collect();
    recording.interactions.iter().find_map(|interaction| {
        let url = Url::parse(&interaction.request.url)?;
        let is_read = interaction.request.method == "GET"
            && matches!(interaction.response.status, 200 | 206)
            && !url.has_param("comp")
            && destinations.contains(&url.path);
        let body = &interaction.response.body;
        (is_read && body.len() >= length).then(|| body.slice(..length))
    })
}

/// Returns the recording with the copy sources that its recorder dropped.
#[must_use]
pub fn restored(recording: &Recording) -> Recording {
    let mut restored = recording.clone();
    let mut all = recording.interactions.iter();
    if all.any(|interaction| interaction.request.headers.has(COPY_SOURCE)) {
        return restored;
    }
    for (index, interaction) in restored.interactions.iter_mut().enumerate() {
        if lacks_source(interaction)
            && let Some(source) = source_of(recording, index)
        {
            interaction.request.headers.push(COPY_SOURCE, source);
        }
    }
    restored
}

/// Whether a request lost its source: a Put Blob without a type that was not rejected for it, an
/// incremental copy, or a block or page with a range of its source.
fn lacks_source(interaction: &Interaction) -> bool {
    let request = &interaction.request;
    let Some(url) = Url::parse(&request.url).filter(is_blob) else {
        return false;
    };
    let code = interaction.response.error_code().unwrap_or_default();
    let has_range = request.headers.has("x-ms-source-range");
    request.method == "PUT"
        && (!url.has_param("comp") || is_incremental(&url) || has_range)
        && !url.has_param("restype")
        && !request.headers.has("x-ms-blob-type")
        && request.body.is_empty()
        && code != "MissingRequiredHeader"
}

fn is_incremental(url: &Url) -> bool {
    url.param("comp").as_deref() == Some("incrementalcopy")
}

/// Returns the source according to the answers: the value that was rejected, a page whose length no
/// blob has, or the blob, snapshot or version that the test used before.
fn source_of(recording: &Recording, index: usize) -> Option<String> {
    let interaction = recording.interactions.get(index)?;
    if let Some(refused) = refused_value(interaction) {
        return Some(refused);
    }
    let own = Url::parse(&interaction.request.url)?;
    let part = |url: &Url| (url.param("snapshot"), url.param("versionid"));
    let before = recording.interactions.get(..index)?.iter().rev();
    let mut before = before.filter(|one| one.response.status < 300);
    if is_incremental(&own) {
        return before.find_map(snapshot_of).map(|url| url.to_string());
    }
    let mut before = before.filter_map(|one| Url::parse(&one.request.url).filter(is_blob));
    let mut source = before.find(|url| url.path != own.path || part(url) != (None, None))?;
    let is_base = part(&source) == (None, None);
    let length = length_of(recording, index, &source).filter(|_| is_base);
    if let Some((total, described)) = copied(recording, interaction)
        && length.is_some_and(|length| length != total)
    {
        return Some(elsewhere(total, described));
    }
    let query = source.query.take().unwrap_or_default();
    let kept = ["snapshot", "versionid"];
    let query = query
        .into_iter()
        .filter(|(name, _)| kept.contains(&name.as_str()));
    let query: Vec<_> = query.collect();
    source.query = (!query.is_empty()).then_some(query);
    Some(source.to_string())
}

/// Returns the snapshot that an interaction created.
fn snapshot_of(interaction: &Interaction) -> Option<Url> {
    let taken = interaction.response.headers.get("x-ms-snapshot")?;
    let mut url = Url::parse(&interaction.request.url)?;
    url.query = Some(vec![("snapshot".to_owned(), Some(url::encode(taken)))]);
    Some(url)
}

fn refused_value(interaction: &Interaction) -> Option<String> {
    let body = std::str::from_utf8(&interaction.response.body).ok()?;
    body.contains("<HeaderName>x-ms-copy-source</HeaderName>")
        .then_some(())?;
    let (_, rest) = body.split_once("<HeaderValue>")?;
    Some(rest.split_once("</HeaderValue>")?.0.to_owned())
}

/// Returns the length of the last content under a path before an interaction.
fn length_of(recording: &Recording, index: usize, source: &Url) -> Option<u64> {
    let before = recording.interactions.get(..index)?.iter().rev();
    let mut before = before.filter(|one| {
        one.request.headers.get("x-ms-blob-type") == Some("BlockBlob")
            && Url::parse(&one.request.url).is_some_and(|url| url.path == source.path)
    });
    before.next().map(|one| one.request.body.len() as u64)
}

/// Returns the length of a copy, and the answer that shows it.
fn copied<'a>(
    recording: &'a Recording,
    interaction: &Interaction,
) -> Option<(u64, &'a Interaction)> {
    let id = interaction.response.headers.get("x-ms-copy-id")?;
    recording.interactions.iter().find_map(|one| {
        let headers = &one.response.headers;
        let progress = headers.get("x-ms-copy-progress")?;
        let (_, total) = progress.split_once('/')?;
        (headers.get("x-ms-copy-id") == Some(id)).then_some(())?;
        Some((total.parse().ok()?, one))
    })
}

fn elsewhere(length: u64, described: &Interaction) -> String {
    let mut url = format!("https://{ELSEWHERE}/page?length={length}");
    for name in DESCRIBED {
        if let Some(value) = described.response.headers.get(name) {
            url.push_str(&format!("&{name}={}", url::encode(value)));
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn url(path: &str) -> String {
        format!("https://account.blob.core.windows.net{path}")
    }

    #[test]
    fn dropped_sources_are_earlier_blobs() {
        let none = Vec::new;
        let id = |id: &str| vec![("x-ms-copy-id", id.to_owned())];
        let shown = |id: &str, progress: &str| {
            let kind = ("content-type", "text/html".to_owned());
            vec![
                ("x-ms-copy-id", id.to_owned()),
                ("x-ms-copy-progress", progress.to_owned()),
                kind,
            ]
        };
        let mut recording = samples::blobs(&[
            ("PUT", url("/c?restype=container"), 201, none()),
            ("PUT", url("/c/a"), 201, none()),
            ("PUT", url("/c/a?comp=tags"), 204, none()),
            ("PUT", url("/c/b"), 202, id("1")),
            ("HEAD", url("/c/b?versionid=v&x=1"), 200, none()),
            ("PUT", url("/c/b"), 202, id("2")),
            ("PUT", url("/c/d"), 202, id("3")),
            ("HEAD", url("/c/d"), 200, shown("3", "9/9")),
        ]);
        let kind = &mut recording.interactions[1].request.headers;
        kind.push("x-ms-blob-type", "BlockBlob");
        let kind = &mut recording.interactions[5].request.headers;
        kind.push("x-ms-blob-type", "BlockBlob");
        let sources: Vec<Option<String>> = restored(&recording)
            .interactions
            .iter()
            .map(|one| one.request.headers.get(COPY_SOURCE).map(str::to_owned))
            .collect();
        let web = "https://elsewhere.invalid/page?length=9&content-type=text%2Fhtml";
        assert_eq!(sources[..3], [None, None, None]);
        assert_eq!(sources[3], Some(url("/c/a")));
        assert_eq!(sources[4..6], [None, None]);
        assert_eq!(sources[6].as_deref(), Some(web));
    }

    #[test]
    fn lost_bytes_are_those_of_the_copy() {
        let mut recording = samples::blobs(&[
            ("PUT", url("/c/b?comp=block"), 201, Vec::new()),
            ("GET", url("/c/b"), 200, Vec::new()),
        ]);
        let headers = &mut recording.interactions[0].request.headers;
        headers.push(COPY_SOURCE, url("/c/lost?sig=x"));
        headers.push("x-ms-source-range", "bytes=0-2");
        assert_eq!(lost(&recording), []);
        recording.interactions[1].response.body = Bytes::from_static(b"lost!");
        let found = lost(&recording);
        assert_eq!(found[0].url.path, "/c/lost");
        assert_eq!(found[0].content, "los");
    }
    #[test]
    fn a_block_with_a_range_comes_from_the_earlier_blob() {
        let mut recording = samples::blobs(&[
            ("PUT", url("/c/a"), 201, Vec::new()),
            ("PUT", url("/c/b?comp=page"), 201, Vec::new()),
        ]);
        let headers = &mut recording.interactions[1].request.headers;
        headers.push("x-ms-source-range", "bytes=0-511");
        let restored = restored(&recording);
        let headers = &restored.interactions[1].request.headers;
        assert_eq!(headers.get(COPY_SOURCE), Some(url("/c/a").as_str()));
    }
}

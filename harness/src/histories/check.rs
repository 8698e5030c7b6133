//! Compares an answer with the expected one.

pub mod tables;

use std::fmt::Display;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use smalt_model::expected::{Listed, Shown};
use smalt_model::vocabulary::{Metadata, Tag};
use smalt_model::{Expected, Fact};
use smalt_protocol::Timestamp;

use super::documents::{self, Entry, Message};
use super::names::Names;
use super::run::Answered;
use crate::wire::Answer;

/// Compares an answer, and records the values that the service generated.
///
/// # Errors
/// The first difference.
pub fn check(expected: &Expected, answered: &Answered, names: &mut Names) -> Result<(), String> {
    if let [Fact::Table(expected)] = expected.facts.as_slice() {
        return tables::judge(expected, answered.table.as_ref(), names);
    }
    let (answer, entries) = (&answered.answer, &answered.entries);
    let code = answer.header("x-ms-error-code");
    let wanted = expected.code.map(smalt_protocol::ErrorCode::as_str);
    if (answer.status, code) != (expected.status, wanted) {
        let (status, code) = (answer.status, code.unwrap_or("-"));
        let (wanted_status, wanted) = (expected.status, wanted.unwrap_or("-"));
        return Err(format!(
            "{status} {code} in place of {wanted_status} {wanted}"
        ));
    }
    let mut facts = expected.facts.iter();
    facts.try_for_each(|fact| check_fact(fact, answer, entries, names))
}

fn check_fact(
    fact: &Fact,
    answer: &Answer,
    entries: &[Entry],
    names: &mut Names,
) -> Result<(), String> {
    let text = |name: &str| {
        let value = answer.header(name);
        value.ok_or_else(|| format!("no header {name}"))
    };
    match fact {
        Fact::Tag(tag) => names.see_tag(*tag, text("etag")?).map_err(of("ETag")),
        Fact::LastModified(seconds) => {
            let wanted = Timestamp::from_unix_s(*seconds).rfc1123();
            same("Last-Modified", &wanted.as_str(), &text("last-modified")?)
        }
        Fact::Header(name, wanted) => {
            let (wanted, got) = (wanted.as_deref(), answer.header(name));
            same(name, &wanted.unwrap_or("-"), &got.unwrap_or("-"))
        }
        Fact::LeaseId(id) => names
            .see_lease(*id, text("x-ms-lease-id")?)
            .map_err(of("lease id")),
        Fact::Snapshot(moment) => names
            .see_moment(*moment, text("x-ms-snapshot")?)
            .map_err(of("snapshot")),
        Fact::Receipt(receipt) => names
            .see_receipt(*receipt, text("x-ms-popreceipt")?)
            .map_err(of("receipt")),
        Fact::Metadata(wanted) => same_debug("metadata", wanted, &metadata(answer)),
        Fact::Body(wanted) => {
            same_debug("body", wanted, &answer.body.to_vec())?;
            check_md5(answer)
        }
        Fact::Listed(wanted) => check_listed(wanted, entries, names),
        Fact::Paths(wanted) => check_paths(wanted, entries, names),
        Fact::Blocks(committed, uncommitted) => {
            let (old, new) = documents::blocks(&answer.body)?;
            same_debug("committed blocks", committed, &old)?;
            same_debug("uncommitted blocks", uncommitted, &new)
        }
        Fact::Ranges(wanted) => {
            same_debug("page ranges", wanted, &documents::ranges(&answer.body)?)
        }
        Fact::Resources(wanted) => check_resources(wanted, entries),
        Fact::Tags(wanted) => same_debug("tags", wanted, &documents::tags(&answer.body)?),
        Fact::Table(_) => Err("a fact about the Table service must be the only one".to_owned()),
        Fact::Messages(wanted) => {
            check_messages(wanted, &documents::messages(&answer.body)?, names)
        }
    }
}

/// A blob that is read whole shows the MD5 of its bytes, or none.
fn check_md5(answer: &Answer) -> Result<(), String> {
    let shown = answer.header("content-md5");
    let Some(shown) = shown.filter(|_| answer.status == 200) else {
        return Ok(());
    };
    let md5 = STANDARD.encode(Md5::digest(&answer.body));
    same("Content-MD5", &md5.as_str(), &shown)
}

fn of(what: &'static str) -> impl Fn(String) -> String {
    move |difference| format!("{what}: {difference}")
}

fn same<T: PartialEq + Display>(what: &str, wanted: &T, got: &T) -> Result<(), String> {
    if wanted == got {
        return Ok(());
    }
    Err(format!("{what}: {got} in place of {wanted}"))
}

fn same_debug<T: PartialEq + std::fmt::Debug>(
    what: &str,
    wanted: &T,
    got: &T,
) -> Result<(), String> {
    if wanted == got {
        return Ok(());
    }
    Err(format!("{what}: {got:?} in place of {wanted:?}"))
}

/// Returns the user metadata of an answer.
pub fn metadata(answer: &Answer) -> Metadata {
    let pairs = answer.headers.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix("x-ms-meta-")?;
        Some((name.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

fn check_listed(wanted: &[Listed], got: &[Entry], names: &mut Names) -> Result<(), String> {
    same("number of entries", &wanted.len(), &got.len())?;
    for (wanted, got) in wanted.iter().zip(got) {
        match (wanted, got) {
            (Listed::Prefix(wanted), Entry::Prefix(got)) => same("prefix", wanted, got)?,
            (
                Listed::Blob {
                    name,
                    snapshot,
                    tag,
                    length,
                    deleted,
                    detail,
                },
                Entry::Blob(got),
            ) => {
                same("name", name, &got.name)?;
                same("length", length, &got.length)?;
                same("deleted", deleted, &got.deleted)?;
                if let Some((metadata, tags, kind)) = detail {
                    same_debug("metadata", metadata, &got.metadata)?;
                    same_debug("tags", tags, &got.tags)?;
                    same("type", &(*kind).to_owned(), &got.kind)?;
                }
                seen("snapshot", *snapshot, got.snapshot.as_deref(), |n, text| {
                    names.see_moment(n, text)
                })?;
                seen("ETag", *tag, got.tag.as_deref(), |n, text| {
                    names.see_tag(n, text)
                })?;
            }
            _ => return Err(format!("{got:?} in place of {wanted:?}")),
        }
    }
    Ok(())
}

fn check_paths(
    wanted: &[(String, bool, Tag, u64)],
    got: &[Entry],
    names: &mut Names,
) -> Result<(), String> {
    same("number of paths", &wanted.len(), &got.len())?;
    for ((name, is_directory, tag, length), got) in wanted.iter().zip(got) {
        let Entry::Path(got) = got else {
            return Err(format!("{got:?} in place of {name}"));
        };
        same("name", name, &got.name)?;
        same("directory", is_directory, &(got.is_directory == "true"))?;
        same("length", &length.to_string(), &got.content_length)?;
        let text = got.tag();
        seen("ETag", Some(*tag), text.as_deref(), |n, text| {
            names.see_tag(n, text)
        })?;
    }
    Ok(())
}

fn check_resources(wanted: &[(String, Option<Metadata>)], got: &[Entry]) -> Result<(), String> {
    same("number of entries", &wanted.len(), &got.len())?;
    for ((name, metadata), got) in wanted.iter().zip(got) {
        let Entry::Resource(got_name, got_metadata) = got else {
            return Err(format!("{got:?} in place of {name}"));
        };
        same("name", name, got_name)?;
        same_debug(
            "metadata",
            &metadata.clone().unwrap_or_default(),
            got_metadata,
        )?;
    }
    Ok(())
}

/// Compares a generated value, which must be present on both sides or on neither.
fn seen<T>(
    what: &'static str,
    wanted: Option<T>,
    got: Option<&str>,
    see: impl FnOnce(T, &str) -> Result<(), String>,
) -> Result<(), String> {
    match (wanted, got) {
        (Some(wanted), Some(got)) => see(wanted, got).map_err(of(what)),
        (None, None) => Ok(()),
        (Some(_), None) => Err(format!("no {what}")),
        (None, Some(got)) => Err(format!("{what}: {got} in place of none")),
    }
}

fn check_messages(wanted: &[Shown], got: &[Message], names: &mut Names) -> Result<(), String> {
    same("number of messages", &wanted.len(), &got.len())?;
    for (wanted, got) in wanted.iter().zip(got) {
        names
            .see_message(wanted.id, &got.id)
            .map_err(of("message id"))?;
        seen(
            "receipt",
            wanted.receipt,
            got.receipt.as_deref(),
            |n, text| names.see_receipt(n, text),
        )?;
        same_debug("text", &wanted.text, &got.text)?;
        same_debug("dequeue count", &wanted.dequeue_count, &got.dequeue_count)?;
        same_debug("insertion time", &Some(wanted.inserted_s), &got.inserted_s)?;
        same_debug("expiration time", &wanted.expires_s, &got.expires_s)?;
        same_debug("time next visible", &wanted.visible_s, &got.visible_s)?;
    }
    Ok(())
}

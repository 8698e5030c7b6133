//! Effects of calls on the model.

use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::*;

use super::{Blob, Copy, Inner, Key};

pub(super) fn error(operation: &'static str, resource: &str, kind: ErrorKind) -> PortError {
    PortError::new(kind, operation, resource, "fake")
}

pub(super) fn tag(etag: u64) -> Tag {
    Tag(format!("\"0x{etag:X}\""))
}

pub(super) fn leased(blob: &Blob, now: Timestamp) -> Option<&str> {
    let (id, until) = blob.lease.as_ref()?;
    (*until > now).then_some(id.as_str())
}

pub(super) fn properties(blob: &Blob, now: Timestamp) -> BlobProperties {
    BlobProperties {
        etag: tag(blob.etag),
        last_modified: blob.modified,
        length: blob.content.len() as u64,
        content_md5: None,
        content_type: None,
        metadata: blob.metadata.clone(),
        lease: match leased(blob, now) {
            Some(_) => LeaseState::Locked,
            None => LeaseState::Unlocked,
        },
        kind: blob.kind,
        copy: blob.copy.as_ref().map(|copy| CopyState {
            id: copy.id.clone(),
            status: copy.status,
            source: Some(format!(
                "fake://{}/{}/{}",
                copy.source.0, copy.source.1, copy.source.2
            )),
            description: None,
        }),
        access_tier: blob.tier.clone(),
        tag_count: blob.tags.len() as u32,
        tags: None,
    }
}

pub(super) fn check(
    blob: Option<&Blob>,
    conditions: &Conditions,
    now: Timestamp,
) -> Result<(), ErrorKind> {
    if let Some(blob) = blob {
        if conditions.if_absent {
            return Err(ErrorKind::AlreadyExists);
        }
        if conditions
            .if_match
            .as_ref()
            .is_some_and(|t| *t != tag(blob.etag))
        {
            return Err(ErrorKind::ConditionNotMet);
        }
        let is_tagged = |asked: &String| {
            let mut tags = blob.tags.iter();
            tags.any(|(key, value)| *asked == format!("\"{key}\" = '{value}'"))
        };
        if !conditions.if_tags.as_ref().is_none_or(is_tagged) {
            return Err(ErrorKind::ConditionNotMet);
        }
        match (leased(blob, now), conditions.lease_id.as_deref()) {
            (Some(_), None) => return Err(ErrorKind::Leased),
            (Some(held), Some(given)) if held != given => return Err(ErrorKind::LeaseLost),
            (None, Some(_)) => return Err(ErrorKind::LeaseLost),
            _ => {}
        }
    } else if conditions.if_match.is_some() {
        return Err(ErrorKind::ConditionNotMet);
    }
    Ok(())
}

pub(super) fn new_blob(
    inner: &mut Inner,
    now: Timestamp,
    content: Bytes,
    metadata: Metadata,
) -> Blob {
    Blob {
        content,
        etag: inner.tick(),
        modified: now.floor_s(),
        metadata,
        lease: None,
        kind: BlobKind::Block,
        copy: None,
        snapshots: false,
        immutable: false,
        tier: None,
        tags: Metadata::new(),
        of_worker: true,
    }
}

pub(super) fn copy(
    inner: &mut Inner,
    now: Timestamp,
    key: &Key,
    wanted: &StartCopy,
) -> Result<Blob, ErrorKind> {
    check(inner.blobs.get(key), &wanted.conditions, now)?;
    let url = wanted.source_url.split('?').next().unwrap_or_default();
    let source = super::key(url.trim_start_matches("fake://"));
    let from = inner.blobs.get(&source).ok_or(ErrorKind::NotFound)?.clone();
    if wanted
        .source_if_match
        .as_ref()
        .is_some_and(|t| *t != tag(from.etag))
    {
        return Err(ErrorKind::ConditionNotMet);
    }
    let conditions = &wanted.conditions;
    inner.judge_write(
        key,
        None,
        conditions.if_absent || conditions.if_match.is_some(),
    );
    let said = wanted
        .metadata
        .as_ref()
        .and_then(|m| metadata_value(m, "SourceETag"));
    if said != Some(&format!("0x{:X}", from.etag)) && !inner.operator {
        let name = &key.2;
        inner
            .violations
            .push(format!("SS3: the copy {name} says it is another version"));
    }
    let metadata = wanted.metadata.clone().unwrap_or(from.metadata);
    let mut blob = new_blob(inner, now, Bytes::new(), metadata);
    blob.kind = from.kind;
    blob.tier = wanted.tier.clone();
    blob.tags = wanted.tags.clone().unwrap_or_default();
    blob.of_worker = inner.blobs.get(key).is_none_or(|b| b.of_worker);
    let failing = inner.failing_copies > 0;
    inner.failing_copies = inner.failing_copies.saturating_sub(1);
    blob.copy = Some(Copy {
        id: format!("copy-{}", blob.etag),
        status: if failing {
            CopyStatus::Failed
        } else {
            CopyStatus::Pending
        },
        source,
        content: from.content,
        ends: now.plus(inner.copy_time),
    });
    inner.blobs.insert(key.clone(), blob.clone());
    inner.settle(now);
    Ok(blob)
}

pub(super) fn describe(
    inner: &mut Inner,
    now: Timestamp,
    key: &Key,
    metadata: &Metadata,
    conditions: &Conditions,
) -> Result<Written, ErrorKind> {
    inner.judge_write(key, None, conditions.if_match.is_some());
    if !inner.operator {
        return Err(ErrorKind::Refused);
    }
    let blob = inner.blobs.get(key).ok_or(ErrorKind::NotFound)?;
    check(Some(blob), conditions, now)?;
    let etag = inner.tick();
    let blob = inner.blobs.get_mut(key).ok_or(ErrorKind::NotFound)?;
    blob.etag = etag;
    blob.modified = now.floor_s();
    blob.metadata = metadata.clone();
    Ok(Written {
        etag: tag(etag),
        server_time: now.floor_s(),
    })
}

pub(super) fn list(
    inner: &Inner,
    now: Timestamp,
    place: (&str, &str),
    list: &ListBlobs,
) -> BlobPage {
    let most = if list.page_size == 0 {
        5_000
    } else {
        list.page_size as usize
    };
    let from = list.marker.clone().unwrap_or_default();
    let mut found = inner
        .blobs
        .iter()
        .filter(|((account, container, name), _)| {
            account == place.0
                && container == place.1
                && name.starts_with(&list.prefix)
                && name.as_str() >= from.trim_start_matches("m:")
        });
    let blobs = found.by_ref().take(most);
    let blobs = blobs.map(|(key, blob)| BlobItem {
        name: key.2.clone(),
        properties: BlobProperties {
            tags: (list.tags && !blob.tags.is_empty()).then(|| blob.tags.clone()),
            ..properties(blob, now)
        },
    });
    BlobPage {
        blobs: blobs.collect(),
        next_marker: found.next().map(|(key, _)| format!("m:{}", key.2)),
        server_time: now.floor_s(),
    }
}

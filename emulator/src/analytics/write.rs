//! Writes waiting lines into blobs of `$logs`.

use bytes::Bytes;
use smalt_protocol::{ErrorCode, Metadata, Service, StorageError, Timestamp};

use super::waiting::Lines;
use crate::body;
use crate::core::Core;
use crate::emulator::Emulator;
use crate::ops::blob::replace::{Marks, NewBlob};
use crate::ops::blob::{creation, expiry};
use crate::ops::container::system;
use crate::ops::lookup::{BlobName, ContainerName, Place};
use crate::records::{Access, BlobContent, BlobKind, ContentHeaders};
use crate::stage;
use crate::store::{self, Stamp, Transaction, View};

/// How long a line waits for others, in seconds; smalt's own choice. Production takes up to an
/// hour.
const WAIT_S: u64 = 60;
/// Bytes of lines that are written without waiting longer.
const WRITTEN_BYTES: usize = 1024 * 1024;

impl Emulator {
    /// Writes all waiting lines of Storage Analytics logging into blobs of `$logs`. The binary
    /// calls it by itself; a test in process calls it before it reads the logs.
    ///
    /// # Errors
    /// When the store cannot write; the lines are lost then.
    pub async fn write_logs(&self) -> Result<(), StorageError> {
        write(self.core(), |_| true).await
    }

    /// Writes the lines that have waited long enough, or are many.
    ///
    /// # Errors
    /// As [`Emulator::write_logs`].
    #[cfg(feature = "server")]
    pub(crate) async fn write_due_logs(&self) -> Result<(), StorageError> {
        let now = self.now();
        let is_due =
            |lines: &Lines| lines.first.plus_s(WAIT_S) <= now || lines.text.len() >= WRITTEN_BYTES;
        write(self.core(), is_due).await
    }
}

async fn write(core: &Core, is_due: impl Fn(&Lines) -> bool) -> Result<(), StorageError> {
    for ((account, service), lines) in core.analytics.take(is_due) {
        let mut text = body::full(Bytes::from(lines.text.clone()));
        let length = lines.text.len() as u64;
        let staged = stage::payload(&core.store, &mut text, length, false)
            .await?
            .staged;
        let container = system::name(&account, core.settings(&account), system::LOGS);
        let written = core.store.commit(move |tx, stamp| {
            let content = BlobContent::Payload(store::adopt(tx, staged)?);
            put(tx, container, service, &lines, content, stamp)
        });
        written.await?;
    }
    Ok(())
}

/// Writes a blob of lines, and the container if it does not exist.
fn put(
    tx: &mut Transaction<'_>,
    container: ContainerName,
    service: Service,
    lines: &Lines,
    content: BlobContent,
    stamp: &Stamp,
) -> Result<(), StorageError> {
    system::make_missing(tx, &container, stamp)?;
    let (name, place) = free_name(tx, container, &hour(service, lines.first), stamp)?;
    let new = NewBlob {
        kind: BlobKind::Block,
        length: lines.text.len() as u64,
        content,
        headers: ContentHeaders {
            content_type: Some("application/octet-stream".to_owned()),
            ..ContentHeaders::default()
        },
        metadata: metadata(lines)?,
        tags: Vec::new(),
        access: Access::given(None, stamp.now),
        copy: None,
        encryption: None,
        sequence_number: 0,
        marks: Marks::default(),
    };
    let mut blob = creation::make(tx, &name, &place, new, stamp)?;
    if let Some(days) = lines.retention_days {
        let expires = lines.last.plus_s(u64::from(days) * 86_400);
        let key = name.key(place.container.generation);
        expiry::set(tx, key, &mut blob, Some(expires))?;
    }
    Ok(())
}

/// Returns the first name of this hour that no blob has, and its place.
fn free_name(
    view: &dyn View,
    container: ContainerName,
    hour: &str,
    stamp: &Stamp,
) -> Result<(BlobName, Place), StorageError> {
    let mut name = BlobName {
        container,
        blob: String::new(),
    };
    for number in 0.. {
        name.blob = format!("{hour}{number:06}.log");
        let place = name.find_place(view, stamp.now)?;
        if place.blob.is_none() {
            return Ok((name, place));
        }
    }
    Err(ErrorCode::InternalError.into())
}

/// Returns the prefix of the blobs of an hour: `blob/2026/11/24/1000/`.
fn hour(service: Service, at: Timestamp) -> String {
    let time = at.iso_s();
    let (date, time) = time.split_at(10);
    let date = date.replace('-', "/");
    format!("{}/{date}/{}00/", service.as_str(), &time[1..3])
}

fn metadata(lines: &Lines) -> Result<Metadata, StorageError> {
    let purposes = ["read", "write", "delete"].into_iter().zip(lines.logged);
    let logged = purposes.filter(|(_, logged)| *logged).map(|(name, _)| name);
    let logged: Vec<_> = logged.collect();
    Metadata::from_named([
        ("LogType", logged.join(",").as_str()),
        ("StartTime", lines.first.iso_s().as_str()),
        ("EndTime", lines.last.iso_s().as_str()),
        ("LogVersion", lines.version.as_str()),
    ])
}

//! Reads request bodies: the only asynchronous step of a request.

use std::io;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use md5::{Digest, Md5};
use smalt_protocol::{ErrorCode, StorageError};

use crate::body::Body;
use crate::call::Call;
use crate::operation::Received;
use crate::store::Store;

/// Reads a whole document of at most `most` bytes.
pub async fn document(call: &Call, body: &mut Body, most: u64) -> Result<Bytes, StorageError> {
    if call.body_length.is_some_and(|length| length > most) {
        return Err(too_large(most));
    }
    at_most(body, most).await
}

/// Reads a whole body into memory.
///
/// # Errors
/// 413 `RequestBodyTooLarge` when it is longer than `most`, 400 `InvalidInput` when it breaks off.
pub async fn at_most(body: &mut Body, most: u64) -> Result<Bytes, StorageError> {
    let mut document = BytesMut::new();
    while let Some(chunk) = next(body).await? {
        if (document.len() + chunk.len()) as u64 > most {
            return Err(too_large(most));
        }
        document.extend_from_slice(&chunk);
    }
    Ok(document.freeze())
}

/// Returns the declared length of a payload, which is required and limited to `most` bytes.
pub fn payload_length(call: &Call, most: u64) -> Result<u64, StorageError> {
    match call.body_length {
        None => Err(ErrorCode::MissingContentLengthHeader.into()),
        Some(length) if length > most => Err(too_large(most)),
        Some(length) => Ok(length),
    }
}

/// Streams a payload into the store and computes its hashes, the MD5 only if it is needed.
pub async fn payload(
    store: &Store,
    body: &mut Body,
    length: u64,
    needs_md5: bool,
) -> Result<Received, StorageError> {
    let mut writer = store.stage(length)?;
    let mut md5 = needs_md5.then(Md5::new);
    let mut crc64 = crc64fast_nvme::Digest::new();
    let mut got = 0_u64;
    while let Some(chunk) = next(body).await? {
        got += chunk.len() as u64;
        if got > length {
            return Err(ErrorCode::InvalidInput.into());
        }
        if let Some(md5) = &mut md5 {
            md5.update(&chunk);
        }
        crc64.write(&chunk);
        writer.write(&chunk)?;
        // A source in this store is always ready, so without this the task would not yield to
        // others.
        tokio::task::coop::consume_budget().await;
    }
    if got != length {
        return Err(ErrorCode::InvalidInput.into());
    }
    Ok(Received {
        staged: writer.finish().await?,
        length,
        md5: md5.map(|md5| md5.finalize().into()),
        crc64: crc64.sum64().to_le_bytes(),
    })
}

/// Reads a body to its end and returns only its hashes: MD5, and CRC64 little-endian.
pub async fn hashes(body: &mut Body) -> Result<([u8; 16], [u8; 8]), StorageError> {
    let mut md5 = Md5::new();
    let mut crc64 = crc64fast_nvme::Digest::new();
    while let Some(chunk) = next(body).await? {
        md5.update(&chunk);
        crc64.write(&chunk);
        // A source in the store is always ready, so without this a long one would not yield to
        // others.
        tokio::task::yield_now().await;
    }
    Ok((md5.finalize().into(), crc64.sum64().to_le_bytes()))
}

async fn next(body: &mut Body) -> Result<Option<Bytes>, StorageError> {
    while let Some(frame) = body.frame().await {
        // The upload broke off or stalled: nothing is stored, and no client reads the response.
        let frame = frame.map_err(|error: io::Error| {
            StorageError::new(ErrorCode::InvalidInput).with_message(format!("Body: {error}"))
        })?;
        if let Ok(data) = frame.into_data()
            && !data.is_empty()
        {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

fn too_large(most: u64) -> StorageError {
    StorageError::new(ErrorCode::RequestBodyTooLarge).with_element("MaxLimit", &most.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body::Frame;
    use http_body_util::StreamBody;
    use smalt_protocol::Timestamp;

    use super::*;
    use crate::clock::Clock;
    use crate::store::StoreConfig;

    /// A copy within the store never waits for its source.
    #[tokio::test]
    async fn long_body_that_is_always_ready_yields_to_other_tasks() {
        const CHUNKS: usize = 10_000;
        let clock = Clock::manual(Timestamp::from_unix_s(1));
        let store = Store::open(StoreConfig::memory(clock)).unwrap();
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&turns);
        tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let chunks = (0..CHUNKS).map(|_| Ok(Frame::data(Bytes::from_static(b"x"))));
        let stream = StreamBody::new(futures_util::stream::iter(chunks));
        let mut body = BodyExt::boxed_unsync(stream);
        payload(&store, &mut body, CHUNKS as u64, true)
            .await
            .unwrap();
        assert!(turns.load(Ordering::Relaxed) > CHUNKS / 1_000);
    }

    /// A block's MD5 is not computed unless the response has it.
    #[tokio::test]
    async fn payload_has_an_md5_when_it_is_needed() {
        let clock = Clock::manual(Timestamp::from_unix_s(1));
        let store = Store::open(StoreConfig::memory(clock)).unwrap();
        for needs_md5 in [true, false] {
            let mut body = crate::body::full("abc");
            let received = payload(&store, &mut body, 3, needs_md5).await.unwrap();
            let expected = needs_md5.then(|| Md5::digest("abc").into());
            assert_eq!(received.md5, expected);
        }
    }
}

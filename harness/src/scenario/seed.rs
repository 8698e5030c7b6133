//! Blobs for the sweeper's binary: one of each kind, in the container `seeded`.

use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobId, CallContext, Metadata, PutBlob, Storage};

/// Name, `TimeToLive` in hours from now, `DeadBlobContainer`.
const BLOBS: [(&str, Option<i32>, Option<&str>); 6] = [
    ("untagged.txt", None, None),
    ("expired.txt", Some(-2), None),
    ("deep/expired too.txt", Some(-48), None),
    ("to-be-moved.txt", Some(-2), Some("seeded-dead/old/")),
    ("later.txt", Some(48), None),
    ("later-moved.txt", Some(48), Some("seeded-dead")),
];
const CONTAINER: &str = "seeded";
const HOUR_S: u64 = 3_600;

/// Puts these blobs, and one more whose `TimeToLive` is invalid. Returns the number of blobs.
///
/// # Errors
/// A description of the request that the service rejected.
pub async fn put_all(storage: &dyn Storage, now: Timestamp) -> Result<usize, String> {
    let cx = CallContext::default();
    let text = |error: smalt_sleeve::PortError| error.to_string();
    storage
        .create_container(&cx, CONTAINER)
        .await
        .map_err(text)?;
    let at = |hours: i32| {
        let span_s = u64::from(hours.unsigned_abs()) * HOUR_S;
        if hours < 0 {
            now.minus(std::time::Duration::from_secs(span_s)).iso_s()
        } else {
            now.plus_s(span_s).iso_s()
        }
    };
    let known = BLOBS.map(|(name, hours, dead)| (name, hours.map(at), dead));
    let all = known
        .into_iter()
        .chain([("no-time.txt", Some("soon".to_owned()), None)]);
    let mut count = 0;
    for (name, ttl, dead) in all {
        let mut metadata = Metadata::new();
        metadata.extend(ttl.map(|ttl| ("TimeToLive".to_owned(), ttl)));
        metadata.extend(dead.map(|dead| ("DeadBlobContainer".to_owned(), dead.to_owned())));
        let put = PutBlob {
            metadata,
            ..PutBlob::default()
        };
        let content = Bytes::from(format!("content of {name}"));
        let blob = BlobId::new(CONTAINER, name);
        storage
            .put_blob(&cx, &blob, content, &put)
            .await
            .map_err(text)?;
        count += 1;
    }
    Ok(count)
}

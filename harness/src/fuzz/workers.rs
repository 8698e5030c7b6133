//! Content of blobs and messages from untrusted clients, and settings from operators.

use smalt_listener::payload::envelope::{self, Bounds};
use smalt_listener::rules::requeue;
use smalt_sweeper::ttl::{self, TtlFormat};
use smalt_sweeper::{destination, state};

/// Parses an input with every parser of the workers.
///
/// # Panics
/// When a parser panics.
pub fn workers(input: &[u8]) {
    let bounds = Bounds {
        container: "payloads",
        payload_bytes_max: 1 << 20,
    };
    let _ = envelope::read(input, &bounds);
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let formats = [
        TtlFormat::Rfc3339,
        TtlFormat::Rfc1123,
        TtlFormat::UnixSeconds,
        TtlFormat::Pattern("yyyy-MM-dd HH:mm:ss".to_owned()),
    ];
    let _ = ttl::parse(text, &formats);
    let (value, name) = text.split_once('\n').unwrap_or((text, "b"));
    let _ = destination::resolve(value, name);
    let _ = state::read(text);
    let _ = requeue::open(text);
}

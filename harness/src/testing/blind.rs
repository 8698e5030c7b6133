//! Finds writes that replace content which the writer has not read.

use smalt::Exchange;

/// Operations that replace a blob, its metadata or its headers.
const WRITES: &[&str] = &[
    "BlockBlob_Upload",
    "BlockBlob_CommitBlockList",
    "BlockBlob_PutBlobFromUrl",
    "PageBlob_Create",
    "AppendBlob_Create",
    "Blob_StartCopyFromURL",
    "Blob_CopyFromURL",
    "Blob_SetMetadata",
    "Blob_SetHTTPHeaders",
];

/// Describes each blind write of `container/blob` in one line.
pub(super) fn writes(history: &[Exchange], path: &str) -> Vec<String> {
    let mut exists = false;
    let mut blind = Vec::new();
    for exchange in history.iter().filter(|e| path_of(e) == path) {
        let Some(operation) = exchange.operation else {
            continue;
        };
        if !exchange.response.status().is_success() {
            continue;
        }
        let headers = exchange.request.headers();
        let named = ["if-match", "x-ms-lease-id"]
            .iter()
            .any(|name| headers.contains_key(*name));
        match operation {
            "Blob_Delete" => exists = false,
            write if WRITES.contains(&write) => {
                if exists && !named {
                    blind.push(format!("  {write} at {} without If-Match", exchange.at));
                }
                exists = true;
            }
            _ => {}
        }
    }
    blind
}

/// Returns the decoded path of an exchange below its account: `container/blob`.
pub(super) fn path_of(exchange: &Exchange) -> String {
    let path = exchange.request.uri().path();
    let decoded = smalt_protocol::uri::percent_decode(path).unwrap_or_else(|_| path.to_owned());
    let below = decoded.trim_start_matches('/').split_once('/');
    below.map_or_else(String::new, |(_, below)| {
        below.trim_start_matches('/').to_owned()
    })
}

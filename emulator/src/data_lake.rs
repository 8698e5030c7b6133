//! Recognises requests of the Data Lake interface.
//!
//! An account has two interfaces to the same objects: Blob Storage and Data Lake Storage, "DFS".
//! Azure tells them apart by host name, `account.blob` and `account.dfs`. In path style, the socket
//! of the Blob service has one origin for both, so there the shape of a request decides; another
//! socket can serve the Data Lake interface alone.
//!
//! Source: the operation groups *Filesystem* and *Path* of "Azure Data Lake Storage REST API".

use http::{HeaderMap, Method};
use smalt_protocol::uri;

/// Second label of the Data Lake host names.
pub const LABEL: &str = "dfs";
/// Usual port of a socket that serves the Data Lake interface alone.
pub const PORT: u16 = 10_004;

const RESOURCES: [&str; 4] = ["account", "directory", "file", "filesystem"];

const ACTIONS: [&str; 8] = [
    "append",
    "checkAccess",
    "flush",
    "getAccessControl",
    "getStatus",
    "setAccessControl",
    "setAccessControlRecursive",
    "setProperties",
];

/// Returns whether only the Data Lake interface has requests of this shape. A request with an
/// operation of the Blob service in `restype` or `comp` never has it.
pub fn has_shape(method: &Method, headers: &HeaderMap, query: &[(String, String)]) -> bool {
    let is_one_of = |parameter: &str, values: &[&str]| {
        uri::lookup(query, parameter)
            .is_some_and(|given| values.iter().any(|value| value.eq_ignore_ascii_case(given)))
    };
    let names_blob_operation = ["restype", "comp"]
        .iter()
        .any(|parameter| uri::lookup(query, parameter).is_some());
    let renames = method == Method::PUT && headers.contains_key("x-ms-rename-source");
    let leases = method == Method::POST && headers.contains_key("x-ms-lease-action");
    let deletes_path = method == Method::DELETE && uri::lookup(query, "recursive").is_some();
    !names_blob_operation
        && (renames
            || leases
            || deletes_path
            || is_one_of("resource", &RESOURCES)
            || is_one_of("action", &ACTIONS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_shape_distinguishes_the_interfaces() {
        for (request, header, expected) in [
            ("GET ?resource=account", "", true),
            ("PUT ?resource=filesystem", "", true),
            ("GET ?recursive=true&resource=filesystem&upn=true", "", true),
            ("PUT ?resource=file", "", true),
            ("PUT ?Resource=Directory", "", true),
            ("PUT ?mode=legacy", "x-ms-rename-source", true),
            ("PATCH ?action=append&position=0", "", true),
            ("PATCH ", "", false),
            (
                "PUT ?action=flush&position=4",
                "x-http-method-override",
                true,
            ),
            ("PUT ", "x-http-method-override", false),
            ("HEAD ?action=getAccessControl&upn=false", "", true),
            ("HEAD ?action=getStatus", "", true),
            ("DELETE ?recursive=false", "", true),
            ("POST ", "x-ms-lease-action", true),
            ("GET ", "", false),
            ("HEAD ?action=download", "", false),
            ("GET ?mode=dark&recursive=true", "", false),
            ("PUT ?resource=other", "", false),
            ("PUT ?comp=lease", "x-ms-lease-action", false),
            ("PUT ?restype=container&resource=filesystem", "", false),
            ("DELETE ", "", false),
        ] {
            let (method, query) = request.split_once(' ').unwrap();
            let mut headers = HeaderMap::new();
            if !header.is_empty() {
                let value = http::HeaderValue::from_static("PATCH");
                headers.insert(http::HeaderName::from_static(header), value);
            }
            let method = method.parse().unwrap();
            let query = uri::parse_query(query.trim_start_matches('?')).unwrap();
            let found = has_shape(&method, &headers, &query);
            assert_eq!(found, expected, "{request} {header}");
        }
    }
}

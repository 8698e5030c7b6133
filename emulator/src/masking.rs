//! Request targets without the values of their signatures, for logs.

use http::Uri;
use percent_encoding::percent_decode_str;

/// Returns the request target as it was sent, with `mask` for the value of each signature: anyone
/// who has a signature can use it.
pub fn target(uri: &Uri, mask: &str) -> String {
    let text = uri.to_string();
    let Some((path, query)) = text.split_once('?') else {
        return text;
    };
    let parameters = query.split('&').map(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default();
        let decoded = percent_decode_str(name).decode_utf8_lossy();
        match decoded.eq_ignore_ascii_case("sig") {
            true => format!("{name}={mask}"),
            false => parameter.to_owned(),
        }
    });
    format!("{path}?{}", parameters.collect::<Vec<_>>().join("&"))
}

//! Access control of the control endpoint: rejects web pages and foreign host names, and requires
//! the token beyond loopback.

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{Request, StatusCode};

use super::Refusal;
use crate::body::Body;
use crate::config::AllowedHost;
use crate::rules::web;

pub(super) fn check(
    request: &Request<Body>,
    token: Option<&str>,
    allowed: &[AllowedHost],
) -> Result<(), Refusal> {
    let header = |name| request.headers().get(name).and_then(|v| v.to_str().ok());
    let forbidden = |message| Err(Refusal::new(StatusCode::FORBIDDEN, message));
    if request.headers().get_all(HOST).iter().count() > 1 {
        let message = "the request has more than one Host header";
        return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
    }
    let host = header(HOST).unwrap_or_default();
    let origin = request.headers().get(ORIGIN);
    let origin = origin.map(|origin| origin.to_str().unwrap_or_default());
    if origin.is_some_and(|origin| !web::is_trusted_origin(origin, host)) {
        return forbidden("requests from web pages of other origins are rejected");
    }
    match token {
        None if !web::is_known_host(host, allowed) => forbidden(
            "unknown host; use 127.0.0.1 or localhost, or start smalt with \
             --allowHost and this name",
        ),
        None => Ok(()),
        Some(token) => {
            let given = header(AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
            if given.is_some_and(|given| same(given.as_bytes(), token.as_bytes())) {
                Ok(())
            } else {
                Err(Refusal::new(
                    StatusCode::UNAUTHORIZED,
                    "send the token of --controlToken: Authorization: Bearer <token>",
                ))
            }
        }
    }
}

/// Compares in constant time for inputs of equal length.
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(headers: &[(&str, &str)], token: Option<&str>) -> u16 {
        let mut request = Request::get("/health");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(crate::body::empty()).unwrap();
        check(&request, token, &[]).map_or_else(|Refusal(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn web_pages_and_rebound_names_are_kept_out() {
        for (headers, expected) in [
            (vec![("host", "127.0.0.1:10003")], 200),
            (vec![("host", "localhost:10003")], 200),
            (vec![("host", "[::1]:10003")], 200),
            (vec![("host", "evil.example:10003")], 403),
            (vec![("host", "localhost"), ("host", "evil.example")], 400),
            (
                vec![("host", "evil.example"), ("origin", "http://evil.example")],
                403,
            ),
            (vec![], 403),
            (
                vec![("host", "localhost"), ("origin", "https://evil.example")],
                403,
            ),
            (vec![("host", "localhost"), ("origin", "null")], 403),
            (
                vec![("host", "localhost"), ("origin", "http://localhost:3000")],
                200,
            ),
        ] {
            assert_eq!(status(&headers, None), expected, "{headers:?}");
        }
    }

    #[test]
    fn token_is_required() {
        assert_eq!(
            status(&[("authorization", "Bearer secret")], Some("secret")),
            200
        );
        assert_eq!(
            status(&[("authorization", "Bearer secre")], Some("secret")),
            401
        );
        assert_eq!(status(&[("host", "localhost")], Some("secret")), 401);
    }
}

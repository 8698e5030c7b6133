//! Who may control: no web page, no foreign host name, and beyond loopback only who has the token.

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{Request, StatusCode};

use super::Refusal;
use crate::body::Body;

/// Checks a request before anything is done.
pub(super) fn check(request: &Request<Body>, token: Option<&str>) -> Result<(), Refusal> {
    let header = |name| request.headers().get(name).and_then(|v| v.to_str().ok());
    let forbidden = |message| Err(Refusal::new(StatusCode::FORBIDDEN, message));
    if header(ORIGIN).is_some_and(|origin| !is_local(host_of_origin(origin))) {
        return forbidden("requests of web pages from other origins are not answered");
    }
    match token {
        None if !header(HOST).is_some_and(|host| is_local(host_name(host))) => {
            forbidden("address the control endpoint as 127.0.0.1 or localhost")
        }
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

fn host_of_origin(origin: &str) -> &str {
    host_name(origin.split_once("://").map_or(origin, |(_, rest)| rest))
}

fn host_name(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

fn is_local(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// Compares in a time that does not depend on where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
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
        check(&request, token).map_or_else(|Refusal(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn web_pages_and_rebound_names_are_kept_out() {
        for (headers, expected) in [
            (vec![("host", "127.0.0.1:10003")], 200),
            (vec![("host", "localhost:10003")], 200),
            (vec![("host", "[::1]:10003")], 200),
            (vec![("host", "evil.example:10003")], 403),
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
    fn a_token_is_asked_for() {
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

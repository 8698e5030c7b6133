//! Cross-origin resource sharing: finds the rule that allows a request from another origin, and the
//! response headers that follow from it.
//!
//! Source: "Cross-Origin Resource Sharing (CORS) support for Azure Storage". The first rule whose
//! origins, methods and headers match decides. Recorded: reads without `Origin` get CORS headers
//! too.

use smalt_protocol::xml::CorsRule;

/// Matches any origin, method or header.
const ANY: &str = "*";

/// The CORS result for a request that is not a preflight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// The rule that allows the request; `None` if no rule matches.
    pub grant: Option<Grant<'a>>,
    /// Whether to send `Vary: Origin`, because the response depends on the origin.
    pub varies: bool,
}

/// A rule that matches a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant<'a> {
    /// The first matching rule of the service.
    pub rule: &'a CorsRule,
    /// `Access-Control-Allow-Origin`: the request's origin, or `*`.
    pub origin: &'a str,
}

impl Grant<'_> {
    /// Returns whether to send `Access-Control-Allow-Credentials`: only if the rule names the
    /// origin rather than `*`.
    pub fn allows_credentials(&self) -> bool {
        self.origin != ANY
    }
}

/// The headers of a preflight request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// `Origin`.
    pub origin: &'a str,
    /// `Access-Control-Request-Method`.
    pub method: &'a str,
    /// `Access-Control-Request-Headers`, as sent.
    pub headers: &'a str,
}

/// Finds the rule for a request that is not a preflight. Follows the source's table "Responses to
/// GET and HEAD"; other methods are allowed where a rule matches their origin.
pub fn verdict<'a>(rules: &'a [CorsRule], method: &str, origin: Option<&'a str>) -> Verdict<'a> {
    let grant = rules
        .iter()
        .filter(|rule| rule.methods.iter().any(|allowed| allowed == method))
        .find_map(|rule| grant(rule, origin));
    let reads = matches!(method, "GET" | "HEAD");
    let any_origin = grant.is_some_and(|grant| grant.origin == ANY);
    Verdict {
        grant,
        varies: reads && !rules.is_empty() && !any_origin,
    }
}

/// Returns the rule that allows a preflighted request.
pub fn preflight<'a>(rules: &'a [CorsRule], asked: &Asked<'a>) -> Option<Grant<'a>> {
    rules
        .iter()
        .filter(|rule| rule.methods.iter().any(|allowed| allowed == asked.method))
        .filter(|rule| names(asked.headers).all(|header| covers(&rule.allowed_headers, header)))
        .find_map(|rule| grant(rule, Some(asked.origin)))
}

/// Returns the value of `Access-Control-Expose-Headers`: the headers that the rule names, and those
/// of the response that it covers by a prefix or by `*`. Omit the header if the value is empty.
pub fn exposed<'a>(rule: &'a CorsRule, response: impl Iterator<Item = &'a str>) -> String {
    let is_pattern = |header: &&str| header.ends_with(ANY);
    let listed = rule.exposed_headers.iter().map(String::as_str);
    let mut exposed: Vec<&str> = listed.filter(|header| !is_pattern(header)).collect();
    for header in response {
        let is_listed = exposed.iter().any(|name| name.eq_ignore_ascii_case(header));
        if !is_listed && covers(&rule.exposed_headers, header) {
            exposed.push(header);
        }
    }
    exposed.join(",")
}

/// Returns the origin to allow, if the rule lists it exactly (case-sensitive), as a subdomain, or
/// by `*`. A request without an origin matches only `*`.
fn grant<'a>(rule: &'a CorsRule, origin: Option<&'a str>) -> Option<Grant<'a>> {
    let is = |allowed: &str, wanted: &str| allowed == wanted || is_subdomain(allowed, wanted);
    let has = |wanted: &str| rule.origins.iter().any(|allowed| is(allowed, wanted));
    let origin = match origin {
        Some(origin) if has(origin) => origin,
        _ if has(ANY) => ANY,
        _ => return None,
    };
    Some(Grant { rule, origin })
}

/// Returns `true` if `allowed` is a pattern such as `https://*.example.com` and `origin` is a
/// subdomain at any depth. The domain is compared without case.
fn is_subdomain(allowed: &str, origin: &str) -> bool {
    let Some((scheme, domain)) = allowed.split_once("*.") else {
        return false;
    };
    let Some(labels) = origin.len().checked_sub(domain.len() + 1) else {
        return false;
    };
    let (Some(start), Some(end)) = (origin.get(..labels), origin.get(labels..)) else {
        return false;
    };
    let is_below = end.starts_with('.') && end[1..].eq_ignore_ascii_case(domain);
    is_below && start.len() > scheme.len() && start.starts_with(scheme)
}

fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
}

/// Returns `true` if a pattern names the header, ignoring case. A pattern that ends in `*` matches
/// by prefix.
fn covers(patterns: &[String], header: &str) -> bool {
    patterns
        .iter()
        .any(|pattern| match pattern.strip_suffix(ANY) {
            Some(prefix) => header
                .get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix)),
            None => pattern.eq_ignore_ascii_case(header),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(origins: &[&str], methods: &[&str], headers: &[&str]) -> CorsRule {
        let own = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        CorsRule {
            methods: own(methods),
            origins: own(origins),
            allowed_headers: own(headers),
            exposed_headers: own(headers),
            max_age_s: 60,
        }
    }

    /// The rows of the source's table: rules, origin, granted origin, whether it varies.
    #[test]
    fn reads_follow_the_documented_table() {
        let every = [rule(&["*"], &["GET"], &[])];
        let one = [rule(&["http://a"], &["GET"], &[])];
        for (rules, origin, granted, varies) in [
            (&[][..], None, None, false),
            (&[], Some("http://a"), None, false),
            (&every, None, Some("*"), false),
            (&every, Some("http://a"), Some("*"), false),
            (&one, None, None, true),
            (&one, Some("http://a"), Some("http://a"), true),
            (&one, Some("http://A"), None, true),
        ] {
            let found = verdict(rules, "GET", origin);
            assert_eq!(found.grant.map(|grant| grant.origin), granted, "{origin:?}");
            assert_eq!(found.varies, varies, "{origin:?}");
            assert_eq!(verdict(rules, "PUT", origin), Verdict::default());
        }
    }

    #[test]
    fn a_preflight_needs_origin_method_and_every_header() {
        let rules = [
            rule(&["http://a"], &["GET"], &["x-ms-meta-*", "Accept"]),
            rule(&["*"], &["PUT"], &["*"]),
        ];
        for (origin, method, headers, granted) in [
            ("http://a", "GET", "X-MS-META-b, accept", Some("http://a")),
            ("http://a", "GET", "", Some("http://a")),
            ("http://a", "GET", "x-ms-date", None),
            ("http://b", "GET", "", None),
            ("http://b", "PUT", "x-ms-date", Some("*")),
            ("http://b", "DELETE", "", None),
        ] {
            let asked = Asked {
                origin,
                method,
                headers,
            };
            let found = preflight(&rules, &asked);
            assert_eq!(found.map(|grant| grant.origin), granted, "{asked:?}");
            let is_trusted = found.is_some_and(|grant| grant.allows_credentials());
            assert_eq!(is_trusted, granted == Some("http://a"), "{asked:?}");
        }
    }

    #[test]
    fn wildcard_matches_every_subdomain() {
        let rules = [rule(
            &["*.example.com", "https://*.example.org"],
            &["GET"],
            &[],
        )];
        for (origin, fits) in [
            ("a.example.com", true),
            ("https://a.b.example.com", true),
            ("a.EXAMPLE.com", true),
            ("example.com", false),
            (".example.com", false),
            ("a.notexample.com", false),
            ("https://a.example.org", true),
            ("http://a.example.org", false),
            ("https://.example.org", false),
            ("é.example.org", false),
        ] {
            let found = verdict(&rules, "GET", Some(origin)).grant;
            let expected = fits.then_some(origin);
            assert_eq!(found.map(|grant| grant.origin), expected, "{origin}");
        }
    }

    #[test]
    fn pattern_exposes_matching_response_headers() {
        let response = ["x-ms-meta-a", "date", "x-ms-version"];
        for (exposes, expected) in [
            (&[][..], ""),
            (&["*"], "x-ms-meta-a,date,x-ms-version"),
            (&["x-ms-meta-*", "Date", "else"], "Date,else,x-ms-meta-a"),
        ] {
            let rule = rule(&["*"], &["GET"], exposes);
            assert_eq!(exposed(&rule, response.into_iter()), expected);
        }
    }
}

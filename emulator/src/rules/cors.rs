//! Cross-origin resource sharing: which rule of a service lets a page of another origin in, and
//! what the response says about it.
//!
//! Source: "Cross-Origin Resource Sharing (CORS) support for Azure Storage". Rules are tried in
//! their order; the first whose origins, methods and headers fit decides. Recorded: requests
//! without `Origin` are answered too, where they only read.

use smalt_protocol::xml::CorsRule;

/// Any origin, method or header.
const ANY: &str = "*";

/// What the rules of a service say to a request that is no preflight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict<'a> {
    /// The rule that lets it in, and `Access-Control-Allow-Origin`.
    pub grant: Option<Grant<'a>>,
    /// `Vary: Origin`: another origin would be answered otherwise.
    pub varies: bool,
}

/// A rule that fits a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant<'a> {
    /// The rule.
    pub rule: &'a CorsRule,
    /// `Access-Control-Allow-Origin`: the origin itself, or `*`.
    pub origin: &'a str,
}

impl Grant<'_> {
    /// `Access-Control-Allow-Credentials`: only for an origin that the rule names.
    pub fn allows_credentials(&self) -> bool {
        self.origin != ANY
    }
}

/// A request that a browser asks about beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// `Origin`.
    pub origin: &'a str,
    /// `Access-Control-Request-Method`.
    pub method: &'a str,
    /// `Access-Control-Request-Headers`, as sent.
    pub headers: &'a str,
}

/// What the rules say to a request. The table "Responses to GET and HEAD" of the source; other
/// methods are answered where a rule fits their origin.
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

/// The rule that lets a preflighted request in.
pub fn preflight<'a>(rules: &'a [CorsRule], asked: &Asked<'a>) -> Option<Grant<'a>> {
    rules
        .iter()
        .filter(|rule| rule.methods.iter().any(|allowed| allowed == asked.method))
        .filter(|rule| names(asked.headers).all(|header| covers(&rule.allowed_headers, header)))
        .find_map(|rule| grant(rule, Some(asked.origin)))
}

/// `Access-Control-Expose-Headers`: what the rule names, and what of the response's own headers it
/// covers by a prefix or by `*`. Empty: the header is left out.
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

/// An origin fits exactly, letter for letter, as a subdomain, or by `*`. A request without one fits
/// only `*`.
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

/// `https://*.example.com` lets every subdomain in, at any depth. Domains have no case.
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

/// Header names compare without case; one that ends in `*` stands for all that it begins.
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

    /// The rows of the source's table: rules, origin, what is granted, whether it varies.
    #[test]
    fn reads_are_answered_as_documented() {
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
    fn a_star_in_place_of_a_subdomain_fits_each_of_them() {
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
    fn a_pattern_exposes_what_the_response_has() {
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

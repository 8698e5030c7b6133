//! Removes credentials from text before it is shown.

pub(crate) const REDACTED: &str = "REDACTED";

/// Prefixes of secrets, compared case-insensitively as the service does for query parameters.
const SECRETS: [&str; 4] = ["sig=", "accountkey=", "sharedaccesssignature=", "password="];

/// Replaces every signature, key and password in the text with `REDACTED`.
pub fn redact(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(value) = find_secret(rest) {
        clean.push_str(&rest[..value]);
        clean.push_str(REDACTED);
        let tail = &rest[value..];
        let end = tail.find(ends_value).unwrap_or(tail.len());
        rest = &tail[end..];
    }
    clean.push_str(rest);
    clean
}

/// Returns a URL without its query, which may be a SAS.
pub(crate) fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or(url)
}

fn ends_value(c: char) -> bool {
    c == '&' || c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ';' | ')')
}

/// Returns the start of the first secret's value.
fn find_secret(text: &str) -> Option<usize> {
    let starts = |at: usize, name: &str| {
        let found = text.as_bytes().get(at..at + name.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    };
    (0..text.len()).find_map(|at| {
        let name = SECRETS.iter().find(|name| starts(at, name))?;
        Some(at + name.len())
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn signatures_never_survive() {
        let table = [
            ("nothing here", "nothing here"),
            ("sig=abc%3D", "sig=REDACTED"),
            (
                "https://h/c/b?sv=1&sig=a/b+c=&se=2",
                "https://h/c/b?sv=1&sig=REDACTED&se=2",
            ),
            ("two SIG=x y sig=z>", "two SIG=REDACTED y sig=REDACTED>"),
            ("ü sig=é&x", "ü sig=REDACTED&x"),
            (
                "AccountName=a;AccountKey=Zm9v==;X=1",
                "AccountName=a;AccountKey=REDACTED;X=1",
            ),
            (
                "SharedAccessSignature=sv=1&sig=x;password=y",
                "SharedAccessSignature=REDACTED&sig=REDACTED;password=REDACTED",
            ),
        ];
        for (text, clean) in table {
            assert_eq!(redact(text), clean);
        }
    }

    #[test]
    fn query_is_removed() {
        assert_eq!(without_query("https://h/c/b?sig=x"), "https://h/c/b");
        assert_eq!(without_query("https://h/c/b"), "https://h/c/b");
    }

    proptest! {
        /// A signature is removed in any context, and text without secrets stays unchanged.
        #[test]
        fn redaction_is_complete_and_stable(
            before in "\\PC{0,20}[?&; \"]",
            name in "[sS][iI][gG]=",
            secret in "[A-Za-z0-9%+/]{12,44}",
            after in "([&; \"'<>)]\\PC{0,20})?",
        ) {
            let clean = redact(&format!("{before}{name}{secret}{after}"));
            prop_assert!(!clean.contains(&secret), "{}", clean);
            prop_assert_eq!(redact(&clean), clean);
        }
    }
}

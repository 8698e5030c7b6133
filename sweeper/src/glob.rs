//! Patterns over blob names: `*` within a path segment, `**` across segments, `?` one character.

/// Maximum length of a pattern in a configuration, in characters.
pub const PATTERN_CHARS_MAX: usize = 1_024;

/// Returns whether `name` matches `pattern` as a whole. The work is bounded by the product of their
/// lengths.
pub fn matches(pattern: &str, name: &str) -> bool {
    let pattern = tokens(pattern);
    let name: Vec<char> = name.chars().collect();
    // reach[i]: whether the tokens so far can match exactly the first i characters.
    let mut reach = vec![false; name.len() + 1];
    reach[0] = true;
    for token in pattern {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            let grown = at > 0 && next[at - 1];
            next[at] = match token {
                Token::Char(c) => at > 0 && reach[at - 1] && name[at - 1] == c,
                Token::One => at > 0 && reach[at - 1] && name[at - 1] != '/',
                Token::Star => reach[at] || (grown && name[at - 1] != '/'),
                Token::Any => reach[at] || grown,
                // `**/` also matches the empty string, so `**/keep` matches `keep`.
                Token::AnySegments => {
                    reach[at]
                        || (at > 0
                            && name[at - 1] == '/'
                            && reach[..at].iter().any(|reached| *reached))
                }
            };
        }
        reach = next;
    }
    reach[name.len()]
}

/// Returns whether a pattern matches this blob, written with or without the container's name.
pub fn means(pattern: &str, container: &str, name: &str) -> bool {
    matches(pattern, name) || matches(pattern, &format!("{container}/{name}"))
}

#[derive(Clone, Copy)]
enum Token {
    Char(char),
    One,
    Star,
    Any,
    AnySegments,
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let (token, used) = if rest.starts_with("**/") {
            (Token::AnySegments, 3)
        } else if rest.starts_with("**") {
            (Token::Any, 2)
        } else {
            match first {
                '*' => (Token::Star, 1),
                '?' => (Token::One, 1),
                other => (Token::Char(other), other.len_utf8()),
            }
        };
        found.push(token);
        rest = &rest[used..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_stop_at_slashes_and_double_stars_do_not() {
        for (pattern, name, expected) in [
            ("legal/**", "legal/a/b.txt", true),
            ("legal/**", "illegal/a", false),
            ("**/keep/*", "a/b/keep/c", true),
            ("**/keep/*", "keep/c", true),
            ("**/keep/*", "a/keep/c/d", false),
            ("*.log", "a.log", true),
            ("*.log", "x/a.log", false),
            ("**", "", true),
            ("a?c", "abc", true),
            ("a?c", "a/c", false),
            ("", "", true),
            ("", "a", false),
            ("x**y", "x/1/2y", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
        assert!(means("events/legal/**", "events", "legal/x"));
    }

    proptest! {
        #[test]
        fn a_name_matches_itself_and_double_star(name in "[a-z/.]{0,30}") {
            prop_assert!(matches(&name, &name));
            prop_assert!(matches("**", &name));
        }
    }
}

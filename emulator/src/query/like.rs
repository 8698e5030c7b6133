//! `LIKE`: `%` matches any characters, `_` exactly one.
//!
//! The segments between two `%` are searched one after the other, each at its first occurrence
//! after the previous one. A segment without `_` is found in linear time. A segment with `_` is
//! tried wherever the text before its first `_` occurs, and every comparison counts as steps.

use memchr::memmem::Finder;

use super::meter::Meter;
use super::value::Fault;

/// The part of a pattern between two `%`.
type Segment = Vec<Piece>;

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    /// Literal text, not empty.
    Text(String),
    Characters(usize),
}

/// Returns `true` if `text` matches `pattern`. A character after `escape` is literal.
///
/// # Errors
/// [`Fault::TimedOut`] if the search exceeds the steps of a record.
pub fn like(text: &str, pattern: &str, escape: Option<char>, meter: &Meter) -> Result<bool, Fault> {
    meter.step(text.len().saturating_add(pattern.len()))?;
    let segments = segments(pattern, escape);
    let search = Search {
        is_ascii: text.is_ascii(),
        meter,
    };
    let Some((first, rest)) = segments.split_first() else {
        return Ok(text.is_empty());
    };
    let Some(text) = search.behind(text, first)? else {
        return Ok(false);
    };
    let Some((last, middle)) = rest.split_last() else {
        return Ok(text.is_empty());
    };
    let Some(mut text) = search.before(text, last) else {
        return Ok(false);
    };
    for segment in middle {
        match search.find(text, segment)? {
            Some(rest) => text = rest,
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// Splits a pattern at each unescaped `%`.
fn segments(pattern: &str, escape: Option<char>) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut segment = Segment::new();
    let mut characters = pattern.chars();
    while let Some(c) = characters.next() {
        match c {
            c if Some(c) == escape => push(&mut segment, characters.next().unwrap_or(c)),
            '%' => segments.push(std::mem::take(&mut segment)),
            '_' => match segment.last_mut() {
                Some(Piece::Characters(count)) => *count += 1,
                _ => segment.push(Piece::Characters(1)),
            },
            c => push(&mut segment, c),
        }
    }
    segments.push(segment);
    segments
}

fn push(segment: &mut Segment, character: char) {
    match segment.last_mut() {
        Some(Piece::Text(text)) => text.push(character),
        _ => segment.push(Piece::Text(character.to_string())),
    }
}

struct Search<'a> {
    /// Whether every character of the text is one byte.
    is_ascii: bool,
    meter: &'a Meter,
}

impl Search<'_> {
    /// Strips a segment from the start of the text; `None` if it does not match.
    fn behind<'t>(&self, text: &'t str, segment: &[Piece]) -> Result<Option<&'t str>, Fault> {
        let mut rest = text;
        for piece in segment {
            let stripped = match piece {
                Piece::Text(wanted) => {
                    let same = rest.bytes().zip(wanted.bytes()).take_while(|(a, b)| a == b);
                    let same = same.count();
                    self.meter.step(same + 1)?;
                    (same == wanted.len()).then(|| &rest[same..])
                }
                Piece::Characters(count) => {
                    self.meter.step(if self.is_ascii { 1 } else { *count })?;
                    self.skip(rest, *count)
                }
            };
            match stripped {
                Some(stripped) => rest = stripped,
                None => return Ok(None),
            }
        }
        Ok(Some(rest))
    }

    /// Strips a segment from the end of the text; `None` if it does not match.
    fn before<'t>(&self, text: &'t str, segment: &[Piece]) -> Option<&'t str> {
        segment
            .iter()
            .rev()
            .try_fold(text, |rest, piece| match piece {
                Piece::Text(wanted) => rest.strip_suffix(wanted.as_str()),
                Piece::Characters(count) if self.is_ascii => {
                    rest.get(..rest.len().checked_sub(*count)?)
                }
                Piece::Characters(count) => {
                    let (at, _) = rest.char_indices().nth_back(count.checked_sub(1)?)?;
                    rest.get(..at)
                }
            })
    }

    /// Returns the text after the first match of a segment.
    fn find<'t>(&self, text: &'t str, segment: &[Piece]) -> Result<Option<&'t str>, Fault> {
        let (skipped, segment) = match segment.split_first() {
            Some((Piece::Characters(count), rest)) => (*count, rest),
            _ => (0, segment),
        };
        let Some(mut text) = self.skip(text, skipped) else {
            return Ok(None);
        };
        let Some((Piece::Text(wanted), rest)) = segment.split_first() else {
            return Ok(Some(text));
        };
        let finder = Finder::new(wanted);
        let step = wanted.chars().next().map_or(1, char::len_utf8);
        while let Some(at) = finder.find(text.as_bytes()) {
            if let Some(behind) = self.behind(&text[at + wanted.len()..], rest)? {
                return Ok(Some(behind));
            }
            text = &text[at + step..];
        }
        Ok(None)
    }

    fn skip<'t>(&self, text: &'t str, count: usize) -> Option<&'t str> {
        if self.is_ascii || count == 0 {
            return text.get(count..);
        }
        let (at, last) = text.char_indices().nth(count - 1)?;
        text.get(at + last.len_utf8()..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_like(text: &str, pattern: &str, escape: Option<char>) -> bool {
        like(text, pattern, escape, &Meter::default()).unwrap()
    }

    #[test]
    fn matches_percent_underscore_and_escapes() {
        for (text, pattern, escape, expected) in [
            ("hello", "h%", None, true),
            ("hello", "%l_o", None, true),
            ("hello", "_ello%", None, true),
            ("hello", "ello", None, false),
            ("hello", "hello", None, true),
            ("hello", "hell_", None, true),
            ("", "", None, true),
            ("", "%", None, true),
            ("", "%%", None, true),
            ("", "_", None, false),
            ("a", "%_", None, true),
            ("a", "_%_", None, false),
            ("aa", "a%aa", None, false),
            ("50%", "50!%", Some('!'), true),
            ("500", "50!%", Some('!'), false),
            ("a_b", "a!_b", Some('!'), true),
            ("axb", "a!_b", Some('!'), false),
            ("a!", "a!", Some('!'), true),
            ("100%", "100%%", Some('%'), true),
            ("aab", "%ab", None, true),
            ("aéé", "_é%_", None, true),
            ("é", "__", None, false),
            ("xaéb", "%a_b", None, true),
        ] {
            assert_eq!(is_like(text, pattern, escape), expected, "{text} {pattern}");
        }
    }

    /// Comparing the pattern at every position would take 75,000,000,000 steps.
    #[test]
    fn a_long_text_between_two_percents_is_found_in_linear_time() {
        let text = "a".repeat(15_000_000);
        for end in ["", "%", "%a%a%b"] {
            let pattern = format!("%{}b{end}", "a".repeat(5_000));
            assert!(!is_like(&text, &pattern, None));
        }
        assert!(is_like(&text, &format!("%{}%", "a".repeat(5_000)), None));
        assert!(is_like(&text, &"%a".repeat(20), None));
    }

    /// A segment with `_` can be tried at many positions; the search ends when the steps are used
    /// up.
    #[test]
    fn underscores_count_steps_up_to_the_limit() {
        let text = "a".repeat(100_000);
        let pattern = format!("%a_{}b%", "a".repeat(5_000));
        let meter = Meter::of(1_000_000);
        assert_eq!(like(&text, &pattern, None, &meter), Err(Fault::TimedOut));
        let meter = Meter::of(1_000_000);
        assert_eq!(like(&text, "%a_b%", None, &meter), Ok(false));
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Part {
        Any,
        One,
        This(char),
    }

    fn parts(pattern: &str, escape: Option<char>) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut characters = pattern.chars();
        while let Some(c) = characters.next() {
            parts.push(match c {
                c if Some(c) == escape => Part::This(characters.next().unwrap_or(c)),
                '%' => Part::Any,
                '_' => Part::One,
                c => Part::This(c),
            });
        }
        parts
    }

    /// A direct recursive definition.
    fn fits(text: &[char], pattern: &[Part]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((Part::Any, rest)) => (0..=text.len()).any(|taken| fits(&text[taken..], rest)),
            Some((Part::One, rest)) => !text.is_empty() && fits(&text[1..], rest),
            Some((Part::This(c), rest)) => text.first() == Some(c) && fits(&text[1..], rest),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn like_agrees_with_its_definition(
            text in "[abé]{0,9}",
            pattern in "[abé!%_]{0,7}",
            escapes in any::<bool>(),
        ) {
            let escape = escapes.then_some('!');
            let characters: Vec<char> = text.chars().collect();
            let expected = fits(&characters, &parts(&pattern, escape));
            prop_assert_eq!(is_like(&text, &pattern, escape), expected);
        }
    }
}

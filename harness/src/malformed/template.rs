//! The texts of a case: what stands in braces is replaced.
//!
//! | form | becomes |
//! | --- | --- |
//! | `{name}` | a value of the subject: `{queue}`, `{receipt}`, `{sas:expired}` |
//! | `{repeat:N:text}` | the text so many times |
//! | `{count:N:text}` | the same, with `#` in it replaced by the number of the repetition |
//! | `{hex:00ff}` | these bytes |

use std::collections::BTreeMap;

/// Values by name.
pub type Values = BTreeMap<String, String>;

/// Why a text cannot be expanded.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{{{0}}} is no value, repetition or hexadecimal bytes")]
pub struct TemplateError(pub String);

/// Replaces what stands in braces.
///
/// # Errors
/// For a form that is none of the above.
pub fn expand(text: &str, values: &Values) -> Result<Vec<u8>, TemplateError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        bytes.extend_from_slice(before.as_bytes());
        let wrong = || TemplateError(after.chars().take(40).collect());
        let (form, remaining) = after.split_once('}').ok_or_else(wrong)?;
        bytes.extend(replacement(form, values).ok_or_else(wrong)?);
        rest = remaining;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// As [`expand`], for what must be text.
///
/// # Errors
/// As [`expand`]; bytes that are no text are replaced.
pub fn expand_text(text: &str, values: &Values) -> Result<String, TemplateError> {
    Ok(String::from_utf8_lossy(&expand(text, values)?).into_owned())
}

fn replacement(form: &str, values: &Values) -> Option<Vec<u8>> {
    if let Some(value) = values.get(form) {
        return Some(value.clone().into_bytes());
    }
    let (kind, rest) = form.split_once(':')?;
    if kind == "hex" {
        let digits = rest.as_bytes().chunks(2);
        return digits
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
    }
    let (times, text) = rest.split_once(':')?;
    let times: usize = times.parse().ok()?;
    match kind {
        "repeat" => Some(text.repeat(times).into_bytes()),
        "count" => Some(
            (0..times)
                .flat_map(|n| text.replace('#', &n.to_string()).into_bytes())
                .collect(),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_replaced() {
        let values = Values::from([("sas:x".to_owned(), "sv=1".to_owned())]);
        let expand = |text| expand(text, &values);
        assert_eq!(expand("a?{sas:x}").unwrap(), b"a?sv=1");
        assert_eq!(expand("{repeat:3:ab}.").unwrap(), b"ababab.");
        assert_eq!(expand("{count:2:h#,}").unwrap(), b"h0,h1,");
        assert_eq!(expand("{hex:00ff}").unwrap(), [0, 255]);
        for wrong in ["{", "{nothing}", "{hex:0g}", "{repeat:x:a}", "{turn:1:a}"] {
            assert!(expand(wrong).is_err(), "{wrong}");
        }
    }
}

//! The token of `POST /notify`: reads it and checks requests.

use std::fmt;

use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use smalt_listener::config::ConfigError;
use smalt_worker::process::Sources;
use smalt_worker::secret::Secret;

/// Length of the shortest token; a shorter one could be guessed over a network.
const TOKEN_MIN_CHARS: usize = 16;
/// Scheme of the `Authorization` header (RFC 6750).
const SCHEME: &str = "Bearer ";

/// A token. Only its hash is kept, so it cannot be printed, and comparing hashes needs no constant
/// time.
#[derive(Clone)]
pub(crate) struct Token([u8; 32]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

impl Token {
    /// Reads the token that `written` names: `env:NAME` or `file:/path`.
    pub(crate) fn named(written: &str, sources: &dyn Sources) -> Result<Self, ConfigError> {
        text("notify_token", written, sources).map(|token| Token::of(&token))
    }

    fn of(token: &str) -> Self {
        Token(Sha256::digest(token).into())
    }

    pub(crate) fn is_shown(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(header::AUTHORIZATION);
        let shown = shown.and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.strip_prefix(SCHEME));
        shown.is_some_and(|token| Token::of(token).0 == self.0)
    }
}

/// Returns the `Authorization` header value for the token that `written` names.
pub(crate) fn authorization(written: &str, sources: &dyn Sources) -> Result<String, ConfigError> {
    text("--token", written, sources).map(|token| format!("{SCHEME}{token}"))
}

fn text(
    setting: &'static str,
    written: &str,
    sources: &dyn Sources,
) -> Result<String, ConfigError> {
    let wrong = |problem: &str| {
        let problem = problem.to_owned();
        Err(ConfigError::Value { setting, problem })
    };
    let token = match Secret::parse(written) {
        Secret::Inline(_) => {
            return wrong("a secret does not belong in the file: write env:NAME or file:/path");
        }
        kept => kept.reveal(sources),
    };
    let token = match token {
        Ok(token) => token,
        Err(error) => return wrong(&error.to_string()),
    };
    if token.len() < TOKEN_MIN_CHARS {
        return wrong("a token must have at least 16 characters");
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return wrong("a token must consist of visible ASCII characters");
    }
    Ok(token)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Has the variable `T`.
    pub(crate) struct Fixed(pub(crate) &'static str);

    impl Sources for Fixed {
        fn variable(&self, name: &str) -> Option<String> {
            (name == "T").then(|| self.0.to_owned())
        }

        fn file(&self, path: &str) -> std::io::Result<String> {
            Err(std::io::Error::other(path.to_owned()))
        }
    }

    #[test]
    fn only_the_exact_token_is_accepted() {
        let token = Token::named("env:T", &Fixed("0123456789abcdef")).unwrap();
        assert_eq!(format!("{token:?}"), "Token(***)");
        for (value, is_in) in [
            (Some("Bearer 0123456789abcdef"), true),
            (Some("Bearer 0123456789abcdeF"), false),
            (Some("Bearer 0123456789abcdef "), false),
            (Some("0123456789abcdef"), false),
            (Some("Basic 0123456789abcdef"), false),
            (Some("Bearer "), false),
            (None, false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            }
            assert_eq!(token.is_shown(&headers), is_in, "{value:?}");
        }
        let shown = authorization("env:T", &Fixed("0123456789abcdef")).unwrap();
        assert_eq!(shown, "Bearer 0123456789abcdef");
    }

    /// Each error is one line that does not contain the token.
    #[test]
    fn invalid_tokens_are_rejected() {
        for (written, value, problem) in [
            ("env:T", "short-secret", "at least 16"),
            ("env:T", "with a blank in the middle", "visible"),
            ("env:U", "0123456789abcdef", "variable U is not set"),
            ("0123456789abcdef", "", "does not belong in the file"),
        ] {
            let error = Token::named(written, &Fixed(value))
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("notify_token: ") && error.contains(problem),
                "{error}"
            );
            assert!(value.is_empty() || !error.contains(value), "{error}");
        }
    }
}

//! Permission letters of a SAS or a stored access policy (`sp`, `Permission`).
//!
//! Source: *Create a service SAS*, *Create an account SAS*, tables of permissions. A set contains
//! only letters; the caller decides which operation requires which.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A set of the letters a to z.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Permissions(u32);

impl Permissions {
    /// The empty set.
    pub const NONE: Permissions = Permissions(0);
    /// Every letter.
    pub const ALL: Permissions = Permissions((1 << 26) - 1);

    /// Parses letters in any order. Returns `None` for anything but lower-case letters and for a
    /// repeated letter, which the service rejects.
    pub fn parse(letters: &str) -> Option<Self> {
        let mut set = Permissions::NONE;
        for letter in letters.chars() {
            if !letter.is_ascii_lowercase() || set.contains(letter) {
                return None;
            }
            set.0 |= bit(letter);
        }
        Some(set)
    }

    /// Returns whether the set contains this letter.
    pub fn contains(self, letter: char) -> bool {
        self.0 & bit(letter) != 0
    }

    /// Returns whether the set contains one of these letters.
    pub fn contains_any(self, letters: &str) -> bool {
        letters.chars().any(|letter| self.contains(letter))
    }

    /// Returns the letters of both sets.
    #[must_use]
    pub fn union(self, other: Permissions) -> Self {
        Permissions(self.0 | other.0)
    }

    /// Returns the set with these letters as well.
    #[must_use]
    pub fn with(self, letters: &str) -> Self {
        Permissions(
            letters
                .chars()
                .fold(self.0, |set, letter| set | bit(letter)),
        )
    }

    /// Returns whether the set has no letter.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Returns the letter's bit; 0 for anything but a to z.
fn bit(letter: char) -> u32 {
    if letter.is_ascii_lowercase() {
        1 << (letter as u32 - 'a' as u32)
    } else {
        0
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ('a'..='z')
            .filter(|letter| self.contains(*letter))
            .try_for_each(|letter| write!(f, "{letter}"))
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_sets_of_letters() {
        let set = Permissions::parse("racwdl").unwrap();
        assert!(set.contains('r') && !set.contains('p') && !set.contains('R'));
        assert!(set.contains_any("px l") && !set.contains_any("pt"));
        assert_eq!(set.to_string(), "acdlrw");
        assert_eq!(set, Permissions::parse("ldwcar").unwrap());
        assert!(Permissions::parse("").unwrap().is_empty());
        for bad in ["rr", "R", "r,w", "ä", "1"] {
            assert_eq!(Permissions::parse(bad), None, "{bad}");
        }
        let union = set.union(Permissions::parse("t").unwrap());
        assert_eq!(union, set.with("tr"));
        assert_eq!(
            Permissions::ALL,
            Permissions::NONE.with("abcdefghijklmnopqrstuvwxyz")
        );
        assert!(union.contains('t') && union.contains('l'));
    }
}

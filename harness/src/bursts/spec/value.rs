//! A value that the service made up: known once somebody saw it.

use std::collections::BTreeSet;

/// An ETag, a message id, a receipt, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// It was seen.
    Seen(u32),
    /// Its answer was lost, and nobody has seen it since.
    Unseen,
}

impl Value {
    /// What a new value is: as the answer shows it, unseen when that was lost.
    ///
    /// # Errors
    /// When the answer shows none.
    pub fn made(is_lost: bool, shown: Option<u32>) -> Result<Self, String> {
        match (is_lost, shown) {
            (true, _) => Ok(Value::Unseen),
            (false, Some(number)) => Ok(Value::Seen(number)),
            (false, None) => Err("nothing is shown that was made".to_owned()),
        }
    }

    /// Whether it is this one. What nobody has seen nobody can name.
    pub fn is(self, number: u32) -> bool {
        self == Value::Seen(number)
    }

    /// Compares with what an answer shows; the first sight binds.
    ///
    /// # Errors
    /// When it is another, or one that was made by something else.
    pub fn see(&mut self, number: u32, taken: &mut Taken) -> Result<(), String> {
        match *self {
            Value::Seen(known) if known == number => Ok(()),
            Value::Seen(known) => Err(format!("number {number} in place of {known}")),
            Value::Unseen if taken.take(number) => {
                *self = Value::Seen(number);
                Ok(())
            }
            Value::Unseen => Err(format!("number {number} was made by something else")),
        }
    }
}

/// Numbers that cannot be those of an unseen value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Answers that were seen show that they were made by those.
    answered: std::rc::Rc<BTreeSet<u32>>,
    /// Bound to an unseen value before.
    bound: BTreeSet<u32>,
}

/// One search never changes what answers show, and may hold hundreds of them: only what was bound
/// tells its states apart.
impl std::hash::Hash for Taken {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        self.bound.hash(hasher);
    }
}

impl Taken {
    /// What answers show as made by them.
    pub fn by_answers(answered: BTreeSet<u32>) -> Self {
        Taken {
            answered: std::rc::Rc::new(answered),
            bound: BTreeSet::new(),
        }
    }

    fn take(&mut self, number: u32) -> bool {
        !self.answered.contains(&number) && self.bound.insert(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unseen_value_is_bound_once_and_to_nothing_of_others() {
        let mut taken = Taken::by_answers([1].into());
        let (mut one, mut other) = (Value::Unseen, Value::Unseen);
        assert!(one.see(1, &mut taken).is_err());
        assert_eq!(one.see(2, &mut taken), Ok(()));
        assert_eq!(one.see(2, &mut taken), Ok(()));
        assert!(one.see(3, &mut taken).is_err());
        assert!(other.see(2, &mut taken).is_err());
        assert_eq!(other.see(3, &mut taken), Ok(()));
    }
}

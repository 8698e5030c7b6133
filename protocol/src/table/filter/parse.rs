//! Parses a filter by recursive descent, with one method per level of precedence: `or`, `and`,
//! `not`, comparisons.

use crate::error::StorageError;
use crate::table::filter::condition::{Comparison, Condition, Operand};
use crate::table::filter::lex::{Lexer, Token};
use crate::table::value::Value;

/// Maximum nesting of parentheses and `not`: smalt's own limit, more than a person writes.
const DEPTH_MAX: usize = 100;
/// Maximum comparisons of a filter: smalt's own limit. The service does not enforce the documented
/// limit of 15.
const COMPARISONS_MAX: usize = 1_000;

/// A parsed term between operators: a condition, or an operand that can become one.
enum Term {
    Condition(Condition),
    Operand(Operand),
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    depth: usize,
    comparisons: usize,
}

/// Parses a whole filter, and counts its comparisons.
pub(super) fn parse(text: &str) -> Result<(Condition, usize), StorageError> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    if token == Token::End {
        return Ok((Condition::All(Vec::new()), 0));
    }
    let mut parser = Parser {
        lexer,
        token,
        depth: 0,
        comparisons: 0,
    };
    let term = parser.any()?;
    let root = parser.condition(term)?;
    if parser.token == Token::End {
        Ok((root, parser.comparisons))
    } else {
        Err(parser.error())
    }
}

impl Parser<'_> {
    fn error(&self) -> StorageError {
        self.lexer.error()
    }

    fn advance(&mut self) -> Result<Token, StorageError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Consumes `word` if it is the current token.
    fn eat(&mut self, word: &str) -> Result<bool, StorageError> {
        let is_here = matches!(&self.token, Token::Word(here) if here == word);
        if is_here {
            self.advance()?;
        }
        Ok(is_here)
    }

    fn any(&mut self) -> Result<Term, StorageError> {
        let first = self.all()?;
        if !self.eat("or")? {
            return Ok(first);
        }
        let mut terms = vec![self.condition(first)?];
        loop {
            let next = self.all()?;
            terms.push(self.condition(next)?);
            if !self.eat("or")? {
                return Ok(Term::Condition(Condition::Any(terms)));
            }
        }
    }

    fn all(&mut self) -> Result<Term, StorageError> {
        let first = self.negation()?;
        if !self.eat("and")? {
            return Ok(first);
        }
        let mut terms = vec![self.condition(first)?];
        loop {
            let next = self.negation()?;
            terms.push(self.condition(next)?);
            if !self.eat("and")? {
                return Ok(Term::Condition(Condition::All(terms)));
            }
        }
    }

    fn negation(&mut self) -> Result<Term, StorageError> {
        if !self.eat("not")? {
            return self.comparison();
        }
        let term = self.deeper(Self::negation)?;
        let condition = self.condition(term)?;
        Ok(Term::Condition(Condition::Not(Box::new(condition))))
    }

    fn comparison(&mut self) -> Result<Term, StorageError> {
        let left = self.primary()?;
        let Some(comparison) = self.operator() else {
            return Ok(left);
        };
        let Term::Operand(left) = left else {
            return Err(self.error());
        };
        self.advance()?;
        let Term::Operand(right) = self.primary()? else {
            return Err(self.error());
        };
        let are_properties = matches!(
            (&left, &right),
            (Operand::Property(_), Operand::Property(_))
        );
        self.count()?;
        if are_properties {
            return Err(self.error());
        }
        Ok(Term::Condition(Condition::Compare(left, comparison, right)))
    }

    fn primary(&mut self) -> Result<Term, StorageError> {
        match &self.token {
            Token::Open => {
                self.advance()?;
                let inner = self.deeper(Self::any)?;
                if self.token != Token::Close {
                    return Err(self.error());
                }
                self.advance()?;
                Ok(inner)
            }
            Token::Literal(_) | Token::Word(_) => match self.advance()? {
                Token::Literal(value) => Ok(Term::Operand(Operand::Literal(value))),
                Token::Word(word) if word == "null" => Ok(Term::Operand(Operand::Null)),
                Token::Word(word) if !is_reserved(&word) => {
                    Ok(Term::Operand(Operand::Property(word)))
                }
                _ => Err(self.error()),
            },
            Token::Close | Token::End => Err(self.error()),
        }
    }

    /// Parses one level deeper, within the limit.
    fn deeper(
        &mut self,
        read: fn(&mut Self) -> Result<Term, StorageError>,
    ) -> Result<Term, StorageError> {
        if self.depth >= DEPTH_MAX {
            return Err(self.error());
        }
        self.depth += 1;
        let term = read(self);
        self.depth -= 1;
        term
    }

    fn operator(&self) -> Option<Comparison> {
        match &self.token {
            Token::Word(word) => Comparison::parse(word),
            _ => None,
        }
    }

    /// Converts a term to a condition; an operand must be boolean.
    fn condition(&mut self, term: Term) -> Result<Condition, StorageError> {
        match term {
            Term::Condition(condition) => Ok(condition),
            Term::Operand(Operand::Null) => Err(self.error()),
            Term::Operand(Operand::Literal(value)) if !matches!(value, Value::Boolean(_)) => {
                Err(self.error())
            }
            Term::Operand(operand) => {
                self.count()?;
                Ok(Condition::Holds(operand))
            }
        }
    }

    fn count(&mut self) -> Result<(), StorageError> {
        self.comparisons += 1;
        if self.comparisons > COMPARISONS_MAX {
            return Err(self.error());
        }
        Ok(())
    }
}

impl Comparison {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "eq" => Comparison::Equal,
            "ne" => Comparison::NotEqual,
            "gt" => Comparison::Greater,
            "ge" => Comparison::GreaterOrEqual,
            "lt" => Comparison::Less,
            "le" => Comparison::LessOrEqual,
            _ => return None,
        })
    }
}

fn is_reserved(word: &str) -> bool {
    Comparison::parse(word).is_some() || ["and", "or", "not"].contains(&word)
}

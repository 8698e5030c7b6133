//! Recursive descent parser for expressions: `OR`, `AND`, `NOT`, comparisons, sums, products,
//! values.

use smalt_protocol::StorageError;

use super::lexer::Token;
use super::{Comparison, Expr, Literal, Name, Operator, Step, syntax_error};

/// Maximum nesting of parentheses. The limit is the emulator's own, far beyond what a query needs
/// and far below what the stack allows.
const DEPTH_MAX: usize = 50;

/// Words that need quotes when used as field names.
const RESERVED: [&str; 21] = [
    "SELECT", "FROM", "WHERE", "LIMIT", "AND", "OR", "NOT", "IS", "IN", "LIKE", "BETWEEN",
    "ESCAPE", "CASE", "WHEN", "THEN", "ELSE", "END", "AS", "NULL", "TRUE", "FALSE",
];

pub(super) struct Parser {
    tokens: std::vec::IntoIter<Token>,
    depth: usize,
}

impl Parser {
    pub(super) fn new(tokens: Vec<Token>) -> Self {
        Parser {
            tokens: tokens.into_iter(),
            depth: 0,
        }
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<&Token> {
        self.tokens.as_slice().get(ahead)
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        self.tokens.next()
    }

    pub(super) fn skip(&mut self, tokens: usize) {
        for _ in 0..tokens {
            self.tokens.next();
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.tokens.as_slice().is_empty()
    }

    pub(super) fn takes(&mut self, keyword: &str) -> bool {
        let is_next = self.peek(0).is_some_and(|token| token.is_word(keyword));
        self.skip(usize::from(is_next));
        is_next
    }

    pub(super) fn keyword(&mut self, keyword: &str) -> Result<(), StorageError> {
        self.takes(keyword).then_some(()).ok_or_else(syntax_error)
    }

    pub(super) fn takes_sign(&mut self, sign: &'static str) -> bool {
        let is_next = self.peek(0) == Some(&Token::Sign(sign));
        self.skip(usize::from(is_next));
        is_next
    }

    pub(super) fn sign(&mut self, sign: &'static str) -> Result<(), StorageError> {
        self.takes_sign(sign).then_some(()).ok_or_else(syntax_error)
    }

    /// Consumes the first of these signs that comes next.
    fn any_sign<T: Copy>(&mut self, signs: &[(&'static str, T)]) -> Option<T> {
        let found = signs.iter().find(|(sign, _)| self.takes_sign(sign));
        found.map(|(_, meaning)| *meaning)
    }

    pub(super) fn name(&mut self) -> Result<Name, StorageError> {
        let (text, is_exact) = match self.next() {
            Some(Token::Quoted(text)) => (text, true),
            Some(Token::Word(text)) if !is_reserved(&text) => (text, false),
            _ => return Err(syntax_error()),
        };
        Ok(Name { text, is_exact })
    }

    /// Parses a sequence of `.a`, `[0]` and `[*]`.
    pub(super) fn steps(&mut self) -> Result<Vec<Step>, StorageError> {
        let mut steps = Vec::new();
        loop {
            if steps.len() > DEPTH_MAX {
                return Err(syntax_error());
            }
            if self.takes_sign(".") {
                steps.push(Step::Member(self.member()?));
            } else if self.takes_sign("[") {
                steps.push(self.subscript()?);
                self.sign("]")?;
            } else {
                return Ok(steps);
            }
        }
    }

    /// Parses a member name; after a dot, keywords are names too.
    fn member(&mut self) -> Result<Name, StorageError> {
        match self.next() {
            Some(Token::Word(text)) => Ok(Name {
                text,
                is_exact: false,
            }),
            Some(Token::Quoted(text)) => Ok(Name {
                text,
                is_exact: true,
            }),
            _ => Err(syntax_error()),
        }
    }

    fn subscript(&mut self) -> Result<Step, StorageError> {
        match self.next() {
            Some(Token::Sign("*")) => Ok(Step::Each),
            Some(Token::Integer(index)) => {
                let index = usize::try_from(index).map_err(|_| syntax_error())?;
                Ok(Step::Item(index))
            }
            _ => Err(syntax_error()),
        }
    }

    pub(super) fn expression(&mut self) -> Result<Expr, StorageError> {
        self.deeper(|parser| parser.several("OR", Self::conjunction, Expr::Or))
    }

    fn conjunction(&mut self) -> Result<Expr, StorageError> {
        self.several("AND", Self::negation, Expr::And)
    }

    /// Parses a flat list, so that a long chain does not make a deep tree.
    fn several(
        &mut self,
        keyword: &str,
        mut one: impl FnMut(&mut Self) -> Result<Expr, StorageError>,
        together: fn(Vec<Expr>) -> Expr,
    ) -> Result<Expr, StorageError> {
        let first = one(self)?;
        let mut all = vec![first];
        while self.takes(keyword) {
            all.push(one(self)?);
        }
        Ok(match all.pop() {
            Some(only) if all.is_empty() => only,
            Some(last) => {
                all.push(last);
                together(all)
            }
            None => together(all),
        })
    }

    fn negation(&mut self) -> Result<Expr, StorageError> {
        if !self.takes("NOT") {
            return self.predicate();
        }
        let inner = self.deeper(Self::negation)?;
        Ok(Expr::Not(Box::new(inner)))
    }

    fn predicate(&mut self) -> Result<Expr, StorageError> {
        let left = self.sum()?;
        if let Some(comparison) = self.any_sign(&COMPARISONS) {
            let right = self.sum()?;
            return Ok(Expr::Compare(comparison, Box::new(left), Box::new(right)));
        }
        if self.takes("IS") {
            let is_not = self.takes("NOT");
            let found = match self.next() {
                Some(token) if token.is_word("NULL") => Expr::IsNull(Box::new(left)),
                Some(token) if token.is_word("MISSING") => Expr::IsMissing(Box::new(left)),
                _ => return Err(syntax_error()),
            };
            return Ok(negated(found, is_not));
        }
        let is_not = self.takes("NOT");
        if self.takes("LIKE") {
            let pattern = self.sum()?;
            let escape = match self.takes("ESCAPE") {
                true => Some(Box::new(self.sum()?)),
                false => None,
            };
            let like = Expr::Like(Box::new(left), Box::new(pattern), escape);
            return Ok(negated(like, is_not));
        }
        if self.takes("BETWEEN") {
            let least = self.sum()?;
            self.keyword("AND")?;
            let greatest = self.sum()?;
            let between = Expr::Between(Box::new(left), Box::new(least), Box::new(greatest));
            return Ok(negated(between, is_not));
        }
        if self.takes("IN") {
            let list = self.list()?;
            return Ok(negated(Expr::In(Box::new(left), list), is_not));
        }
        if is_not {
            Err(syntax_error())
        } else {
            Ok(left)
        }
    }

    /// Parses `(a, b, …)` with at least one element.
    pub(super) fn list(&mut self) -> Result<Vec<Expr>, StorageError> {
        self.sign("(")?;
        let mut list = vec![self.expression()?];
        while self.takes_sign(",") {
            list.push(self.expression()?);
        }
        self.sign(")")?;
        Ok(list)
    }

    fn sum(&mut self) -> Result<Expr, StorageError> {
        let signs = [("+", Operator::Add), ("-", Operator::Subtract)];
        self.chain(&signs, Self::product)
    }

    fn product(&mut self) -> Result<Expr, StorageError> {
        let signs = [
            ("*", Operator::Multiply),
            ("/", Operator::Divide),
            ("%", Operator::Remainder),
        ];
        self.chain(&signs, Self::signed)
    }

    fn chain(
        &mut self,
        signs: &[(&'static str, Operator)],
        one: fn(&mut Self) -> Result<Expr, StorageError>,
    ) -> Result<Expr, StorageError> {
        let first = one(self)?;
        let mut rest = Vec::new();
        while let Some(operator) = self.any_sign(signs) {
            rest.push((operator, one(self)?));
        }
        Ok(match rest.is_empty() {
            true => first,
            false => Expr::Arithmetic(Box::new(first), rest),
        })
    }

    fn signed(&mut self) -> Result<Expr, StorageError> {
        if self.takes_sign("+") {
            return self.deeper(Self::signed);
        }
        if !self.takes_sign("-") {
            return self.primary();
        }
        Ok(match self.deeper(Self::signed)? {
            Expr::Literal(Literal::Integer(number)) => {
                Expr::Literal(Literal::Integer(number.wrapping_neg()))
            }
            Expr::Literal(Literal::Float(number)) => Expr::Literal(Literal::Float(-number)),
            inner => Expr::Negate(Box::new(inner)),
        })
    }

    fn primary(&mut self) -> Result<Expr, StorageError> {
        let literal = |literal| Ok(Expr::Literal(literal));
        match self.peek(0) {
            Some(Token::Sign("(")) => {
                self.skip(1);
                let inner = self.expression()?;
                self.sign(")")?;
                return Ok(inner);
            }
            Some(Token::Word(_)) => return self.word(),
            Some(Token::Quoted(_)) => return self.field(),
            _ => {}
        }
        match self.next() {
            Some(Token::Integer(number)) => literal(Literal::Integer(number)),
            Some(Token::Float(number)) => literal(Literal::Float(number)),
            Some(Token::Text(text)) => literal(Literal::Text(text)),
            _ => Err(syntax_error()),
        }
    }

    fn word(&mut self) -> Result<Expr, StorageError> {
        for (keyword, literal) in [
            ("NULL", Literal::Null),
            ("TRUE", Literal::Boolean(true)),
            ("FALSE", Literal::Boolean(false)),
        ] {
            if self.takes(keyword) {
                return Ok(Expr::Literal(literal));
            }
        }
        if self.takes("CASE") {
            return self.case();
        }
        match self.peek(1) {
            Some(Token::Sign("(")) => self.call(),
            _ => self.field(),
        }
    }

    fn field(&mut self) -> Result<Expr, StorageError> {
        let name = self.name()?;
        let steps = self.steps()?;
        if steps.contains(&Step::Each) {
            return Err(syntax_error());
        }
        Ok(Expr::Field(name, steps))
    }

    fn case(&mut self) -> Result<Expr, StorageError> {
        let compared = match self.peek(0) {
            Some(token) if token.is_word("WHEN") => None,
            _ => Some(Box::new(self.expression()?)),
        };
        let mut arms = Vec::new();
        while self.takes("WHEN") {
            let condition = self.expression()?;
            self.keyword("THEN")?;
            arms.push((condition, self.expression()?));
        }
        let otherwise = match self.takes("ELSE") {
            true => Some(Box::new(self.expression()?)),
            false => None,
        };
        self.keyword("END")?;
        match arms.is_empty() {
            true => Err(syntax_error()),
            false => Ok(Expr::Case(compared, arms, otherwise)),
        }
    }

    fn deeper<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        if self.depth >= DEPTH_MAX {
            return Err(syntax_error());
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }
}

const COMPARISONS: [(&str, Comparison); 7] = [
    ("=", Comparison::Equal),
    ("<>", Comparison::NotEqual),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

fn is_reserved(word: &str) -> bool {
    RESERVED.iter().any(|r| r.eq_ignore_ascii_case(word))
}

fn negated(expr: Expr, is_not: bool) -> Expr {
    if is_not {
        Expr::Not(Box::new(expr))
    } else {
        expr
    }
}

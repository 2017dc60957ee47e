//! Text to tree: a tokenizer and a Pratt parser. Positions are counted in characters.

use super::error::{ExpressionError, FormulaProblem, nearest};
use super::function::{Binary, Callable, FUNCTIONS};
use super::tree::Node;

/// Which names a formula may use.
pub(super) enum Names {
    Declared(Vec<String>),
    Free,
}

/// Constants, unless a variable of that name is declared.
const CONSTANTS: [(&str, f64); 2] = [("pi", std::f64::consts::PI), ("e", std::f64::consts::E)];
/// Nesting of parentheses, signs and powers beyond which the parser gives up instead of overflowing.
const NESTING: usize = 100;

pub(super) fn parse(text: &str, names: Names) -> Result<(Node, Vec<String>), ExpressionError> {
    let fail = |(position, problem)| ExpressionError::new(text, position, problem);
    let tokens = tokenize(text).map_err(fail)?;
    let (free, names) = match names {
        Names::Declared(names) => (false, names),
        Names::Free => (true, Vec::new()),
    };
    let mut parser = Parser { tokens, next: 0, nesting: 0, names, free };
    let tree = parser.formula().map_err(fail)?;
    Ok((tree, parser.names))
}

pub(super) fn without_spaces(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).collect()
}

type Failure = (usize, FormulaProblem);

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64, String),
    Name(String),
    Symbol(char),
    End,
}

impl Token {
    fn describe(&self) -> String {
        match self {
            Self::Number(_, text) | Self::Name(text) => format!("`{text}`"),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::End => "the end of the formula".into(),
        }
    }
}

fn tokenize(text: &str) -> Result<Vec<(usize, Token)>, Failure> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let skip = |mut i: usize, wanted: fn(char) -> bool| {
        while i < chars.len() && wanted(chars[i]) {
            i += 1;
        }
        i
    };
    let digit = |c: char| c.is_ascii_digit();
    let mut tokens = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let (start, c) = (i, chars[i]);
        if c.is_whitespace() {
            i += 1;
        } else if digit(c) || c == '.' {
            i = skip(i, |c| c.is_ascii_digit() || c == '.');
            // An exponent only if digits follow, so that `2e` is a missing operator, not a broken number.
            let sign = usize::from(matches!(at(i + 1), '+' | '-'));
            if matches!(at(i), 'e' | 'E') && digit(at(i + 1 + sign)) {
                i = skip(i + 1 + sign, |c| c.is_ascii_digit());
            }
            let text: String = chars[start..i].iter().collect();
            let value = text.parse().map_err(|_| (start, FormulaProblem::Number(text.clone())))?;
            tokens.push((start, Token::Number(value, text)));
        } else if c.is_alphabetic() || c == '_' {
            i = skip(i, |c| c.is_alphanumeric() || c == '_');
            if at(i) == '[' {
                let close = chars[i..].iter().position(|&c| c == ']');
                i += close.ok_or((i, FormulaProblem::Unclosed('[')))? + 1;
            }
            let name: String = chars[start..i].iter().collect();
            tokens.push((start, Token::Name(without_spaces(&name))));
        } else if c == '*' && at(i + 1) == '*' {
            i += 2;
            tokens.push((start, Token::Symbol('^')));
        } else if "+-*/^(),".contains(c) {
            i += 1;
            tokens.push((start, Token::Symbol(c)));
        } else if c == ']' {
            return Err((start, FormulaProblem::Unopened(c)));
        } else {
            return Err((start, FormulaProblem::Character(c)));
        }
    }
    let end = chars.iter().rposition(|c| !c.is_whitespace()).map_or(0, |last| last + 1);
    tokens.push((end, Token::End));
    Ok(tokens)
}

/// Binding powers: `+ -` 1, `* /` 3, unary minus 5, `^` 7 (its right side binds at 6, so powers group to the right,
/// and a sign may follow it: `2^-1`).
const UNARY: u8 = 5;

fn infix(symbol: char) -> Option<(u8, u8, Binary)> {
    match symbol {
        '+' => Some((1, 2, Binary::Add)),
        '-' => Some((1, 2, Binary::Subtract)),
        '*' => Some((3, 4, Binary::Multiply)),
        '/' => Some((3, 4, Binary::Divide)),
        '^' => Some((7, 6, Binary::Power)),
        _ => None,
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    nesting: usize,
    names: Vec<String>,
    free: bool,
}

impl Parser {
    fn peek(&self) -> &(usize, Token) {
        &self.tokens[self.next]
    }

    fn take(&mut self) -> (usize, Token) {
        let token = self.peek().clone();
        // The end token stays: asking past it gives it again.
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    fn take_if(&mut self, symbol: char) -> bool {
        let found = self.peek().1 == Token::Symbol(symbol);
        if found {
            self.take();
        }
        found
    }

    fn formula(&mut self) -> Result<Node, Failure> {
        if self.peek().1 == Token::End {
            return Err((0, FormulaProblem::Empty));
        }
        let tree = self.expression(0)?;
        match self.take() {
            (_, Token::End) => Ok(tree),
            (at, Token::Symbol(')')) => Err((at, FormulaProblem::Unopened(')'))),
            (at, Token::Symbol(',')) => Err((at, FormulaProblem::Character(','))),
            (at, other) => Err((at, FormulaProblem::MissingOperator(other.describe()))),
        }
    }

    fn expression(&mut self, weakest: u8) -> Result<Node, Failure> {
        self.nesting += 1;
        if self.nesting > NESTING {
            return Err((self.peek().0, FormulaProblem::TooDeep));
        }
        let mut left = self.operand()?;
        while let Token::Symbol(symbol) = self.peek().1
            && let Some((left_power, right_power, operation)) = infix(symbol)
            && left_power >= weakest
        {
            self.take();
            left = Node::combine(operation, left, self.expression(right_power)?);
        }
        self.nesting -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Node, Failure> {
        match self.take() {
            (_, Token::Number(value, _)) => Ok(Node::Number(value)),
            (_, Token::Symbol('-')) => Ok(Node::negate(self.expression(UNARY)?)),
            (_, Token::Symbol('+')) => self.expression(UNARY),
            (open, Token::Symbol('(')) => {
                let inner = self.expression(0)?;
                self.close(open)?;
                Ok(inner)
            }
            (at, Token::Name(name)) if self.peek().1 == Token::Symbol('(') => self.call(at, name),
            (at, Token::Name(name)) => self.name(at, name),
            (at, other) => Err((at, FormulaProblem::ExpectedValue(other.describe()))),
        }
    }

    fn close(&mut self, open: usize) -> Result<(), Failure> {
        if self.take_if(')') {
            return Ok(());
        }
        match self.peek() {
            (_, Token::End) => Err((open, FormulaProblem::Unclosed('('))),
            (at, Token::Symbol(symbol)) => Err((*at, FormulaProblem::Character(*symbol))),
            (at, other) => Err((*at, FormulaProblem::MissingOperator(other.describe()))),
        }
    }

    fn call(&mut self, at: usize, name: String) -> Result<Node, Failure> {
        let Some(&(_, callable)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            if self.names.contains(&name) {
                return Err((self.peek().0, FormulaProblem::MissingOperator("`(`".into())));
            }
            let nearest = nearest(&name, FUNCTIONS.iter().map(|(known, _)| *known));
            return Err((at, FormulaProblem::UnknownFunction { name, nearest }));
        };
        let (open, _) = self.take();
        let mut arguments = Vec::new();
        if self.peek().1 != Token::Symbol(')') {
            arguments.push(self.expression(0)?);
            while self.take_if(',') {
                arguments.push(self.expression(0)?);
            }
        }
        self.close(open)?;
        let found = arguments.len();
        let mut arguments = arguments.into_iter();
        match (callable, arguments.next(), arguments.next(), found) {
            (Callable::One(function), Some(argument), _, 1) => Ok(Node::apply(function, argument)),
            (Callable::Two(operation), Some(left), Some(right), 2) => {
                Ok(Node::combine(operation, left, right))
            }
            _ => {
                let expected = if matches!(callable, Callable::One(_)) { 1 } else { 2 };
                Err((at, FormulaProblem::Arguments { function: name, expected, found }))
            }
        }
    }

    fn name(&mut self, at: usize, name: String) -> Result<Node, Failure> {
        if let Some(i) = self.names.iter().position(|known| *known == name) {
            return Ok(Node::Variable(i));
        }
        if let Some(&(_, value)) = CONSTANTS.iter().find(|(known, _)| *known == name) {
            return Ok(Node::Number(value));
        }
        if FUNCTIONS.iter().any(|(known, _)| *known == name) {
            return Err((at, FormulaProblem::BareFunction(name)));
        }
        if self.free {
            self.names.push(name);
            return Ok(Node::Variable(self.names.len() - 1));
        }
        let known = self.names.iter().map(String::as_str).chain(CONSTANTS.iter().map(|(known, _)| *known));
        Err((at, FormulaProblem::UnknownName { nearest: nearest(&name, known), name }))
    }
}

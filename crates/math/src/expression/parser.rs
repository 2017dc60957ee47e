//! Text to tree: a tokenizer and a Pratt parser. Positions are counted in characters.

mod sums;

use super::error::{ExpressionError, FormulaProblem, nearest};
use super::function::{Binary, Callable, FUNCTIONS, Function};
use super::sampled::{self, Sampled};
use super::tree::Node;
use std::ops::Range;

/// Which names a formula may use.
pub(super) enum Names {
    Declared(Vec<String>),
    Free,
}

/// Constants, unless a variable of that name is declared.
const CONSTANTS: [(&str, f64); 2] = [("pi", std::f64::consts::PI), ("e", std::f64::consts::E)];
/// Nesting of parentheses, signs and powers beyond which the parser gives up instead of overflowing.
const NESTING: usize = 100;
/// Characters of a formula: a sum is a tree as deep as it has terms, and the tree is walked by recursion.
pub const LONGEST: usize = 4096;
/// Numbers, names and function calls of a formula with its sums written out.
pub const MOST_TERMS: usize = 50_000;

/// What a formula may use beyond the grammar of every formula.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notation<'a> {
    /// Factors side by side are a product, as strong as one with `*`: `3z1`, `z1 z2`, `2(z1 + 1)`.
    pub implicit_products: bool,
    /// Other names of variables: (the other name, the variable).
    pub aliases: &'a [(&'a str, &'a str)],
    /// Vectors whose components are variables: the name v and which variables they are. `v[1]` is the first component, `|v|^2`
    /// the sum of their squares, and `sum(tanh(v[i]), i)` a sum over all of them.
    pub vectors: &'a [(&'a str, Range<usize>)],
    /// Constants beside `pi` and `e`.
    pub constants: &'a [(&'a str, f64)],
}

pub(super) fn parse(
    text: &str,
    names: Names,
    notation: Notation,
) -> Result<(Node, Vec<String>), ExpressionError> {
    let fail = |(position, problem)| ExpressionError::new(text, position, problem);
    check_length(text)?;
    let tokens = tokenize(text).map_err(fail)?;
    let (free, names) = match names {
        Names::Declared(names) => (false, names),
        Names::Free => (true, Vec::new()),
    };
    let mut parser =
        Parser { tokens, next: 0, nesting: 0, terms: 0, names, free, notation, indices: Vec::new() };
    let tree = parser.formula().map_err(fail)?;
    Ok((tree, parser.names))
}

/// Operators, functions and constants of formulas with one line each, from the tables that the parser itself reads.
pub(super) fn catalogue() -> Vec<(String, String)> {
    let symbols = (' '..='~').filter_map(|c| infix(c).map(|(.., operation)| (c, operation)));
    let operators = symbols.map(|(c, operation)| (format!("x {c} y"), operation.about().to_string()));
    let functions = FUNCTIONS.iter().map(|(name, callable)| match callable {
        Callable::One(function) => (format!("{name}(x)"), function.about().to_string()),
        Callable::Two(operation) => (format!("{name}(x, y)"), operation.about().to_string()),
    });
    let constants = CONSTANTS.iter().map(|(name, value)| (name.to_string(), format!("the constant {value}")));
    let indicator = ("1{x > y}".to_string(), "1 where the comparison (>, <) holds, else 0".to_string());
    let sampled = (
        "sampled[-1, 1; 0, 1](x)",
        "a function given by Chebyshev coefficients on panels, as samples are fitted",
    );
    let sampled = (sampled.0.to_string(), sampled.1.to_string());
    operators.chain([indicator]).chain(functions).chain([sampled]).chain(constants).collect()
}

pub(super) fn without_spaces(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).collect()
}

fn check_length(text: &str) -> Result<(), ExpressionError> {
    // The numbers of sampled functions are data: they make the tree no deeper.
    let mut parts = text.split(sampled::PREFIX);
    let first = parts.next().unwrap_or_default().chars().count();
    let rest = parts.map(|part| part.split_once(']').map_or(part, |(_, after)| after).chars().count() + 1);
    match first + rest.sum::<usize>() {
        length if length > LONGEST => Err(ExpressionError::new(text, 0, FormulaProblem::TooLong(length))),
        _ => Ok(()),
    }
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
        } else if "+-*/^(),{}<>|".contains(c) {
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

struct Parser<'a> {
    tokens: Vec<(usize, Token)>,
    next: usize,
    nesting: usize,
    /// Operands read so far, those of a sum once for every term.
    terms: usize,
    names: Vec<String>,
    free: bool,
    notation: Notation<'a>,
    /// The indices of the sums that are being written out, with their values.
    indices: Vec<(String, i64)>,
}

impl Parser<'_> {
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
            (at, Token::Symbol(symbol)) if symbol != '(' => Err((at, FormulaProblem::Character(symbol))),
            (at, other) => Err((at, FormulaProblem::MissingOperator(other.describe()))),
        }
    }

    /// The operation that follows a value, and whether it is written: a product may be understood.
    fn operation(&self) -> Option<(u8, u8, Binary, bool)> {
        match &self.peek().1 {
            Token::Symbol('(' | '|') | Token::Number(..) | Token::Name(_)
                if self.notation.implicit_products =>
            {
                infix('*').map(|(left, right, operation)| (left, right, operation, false))
            }
            Token::Symbol(symbol) => {
                infix(*symbol).map(|(left, right, operation)| (left, right, operation, true))
            }
            _ => None,
        }
    }

    fn expression(&mut self, weakest: u8) -> Result<Node, Failure> {
        self.nesting += 1;
        if self.nesting > NESTING {
            return Err((self.peek().0, FormulaProblem::TooDeep));
        }
        let mut left = self.operand()?;
        while let Some((left_power, right_power, operation, is_written)) = self.operation()
            && left_power >= weakest
        {
            if is_written {
                self.take();
            }
            left = Node::combine(operation, left, self.expression(right_power)?);
        }
        self.nesting -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Node, Failure> {
        self.terms += 1;
        if self.terms > MOST_TERMS {
            return Err((self.peek().0, FormulaProblem::TooManyTerms));
        }
        match self.take() {
            (at, Token::Number(_, text)) if text == "1" && self.peek() == &(at + 1, Token::Symbol('{')) => {
                self.indicator()
            }
            (_, Token::Number(value, _)) => Ok(Node::Number(value)),
            (at, Token::Symbol('|')) if !self.notation.vectors.is_empty() => self.squared_length(at),
            (_, Token::Symbol('-')) => Ok(Node::negate(self.expression(UNARY)?)),
            (_, Token::Symbol('+')) => self.expression(UNARY),
            (open, Token::Symbol('(')) => {
                let inner = self.expression(0)?;
                self.close(open)?;
                Ok(inner)
            }
            (at, Token::Name(name)) if self.peek().1 == Token::Symbol('(') && !self.is_factor(&name) => {
                if name == "sum" && !self.notation.vectors.is_empty() {
                    self.sum(at)
                } else {
                    self.call(at, name)
                }
            }
            (at, Token::Name(name)) => self.name(at, name),
            (at, Token::Symbol(symbol)) if "{}<>|".contains(symbol) => {
                Err((at, FormulaProblem::Character(symbol)))
            }
            (at, other) => Err((at, FormulaProblem::ExpectedValue(other.describe()))),
        }
    }

    /// Whether a name in front of a parenthesis is a factor of a product that is understood, not a function.
    fn is_factor(&self, name: &str) -> bool {
        let is_value =
            |name: &str| self.names.iter().any(|known| known == name) || self.constant(name).is_some();
        self.notation.implicit_products && is_value(self.own_name(name))
    }

    /// `{a > b}` after its 1: the step function of a − b.
    fn indicator(&mut self) -> Result<Node, Failure> {
        let (open, _) = self.take();
        let left = self.expression(0)?;
        let (larger, smaller) = match self.take() {
            (_, Token::Symbol('>')) => (left, self.expression(0)?),
            (_, Token::Symbol('<')) => (self.expression(0)?, left),
            (_, Token::End) => return Err((open, FormulaProblem::Unclosed('{'))),
            (at, other) => return Err((at, FormulaProblem::Comparison(other.describe()))),
        };
        self.close_with(open, '{', '}')?;
        Ok(Node::apply(Function::Step, Node::combine(Binary::Subtract, larger, smaller)))
    }

    /// `v|^2` after its first bar: Σ_j v_j².
    fn squared_length(&mut self, at: usize) -> Result<Node, Failure> {
        let (_, name) = self.take();
        let vector = self.notation.vectors.iter().find(|(known, _)| name == Token::Name((*known).into()));
        let is_square =
            self.take_if('|') && self.take_if('^') && matches!(self.take().1, Token::Number(2.0, _));
        let squares = vector
            .filter(|_| is_square)
            .map_or(0..0, |(_, components)| components.clone())
            .map(|i| Node::combine(Binary::Power, Node::Variable(i), Node::Number(2.0)));
        squares.reduce(|sum, square| Node::combine(Binary::Add, sum, square)).ok_or_else(|| {
            let name = self.notation.vectors.first().map_or("", |(name, _)| name);
            (at, FormulaProblem::Length(name.to_owned()))
        })
    }

    fn close(&mut self, open: usize) -> Result<(), Failure> {
        self.close_with(open, '(', ')')
    }

    fn close_with(&mut self, open: usize, opening: char, closing: char) -> Result<(), Failure> {
        if self.take_if(closing) {
            return Ok(());
        }
        match self.peek() {
            (_, Token::End) => Err((open, FormulaProblem::Unclosed(opening))),
            (at, Token::Symbol(symbol)) => Err((*at, FormulaProblem::Character(*symbol))),
            (at, other) => Err((*at, FormulaProblem::MissingOperator(other.describe()))),
        }
    }

    fn call(&mut self, at: usize, name: String) -> Result<Node, Failure> {
        let known = FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, callable)| *callable);
        let known = match known {
            None if name.starts_with(sampled::PREFIX) => {
                let table = Sampled::named(&name).map_err(|text| (at, FormulaProblem::Sampled(text)))?;
                Some(Callable::One(Function::Sampled(table)))
            }
            other => other,
        };
        let Some(callable) = known else {
            if self.names.contains(&name) {
                return Err((self.peek().0, FormulaProblem::MissingOperator("`(`".into())));
            }
            let sum = (!self.notation.vectors.is_empty()).then_some("sum");
            let nearest = nearest(&name, FUNCTIONS.iter().map(|(known, _)| *known).chain(sum));
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
                let function = if name.starts_with(sampled::PREFIX) { "sampled".into() } else { name };
                Err((at, FormulaProblem::Arguments { function, expected, found }))
            }
        }
    }

    /// The variable that a name is an alias of, or the name itself.
    fn own_name<'b>(&'b self, name: &'b str) -> &'b str {
        self.notation.aliases.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own)
    }

    /// The value of a constant of this name.
    fn constant(&self, name: &str) -> Option<f64> {
        let all = self.notation.constants.iter().chain(&CONSTANTS);
        all.clone().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    fn name(&mut self, at: usize, name: String) -> Result<Node, Failure> {
        if let Some(node) = self.index_or_component(at, &name)? {
            return Ok(node);
        }
        let own = self.own_name(&name);
        if let Some(i) = self.names.iter().position(|known| known == own) {
            return Ok(Node::Variable(i));
        }
        if let Some(value) = self.constant(&name) {
            return Ok(Node::Number(value));
        }
        if name.starts_with(sampled::PREFIX) {
            return Err((at, FormulaProblem::BareFunction("sampled[...]".into())));
        }
        if FUNCTIONS.iter().any(|(known, _)| *known == name) {
            return Err((at, FormulaProblem::BareFunction(name)));
        }
        if self.free {
            self.names.push(name);
            return Ok(Node::Variable(self.names.len() - 1));
        }
        let constants = self.notation.constants.iter().chain(&CONSTANTS).map(|(known, _)| *known);
        let known = self.names.iter().map(String::as_str).chain(constants);
        Err((at, FormulaProblem::UnknownName { nearest: nearest(&name, known), name }))
    }
}

//! Vectors and sums over their components: `sum(a[i]*tanh(h[i]), i)`, or `sum(h[i]*h[i+1], i, 1, 2)`.
//!
//! A sum is written out while it is read: its tokens are read again for every value of the index, which stands for that number
//! in the meantime. What follows in the compiler knows nothing of sums.

use super::{CONSTANTS, FUNCTIONS, Failure, FormulaProblem, MOST_TERMS, Parser, Token};
use crate::expression::function::Binary;
use crate::expression::tree::Node;

impl Parser<'_> {
    /// `(body, index)` or `(body, index, first, last)` after the word `sum`.
    pub(super) fn sum(&mut self, at: usize) -> Result<Node, Failure> {
        let (open, _) = self.take();
        let body = self.next;
        let commas = self.commas(open)?;
        let found = if self.tokens[body].1 == Token::Symbol(')') { 0 } else { commas.len() + 1 };
        if found != 2 && found != 4 {
            return Err((at, FormulaProblem::Arguments { function: "sum".into(), expected: 2, found }));
        }
        let index = self.index_of_sum(commas[0] + 1)?;
        let (first, last) = if found == 2 {
            (1, self.longest_run(body..commas[0], &index, commas[0] + 1)?)
        } else {
            self.next = commas[1] + 1;
            let first = self.bound()?;
            self.expect_end_of_argument(commas[2])?;
            self.next = commas[2] + 1;
            (first, self.bound()?)
        };
        let after = self.next;
        if last.saturating_sub(first) >= MOST_TERMS as i64 {
            return Err((at, FormulaProblem::TooManyTerms));
        }
        let mut terms = Vec::new();
        for value in first..=last {
            self.next = body;
            self.indices.push((index.clone(), value));
            terms.push(self.expression(0)?);
            self.indices.pop();
            self.expect_end_of_argument(commas[0])?;
        }
        self.next = if found == 2 { commas[0] + 2 } else { after };
        self.close(open)?;
        Ok(balanced(terms))
    }

    /// An argument must reach as far as the comma behind it.
    fn expect_end_of_argument(&self, comma: usize) -> Result<(), Failure> {
        let (at, token) = self.peek();
        if self.next == comma {
            Ok(())
        } else {
            Err((*at, FormulaProblem::MissingOperator(token.describe())))
        }
    }

    /// The tokens that are the commas of the call whose parenthesis was just opened.
    fn commas(&self, open: usize) -> Result<Vec<usize>, Failure> {
        let (mut commas, mut depth) = (Vec::new(), 0);
        for (place, (_, token)) in self.tokens.iter().enumerate().skip(self.next) {
            match token {
                Token::Symbol('(' | '{') => depth += 1,
                Token::Symbol(')') if depth == 0 => return Ok(commas),
                Token::Symbol(')' | '}') => depth -= 1,
                Token::Symbol(',') if depth == 0 => commas.push(place),
                _ => {}
            }
        }
        Err((open, FormulaProblem::Unclosed('(')))
    }

    /// The index at this token, which must be a name of its own that stands alone.
    fn index_of_sum(&self, place: usize) -> Result<String, Failure> {
        let (at, token) = &self.tokens[place];
        let alone = matches!(self.tokens[place + 1].1, Token::Symbol(',' | ')'));
        match token {
            Token::Name(name) if alone && !self.means_something(name) => Ok(name.clone()),
            _ => Err((*at, FormulaProblem::SumIndex(token.describe().trim_matches('`').to_owned()))),
        }
    }

    fn means_something(&self, name: &str) -> bool {
        let vector = self.notation.vectors.iter().any(|(known, _)| *known == name);
        let index = self.indices.iter().any(|(known, _)| known == name);
        let constant = self.notation.constants.iter().chain(&CONSTANTS).any(|(known, _)| *known == name);
        let function = FUNCTIONS.iter().any(|(known, _)| *known == name) || name == "sum";
        let variable = self.names.iter().any(|known| known == name);
        vector || index || constant || function || variable || name.contains('[')
    }

    /// How far an index runs: the length of the vectors that it is the index of.
    fn longest_run(&self, body: std::ops::Range<usize>, index: &str, place: usize) -> Result<i64, Failure> {
        let at = self.tokens[place].0;
        let mut found: Option<(&str, usize)> = None;
        for (_, token) in &self.tokens[body] {
            let Token::Name(name) = token else { continue };
            let Some((vector, _)) = indexed(name).filter(|(_, inner)| *inner == index) else { continue };
            let Some((_, components)) = self.notation.vectors.iter().find(|(known, _)| *known == vector)
            else {
                continue;
            };
            match found {
                Some((first, length)) if length != components.len() => {
                    let with_length = |name: &str, length: usize| format!("`{name}` ({length})");
                    return Err((
                        at,
                        FormulaProblem::SumLengths {
                            index: index.to_owned(),
                            first: with_length(first, length),
                            second: with_length(vector, components.len()),
                        },
                    ));
                }
                _ => found = Some((vector, components.len())),
            }
        }
        let missing = || (at, FormulaProblem::SumRange(index.to_owned()));
        found.map(|(_, length)| length as i64).ok_or_else(missing)
    }

    /// The first or last value of an index: a formula that is a whole number.
    fn bound(&mut self) -> Result<i64, Failure> {
        let at = self.peek().0;
        match self.expression(0)? {
            Node::Number(value) if value.fract() == 0.0 && value.abs() < 1e9 => Ok(value as i64),
            _ => Err((at, FormulaProblem::SumBound)),
        }
    }

    /// What a name means as the index of a sum, or as a component of a vector.
    pub(super) fn index_or_component(&self, at: usize, name: &str) -> Result<Option<Node>, Failure> {
        if let Some(value) = self.index_value(name) {
            return Ok(Some(Node::Number(value as f64)));
        }
        let Some((vector, inner)) = indexed(name) else { return Ok(None) };
        let Some((_, components)) = self.notation.vectors.iter().find(|(known, _)| *known == vector) else {
            return Ok(None);
        };
        let component = self
            .whole(inner)
            .filter(|number| (1..=components.len() as i64).contains(number))
            .map(|number| Node::Variable(components.start + number as usize - 1));
        component.map(Some).ok_or_else(|| {
            let index = match self.whole(inner) {
                Some(number) => number.to_string(),
                None => inner.to_owned(),
            };
            (at, FormulaProblem::Component { name: vector.to_owned(), length: components.len(), index })
        })
    }

    fn index_value(&self, name: &str) -> Option<i64> {
        self.indices.iter().rev().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// The value of an index such as `2`, `i` or `i+1`.
    fn whole(&self, text: &str) -> Option<i64> {
        let mut total: i64 = 0;
        for part in text.split_inclusive(['+', '-']).scan('+', |sign, part| {
            let term = part.trim_end_matches(['+', '-']);
            let own = *sign;
            *sign = part.chars().last().filter(|c| "+-".contains(*c)).unwrap_or('+');
            Some((own, term))
        }) {
            let (sign, term) = part;
            let value = self.index_value(term).or_else(|| term.parse::<u32>().ok().map(i64::from))?;
            total += if sign == '-' { -value } else { value };
        }
        Some(total)
    }
}

/// The name and the index of `h[i]`.
fn indexed(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(']')?.split_once('[')
}

/// The sum of all terms, as a tree no deeper than it must be: what follows walks it by recursion.
fn balanced(mut terms: Vec<Node>) -> Node {
    while terms.len() > 1 {
        let mut rest = terms.into_iter();
        let mut halved = Vec::new();
        while let Some(left) = rest.next() {
            halved.push(match rest.next() {
                Some(right) => Node::combine(Binary::Add, left, right),
                None => left,
            });
        }
        terms = halved;
    }
    terms.pop().unwrap_or(Node::Number(0.0))
}

#[cfg(test)]
mod tests {
    use crate::expression::{Expression, Notation};

    const NAMES: [&str; 5] = ["h1", "h2", "h3", "a1", "a2"];

    fn read(text: &str) -> Result<Expression, String> {
        let vectors = [("h", 0..3), ("a", 3..5)];
        let notation = Notation { vectors: &vectors, constants: &[("mu", 0.5)], ..Notation::default() };
        Expression::parse_with(text, &NAMES, notation).map_err(|e| e.to_string())
    }

    #[test]
    fn sums_are_what_they_say() {
        let x = [0.3, -1.2, 0.7, 2.0, -0.4];
        for (text, same) in [
            ("sum(h[i]^2, i)", "h1^2 + h2^2 + h3^2"),
            ("sum(a[i]*tanh(h[i]), i, 1, 2)", "a1*tanh(h1) + a2*tanh(h2)"),
            ("sum(h[i]*h[i+1], i, 1, 2)", "h1*h2 + h2*h3"),
            ("sum(h[i]/i, i)", "h1 + h2/2 + h3/3"),
            ("sum(sum(a[j]*h[i], j), i)", "(a1 + a2)*(h1 + h2 + h3)"),
            ("sum(sum(h[i]*h[j], j, i+1, 3), i)", "h1*h2 + h1*h3 + h2*h3"),
            ("2*sum(h[i], i) - 1", "2*(h1 + h2 + h3) - 1"),
            ("mu*h[4-1]", "h3/2"),
            ("|h|^2 - sum(h[i], i, 2, 1)", "h1^2 + h2^2 + h3^2"),
            ("1{sum(h[i], i) > a[1]}", "step(h1 + h2 + h3 - a1)"),
        ] {
            let (sum, plain) = (read(text).unwrap(), read(same).unwrap());
            assert!((sum.value(&x) - plain.value(&x)).abs() < 1e-14, "{text}: {}", sum.value(&x));
        }
    }

    #[test]
    fn a_sum_that_makes_no_sense_says_why() {
        for (text, part) in [
            ("sum(a[i]*h[i], i)", "`i` runs over `a` (2) and over `h` (3)"),
            ("sum(h1, i)", "nothing says from where to where `i` runs"),
            ("sum(h[i], h1)", "`h1` cannot be the index"),
            ("sum(h[i], i + 1)", "cannot be the index"),
            ("sum(sum(h[i], i), i)", "`i` cannot be the index"),
            ("sum(h[i])", "`sum` takes 2"),
            ("sum()", "`sum` takes 2"),
            ("sum(h[i], i, 1, 4)", "`h` has the components 1 to 3, and no `h[4]`"),
            ("h[0]", "no `h[0]`"),
            ("h[x]", "no `h[x]`"),
            ("sum(h[i], i, 1, 1.5)", "whole numbers"),
            ("sum(h[i], i, 1, h1)", "whole numbers"),
            ("sum(1, i, 1, 1e8)", "more than 50000 terms"),
            ("sum(sum(1, j, 1, 400), i, 1, 400)", "more than 50000 terms"),
            ("sum(h[i], i", "never closed"),
            ("sum(h[i] 2, i)", "missing operator"),
            ("summ(h[i], i)", "did you mean `sum`?"),
            ("q[1]", "unknown name `q[1]`"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn without_vectors_there_are_no_sums() {
        assert!(Expression::parse("sum(x, i, 1, 2)", &["x"]).is_err());
    }
}

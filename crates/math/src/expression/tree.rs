//! The tree a formula is parsed into: folding of constants, compilation, polynomial form.

use super::function::{Binary, Function};
use super::{Number, Step};

#[derive(Clone, Debug)]
pub(super) enum Node {
    Number(f64),
    Variable(usize),
    Negate(Box<Node>),
    Apply(Function, Box<Node>),
    Combine(Binary, Box<Node>, Box<Node>),
}

impl Node {
    pub(super) fn negate(node: Self) -> Self {
        match node {
            Self::Number(value) => Self::Number(-value),
            other => Self::Negate(Box::new(other)),
        }
    }

    pub(super) fn apply(function: Function, argument: Self) -> Self {
        match argument {
            Self::Number(value) => Self::Number(value.apply(function)),
            other => Self::Apply(function, Box::new(other)),
        }
    }

    pub(super) fn combine(operation: Binary, left: Self, right: Self) -> Self {
        match (left, right) {
            (Self::Number(a), Self::Number(b)) => Self::Number(a.combine(operation, b)),
            (left, right) => Self::Combine(operation, Box::new(left), Box::new(right)),
        }
    }

    /// Appends the postfix program of this node and returns how many values it holds at once.
    pub(super) fn emit(&self, program: &mut Vec<Step>) -> usize {
        match self {
            Self::Number(value) => {
                program.push(Step::Number(*value));
                1
            }
            Self::Variable(i) => {
                program.push(Step::Variable(*i));
                1
            }
            Self::Negate(inner) => {
                let depth = inner.emit(program);
                program.push(Step::Negate);
                depth
            }
            Self::Apply(function, inner) => {
                let depth = inner.emit(program);
                program.push(Step::Apply(*function));
                depth
            }
            Self::Combine(operation, left, right) => {
                let depth = left.emit(program).max(1 + right.emit(program));
                program.push(Step::Combine(*operation));
                depth
            }
        }
    }

    /// Coefficients, low to high, if this is a polynomial in the (only) variable.
    pub(super) fn polynomial(&self) -> Option<Vec<f64>> {
        match self {
            Self::Number(value) => Some(vec![*value]),
            Self::Variable(_) => Some(vec![0.0, 1.0]),
            Self::Negate(inner) => Some(scaled(&inner.polynomial()?, -1.0)),
            Self::Apply(..) => None,
            Self::Combine(operation, left, right) => {
                let (left, right) = (left.polynomial()?, right.polynomial()?);
                match operation {
                    Binary::Add => Some(sum(&left, &right)),
                    Binary::Subtract => Some(sum(&left, &scaled(&right, -1.0))),
                    Binary::Multiply => Some(product(&left, &right)),
                    Binary::Divide if right.len() == 1 => Some(left.iter().map(|c| c / right[0]).collect()),
                    Binary::Power if right.len() == 1 => whole_power(&left, right[0]),
                    _ => None,
                }
            }
        }
    }
}

/// Degrees beyond this are left to quadrature: monomial coefficients lose their digits.
const LARGEST_DEGREE: usize = 20;

fn whole_power(base: &[f64], exponent: f64) -> Option<Vec<f64>> {
    let whole = exponent.fract() == 0.0 && exponent >= 0.0;
    if !whole || exponent * (base.len() - 1) as f64 > LARGEST_DEGREE as f64 || exponent > 1e3 {
        return None;
    }
    Some((0..exponent as usize).fold(vec![1.0], |power, _| product(&power, base)))
}

fn scaled(p: &[f64], factor: f64) -> Vec<f64> {
    p.iter().map(|c| factor * c).collect()
}

fn sum(p: &[f64], q: &[f64]) -> Vec<f64> {
    let term = |r: &[f64], i: usize| r.get(i).copied().unwrap_or(0.0);
    (0..p.len().max(q.len())).map(|i| term(p, i) + term(q, i)).collect()
}

fn product(p: &[f64], q: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; p.len() + q.len() - 1];
    for (i, a) in p.iter().enumerate() {
        for (j, b) in q.iter().enumerate() {
            out[i + j] += a * b;
        }
    }
    out
}

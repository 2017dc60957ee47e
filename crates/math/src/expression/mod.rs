//! Formulas typed by users, such as `tanh(x) + 0.1*x^3` or `R[0,0]^2/Q[0,0]`.
//!
//! A formula is parsed once into a small tree, compiled to a flat postfix program and then evaluated without
//! allocation. Derivatives are exact: the program runs on jets (value, slope, curvature), not on differences.
//!
//! ```
//! use didact_math::expression::Expression;
//! let formula = Expression::parse("tanh(x) + 0.1*x^3", &["x"]).unwrap();
//! assert_eq!(formula.value(&[0.0]), 0.0);
//! assert_eq!(formula.jet(&[0.0], 0).slope, 1.0);
//! ```
//!
//! Grammar, loosest first: `+ -`, `* /`, unary minus, `^` (or `**`; groups to the right, so `-x^2 = -(x^2)` and
//! `2^3^2 = 2^9`). Names may carry an index list, `R[0, 1]`, which belongs to the name (spaces dropped). `1{a > b}` and `1{a < b}` are
//! indicators. A [`Notation`] admits more: products without a sign, other names of a variable, squared lengths.
//! `sampled[...](x)` is a function given by numbers (see [`fit`]).
//! At a break (`abs`, `sign`, `step`, `relu`, `max`, `min` where their argument vanishes) values and slopes are
//! half-way between the two sides: that is what a Gaussian average tends to as its variance shrinks.
//!
//! A formula of many variables, such as the loss of a model, becomes a [`Graph`]: it gives all first and second derivatives, and a [`Tape`]
//! computes them for many samples at once. A [`Notation`] with vectors writes such formulas in short: `sum(a[i]*tanh(h[i]), i)`.

mod breaks;
mod error;
mod fit;
mod function;
mod graph;
mod jet;
mod lanes;
mod parser;
mod sampled;
mod tree;

pub use breaks::Break;
pub use error::{ExpressionError, FormulaProblem};
pub use fit::{Fitted, SampleFitError, fit};
pub use graph::{Graph, NodeId, Tape, VariableValues};
pub use jet::Jet;
pub use parser::{LONGEST, MOST_TERMS, Notation};

pub(crate) use error::nearest;
pub(crate) use function::sigmoid;
pub(crate) use sampled::abbreviated;

use function::{Binary, Function};
use tree::Node;

/// Values that one evaluation may hold at a time; formulas that need more are refused when parsed.
const STACK: usize = 32;

/// What formulas are made of: operators, functions and constants, each with one line.
pub fn catalogue() -> Vec<(String, String)> {
    parser::catalogue()
}

/// A parsed formula of named variables.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    variables: Vec<String>,
    tree: Node,
    program: Vec<Step>,
    /// Values that one evaluation holds at a time.
    depth: usize,
}

/// One instruction of the postfix program.
#[derive(Clone, Copy, Debug)]
enum Step {
    Number(f64),
    Variable(usize),
    Negate,
    Apply(Function),
    Combine(Binary),
}

impl Expression {
    /// Parses a formula of the given variables; any other name is an error that says where it stands.
    pub fn parse(text: &str, variables: &[&str]) -> Result<Self, ExpressionError> {
        Self::parse_with(text, variables, Notation::default())
    }

    /// The same in a freer notation, such as that of papers: `3z1^2 z2`.
    pub fn parse_with(text: &str, variables: &[&str], notation: Notation) -> Result<Self, ExpressionError> {
        let names: Vec<String> = variables.iter().map(|name| parser::without_spaces(name)).collect();
        let (tree, names) = parser::parse(text, parser::Names::Declared(names), notation)?;
        Self::compile(text, names, tree)
    }

    /// Parses a formula and collects its variables in the order in which they first appear.
    pub fn parse_free(text: &str) -> Result<Self, ExpressionError> {
        let (tree, names) = parser::parse(text, parser::Names::Free, Notation::default())?;
        Self::compile(text, names, tree)
    }

    fn compile(text: &str, variables: Vec<String>, tree: Node) -> Result<Self, ExpressionError> {
        let mut program = Vec::new();
        let depth = tree.emit(&mut program);
        if depth > STACK {
            return Err(ExpressionError::new(text, 0, FormulaProblem::TooDeep));
        }
        Ok(Self { text: text.trim().to_owned(), variables, tree, program, depth })
    }

    /// The formula as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Names of the variables, in the order in which values are passed.
    pub fn variables(&self) -> &[String] {
        &self.variables
    }

    /// f(x).
    pub fn value(&self, x: &[f64]) -> f64 {
        self.check(x);
        run::<f64, STACK>(&self.program, |i| x[i])
    }

    /// (f, ∂f, ∂²f) with respect to one chosen variable.
    pub fn jet(&self, x: &[f64], variable: usize) -> Jet {
        self.check(x);
        run::<Jet, STACK>(&self.program, |i| {
            if i == variable { Jet::variable(x[i]) } else { Jet::constant(x[i]) }
        })
    }

    /// Writes ∇f into `out` and returns f.
    pub fn gradient(&self, x: &[f64], out: &mut [f64]) -> f64 {
        assert_eq!(out.len(), x.len(), "one slot of the gradient per variable");
        if x.is_empty() {
            return self.value(x);
        }
        let mut value = 0.0;
        for (i, slot) in out.iter_mut().enumerate() {
            let jet = self.jet(x, i);
            (value, *slot) = (jet.value, jet.slope);
        }
        value
    }

    /// Where a formula of one variable, or its slope, jumps; ascending.
    ///
    /// Breaks whose argument is affine are found wherever they are, others by a scan of |x| ≤ 12 (twelve
    /// standard deviations of a unit field).
    pub fn breaks(&self) -> Vec<Break> {
        assert!(self.variables.len() <= 1, "breaks are defined for formulas of one variable");
        breaks::find(&self.tree)
    }

    /// The same for a variable that is a time: arguments that are not affine are scanned from `from` to `to`.
    pub fn breaks_between(&self, from: f64, to: f64) -> Vec<Break> {
        assert!(self.variables.len() <= 1, "breaks are defined for formulas of one variable");
        breaks::find_between(&self.tree, (from, to))
    }

    /// Where value and slope of a formula of one variable are continuous and its curvature jumps; ascending.
    pub fn curvature_breaks(&self) -> Vec<f64> {
        assert!(self.variables.len() <= 1, "breaks are defined for formulas of one variable");
        breaks::find_in_curvature(&self.tree)
    }

    /// Coefficients, low to high, when the formula is a polynomial in its one variable.
    pub fn polynomial(&self) -> Option<Vec<f64>> {
        (self.variables.len() <= 1).then(|| self.tree.polynomial()).flatten()
    }

    /// True when the formula itself can jump where the argument of one of its functions vanishes (`step`, `sign`, `floor`).
    pub fn has_jumps(&self) -> bool {
        let jumps = |step: &Step| match step {
            Step::Apply(Function::Sampled(table)) => table.has_jumps(),
            other => matches!(other, Step::Apply(Function::Step | Function::Sign | Function::Floor)),
        };
        self.program.iter().any(jumps)
    }

    /// True when the value depends on this variable as the formula is written.
    pub fn uses(&self, variable: usize) -> bool {
        self.program.iter().any(|step| matches!(step, Step::Variable(i) if *i == variable))
    }

    /// The factor s when the formula is exactly erf(s x).
    pub(crate) fn erf_scale(&self) -> Option<f64> {
        match &self.tree {
            Node::Apply(Function::Erf, argument) => match argument.polynomial()?.as_slice() {
                [0.0, scale] => Some(*scale),
                _ => None,
            },
            _ => None,
        }
    }

    fn check(&self, x: &[f64]) {
        assert_eq!(x.len(), self.variables.len(), "`{}` takes the variables {:?}", self.text, self.variables);
    }
}

/// What a program can run on: plain numbers or jets.
trait Number: Copy {
    fn constant(value: f64) -> Self;
    fn negate(self) -> Self;
    fn apply(self, function: Function) -> Self;
    fn combine(self, operation: Binary, right: Self) -> Self;
}

#[inline(always)]
fn run<N: Number, const DEPTH: usize>(program: &[Step], variable: impl Fn(usize) -> N) -> N {
    let mut stack = [N::constant(0.0); DEPTH];
    let mut top = 0; // number of values held
    for step in program {
        match *step {
            Step::Number(value) => {
                stack[top] = N::constant(value);
                top += 1;
            }
            Step::Variable(i) => {
                stack[top] = variable(i);
                top += 1;
            }
            Step::Negate => stack[top - 1] = stack[top - 1].negate(),
            Step::Apply(function) => stack[top - 1] = stack[top - 1].apply(function),
            Step::Combine(operation) => {
                top -= 1;
                stack[top - 1] = stack[top - 1].combine(operation, stack[top]);
            }
        }
    }
    stack[0]
}

#[cfg(test)]
mod tests;

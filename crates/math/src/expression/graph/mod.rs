//! A formula of many variables as a graph in which every subexpression occurs once, its derivatives, and a tape that computes
//! any of them for many samples at once.
//!
//! ```
//! use didact_math::expression::{VariableValues, Expression, Graph, Tape};
//!
//! // f = (tanh(x) - y)^2/2 and its gradient.
//! let formula = Expression::parse("(tanh(x) - y)^2/2", &["x", "y"]).unwrap();
//! let mut graph = Graph::new(&[false, false]);
//! let f = graph.add(&formula);
//! let slopes = graph.gradient(f, &[0, 1]);
//! let tape = Tape::new(&graph, &[f, slopes[0], slopes[1]], &[]);
//!
//! let (x, y) = ([0.0, 1.0], [0.5, 0.25]);
//! let mut out = [[0.0; 2]; 3];
//! tape.run(2, |variable| VariableValues::Each([&x, &y][variable]), |entry, from, values| {
//!     out[entry][from..from + values.len()].copy_from_slice(values);
//! });
//! assert_eq!(out[0][0], 0.125);                                      // f(0, 1/2)
//! assert_eq!((out[1][0], out[2][0]), (-0.5, 0.5));                   // its slopes
//! ```
//!
//! Derivatives are exact: those of the functions are known, and the chain rule is applied backwards from the result to the
//! variables (reverse mode), which gives all slopes of one result at a small multiple of the cost of the result itself. They are
//! new nodes of the same graph, share what they have in common with the result and with each other, and can be differentiated again.
//! At a break (`abs`, `max`, `step`, …) a derivative is its regular part, half-way between the two sides at the break itself.

mod elementary;
mod gradient;
mod jumps;
mod tape;
#[cfg(test)]
mod tests;

pub use tape::{Tape, VariableValues};

use super::Expression;
use super::function::{Binary, Function};
use super::sampled::Sampled;
use super::tree::Node as Tree;
use elementary::Elementary;
use std::collections::HashMap;

/// A subexpression of a [`Graph`]. Nodes come after those that they are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// How a node is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    /// A number, by its bits.
    Number(u64),
    /// A variable of the formula.
    Variable(u32),
    Apply(Elementary, NodeId),
    /// A function that is known by numbers.
    Sampled(&'static Sampled, NodeId),
    Add(NodeId, NodeId),
    Subtract(NodeId, NodeId),
    Multiply(NodeId, NodeId),
    Divide(NodeId, NodeId),
    Power(NodeId, NodeId),
    Max(NodeId, NodeId),
    Min(NodeId, NodeId),
    /// The product of a factor that is constant piece by piece (a step or a sign) and another one. Where the first is 0 so is
    /// the product, also if the other is infinite or undefined there: the slope of sqrt(relu(x)) is 0 for negative x.
    Mask(NodeId, NodeId),
}

impl Operation {
    /// What a node is made of.
    fn operands(self) -> [Option<NodeId>; 2] {
        match self {
            Self::Number(_) | Self::Variable(_) => [None, None],
            Self::Apply(_, a) | Self::Sampled(_, a) => [Some(a), None],
            Self::Add(a, b)
            | Self::Subtract(a, b)
            | Self::Multiply(a, b)
            | Self::Divide(a, b)
            | Self::Power(a, b)
            | Self::Max(a, b)
            | Self::Min(a, b)
            | Self::Mask(a, b) => [Some(a), Some(b)],
        }
    }
}

/// What a node depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// Nothing.
    Always,
    /// Variables that are known early alone.
    Early,
    /// Other variables.
    Late,
}

/// Subexpressions of formulas of the same variables, each of them once.
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: Vec<Operation>,
    known: Vec<Known>,
    places: HashMap<Operation, NodeId>,
    early: Vec<bool>,
}

impl Graph {
    /// An empty graph of as many variables as the list has entries. An entry says whether the variable is known before others
    /// are: such variables are collected in sums, so that what is made of them alone becomes one node where that is possible
    /// ([`Self::early_part`]).
    pub fn new(early: &[bool]) -> Self {
        Self { nodes: Vec::new(), known: Vec::new(), places: HashMap::new(), early: early.to_vec() }
    }

    /// Adds a formula, whose variables are those of the graph in this order.
    pub fn add(&mut self, formula: &Expression) -> NodeId {
        assert_eq!(formula.variables.len(), self.early.len(), "a formula of the variables of the graph");
        self.build(&formula.tree)
    }

    /// Number of nodes so far.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The node of a variable.
    pub fn variable(&mut self, variable: usize) -> NodeId {
        self.intern(Operation::Variable(variable as u32))
    }

    /// Whether the node depends on this variable.
    pub fn uses(&self, node: NodeId, variable: usize) -> bool {
        let (wanted, reached) = (Operation::Variable(variable as u32), self.reached(&[node]));
        self.nodes.iter().zip(reached).any(|(operation, reached)| reached && *operation == wanted)
    }

    /// The one subexpression through which alone a node depends on the variables that are known early, if there is exactly one.
    pub fn early_part(&self, node: NodeId) -> Option<NodeId> {
        let reached = self.reached(&[node]);
        let of_late_nodes = |(place, operation): (usize, &Operation)| {
            let inside = reached[place] && self.known[place] == Known::Late;
            operation.operands().into_iter().flatten().filter(move |_| inside)
        };
        let mut parts = self
            .nodes
            .iter()
            .enumerate()
            .flat_map(of_late_nodes)
            .filter(|part| self.known[part.index()] == Known::Early);
        let first = parts.next()?;
        parts.all(|part| part == first).then_some(first)
    }

    /// For every node, whether one of these is made of it.
    fn reached(&self, from: &[NodeId]) -> Vec<bool> {
        let mut reached = vec![false; self.nodes.len()];
        from.iter().for_each(|node| reached[node.index()] = true);
        for place in (0..self.nodes.len()).rev() {
            if reached[place] {
                let operands = self.nodes[place].operands();
                operands.into_iter().flatten().for_each(|operand| reached[operand.index()] = true);
            }
        }
        reached
    }

    fn intern(&mut self, operation: Operation) -> NodeId {
        if let Some(known) = self.places.get(&operation) {
            return *known;
        }
        let known = match operation {
            Operation::Number(_) => Known::Always,
            Operation::Variable(v) if self.early[v as usize] => Known::Early,
            Operation::Variable(_) => Known::Late,
            other => {
                let all = other.operands().into_iter().flatten().map(|a| self.known[a.index()]);
                all.max().unwrap_or(Known::Always)
            }
        };
        let id = NodeId(u32::try_from(self.nodes.len()).expect("fewer than 2^32 nodes"));
        self.nodes.push(operation);
        self.known.push(known);
        self.places.insert(operation, id);
        id
    }

    fn number(&mut self, value: f64) -> NodeId {
        // There is one zero: −0 would be another node.
        self.intern(Operation::Number((value + 0.0).to_bits()))
    }

    /// The value of a node that is a number.
    fn constant(&self, node: NodeId) -> Option<f64> {
        match self.nodes[node.index()] {
            Operation::Number(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// u where the node is −u.
    fn negated(&self, node: NodeId) -> Option<NodeId> {
        self.argument(node, Elementary::Negate)
    }

    /// u where the node is f(u).
    fn argument(&self, node: NodeId, function: Elementary) -> Option<NodeId> {
        match self.nodes[node.index()] {
            Operation::Apply(own, inner) if own == function => Some(inner),
            _ => None,
        }
    }

    /// (c, u) where the node is c u with a number c.
    fn scaled(&self, node: NodeId) -> Option<(f64, NodeId)> {
        match self.nodes[node.index()] {
            Operation::Multiply(a, b) => self.constant(a).map(|c| (c, b)),
            Operation::Apply(Elementary::Negate, inner) => Some((-1.0, inner)),
            _ => None,
        }
    }

    fn apply(&mut self, function: Elementary, u: NodeId) -> NodeId {
        if let Some(value) = self.constant(u) {
            return self.number(function.value(value));
        }
        match function {
            Elementary::Negate => {
                if let Some(inner) = self.negated(u) {
                    return inner;
                }
                if let Some((factor, inner)) = self.scaled(u) {
                    let factor = self.number(-factor);
                    return self.multiply(factor, inner);
                }
                if let Operation::Subtract(a, b) = self.nodes[u.index()] {
                    return self.subtract(b, a);
                }
            }
            Elementary::Square => {
                let inner = self.argument(u, Elementary::Abs).or(self.negated(u));
                if let Some(inner) = inner {
                    return self.apply(Elementary::Square, inner);
                }
            }
            _ => {}
        }
        self.intern(Operation::Apply(function, u))
    }

    fn apply_sampled(&mut self, function: &'static Sampled, u: NodeId) -> NodeId {
        match self.constant(u) {
            Some(value) => self.number(function.value(value)),
            None => self.intern(Operation::Sampled(function, u)),
        }
    }

    fn negate(&mut self, u: NodeId) -> NodeId {
        self.apply(Elementary::Negate, u)
    }

    fn add_nodes(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) => return self.number(x + y),
            (Some(0.0), None) => return b,
            (None, Some(0.0)) => return a,
            _ => {}
        }
        if let Some(b) = self.negated(b) {
            return self.subtract(a, b);
        }
        if let Some(a) = self.negated(a) {
            return self.subtract(b, a);
        }
        if a == b {
            let two = self.number(2.0);
            return self.multiply(two, a);
        }
        self.intern(Operation::Add(a.min(b), a.max(b)))
    }

    fn subtract(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) => return self.number(x - y),
            (Some(0.0), None) => return self.negate(b),
            (None, Some(0.0)) => return a,
            _ => {}
        }
        if a == b {
            return self.number(0.0);
        }
        if let Some(b) = self.negated(b) {
            return self.add_nodes(a, b);
        }
        self.intern(Operation::Subtract(a, b))
    }

    /// The product, with numbers collected in front.
    fn multiply(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) => return self.number(x * y),
            (Some(factor), None) => return self.scale(factor, b),
            (None, Some(factor)) => return self.scale(factor, a),
            _ => {}
        }
        if let Some((factor, a)) = self.scaled(a) {
            let product = self.multiply(a, b);
            return self.scale(factor, product);
        }
        if let Some((factor, b)) = self.scaled(b) {
            let product = self.multiply(a, b);
            return self.scale(factor, product);
        }
        if a == b {
            return self.apply(Elementary::Square, a);
        }
        self.intern(Operation::Multiply(a.min(b), a.max(b)))
    }

    /// c u.
    fn scale(&mut self, factor: f64, u: NodeId) -> NodeId {
        if let Some(value) = self.constant(u) {
            return self.number(factor * value);
        }
        let (factor, u) = self.scaled(u).map_or((factor, u), |(inner, u)| (factor * inner, u));
        if factor == 0.0 {
            return self.number(0.0);
        }
        if factor == 1.0 {
            return u;
        }
        if factor == -1.0 {
            if let Operation::Subtract(a, b) = self.nodes[u.index()] {
                return self.intern(Operation::Subtract(b, a));
            }
            return self.intern(Operation::Apply(Elementary::Negate, u));
        }
        let factor = self.number(factor);
        // The number comes first, whatever the order of the two.
        self.intern(Operation::Multiply(factor, u))
    }

    fn divide(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) => return self.number(x / y),
            // A product with the reciprocal takes a fraction of the time and errs by one rounding more.
            (None, Some(y)) if y.recip().is_normal() => return self.scale(y.recip(), a),
            (Some(0.0), None) => return a,
            (Some(1.0), None) => return self.apply(Elementary::Reciprocal, b),
            _ => {}
        }
        if let Some((factor, a)) = self.scaled(a) {
            let quotient = self.divide(a, b);
            return self.scale(factor, quotient);
        }
        self.intern(Operation::Divide(a, b))
    }

    fn power(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let Some(exponent) = self.constant(b) else { return self.intern(Operation::Power(a, b)) };
        if let Some(base) = self.constant(a) {
            return self.number(super::function::power(base, exponent));
        }
        if exponent == 0.5 {
            return self.apply(Elementary::Sqrt, a);
        }
        if exponent.fract() != 0.0 || exponent.abs() > LARGEST_POWER {
            return self.intern(Operation::Power(a, b));
        }
        // By squaring, as small whole powers of single numbers are computed.
        let (mut rest, mut square, mut product) = (exponent.abs() as u32, a, None);
        while rest > 0 {
            if rest % 2 == 1 {
                product = Some(product.map_or(square, |product| self.multiply(product, square)));
            }
            rest /= 2;
            if rest > 0 {
                square = self.apply(Elementary::Square, square);
            }
        }
        match product {
            Some(product) if exponent < 0.0 => self.apply(Elementary::Reciprocal, product),
            Some(product) => product,
            None => self.number(1.0),
        }
    }

    /// See [`Operation::Mask`].
    fn mask(&mut self, mask: NodeId, u: NodeId) -> NodeId {
        if let Some(factor) = self.constant(mask) {
            return self.scale(factor, u);
        }
        if self.constant(u) == Some(1.0) {
            return mask;
        }
        if self.constant(u) == Some(0.0) {
            return u;
        }
        if let Some((factor, u)) = self.scaled(u) {
            let product = self.mask(mask, u);
            return self.scale(factor, product);
        }
        // step(u) relu(u) = relu(u) and sign(u) |u| = u: the slope of relu(u)² has no jump.
        if let Some(argument) = self.argument(mask, Elementary::Step)
            && self.argument(u, Elementary::Relu) == Some(argument)
        {
            return u;
        }
        if let Some(argument) = self.argument(mask, Elementary::Sign)
            && self.argument(u, Elementary::Abs) == Some(argument)
        {
            return argument;
        }
        self.intern(Operation::Mask(mask, u))
    }

    fn build(&mut self, tree: &Tree) -> NodeId {
        match tree {
            Tree::Number(value) => self.number(*value),
            Tree::Variable(variable) => self.variable(*variable),
            Tree::Negate(_) | Tree::Combine(Binary::Add | Binary::Subtract, ..) => self.build_sum(tree),
            Tree::Apply(function, inner) => {
                let u = self.build(inner);
                self.call(*function, u)
            }
            Tree::Combine(operation, left, right) => {
                let (a, b) = (self.build(left), self.build(right));
                match operation {
                    Binary::Add | Binary::Subtract => unreachable!("a sum"),
                    Binary::Multiply => self.multiply(a, b),
                    Binary::Divide => self.divide(a, b),
                    Binary::Power => self.power(a, b),
                    Binary::Max | Binary::Min => match (self.constant(a), self.constant(b)) {
                        (Some(x), Some(y)) if *operation == Binary::Max => self.number(x.max(y)),
                        (Some(x), Some(y)) => self.number(x.min(y)),
                        _ if a == b => a,
                        _ if *operation == Binary::Max => self.intern(Operation::Max(a, b)),
                        _ => self.intern(Operation::Min(a, b)),
                    },
                }
            }
        }
    }

    /// A sum of any number of terms: first those that are not known early, in the order in which they are written, then the sum of
    /// those that are.
    fn build_sum(&mut self, tree: &Tree) -> NodeId {
        let mut pending = vec![(tree, false)];
        let (mut late, mut early) = (None, None);
        while let Some((tree, negative)) = pending.pop() {
            match tree {
                Tree::Negate(inner) => pending.push((inner, !negative)),
                Tree::Combine(operation @ (Binary::Add | Binary::Subtract), left, right) => {
                    pending.push((right, negative != (*operation == Binary::Subtract)));
                    pending.push((left, negative));
                }
                term => {
                    let term = self.build(term);
                    let sum = if self.known[term.index()] == Known::Early { &mut early } else { &mut late };
                    *sum = Some(match (*sum, negative) {
                        (None, false) => term,
                        (None, true) => self.negate(term),
                        (Some(sum), false) => self.add_nodes(sum, term),
                        (Some(sum), true) => self.subtract(sum, term),
                    });
                }
            }
        }
        match (late, early) {
            (Some(late), Some(early)) => self.add_nodes(late, early),
            (Some(sum), None) | (None, Some(sum)) => sum,
            (None, None) => unreachable!("a sum has a term"),
        }
    }

    fn call(&mut self, function: Function, u: NodeId) -> NodeId {
        let elementary = match function {
            Function::Gelu => {
                let share = self.apply(Elementary::NormalCdf, u);
                return self.multiply(u, share);
            }
            Function::Sampled(table) => return self.apply_sampled(table, u),
            Function::Exp => Elementary::Exp,
            Function::Log => Elementary::Log,
            Function::Sqrt => Elementary::Sqrt,
            Function::Abs => Elementary::Abs,
            Function::Sign => Elementary::Sign,
            Function::Step => Elementary::Step,
            Function::Relu => Elementary::Relu,
            Function::Tanh => Elementary::Tanh,
            Function::Sinh => Elementary::Sinh,
            Function::Cosh => Elementary::Cosh,
            Function::Sin => Elementary::Sin,
            Function::Cos => Elementary::Cos,
            Function::Tan => Elementary::Tan,
            Function::Asin => Elementary::Asin,
            Function::Acos => Elementary::Acos,
            Function::Atan => Elementary::Atan,
            Function::Erf => Elementary::Erf,
            Function::Erfc => Elementary::Erfc,
            Function::Sigmoid => Elementary::Sigmoid,
            Function::Softplus => Elementary::Softplus,
            Function::Floor => Elementary::Floor,
        };
        self.apply(elementary, u)
    }
}

/// Whole powers up to this one are products.
const LARGEST_POWER: f64 = 32.0;

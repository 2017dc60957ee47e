//! Where a formula of one variable, or its slope, jumps.

use std::f64::consts::PI;

use super::Number;
use super::function::{Binary, Function, sign};
use super::jet::Jet;
use super::tree::Node;

/// A point where a formula or its slope jumps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Break {
    /// Where.
    pub at: f64,
    /// f(at + 0) − f(at − 0).
    pub value_jump: f64,
    /// f′(at + 0) − f′(at − 0).
    pub slope_jump: f64,
}

/// Range of the scan for arguments that are not affine, and its resolution.
const REACH: f64 = 12.0;
const CELLS: usize = 4800;
/// An argument this small (relative to its slope) counts as zero when a side is taken.
const ZERO: f64 = 1e-11;

pub(super) fn find(tree: &Node) -> Vec<Break> {
    find_between(tree, (-REACH, REACH))
}

/// The same with a scan of another range.
pub(super) fn find_between(tree: &Node, range: (f64, f64)) -> Vec<Break> {
    candidates(tree, range).into_iter().filter_map(|at| measure(tree, at)).collect()
}

/// Where only the curvature jumps, as that of max(x, 0)² does.
pub(super) fn find_in_curvature(tree: &Node) -> Vec<f64> {
    let in_curvature = |at: &f64| {
        let [left, right] = [-1.0, 1.0].map(|side| one_sided(tree, *at, side).curvature);
        at.abs() <= REACH && measure(tree, *at).is_none() && jump(left, right) != 0.0
    };
    candidates(tree, (-REACH, REACH)).into_iter().filter(in_curvature).collect()
}

fn candidates(tree: &Node, range: (f64, f64)) -> Vec<f64> {
    let mut at = Vec::new();
    collect(tree, range, &mut at);
    at.sort_by(f64::total_cmp);
    at.dedup_by(|b, a| (*b - *a).abs() <= ZERO * (1.0 + a.abs()));
    at
}

/// The difference of two sides, without rounding.
fn jump(a: f64, b: f64) -> f64 {
    if (b - a).abs() <= ZERO * (1.0 + a.abs() + b.abs()) { 0.0 } else { b - a }
}

fn measure(tree: &Node, at: f64) -> Option<Break> {
    let (left, right) = (one_sided(tree, at, -1.0), one_sided(tree, at, 1.0));
    let found =
        Break { at, value_jump: jump(left.value, right.value), slope_jump: jump(left.slope, right.slope) };
    (found.value_jump != 0.0 || found.slope_jump != 0.0).then_some(found)
}

/// Candidates: zeros of every argument at which some function breaks.
fn collect(node: &Node, range: (f64, f64), at: &mut Vec<f64>) {
    match node {
        Node::Number(_) | Node::Variable(_) => {}
        Node::Negate(inner) => collect(inner, range, at),
        Node::Apply(function, inner) => {
            if function.breaks_at_zero() {
                zeros(inner, range, at);
            } else if let Function::Sampled(table) = function {
                for at_break in table.breaks_and_bends() {
                    zeros(
                        &Node::combine(Binary::Subtract, Node::clone(inner), Node::Number(at_break)),
                        range,
                        at,
                    );
                }
            } else if *function == Function::Floor {
                // u crosses an integer where sin(πu) changes sign.
                let turns = Node::combine(Binary::Multiply, Node::Number(PI), Node::clone(inner));
                zeros(&Node::apply(Function::Sin, turns), range, at);
            }
            collect(inner, range, at);
        }
        Node::Combine(operation, left, right) => {
            if matches!(operation, Binary::Max | Binary::Min) {
                zeros(&Node::combine(Binary::Subtract, Node::clone(left), Node::clone(right)), range, at);
            }
            collect(left, range, at);
            collect(right, range, at);
        }
    }
}

/// Zeros of a node at which it changes sign: exactly if affine, by scan and bisection otherwise.
fn zeros(node: &Node, (from, to): (f64, f64), at: &mut Vec<f64>) {
    let affine = node.polynomial().filter(|p| p.len() <= 2);
    if let Some(coefficients) = affine {
        if let [constant, slope] = coefficients[..]
            && slope != 0.0
        {
            at.push(if constant == 0.0 { 0.0 } else { -constant / slope });
        }
        return;
    }
    let value = |x: f64| one_sided(node, x, 0.0).value;
    let (middle, half) = (f64::midpoint(from, to), 0.5 * (to - from));
    let point = |i: usize| middle + half * (2.0 * i as f64 / CELLS as f64 - 1.0);
    for i in 0..CELLS {
        let (mut low, mut high) = (point(i), point(i + 1));
        let (left, right) = (sign(value(low)), sign(value(high)));
        if left == 0.0 {
            at.push(low);
        }
        if left * right != -1.0 {
            continue;
        }
        while {
            let middle = f64::midpoint(low, high);
            low < middle && middle < high
        } {
            let middle = f64::midpoint(low, high);
            if sign(value(middle)) == left { low = middle } else { high = middle }
        }
        at.push(if value(low).abs() <= value(high).abs() { low } else { high });
    }
}

/// The jet at x + 0 (`side` = 1), x − 0 (−1) or x itself (0), by recursion over the tree.
pub(super) fn one_sided(node: &Node, x: f64, side: f64) -> Jet {
    let vanishes = |u: f64, slope: f64| side != 0.0 && u.abs() <= ZERO * (1.0 + slope.abs());
    // The sign of u just beside x: where u vanishes its slope decides.
    let branch = |u: f64, slope: f64| if vanishes(u, slope) { sign(side * slope) } else { sign(u) };
    match node {
        Node::Number(value) => Jet::constant(*value),
        Node::Variable(_) => Jet::variable(x),
        Node::Negate(inner) => one_sided(inner, x, side).negate(),
        Node::Apply(Function::Floor, inner) => {
            let u = one_sided(inner, x, side);
            let whole = u.value.round();
            let below = vanishes(u.value - whole, u.slope) && side * u.slope < 0.0;
            let above = vanishes(u.value - whole, u.slope) && side * u.slope > 0.0;
            Jet::constant(if below {
                whole - 1.0
            } else if above {
                whole
            } else {
                u.value.floor()
            })
        }
        Node::Apply(Function::Sampled(table), inner) => {
            let u = one_sided(inner, x, side);
            match table.breaks_and_bends().find(|at| vanishes(u.value - at, u.slope)) {
                Some(at) => u.chain(table.jet(at, sign(side * u.slope))),
                None => u.chain(table.jet(u.value, 0.0)),
            }
        }
        Node::Apply(function, inner) => {
            let u = one_sided(inner, x, side);
            u.apply_on_side(*function, branch(u.value, u.slope))
        }
        Node::Combine(operation, left, right) => {
            let (a, b) = (one_sided(left, x, side), one_sided(right, x, side));
            match operation {
                Binary::Max => a.select(b, branch(a.value - b.value, a.slope - b.slope)),
                Binary::Min => a.select(b, branch(b.value - a.value, b.slope - a.slope)),
                other => a.combine(*other, b),
            }
        }
    }
}

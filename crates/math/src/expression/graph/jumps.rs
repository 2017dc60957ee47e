//! Whether a function jumps: where the arguments of its steps vanish, the two sides are compared.

use super::elementary::Elementary;
use super::{Graph, NodeId, Operation, Tape};
use crate::random::{RngAddress, Stream};
use std::ops::Range;

/// Points on each surface on which the two sides are compared.
const CROSSINGS: usize = 8;
/// Pairs of random points between which a surface is looked for.
const PAIRS: usize = 200;
/// How far from the surface the two sides are looked at, in units of the distance of the random points. On the surface itself a
/// step is neither 0 nor 1.
const ASIDE: f64 = 1e-9;
/// Sides that differ by this much of their size are different, even if the function is steep.
const DIFFERENT: f64 = 1e-5;

/// The number of the piece between two jumps in which a value lies.
type Piece = Box<dyn Fn(f64) -> f64>;

impl Graph {
    /// Whether any of these nodes jumps somewhere as one of these variables varies, as the slope of relu does at 0.
    ///
    /// A node can jump only where the argument of a `step` or `sign` in it vanishes, that of a `floor` is whole, or that of a function
    /// known by numbers is at one of its breaks. Each such surface is looked
    /// for on lines between random points, drawn from a normal distribution of standard deviation 2 in each variable; one that
    /// separates no such points is not seen.
    pub fn jumps_along(&self, nodes: &[NodeId], variables: Range<usize>) -> bool {
        let all = Tape::new(self, nodes, &[]);
        let reached = self.reached(nodes);
        (0..self.nodes.len()).filter(|place| reached[*place]).any(|place| {
            // Pieces of the argument that lie between two jumps have a number each.
            let moves = |u| variables.clone().any(|variable| self.uses(u, variable));
            let seed = place as u32;
            match self.nodes[place] {
                Operation::Apply(Elementary::Step | Elementary::Sign, u) if moves(u) => {
                    self.differs_across(&all, |value| f64::from(value > 0.0), u, seed)
                }
                Operation::Apply(Elementary::Floor, u) if moves(u) => {
                    self.differs_across(&all, f64::floor, u, seed)
                }
                Operation::Sampled(function, u) if moves(u) => {
                    let piece = |value| function.breaks().partition_point(|at| *at < value) as f64;
                    self.differs_across(&all, piece, u, seed)
                }
                _ => false,
            }
        })
    }

    /// The planes, (normal, offset) in the space of the first so many variables, on which these nodes can jump as one of the variables
    /// in `moving` varies, with the other variables at given values. `None` where a node jumps on a surface that is no plane, or that
    /// depends on a variable of which no value is given.
    pub fn jump_planes(
        &self,
        nodes: &[NodeId],
        moving: Range<usize>,
        (space, others): (usize, &[f64]),
    ) -> Option<Vec<(Vec<f64>, f64)>> {
        let all = Tape::new(self, nodes, &[]);
        let reached = self.reached(nodes);
        let mut planes = Vec::new();
        for place in (0..self.nodes.len()).filter(|place| reached[*place]) {
            let (u, levels, piece): (NodeId, Vec<f64>, Piece) = match &self.nodes[place] {
                Operation::Apply(Elementary::Step | Elementary::Sign, u) => {
                    (*u, vec![0.0], Box::new(|value| f64::from(value > 0.0)))
                }
                // There is no end of levels.
                Operation::Apply(Elementary::Floor, u) => (*u, Vec::new(), Box::new(f64::floor)),
                Operation::Sampled(function, u) => {
                    let breaks = function.breaks().to_vec();
                    let at = breaks.clone();
                    (*u, breaks, Box::new(move |value| at.partition_point(|at| *at < value) as f64))
                }
                _ => continue,
            };
            let moves = moving.clone().any(|variable| self.uses(u, variable));
            if !moves || !self.differs_across(&all, piece, u, place as u32) {
                continue;
            }
            let (normal, constant) = self.affine(u, space, others).filter(|_| !levels.is_empty())?;
            planes.extend(levels.iter().map(|level| (normal.clone(), level - constant)));
        }
        Some(planes)
    }

    /// The gradient of a node by the first so many variables and its value where they are 0, if it is affine in them and reads no
    /// variable past the given ones.
    fn affine(&self, node: NodeId, space: usize, others: &[f64]) -> Option<(Vec<f64>, f64)> {
        if (space + others.len()..self.early.len()).any(|variable| self.uses(node, variable)) {
            return None;
        }
        let tape = Tape::new(self, &[node], &[]);
        let at = |point: &[f64]| {
            let mut found = f64::NAN;
            let variable = |v: usize| *point.get(v).or_else(|| others.get(v - space)).unwrap_or(&0.0);
            tape.run_one(variable, |_, value| found = value);
            found
        };
        let unit = |k: usize| (0..space).map(|v| f64::from(u8::from(v == k))).collect::<Vec<f64>>();
        let constant = at(&vec![0.0; space]);
        let normal: Vec<f64> = (0..space).map(|k| at(&unit(k)) - constant).collect();
        let mut stream = Stream::at(RngAddress { seed: 3, replica: 0, step: 0, lane: 0 });
        let fits = (0..CROSSINGS).all(|_| {
            let point: Vec<f64> = (0..space).map(|_| 2.0 * stream.normal()).collect();
            let terms: Vec<f64> = point.iter().zip(&normal).map(|(x, n)| x * n).collect();
            let size = 1.0 + constant.abs() + terms.iter().map(|term| term.abs()).sum::<f64>();
            (at(&point) - constant - terms.iter().sum::<f64>()).abs() < 1e-10 * size
        });
        fits.then_some((normal, constant))
    }

    /// Whether the results of a tape differ on the two sides of a surface, where the argument u passes from one piece to another.
    fn differs_across(&self, all: &Tape, piece: impl Fn(f64) -> f64, u: NodeId, seed: u32) -> bool {
        let argument = Tape::new(self, &[u], &[]);
        let count = self.early.len();
        let mut stream = Stream::at(RngAddress { seed: 1, replica: seed, step: 0, lane: 0 });
        let mut point = || -> Vec<f64> { (0..count).map(|_| 2.0 * stream.normal()).collect() };
        let mut found = 0;
        for _ in 0..PAIRS {
            let (a, b) = (point(), point());
            let between = |t: f64, v: usize| a[v] + t * (b[v] - a[v]);
            let side = |t: f64| {
                let mut value = f64::NAN;
                argument.run_one(|v| between(t, v), |_, u| value = u);
                piece(value)
            };
            let (mut low, mut high) = (0.0, 1.0);
            let first = side(low);
            if first == side(high) {
                continue;
            }
            while {
                let middle = f64::midpoint(low, high);
                low < middle && middle < high
            } {
                let middle = f64::midpoint(low, high);
                if side(middle) == first { low = middle } else { high = middle }
            }
            let results = |t: f64| {
                let mut results = Vec::new();
                all.run_one(|v| between(t, v), |_, value| results.push(value));
                results
            };
            let differs = |(a, b): (&f64, &f64)| (a - b).abs() > DIFFERENT * (1.0 + a.abs() + b.abs());
            if results(low - ASIDE).iter().zip(&results(high + ASIDE)).any(differs) {
                return true;
            }
            found += 1;
            if found == CROSSINGS {
                break;
            }
        }
        false
    }
}

//! Derivatives in reverse mode.

use super::elementary::Elementary;
use super::{Graph, NodeId, Operation};

impl Graph {
    /// ∂node/∂variable for each of these variables: nodes of the same graph, which can be differentiated again.
    pub fn gradient(&mut self, node: NodeId, variables: &[usize]) -> Vec<NodeId> {
        let wanted: Vec<NodeId> = variables.iter().map(|variable| self.variable(*variable)).collect();
        self.gradient_by(node, &wanted)
    }

    /// The same by subexpressions that are taken for variables; what they are made of is held fixed.
    ///
    /// Reverse mode: ḡ(u) = ∂node/∂u is collected from all nodes that u is used in, the last ones first,
    ///
    ///   ḡ(node) = 1,   ḡ(u) = Σ_{w made of u} ḡ(w) ∂w/∂u.
    pub fn gradient_by(&mut self, node: NodeId, wanted: &[NodeId]) -> Vec<NodeId> {
        // What is neither wanted nor made of something that is has no slope to pass on.
        let matters = self.made_of(wanted, node);
        let mut slopes: Vec<Option<NodeId>> = vec![None; node.index() + 1];
        slopes[node.index()] = Some(self.number(1.0));
        for place in (0..=node.index()).rev() {
            let Some(slope) = slopes[place].filter(|_| matters[place]) else { continue };
            if wanted.iter().any(|w| w.index() == place) {
                continue;
            }
            for (operand, share) in self.shares(NodeId(place as u32), slope, &matters) {
                let sum = match slopes[operand.index()] {
                    Some(sum) => self.add_nodes(sum, share),
                    None => share,
                };
                slopes[operand.index()] = Some(sum);
            }
        }
        let zero = self.number(0.0);
        let of = |w: &NodeId| slopes.get(w.index()).copied().flatten().unwrap_or(zero);
        wanted.iter().map(of).collect()
    }

    /// For every node up to the last one, whether it is one of these or made of one.
    fn made_of(&self, wanted: &[NodeId], last: NodeId) -> Vec<bool> {
        let mut made = vec![false; last.index() + 1];
        for w in wanted.iter().filter(|w| **w <= last) {
            made[w.index()] = true;
        }
        for place in 0..=last.index() {
            let operands = self.nodes[place].operands();
            made[place] |= operands.into_iter().flatten().any(|operand| made[operand.index()]);
        }
        made
    }

    /// What a node passes on to those that it is made of, given its own slope g: pairs (u, g ∂node/∂u).
    fn shares(&mut self, node: NodeId, g: NodeId, matters: &[bool]) -> Vec<(NodeId, NodeId)> {
        let of = |operand: NodeId| matters[operand.index()];
        let mut shares = Vec::with_capacity(2);
        match self.nodes[node.index()] {
            Operation::Number(_) | Operation::Variable(_) => {}
            Operation::Apply(function, u) => {
                if let Some(share) = self.chain(function, u, node, g) {
                    shares.push((u, share));
                }
            }
            Operation::Sampled(function, u) => {
                let slope = self.apply_sampled(function.derivative(), u);
                shares.push((u, self.multiply(g, slope)));
            }
            Operation::Add(a, b) => shares.extend([(a, g), (b, g)].into_iter().filter(|(u, _)| of(*u))),
            Operation::Subtract(a, b) => {
                if of(a) {
                    shares.push((a, g));
                }
                if of(b) {
                    shares.push((b, self.negate(g)));
                }
            }
            Operation::Multiply(a, b) => {
                if of(a) {
                    shares.push((a, self.multiply(g, b)));
                }
                if of(b) {
                    shares.push((b, self.multiply(g, a)));
                }
            }
            Operation::Divide(a, b) => {
                // d(a/b) = (da − (a/b) db)/b.
                let quotient = self.divide(g, b);
                if of(a) {
                    shares.push((a, quotient));
                }
                if of(b) {
                    let product = self.multiply(quotient, node);
                    shares.push((b, self.negate(product)));
                }
            }
            Operation::Power(a, b) => {
                // d(a^b) = b a^{b−1} da + a^b log(a) db.
                if of(a) {
                    let one = self.number(1.0);
                    let less = self.subtract(b, one);
                    let lower = self.power(a, less);
                    let slope = self.multiply(b, lower);
                    shares.push((a, self.multiply(g, slope)));
                }
                if of(b) {
                    let log = self.apply(Elementary::Log, a);
                    let slope = self.multiply(node, log);
                    shares.push((b, self.multiply(g, slope)));
                }
            }
            Operation::Max(a, b) | Operation::Min(a, b) => {
                let is_max = matches!(self.nodes[node.index()], Operation::Max(..));
                let (above, below) = if is_max { (a, b) } else { (b, a) };
                for (u, from, to) in [(a, above, below), (b, below, above)] {
                    if of(u) {
                        let distance = self.subtract(from, to);
                        let side = self.apply(Elementary::Step, distance);
                        shares.push((u, self.mask(side, g)));
                    }
                }
            }
            // The mask itself is constant piece by piece.
            Operation::Mask(mask, u) => shares.push((u, self.mask(mask, g))),
        }
        shares
    }

    /// g f′(u) for a node f(u); nothing where f is constant piece by piece.
    fn chain(&mut self, function: Elementary, u: NodeId, node: NodeId, g: NodeId) -> Option<NodeId> {
        use Elementary as E;
        let one = self.number(1.0);
        let slope = match function {
            E::Negate => return Some(self.negate(g)),
            E::Sign | E::Step | E::Floor => return None,
            E::Abs => {
                let side = self.apply(E::Sign, u);
                return Some(self.mask(side, g));
            }
            E::Relu => {
                let side = self.apply(E::Step, u);
                return Some(self.mask(side, g));
            }
            E::Square => self.scale(2.0, u),
            E::Reciprocal => {
                let square = self.apply(E::Square, node);
                self.negate(square)
            }
            E::Exp => node,
            E::Log => return Some(self.divide(g, u)),
            E::Sqrt => {
                let half = self.scale(0.5, g);
                return Some(self.divide(half, node));
            }
            E::Tanh => {
                let square = self.apply(E::Square, node);
                self.subtract(one, square)
            }
            E::Sinh => self.apply(E::Cosh, u),
            E::Cosh => self.apply(E::Sinh, u),
            E::Sin => self.apply(E::Cos, u),
            E::Cos => {
                let sine = self.apply(E::Sin, u);
                self.negate(sine)
            }
            E::Tan => {
                let square = self.apply(E::Square, node);
                self.add_nodes(one, square)
            }
            E::Asin | E::Acos => {
                // 1 − u² loses its digits near |u| = 1; the product does not.
                let (below, above) = (self.subtract(one, u), self.add_nodes(one, u));
                let product = self.multiply(below, above);
                let root = self.apply(E::Sqrt, product);
                let share = self.divide(g, root);
                return Some(if function == E::Asin { share } else { self.negate(share) });
            }
            E::Atan => {
                let square = self.apply(E::Square, u);
                let below = self.add_nodes(one, square);
                return Some(self.divide(g, below));
            }
            E::Erf => self.apply(E::ErfSlope, u),
            E::Erfc => {
                let slope = self.apply(E::ErfSlope, u);
                self.negate(slope)
            }
            E::ErfSlope => {
                let product = self.multiply(u, node);
                self.scale(-2.0, product)
            }
            E::NormalCdf => self.apply(E::NormalDensity, u),
            E::NormalDensity => {
                let product = self.multiply(u, node);
                self.negate(product)
            }
            E::Sigmoid => {
                let rest = self.subtract(one, node);
                self.multiply(node, rest)
            }
            E::Softplus => self.apply(E::Sigmoid, u),
        };
        Some(self.multiply(g, slope))
    }
}

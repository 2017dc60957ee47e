//! Tests of the coefficients by their order conditions: a method has order p if Σ_i b_i Φ_i(τ) = 1/γ(τ) for every rooted tree τ with at most p nodes
//! (Butcher; Hairer, Nørsett & Wanner, *Solving ODEs I*, §II.2), and its interpolant has order p if
//! Σ_i b_i(θ) Φ_i(τ) = θ^|τ|/γ(τ) for these trees.

use super::stages::Row;
use super::{dop853, dop853_tableau as dop, dopri5, rodas5p};

/// A rooted tree, given by the subtrees of its root.
#[derive(Clone, Debug)]
struct Tree(Vec<Tree>);

impl Tree {
    fn order(&self) -> usize {
        1 + self.0.iter().map(Tree::order).sum::<usize>()
    }

    fn density(&self) -> f64 {
        self.order() as f64 * self.0.iter().map(Tree::density).product::<f64>()
    }

    /// All trees with exactly `order` nodes.
    fn all(order: usize) -> Vec<Tree> {
        let smaller: Vec<Tree> = (1..order).flat_map(Tree::all).collect();
        let mut trees = Vec::new();
        forests(&smaller, order - 1, &mut Vec::new(), &mut trees);
        trees
    }
}

/// Extends `chosen` by trees of the list (in order, with repetition) with `nodes` more nodes in all, and pushes each such
/// tree to `out`.
fn forests(list: &[Tree], nodes: usize, chosen: &mut Vec<Tree>, out: &mut Vec<Tree>) {
    if nodes == 0 {
        out.push(Tree(chosen.clone()));
    }
    for (i, tree) in list.iter().enumerate().filter(|(_, t)| t.order() <= nodes) {
        chosen.push(tree.clone());
        forests(&list[i..], nodes - tree.order(), chosen, out);
        chosen.pop();
    }
}

type Matrix = Vec<Vec<f64>>;

/// Stage coefficients: `many` for nodes with several subtrees, `one` for nodes with a single subtree. They differ only for
/// Rosenbrock methods, where `one` includes the terms with the Jacobian (Hairer & Wanner II, §IV.7, theorem 7.4).
struct Tableau {
    many: Matrix,
    one: Matrix,
}

impl Tableau {
    fn explicit(many: Matrix) -> Self {
        Tableau { one: many.clone(), many }
    }

    fn elementary_weights(&self, tree: &Tree) -> Vec<f64> {
        let matrix = if tree.0.len() == 1 { &self.one } else { &self.many };
        let mut product = vec![1.0; matrix.len()];
        for child in &tree.0 {
            let below = self.elementary_weights(child);
            for (value, row) in product.iter_mut().zip(matrix) {
                *value *= row.iter().zip(&below).map(|(a, phi)| a * phi).sum::<f64>();
            }
        }
        product
    }

    /// Largest violation of the conditions of exactly this order by the weights of the interpolant at θ = `share`.
    fn defect(&self, weights: &[f64], share: f64, order: usize) -> f64 {
        let condition = |tree: &Tree| {
            let phi = self.elementary_weights(tree);
            let sum: f64 = weights.iter().zip(&phi).map(|(b, p)| b * p).sum();
            (sum - share.powi(order as i32) / tree.density()).abs()
        };
        Tree::all(order).iter().map(condition).fold(0.0, f64::max)
    }

    fn assert_order(&self, name: &str, weights: impl Fn(f64) -> Vec<f64>, shares: &[f64], order: usize) {
        for &share in shares {
            let weights = weights(share);
            for lower in 1..=order {
                let defect = self.defect(&weights, share, lower);
                // This allows for rounding: coefficients of up to 500 are multiplied along a tree.
                assert!(defect < 2e-12, "{name} at θ = {share}: defect {defect:e} of order {lower}");
            }
            let next = self.defect(&weights, share, order + 1);
            assert!(next > 1e-8, "{name} at θ = {share} has order above {order}: defect {next:e}");
        }
    }
}

fn spread(row: &[(usize, f64)], stages: usize) -> Vec<f64> {
    let mut full = vec![0.0; stages];
    for &(stage, weight) in row {
        full[stage] += weight;
    }
    full
}

fn matrix(rows: &[&[(usize, f64)]]) -> Matrix {
    rows.iter().map(|row| spread(row, rows.len())).collect()
}

fn assert_nodes(a: &Matrix, nodes: &[f64]) {
    for (row, c) in a.iter().zip(nodes) {
        assert!(
            (row.iter().sum::<f64>() - c).abs()
                < 1e-14 * (1.0 + row.iter().fold(0.0, |m, w| f64::max(m, w.abs())))
        );
    }
}

const INSIDE: [f64; 3] = [0.13, 0.5, 0.87];

#[test]
fn the_number_of_rooted_trees_is_the_known_one() {
    let counts: Vec<usize> = (1..=9).map(|order| Tree::all(order).len()).collect();
    assert_eq!(counts, [1, 1, 2, 4, 9, 20, 48, 115, 286]);
}

#[test]
fn dopri5_satisfies_its_order_conditions() {
    let a = matrix(&[&[], &dopri5::A2, &dopri5::A3, &dopri5::A4, &dopri5::A5, &dopri5::A6, &dopri5::B]);
    assert_nodes(&a, &dopri5::C);
    let tableau = Tableau::explicit(a);
    tableau.assert_order("solution", |_| spread(&dopri5::B, 7), &[1.0], 5);
    let fourth = |_| subtract(&spread(&dopri5::B, 7), &spread(&dopri5::ERROR, 7));
    tableau.assert_order("embedded", fourth, &[1.0], 4);
    tableau.assert_order("interpolant", |s| spread(&dopri5::interpolant(s), 7), &INSIDE, 4);
}

#[test]
fn dop853_satisfies_its_order_conditions() {
    let a = matrix(&[
        &[],
        &dop::A2,
        &dop::A3,
        &dop::A4,
        &dop::A5,
        &dop::A6,
        &dop::A7,
        &dop::A8,
        &dop::A9,
        &dop::A10,
        &dop::A11,
        &dop::A12,
        &dop::B,
        &dop::A14,
        &dop::A15,
        &dop::A16,
    ]);
    assert_nodes(&a, &dop::C);
    let tableau = Tableau::explicit(a);
    let solution = spread(&dop::B, 16);
    tableau.assert_order("solution", |_| solution.clone(), &[1.0], 8);
    tableau.assert_order("embedded 5", |_| subtract(&solution, &spread(&dop::ERROR5, 16)), &[1.0], 5);
    tableau.assert_order("embedded 3", |_| subtract(&solution, &spread(&dop::ERROR3, 16)), &[1.0], 3);
    tableau.assert_order("interpolant", |s| spread(&dop853::interpolant(s), 16), &INSIDE, 7);
}

#[test]
fn rodas5p_satisfies_its_order_conditions() {
    // The coefficients of the original form follow from those without products with the Jacobian: Γ = (1/γ − C)⁻¹, α = a Γ, β = α + Γ, b = m Γ.
    let n = rodas5p::STAGES;
    let mut gamma = vec![vec![0.0; n]; n];
    for i in 0..n {
        gamma[i][i] = rodas5p::GAMMA;
        for j in 0..i {
            gamma[i][j] = rodas5p::GAMMA * (j..i).map(|l| rodas5p::COUPLING[i][l] * gamma[l][j]).sum::<f64>();
        }
    }
    let times_gamma = |row: &[f64]| -> Vec<f64> {
        (0..n).map(|j| row.iter().zip(&gamma).map(|(w, g)| w * g[j]).sum()).collect()
    };
    let alpha: Matrix = rodas5p::A.iter().map(|row| times_gamma(row)).collect();
    assert_nodes(&alpha, &rodas5p::NODES);
    assert_nodes(&gamma, &rodas5p::TIME);
    let beta = alpha.iter().zip(&gamma).map(|(a, g)| a.iter().zip(g).map(|(a, g)| a + g).collect()).collect();
    let tableau = Tableau { many: alpha, one: beta };
    tableau.assert_order("solution", |_| times_gamma(&rodas5p::LAST), &[1.0], 5);
    tableau.assert_order("embedded", |_| times_gamma(&rodas5p::LAST[..n - 1]), &[1.0], 4);
    tableau.assert_order("interpolant", |s| times_gamma(&rodas5p::interpolant(s)), &INSIDE, 4);
}

fn subtract(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[test]
fn the_interpolants_agree_with_the_solution_at_both_ends_of_a_step() {
    let at = |row: &[(usize, f64)], full: &[(usize, f64)], stages| {
        let (row, full) = (spread(row, stages), spread(full, stages));
        row.iter().zip(&full).all(|(a, b)| (a - b).abs() < 1e-15)
    };
    let nothing: Row<0> = [];
    assert!(at(&dopri5::interpolant(0.0), &nothing, 7) && at(&dopri5::interpolant(1.0), &dopri5::B, 7));
    assert!(at(&dop853::interpolant(0.0), &nothing, 16) && at(&dop853::interpolant(1.0), &dop::B, 16));
    assert_eq!(rodas5p::interpolant(0.0), [0.0; rodas5p::STAGES]);
    assert_eq!(rodas5p::interpolant(1.0), rodas5p::LAST);
}

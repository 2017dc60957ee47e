//! A minimum of a function of many variables within a box, from its gradient.
//!
//! Limited-memory quasi-Newton steps (Nocedal, Math. Comp. 35 (1980) 773) are taken on the variables that are free to move, and
//! projected on the box (Bertsekas, SIAM J. Control 20 (1982) 221): a variable at a bound from which the gradient points outward
//! stays there for one step and is looked at again after it.

use crate::linalg::dot;
use std::collections::VecDeque;

/// What a function answers: its value and gradient, or nothing where it is infinite.
pub type ValueAndGradient = Option<(f64, Vec<f64>)>;

/// When a minimisation stops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoxOptions {
    /// Pairs of steps and changes of the gradient that are remembered.
    pub memory: usize,
    /// Steps at most.
    pub iterations: usize,
    /// A step that lowers the function by less than this is the last.
    pub decrease: f64,
    /// Length of the projected gradient below which a point is a minimum.
    pub gradient: f64,
}

impl Default for BoxOptions {
    fn default() -> Self {
        Self { memory: 30, iterations: 300, decrease: 1e-10, gradient: 1e-6 }
    }
}

/// Why a minimisation stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoxStop {
    /// The projected gradient or the last decrease is small enough.
    Converged,
    /// The limit of iterations.
    Limit,
    /// The caller asked for the end.
    Interrupted,
}

/// Where a minimisation ended.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxMinimum {
    /// The point.
    pub at: Vec<f64>,
    /// The function there.
    pub value: f64,
    /// Its gradient there.
    pub gradient: Vec<f64>,
    /// Length of the projected gradient.
    pub projected: f64,
    /// Steps taken.
    pub iterations: usize,
    /// Why it stopped.
    pub stop: BoxStop,
}

/// Fraction of the decrease that the gradient promises which a step must reach (Armijo).
const SUFFICIENT: f64 = 1e-4;
/// Halvings of a step before a direction is given up.
const HALVINGS: usize = 30;

/// The length of the gradient without the entries that point out of the box at a bound.
fn projected_length(x: &[f64], gradient: &[f64], low: &[f64], high: &[f64]) -> f64 {
    let entries = free(x, gradient, low, high).into_iter().zip(gradient);
    entries.filter(|(free, _)| *free).map(|(_, g)| g * g).sum::<f64>().sqrt()
}

/// Which variables may move: all but those at a bound from which a descent points outward.
fn free(x: &[f64], gradient: &[f64], low: &[f64], high: &[f64]) -> Vec<bool> {
    (0..x.len())
        .map(|i| !(x[i] <= low[i] && gradient[i] > 0.0 || x[i] >= high[i] && gradient[i] < 0.0))
        .collect()
}

/// A minimum of `function` within low ≤ x ≤ high, from `start`, where the function must be finite (`None` otherwise). `watch` hears
/// of every step (its number, the value) and answers whether to go on.
pub fn minimise_in_box(
    mut function: impl FnMut(&[f64]) -> ValueAndGradient,
    start: &[f64],
    (low, high): (&[f64], &[f64]),
    options: &BoxOptions,
    mut watch: impl FnMut(usize, f64, &[f64]) -> bool,
) -> Option<BoxMinimum> {
    let clip = |x: &mut Vec<f64>| x.iter_mut().enumerate().for_each(|(i, v)| *v = v.max(low[i]).min(high[i]));
    let mut x = start.to_vec();
    clip(&mut x);
    let (mut value, mut gradient) = function(&x)?;
    let mut pairs: VecDeque<(Vec<f64>, Vec<f64>)> = VecDeque::new();
    let (mut iterations, mut small) = (0, 0);
    let stop = loop {
        if projected_length(&x, &gradient, low, high) < options.gradient || small > 1 {
            break BoxStop::Converged;
        }
        if iterations == options.iterations {
            break BoxStop::Limit;
        }
        if !watch(iterations, value, &x) {
            break BoxStop::Interrupted;
        }
        let free = free(&x, &gradient, low, high);
        let mut direction = quasi_newton(&pairs, &gradient, &free);
        if dot(&direction, &gradient) >= 0.0 {
            pairs.clear();
            direction = quasi_newton(&pairs, &gradient, &free);
        }
        // Without a memory nothing tells the scale: a first step changes the variables by a tenth of their size at most.
        let size = direction.iter().fold(0.0_f64, |m, d| m.max(d.abs()));
        let reach = x.iter().fold(1e-3_f64, |m, v| m.max(v.abs()));
        let mut length = if pairs.is_empty() { (0.1 * reach / size).min(1.0) } else { 1.0 };
        let mut found = None;
        for _ in 0..HALVINGS {
            let mut there: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
            clip(&mut there);
            let promised: f64 = (0..x.len()).map(|i| gradient[i] * (there[i] - x[i])).sum();
            if let Some((new, slope)) = function(&there)
                && new <= value + SUFFICIENT * promised
                && new.is_finite()
            {
                found = Some((there, new, slope));
                break;
            }
            length *= 0.5;
        }
        iterations += 1;
        let Some((there, new, slope)) = found else {
            // The memory may be wrong where the set of free variables changed; steepest descent decides.
            if pairs.is_empty() {
                break BoxStop::Converged;
            }
            pairs.clear();
            continue;
        };
        let step: Vec<f64> = there.iter().zip(&x).map(|(a, b)| a - b).collect();
        let change: Vec<f64> = slope.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        let curvature = dot(&step, &change);
        if curvature > 1e-12 * dot(&step, &step).sqrt() * dot(&change, &change).sqrt() {
            pairs.push_back((step, change));
            if pairs.len() > options.memory {
                pairs.pop_front();
            }
        }
        small = if value - new < options.decrease { small + 1 } else { 0 };
        (x, value, gradient) = (there, new, slope);
    };
    let projected = projected_length(&x, &gradient, low, high);
    Some(BoxMinimum { at: x, value, gradient, projected, iterations, stop })
}

/// −H g on the free variables by the two loops of the limited-memory method, 0 on the others.
fn quasi_newton(pairs: &VecDeque<(Vec<f64>, Vec<f64>)>, gradient: &[f64], free: &[bool]) -> Vec<f64> {
    let masked =
        |v: &[f64]| -> Vec<f64> { v.iter().zip(free).map(|(v, f)| if *f { *v } else { 0.0 }).collect() };
    let mut q: Vec<f64> = masked(gradient);
    let pairs: Vec<(Vec<f64>, Vec<f64>, f64)> = pairs
        .iter()
        .map(|(s, y)| (masked(s), masked(y)))
        .map(|(s, y)| {
            let product = dot(&s, &y);
            (s, y, product)
        })
        .filter(|(s, y, product)| *product > 1e-12 * dot(s, s).sqrt() * dot(y, y).sqrt())
        .collect();
    let mut factors = Vec::with_capacity(pairs.len());
    for (s, y, product) in pairs.iter().rev() {
        let factor = dot(s, &q) / product;
        q.iter_mut().zip(y).for_each(|(q, y)| *q -= factor * y);
        factors.push(factor);
    }
    if let Some((_, y, product)) = pairs.last() {
        let scale = product / dot(y, y);
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for ((s, y, product), factor) in pairs.iter().zip(factors.iter().rev()) {
        let back = dot(y, &q) / product;
        q.iter_mut().zip(s).for_each(|(q, s)| *q += (factor - back) * s);
    }
    q.iter_mut().for_each(|q| *q = -*q);
    q
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's function in four variables.
    fn valley(x: &[f64]) -> (f64, Vec<f64>) {
        let mut gradient = vec![0.0; x.len()];
        let mut value = 0.0;
        for i in 0..x.len() - 1 {
            let (a, b) = (x[i + 1] - x[i] * x[i], 1.0 - x[i]);
            value += 100.0 * a * a + b * b;
            gradient[i] += -400.0 * a * x[i] - 2.0 * b;
            gradient[i + 1] += 200.0 * a;
        }
        (value, gradient)
    }

    #[test]
    fn a_curved_valley_is_followed_to_its_end() {
        let options = BoxOptions { gradient: 1e-9, decrease: 0.0, ..BoxOptions::default() };
        let bounds = (&[-5.0; 4][..], &[5.0; 4][..]);
        let mut last = f64::INFINITY;
        let falls = |_: usize, value: f64, _: &[f64]| {
            assert!(value <= last, "the function never rises");
            last = value;
            true
        };
        let found =
            minimise_in_box(|x| Some(valley(x)), &[-1.2, 1.0, -0.5, 2.0], bounds, &options, falls).unwrap();
        assert!(found.at.iter().all(|x| (x - 1.0).abs() < 1e-7), "{found:?}");
        assert_eq!(found.stop, BoxStop::Converged);
    }

    #[test]
    fn bounds_hold_and_the_gradient_points_outward_there() {
        let bounds = (&[-5.0, -5.0, -5.0, -5.0][..], &[0.5, 5.0, 5.0, 0.01][..]);
        let found = minimise_in_box(
            |x| Some(valley(x)),
            &[-1.0, 0.2, 0.3, 0.0],
            bounds,
            &BoxOptions::default(),
            |_, _, _| true,
        )
        .unwrap();
        for i in 0..4 {
            let (low, high) = (bounds.0[i], bounds.1[i]);
            assert!(found.at[i] >= low && found.at[i] <= high);
            let stationary = found.gradient[i].abs() < 1e-3;
            assert!(stationary || found.at[i] == high && found.gradient[i] < 0.0, "{i}: {found:?}");
        }
        assert!(found.at.iter().zip(bounds.1).any(|(x, high)| x == high));
    }

    #[test]
    fn where_the_function_is_infinite_the_line_search_goes_back() {
        // −ln(1 − x) + x²: infinite from x = 1 on; its minimum solves 1/(1 − x) + 2x = 0.
        let barrier = |x: &[f64]| {
            (x[0] < 1.0).then(|| (-(1.0 - x[0]).ln() + x[0] * x[0], vec![1.0 / (1.0 - x[0]) + 2.0 * x[0]]))
        };
        let found =
            minimise_in_box(barrier, &[0.99], (&[-9.0], &[9.0]), &BoxOptions::default(), |_, _, _| true)
                .unwrap();
        let want = (1.0 - 3f64.sqrt()) / 2.0;
        assert!((found.at[0] - want).abs() < 1e-6, "{found:?} {want}");
        assert!(
            minimise_in_box(barrier, &[2.0], (&[-9.0], &[9.0]), &BoxOptions::default(), |_, _, _| true)
                .is_none()
        );
    }
}

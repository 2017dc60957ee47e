//! Runge-Kutta steps that are kept, and the exact derivative of their end by everything that they depend on.
//!
//! An optimisation of y(T) needs the derivative of the numbers that were really computed: a derivative of the continuous
//! solution, integrated by steps of its own, differs from it by the errors of both, and a line search then stops early. Here the
//! steps of the forward integration are kept and differentiated one by one in reverse, so that the derivative is exact for the
//! sequence of steps that was taken. The pair is that of Dormand & Prince of order 5(4).

use super::dopri5::{A2, A3, A4, A5, A6, B, C, ERROR};

/// The longest step in units of 1/ρ, ρ the spectral radius of ∂f/∂y. The method is stable for real eigenvalues down to −3.3/step. Near an
/// equilibrium the error control allows longer steps until the growth of rounding errors shows; a cotangent has grown by the same factor then,
/// from 1 and not from rounding. A cotangent moves as fast as ρ also where the state rests: at this length its error is of order 1e-5.
const LONGEST: f64 = 1.25;
/// Iterations for ρ before the first step; every further step adds one.
const FIRST_ITERATIONS: usize = 8;
/// Displacement of the state, in units of its size, by which ∂f/∂y is applied to a vector.
const DISPLACEMENT: f64 = 1e-5;

/// A right-hand side f(t, y; u) with its transposed derivatives.
pub trait AdjointField {
    /// Number of components of the state.
    fn dimension(&self) -> usize;

    /// Writes f(t, y) to `out`.
    fn derivative(&mut self, time: f64, state: &[f64], out: &mut [f64]);

    /// Adds (∂f/∂y)ᵀ c to `out`, c = `cotangent`. A field that depends on parameters u adds (∂f/∂u)ᵀ c to sums of its own:
    /// the cotangents of one step are weighted so that these sums become the derivative by u.
    fn pull_back(&mut self, time: f64, state: &[f64], cotangent: &[f64], out: &mut [f64]);

    /// What the error of a step does to a number that must be accurate relative to itself, in units of its tolerance, given the
    /// results of order 5 and 4. The step is repeated with a shorter length where this is above 1.
    fn excess(&mut self, _fifth: &[f64], _fourth: &[f64]) -> f64 {
        0.0
    }
}

/// Tolerances and limits of an integration whose steps are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptOptions {
    /// Relative tolerance of a step.
    pub relative: f64,
    /// Absolute tolerance of a step.
    pub absolute: f64,
    /// A component beyond this in absolute value counts as divergence.
    pub state_limit: f64,
    /// Steps after which the integration counts as divergent: stability asks for ever shorter ones.
    pub step_limit: usize,
}

impl Default for KeptOptions {
    fn default() -> Self {
        Self { relative: 1e-8, absolute: 1e-11, state_limit: 1e6, step_limit: 200_000 }
    }
}

/// The steps of an integration over a grid of times, on each of which a step ends.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptSteps {
    /// Begin of every step, and the end of the last.
    pub times: Vec<f64>,
    /// The states there.
    pub states: Vec<Vec<f64>>,
    /// For every time of the grid its place in `times`.
    pub grid: Vec<usize>,
}

impl KeptSteps {
    /// The state at the end.
    pub fn last(&self) -> &[f64] {
        self.states.last().expect("the start is a state")
    }
}

/// Weights of the stages i = 1 … 5 in the argument of the next, and of the solution.
const ROWS: [&[(usize, f64)]; 7] = [&[], &A2, &A3, &A4, &A5, &A6, &B];

/// y + h Σ_j a_j k_j.
fn argument(row: &[(usize, f64)], step: f64, state: &[f64], k: &[Vec<f64>], out: &mut [f64]) {
    out.copy_from_slice(state);
    for &(j, a) in row {
        for (o, slope) in out.iter_mut().zip(&k[j]) {
            *o += step * a * slope;
        }
    }
}

/// Integrates from the first time of `grid` (ascending) to its last, with steps that end on every one of them. `None` when the
/// solution diverges.
pub fn integrate_kept(
    field: &mut dyn AdjointField,
    state: &[f64],
    grid: &[f64],
    options: &KeptOptions,
) -> Option<KeptSteps> {
    let n = field.dimension();
    let mut kept = KeptSteps { times: vec![grid[0]], states: vec![state.to_vec()], grid: vec![0] };
    let mut k = vec![vec![0.0; n]; 7];
    let (mut y, mut next, mut fourth) = (state.to_vec(), vec![0.0; n], vec![0.0; n]);
    let sound = |v: &[f64]| v.iter().all(|x| x.abs() <= options.state_limit);
    let span = grid[grid.len() - 1] - grid[0];
    let mut time = grid[0];
    field.derivative(time, &y, &mut k[0]);
    if !sound(&y) || !sound(&k[0]) {
        return None;
    }
    let mut length = first_step(&y, &k[0], span, options);
    let mut power = PowerIteration::new(n);
    for _ in 0..FIRST_ITERATIONS {
        power.advance(field, time, &y, &k[0]);
    }
    for &end in &grid[1..] {
        while time < end {
            // A rest that would be tiny is shared with the step before it.
            let left = end - time;
            length = length.min(LONGEST / power.radius);
            let step = if length >= left { left } else { length.min(0.5 * left) };
            for stage in 1..7 {
                let (before, rest) = k.split_at_mut(stage);
                argument(ROWS[stage], step, &y, before, &mut next);
                field.derivative(time + C[stage] * step, &next, &mut rest[0]);
            }
            // The argument of the last stage is the result of order 5.
            let mut error = 0.0;
            for i in 0..n {
                let difference: f64 = step * ERROR.iter().map(|&(j, e)| e * k[j][i]).sum::<f64>();
                fourth[i] = next[i] - difference;
                let scale = options.absolute + options.relative * y[i].abs().max(next[i].abs());
                error += (difference / scale).powi(2);
            }
            let mut error = (error / n as f64).sqrt();
            let whole = sound(&next) && sound(&k[6]) && error.is_finite();
            if whole && error <= 1.0 {
                error = error.max(field.excess(&next, &fourth));
            }
            let factor = if whole { (0.9 * error.max(1e-10).powf(-0.2)).clamp(0.2, 5.0) } else { 0.2 };
            if whole && error <= 1.0 {
                time = if step == left { end } else { time + step };
                std::mem::swap(&mut y, &mut next);
                k.swap(0, 6);
                kept.times.push(time);
                kept.states.push(y.clone());
                power.advance(field, time, &y, &k[0]);
                // A step that was cut short by the grid says little of what the next may be.
                length = if step < length { length.max(step * factor) } else { step * factor };
            } else {
                length = step * factor.min(0.9);
            }
            if length < 1e-13 * span || kept.times.len() > options.step_limit {
                return None;
            }
        }
        kept.grid.push(kept.times.len() - 1);
    }
    Some(kept)
}

/// The spectral radius of ∂f/∂y along a trajectory, by one iteration of the power method per step: v ← (∂f/∂y) v/|v|, with differences of f.
struct PowerIteration {
    vector: Vec<f64>,
    moved: Vec<f64>,
    slope: Vec<f64>,
    radius: f64,
}

impl PowerIteration {
    fn new(n: usize) -> Self {
        // Any vector that is orthogonal to no eigenvector by symmetry.
        let vector = (0..n).map(|i| 1.0 + 0.37 * ((i * 7 + 3) % 11) as f64 / 11.0).collect();
        Self { vector, moved: vec![0.0; n], slope: vec![0.0; n], radius: 0.0 }
    }

    fn advance(&mut self, field: &mut dyn AdjointField, time: f64, state: &[f64], derivative: &[f64]) {
        let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let by = DISPLACEMENT * length(state).max(1e-3) / length(&self.vector);
        for ((moved, y), v) in self.moved.iter_mut().zip(state).zip(&self.vector) {
            *moved = y + by * v;
        }
        field.derivative(time, &self.moved, &mut self.slope);
        let before = length(&self.vector);
        for (slope, f) in self.slope.iter_mut().zip(derivative) {
            *slope = (*slope - f) / by;
        }
        let radius = length(&self.slope) / before;
        if radius.is_finite() && radius > 0.0 {
            self.vector.copy_from_slice(&self.slope);
            self.vector.iter_mut().for_each(|v| *v /= radius * before);
            self.radius = radius;
        }
    }
}

/// A first step that changes no component by more than a hundredth of its size.
fn first_step(state: &[f64], slope: &[f64], span: f64, options: &KeptOptions) -> f64 {
    let scale = |y: f64| options.absolute.sqrt() + y.abs();
    let fastest = state.iter().zip(slope).map(|(y, f)| f.abs() / scale(*y)).fold(0.0, f64::max);
    if fastest > 0.0 { (0.01 / fastest).min(0.01 * span) } else { 0.01 * span }
}

/// Pulls a cotangent of the last state back to the first, step by step; `visit` is told the number of every time of the grid and
/// the cotangent there, the last first. Returns the cotangent of the first state.
pub fn pull_back_kept(
    field: &mut dyn AdjointField,
    kept: &KeptSteps,
    cotangent: &[f64],
    visit: &mut dyn FnMut(usize, &[f64]),
) -> Vec<f64> {
    let n = field.dimension();
    let mut lambda = cotangent.to_vec();
    let mut k = vec![vec![0.0; n]; 6];
    let mut arguments = vec![vec![0.0; n]; 6];
    let mut bars = vec![vec![0.0; n]; 6];
    let mut pulled = vec![0.0; n];
    let mut grid = kept.grid.len();
    for at in (0..kept.times.len()).rev() {
        if grid > 0 && kept.grid[grid - 1] == at {
            grid -= 1;
            visit(grid, &lambda);
        }
        if at == 0 {
            break;
        }
        let (time, step) = (kept.times[at - 1], kept.times[at] - kept.times[at - 1]);
        for stage in 0..6 {
            let (before, rest) = k.split_at_mut(stage);
            argument(ROWS[stage], step, &kept.states[at - 1], before, &mut arguments[stage]);
            // The slope of the last stage enters the solution, but no argument of another stage.
            if stage < 5 {
                field.derivative(time + C[stage] * step, &arguments[stage], &mut rest[0]);
            }
        }
        for bar in &mut bars {
            bar.fill(0.0);
        }
        for &(stage, b) in &B {
            for (bar, l) in bars[stage].iter_mut().zip(&lambda) {
                *bar += step * b * l;
            }
        }
        for stage in (0..6).rev() {
            pulled.fill(0.0);
            field.pull_back(time + C[stage] * step, &arguments[stage], &bars[stage], &mut pulled);
            for (l, p) in lambda.iter_mut().zip(&pulled) {
                *l += p;
            }
            for &(j, a) in ROWS[stage] {
                for (bar, p) in bars[j].iter_mut().zip(&pulled) {
                    *bar += step * a * p;
                }
            }
        }
    }
    lambda
}

#[cfg(test)]
mod tests {
    use super::*;

    /// y₁' = u y₁ y₂, y₂' = −y₁² + t with a parameter u.
    struct Pair {
        u: f64,
        by_u: f64,
    }

    impl AdjointField for Pair {
        fn dimension(&self) -> usize {
            2
        }
        fn derivative(&mut self, t: f64, y: &[f64], out: &mut [f64]) {
            (out[0], out[1]) = (self.u * y[0] * y[1], t - y[0] * y[0]);
        }
        fn pull_back(&mut self, _t: f64, y: &[f64], c: &[f64], out: &mut [f64]) {
            out[0] += self.u * y[1] * c[0] - 2.0 * y[0] * c[1];
            out[1] += self.u * y[0] * c[0];
            self.by_u += y[0] * y[1] * c[0];
        }
    }

    fn ends(u: f64, y: [f64; 2]) -> f64 {
        let mut field = Pair { u, by_u: 0.0 };
        let options = KeptOptions { relative: 1e-11, absolute: 1e-13, ..KeptOptions::default() };
        let kept = integrate_kept(&mut field, &y, &[0.0, 0.4, 2.0], &options).unwrap();
        kept.last()[0] + 2.0 * kept.last()[1]
    }

    #[test]
    fn derivatives_are_those_of_differences() {
        let (u, y) = (0.7, [0.6, 0.3]);
        let mut field = Pair { u, by_u: 0.0 };
        let kept = integrate_kept(&mut field, &y, &[0.0, 0.4, 2.0], &KeptOptions::default()).unwrap();
        assert_eq!([0, 1, 2].map(|i| kept.times[kept.grid[i]]), [0.0, 0.4, 2.0]);
        let mut seen = Vec::new();
        let by_start = pull_back_kept(&mut field, &kept, &[1.0, 2.0], &mut |i, c| seen.push((i, c.to_vec())));
        assert_eq!(seen.iter().map(|s| s.0).collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!((&seen[0].1, &seen[2].1), (&vec![1.0, 2.0], &by_start));
        let h = 1e-5;
        let by_u = (ends(u + h, y) - ends(u - h, y)) / (2.0 * h);
        let by_first = (ends(u, [y[0] + h, y[1]]) - ends(u, [y[0] - h, y[1]])) / (2.0 * h);
        let by_second = (ends(u, [y[0], y[1] + h]) - ends(u, [y[0], y[1] - h])) / (2.0 * h);
        // Differences of order h² and steps of relative error 1e-8.
        for (got, want) in [(field.by_u, by_u), (by_start[0], by_first), (by_start[1], by_second)] {
            assert!((got - want).abs() < 1e-7, "{got} {want}");
        }
    }

    /// y₁ follows u y₂ within 1/50, and y₂ decays slowly.
    struct Follower {
        u: f64,
        by_u: f64,
    }

    impl AdjointField for Follower {
        fn dimension(&self) -> usize {
            2
        }
        fn derivative(&mut self, _t: f64, y: &[f64], out: &mut [f64]) {
            (out[0], out[1]) = (-50.0 * (y[0] - self.u * y[1]), -0.1 * y[1]);
        }
        fn pull_back(&mut self, _t: f64, y: &[f64], c: &[f64], out: &mut [f64]) {
            out[0] -= 50.0 * c[0];
            out[1] += 50.0 * self.u * c[0] - 0.1 * c[1];
            self.by_u += 50.0 * y[1] * c[0];
        }
    }

    #[test]
    fn cotangents_do_not_grow_where_the_error_control_would_allow_unstable_steps() {
        for relative in [1e-4, 1e-6, 1e-8] {
            let mut field = Follower { u: 1.0, by_u: 0.0 };
            let options = KeptOptions { relative, absolute: 1e-3 * relative, ..KeptOptions::default() };
            let kept = integrate_kept(&mut field, &[1.0, 1.0], &[0.0, 10.0], &options).unwrap();
            let by_start = pull_back_kept(&mut field, &kept, &[1.0, 0.0], &mut |_, _| {});
            // y₁ = u y₂ 50/(50 − 0.1) once the start is forgotten.
            let want = (-1.0_f64).exp() * 50.0 / 49.9;
            assert!((field.by_u / want - 1.0).abs() < 10.0 * relative, "{relative}: {} {want}", field.by_u);
            assert!(by_start[0].abs() < 1e-12, "{relative}: {by_start:?}");
        }
    }

    #[test]
    fn a_solution_that_diverges_is_none() {
        // y₂ falls to −∞ where u < 0 drives y₁ up.
        let mut field = Pair { u: -40.0, by_u: 0.0 };
        assert!(integrate_kept(&mut field, &[1.0, -1.0], &[0.0, 50.0], &KeptOptions::default()).is_none());
    }
}

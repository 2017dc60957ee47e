//! A piece of a path: the mean solved over it, coefficients at its Chebyshev points, and the covariance that follows from them.

use super::{PathOptions, Point, ShiftSource, Watched, finite};
use crate::fluctuations::linearise::{Linearisation, Lineariser};
use crate::order_parameters::overlap_flow::OverlapFlow;
use didact_math::linalg::{Mat, dot, eigenvalues_general};
use didact_math::ode::{self, Method, OdeEvent, Options, Saving, Stop, VectorField};
use didact_model::{EngineError, Overlaps};
use rayon::prelude::*;
use std::f64::consts::PI;
use std::ops::ControlFlow;

/// Beyond this many numbers eigenvalues of J are computed at the ends and the middle of panels only.
const MANY: usize = 12;

/// A piece of the path with its coefficients at Chebyshev points.
pub(super) struct Panel {
    from: f64,
    pub(super) to: f64,
    pub(super) length: f64,
    /// From `from` to `to`.
    times: Vec<f64>,
    pub(super) states: Vec<Overlaps>,
    pub(super) nodes: Vec<Linearisation>,
    /// Requested times in the panel and the states there.
    saved: Vec<(f64, Overlaps)>,
    /// Whether the watched function has its first zero at the end.
    pub(super) crossed: bool,
    /// Whether the mean ends here, because it diverges.
    pub(super) ended: bool,
    /// Whether averages of the rule have closed forms.
    closed: bool,
}

impl Panel {
    #[expect(clippy::too_many_arguments, reason = "the pieces of one loop")]
    pub(super) fn along(
        lineariser: &Lineariser,
        here: &Point,
        first: Linearisation,
        to: f64,
        requested: &[f64],
        count: usize,
        options: PathOptions,
        watched: Option<Watched>,
    ) -> Result<Self, EngineError> {
        let mut to = to;
        let mut crossed = false;
        let mut ended = false;
        loop {
            let from = here.time;
            let chebyshev: Vec<f64> = (1..=count)
                .map(|j| {
                    if j == count {
                        to
                    } else {
                        from + 0.5 * (to - from) * (1.0 - (PI * j as f64 / count as f64).cos())
                    }
                })
                .collect();
            let inside: Vec<f64> = requested.iter().copied().take_while(|t| *t <= to).collect();
            let mut all: Vec<f64> = chebyshev.iter().chain(&inside).copied().collect();
            all.sort_by(f64::total_cmp);
            all.dedup();
            let mut flow = OverlapFlow::new(lineariser.problem, &here.state, lineariser.needed);
            let (relative, averages) = options.of_mean(lineariser.closed);
            flow.averages.accuracy = Some(averages);
            let layout = flow.layout.clone();
            let state = layout.pack(&here.state);
            let function = watched.map(|watched| {
                let layout = layout.clone();
                OdeEvent::new("crossing", move |_, state: &[f64]| watched(&layout.unpack(state))).terminal()
            });
            let events: Vec<OdeEvent> = function.into_iter().filter(|_| !crossed).collect();
            let solver = Options {
                method: Method::Dop853,
                relative,
                absolute: 1e-3 * relative,
                saving: Saving::Landing,
                ..Options::default()
            };
            let request = ode::Request {
                start: from,
                state: &state,
                end: to,
                save_at: &all,
                events: &events,
                options: &solver,
            };
            let solution = ode::solve_watched(&mut flow as &mut dyn VectorField, &request, &mut |_| {
                ControlFlow::Continue(())
            })?;
            match solution.report.stop {
                Stop::ReachedEnd => {}
                Stop::Event { time, .. } => {
                    to = time;
                    crossed = true;
                    continue;
                }
                Stop::Diverged { time } | Stop::Stuck { time, .. } if time > from => {
                    // The covariance is followed for as long as the mean is there. Where the mean stops depends a little on the times at
                    // which it is asked for, so that this may take several attempts; every one is shorter by a tenth.
                    to = from + 0.9 * (time - from);
                    ended = true;
                    continue;
                }
                _ => return Err(EngineError::Stuck { replica: 0, reason: solution.report.to_string() }),
            }
            let state_at = |time: f64| {
                let index = all.binary_search_by(|t| t.total_cmp(&time)).expect("a time that was asked for");
                layout.unpack(&solution.states[index])
            };
            let mut states = vec![here.state.clone()];
            states.extend(chebyshev.iter().map(|t| state_at(*t)));
            let saved = inside.iter().map(|t| (*t, state_at(*t))).collect();
            let mut nodes = vec![first];
            nodes.extend(states[1..].par_iter().map(|s| lineariser.at(s)).collect::<Vec<_>>());
            nodes.iter().try_for_each(|node| finite(node, from))?;
            let times = std::iter::once(from).chain(chebyshev).collect();
            let length = to - from;
            let closed = lineariser.closed;
            return Ok(Self { from, to, length, times, states, nodes, saved, crossed, ended, closed });
        }
    }

    pub(super) fn error(&self) -> f64 {
        self.nodes.iter().map(|node| node.error).fold(0.0, f64::max)
    }

    /// The largest variance per unit of the clock that steps of the panel give to number i.
    pub(super) fn strongest(&self, i: usize) -> f64 {
        self.nodes.iter().map(|node| node.diffusion[(i, i)]).fold(0.0, f64::max)
    }

    /// ∫ λ₊ over the panel, by trapezoids between its points or, for many numbers, by Simpson's rule; and λ₊ at its end. That at its
    /// beginning is known from the panel before.
    pub(super) fn growth(&self, first: Option<f64>) -> (f64, f64) {
        let rate = |node: &Linearisation| {
            let values = eigenvalues_general(&node.jacobian);
            values.iter().map(|(real, _)| *real).fold(0.0, f64::max)
        };
        let m = self.nodes.len() - 1;
        if self.nodes[0].jacobian.rows() > MANY {
            // The points are as many on both sides of the middle.
            let ends = [first.unwrap_or_else(|| rate(&self.nodes[0])), rate(&self.nodes[m])];
            let whole = ends[0] + 4.0 * rate(&self.nodes[m / 2]) + ends[1];
            return (self.length * whole / 6.0, ends[1]);
        }
        let rates: Vec<f64> = self.nodes.iter().map(rate).collect();
        let trapezoid: f64 =
            (0..m).map(|j| 0.5 * (rates[j] + rates[j + 1]) * (self.times[j + 1] - self.times[j])).sum();
        (trapezoid, rates[m])
    }

    /// How large the last coefficients of the interpolants are: of D in units of its own size, of J times the length of the panel.
    ///
    /// Where a run has come to rest all variances of a step are rounding, which no panel resolves: none counts as less than its `floor`.
    pub(super) fn roughness(&self, floor: &[f64]) -> f64 {
        let n = self.nodes[0].jacobian.rows();
        let m = self.nodes.len() - 1;
        // Chebyshev coefficients m and m − 1 of values at the extrema.
        let weights = |degree: usize| -> Vec<f64> {
            let ends = |j: usize| if j == 0 || j == m { 0.5 } else { 1.0 };
            let own = if degree == m { 1.0 } else { 2.0 } / m as f64;
            (0..=m).map(|j| own * ends(j) * (PI * (degree * j) as f64 / m as f64).cos()).collect()
        };
        let (last, before) = (weights(m), weights(m - 1));
        let size: Vec<f64> = (0..n).map(|i| self.strongest(i).max(floor[i]).sqrt()).collect();
        let largest = self.nodes.iter().map(|node| node.jacobian.max_abs()).fold(0.0, f64::max);
        // J between numbers in units of what one step scatters them by. Numbers of very different sizes, such as Q and R of a run that
        // diverges, have rounding errors that are large beside the small ones and nothing beside their own scatter.
        let relative = |i: usize, j: usize| if size[i] > 0.0 { size[j] / size[i] } else { 1.0 };
        let largest_relative = (0..n * n)
            .map(|e| (e / n, e % n))
            .map(|(i, j)| {
                relative(i, j) * self.nodes.iter().map(|node| node.jacobian[(i, j)].abs()).fold(0.0, f64::max)
            })
            .fold(0.0, f64::max);
        let (mut worst, mut of_diffusion) = (0.0_f64, 0.0_f64);
        for i in 0..n {
            for j in 0..n {
                let tail = |weights: &[f64], of: &dyn Fn(&Linearisation) -> f64| -> f64 {
                    weights.iter().zip(&self.nodes).map(|(w, node)| w * of(node)).sum::<f64>().abs()
                };
                let jacobian = |node: &Linearisation| node.jacobian[(i, j)];
                let rough = tail(&last, &jacobian).max(tail(&before, &jacobian));
                // Rounding of differences is no roughness.
                if rough > 1e-9 * largest && rough * relative(i, j) > 1e-9 * largest_relative {
                    worst = worst.max(rough * self.length);
                }
                let scale = size[i] * size[j];
                if j <= i && scale > 0.0 {
                    let diffusion = |node: &Linearisation| node.diffusion[(i, j)];
                    let rough = tail(&last, &diffusion).max(tail(&before, &diffusion));
                    of_diffusion = of_diffusion.max(rough / scale);
                }
            }
        }
        // The diffusion is no smoother than its averages; neither is the Jacobian where it is made of the same sums.
        let quadrature = 3.0 * self.error();
        if of_diffusion > quadrature {
            worst = worst.max(of_diffusion);
        }
        if !self.closed && worst <= quadrature { 0.0 } else { worst }
    }

    /// The covariance at the saved times, at the end and, where asked for, at all nodes but the first.
    pub(super) fn integrate(
        &self,
        covariance: &Mat,
        with_nodes: bool,
        options: PathOptions,
    ) -> Result<(Vec<Point>, Mat, Vec<Mat>), EngineError> {
        let n = covariance.rows();
        let size: Vec<f64> =
            (0..n).map(|i| (covariance[(i, i)].max(0.0) + self.length * self.strongest(i)).sqrt()).collect();
        let largest = size.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            let nothing = Mat::zeros(n, n);
            let saved = self.saved.iter().map(|(time, state)| Point {
                time: *time,
                state: state.clone(),
                covariance: nothing.clone(),
                shift: Vec::new(),
            });
            let at_nodes = vec![nothing.clone(); self.times.len() - 1];
            return Ok((saved.collect(), nothing, at_nodes));
        }
        let size: Vec<f64> = size.iter().map(|s| s.max(1e-10 * largest)).collect();
        let scaled = |matrix: &Mat| {
            let mut flat = Vec::with_capacity(n * (n + 1) / 2);
            for i in 0..n {
                flat.extend((0..=i).map(|j| matrix[(i, j)] / (size[i] * size[j])));
            }
            flat
        };
        let unscaled = |flat: &[f64]| {
            let at = |i: usize, j: usize| flat[crate::fluctuations::products::triangle(i, j)];
            Mat::from_fn(n, n, |i, j| at(i, j) * size[i] * size[j])
        };
        let mut field = Lyapunov::new(self, &size);
        let state = scaled(covariance);
        let nodes = if with_nodes { &self.times[1..] } else { &[] };
        let mut times: Vec<f64> = self.saved.iter().map(|(t, _)| *t).chain(nodes.iter().copied()).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        let relative = (0.1 * options.accuracy).max(1e-10);
        let solver = Options {
            method: Method::Dop853,
            relative,
            absolute: 0.1 * relative,
            saving: Saving::Landing,
            ..Options::default()
        };
        let request = ode::Request {
            start: self.from,
            state: &state,
            end: self.to,
            save_at: &times,
            events: &[],
            options: &solver,
        };
        let solution = ode::solve_watched(&mut field, &request, &mut |_| ControlFlow::Continue(()))?;
        if !matches!(solution.report.stop, Stop::ReachedEnd) {
            return Err(EngineError::Stuck { replica: 0, reason: solution.report.to_string() });
        }
        let at = |time: f64| {
            let index = times.binary_search_by(|t| t.total_cmp(&time)).expect("a time that was asked for");
            unscaled(&solution.states[index])
        };
        let points = self.saved.iter().map(|(time, state)| Point {
            time: *time,
            state: state.clone(),
            covariance: at(*time),
            shift: Vec::new(),
        });
        let at_nodes = nodes.iter().map(|t| at(*t)).collect();
        Ok((points.collect(), unscaled(&solution.last_state), at_nodes))
    }
}

impl Panel {
    /// The shift of the mean at the end, and at the saved points: dm/dτ = J m + source (docs/derivations/fluctuations.md#eq-14).
    pub(super) fn shift(
        &self,
        here: &Point,
        at_nodes: &[Mat],
        source: ShiftSource,
        saved: &mut [Point],
        options: PathOptions,
    ) -> Result<Vec<f64>, EngineError> {
        let covariances = std::iter::once(&here.covariance).chain(at_nodes);
        let work: Vec<_> = self.states.iter().zip(&self.nodes).zip(covariances).collect();
        let sources = work.par_iter().map(|((state, node), sigma)| source(state, node, sigma)).collect();
        let mut field = Shifted { panel: self, weights: barycentric_weights(self.times.len() - 1), sources };
        let times: Vec<f64> = saved.iter().map(|point| point.time).collect();
        let relative = (0.1 * options.accuracy).max(1e-10);
        let solver = Options { relative, absolute: relative, saving: Saving::Landing, ..Options::default() };
        let request = ode::Request {
            start: self.from,
            state: &here.shift,
            end: self.to,
            save_at: &times,
            events: &[],
            options: &solver,
        };
        let solution = ode::solve_watched(&mut field, &request, &mut |_| ControlFlow::Continue(()))?;
        if !matches!(solution.report.stop, Stop::ReachedEnd) {
            return Err(EngineError::Stuck { replica: 0, reason: solution.report.to_string() });
        }
        for (point, shift) in saved.iter_mut().zip(&solution.states) {
            point.shift.clone_from(shift);
        }
        Ok(solution.last_state)
    }
}

/// dm/dτ = J m + source, both interpolated.
struct Shifted<'p> {
    panel: &'p Panel,
    weights: Vec<f64>,
    sources: Vec<Vec<f64>>,
}

impl VectorField for Shifted<'_> {
    fn dimension(&self) -> usize {
        self.sources[0].len()
    }

    fn derivative(&mut self, time: f64, state: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (j, weight) in basis(&self.weights, &self.panel.times, time).into_iter().enumerate() {
            if weight == 0.0 {
                continue;
            }
            for (i, o) in out.iter_mut().enumerate() {
                *o += weight * (self.sources[j][i] + dot(self.panel.nodes[j].jacobian.row(i), state));
            }
        }
    }
}

/// Barycentric weights of the Chebyshev extrema.
fn barycentric_weights(last: usize) -> Vec<f64> {
    (0..=last)
        .map(|j| {
            let sign = if j % 2 == 0 { 1.0 } else { -1.0 };
            if j == 0 || j == last { 0.5 * sign } else { sign }
        })
        .collect()
}

/// Weights of the nodes in the interpolant at a time.
fn basis(weights: &[f64], times: &[f64], time: f64) -> Vec<f64> {
    if let Some(hit) = times.iter().position(|t| *t == time) {
        return (0..times.len()).map(|j| f64::from(j == hit)).collect();
    }
    let terms: Vec<f64> = weights.iter().zip(times).map(|(w, t)| w / (time - t)).collect();
    let sum: f64 = terms.iter().sum();
    terms.into_iter().map(|term| term / sum).collect()
}

/// dΣ/dτ = J Σ + Σ Jᵀ + D with interpolated coefficients, in units in which Σ is of order one.
struct Lyapunov {
    times: Vec<f64>,
    weights: Vec<f64>,
    jacobians: Vec<Mat>,
    diffusions: Vec<Vec<f64>>,
    jacobian: Mat,
    sigma: Mat,
    product: Mat,
}

impl Lyapunov {
    fn new(panel: &Panel, size: &[f64]) -> Self {
        let n = size.len();
        let weights = barycentric_weights(panel.nodes.len() - 1);
        let jacobian =
            |node: &Linearisation| Mat::from_fn(n, n, |i, j| node.jacobian[(i, j)] * size[j] / size[i]);
        let diffusion = |node: &Linearisation| {
            let mut flat = Vec::with_capacity(n * (n + 1) / 2);
            for i in 0..n {
                flat.extend((0..=i).map(|j| node.diffusion[(i, j)] / (size[i] * size[j])));
            }
            flat
        };
        Self {
            times: panel.times.clone(),
            weights,
            jacobians: panel.nodes.iter().map(jacobian).collect(),
            diffusions: panel.nodes.iter().map(diffusion).collect(),
            jacobian: Mat::zeros(n, n),
            sigma: Mat::zeros(n, n),
            product: Mat::zeros(n, n),
        }
    }
}

impl VectorField for Lyapunov {
    fn dimension(&self) -> usize {
        let n = self.sigma.rows();
        n * (n + 1) / 2
    }

    fn derivative(&mut self, time: f64, state: &[f64], out: &mut [f64]) {
        let n = self.sigma.rows();
        let basis = basis(&self.weights, &self.times, time);
        self.jacobian.fill(0.0);
        out.fill(0.0);
        for (j, weight) in basis.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            self.jacobian.add_scaled(*weight, &self.jacobians[j]);
            didact_math::simd::add_scaled(out, *weight, &self.diffusions[j]);
        }
        let mut at = 0;
        for i in 0..n {
            for j in 0..=i {
                self.sigma[(i, j)] = state[at];
                self.sigma[(j, i)] = state[at];
                at += 1;
            }
        }
        self.product.fill(0.0);
        self.product.add_product(1.0, &self.jacobian, &self.sigma);
        let mut at = 0;
        for i in 0..n {
            for j in 0..=i {
                out[at] += self.product[(i, j)] + self.product[(j, i)];
                at += 1;
            }
        }
    }
}

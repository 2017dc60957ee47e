//! Mean and covariance along a trajectory.
//!
//! The interval is cut into panels. On each of them the equations of the overlaps are solved to its Chebyshev points, where drift,
//! Jacobian and diffusion are computed; between the points they are interpolated, and the covariance obeys a linear equation whose
//! coefficients cost next to nothing. A panel is as long as the interpolation allows.

use super::linearise::{Linearisation, Lineariser};
use crate::order_parameters::overlap_flow::OverlapFlow;
use didact_math::linalg::{Mat, dot, eigenvalues_general};
use didact_math::ode::{self, Method, OdeEvent, Options, Saving, Stop, VectorField};
use didact_model::{EngineError, Monitor, Overlaps};
use rayon::prelude::*;
use std::f64::consts::PI;
use std::ops::ControlFlow;

/// Mean state and covariance at one time.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) time: f64,
    pub(super) state: Overlaps,
    /// d times the covariance of the state.
    pub(super) covariance: Mat,
    /// d times the difference between the mean of replicas and the mean-field state; empty where it is not followed.
    pub(super) shift: Vec<f64>,
}

/// How a path is followed.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathOptions {
    /// Relative error of the covariance.
    pub(super) accuracy: f64,
    /// Relative tolerance of the mean.
    pub(super) tolerance: f64,
}

impl PathOptions {
    /// The largest last coefficients that a panel may have. Where a covariance is wanted to many digits, nothing is
    /// left to cancellation.
    fn allowed_roughness(self) -> f64 {
        if self.accuracy < FINE { self.accuracy } else { ALLOWED_ROUGHNESS * self.accuracy }
    }

    /// Relative tolerance of a step of the mean, and relative accuracy of averages that have no closed form: steps much more accurate
    /// than these would only cost time.
    fn of_mean(self, closed: bool) -> (f64, f64) {
        if closed || self.accuracy < FINE {
            return (self.tolerance, self.tolerance.max(1e-9));
        }
        (0.1 * self.accuracy, self.accuracy)
    }
}

/// What was found along a path.
#[derive(Debug, Clone)]
pub(super) struct Path {
    /// One per requested time that was reached.
    pub(super) points: Vec<Point>,
    /// Time and ∫λ₊, λ₊ (lambda_plus) the largest positive real part of the eigenvalues of J, at the ends of panels.
    pub(super) growth: Vec<(f64, f64)>,
    /// Largest relative error of the diffusion.
    pub(super) error: f64,
    /// First crossing of the watched level, if one was asked for and happened.
    pub(super) crossing: Option<Point>,
    /// Where the mean diverges, if it does.
    pub(super) diverges: Option<f64>,
}

/// What drives the shift of the mean, per unit of the clock, beside the Jacobian: a function of state, coefficients and covariance.
pub(super) type ShiftSource<'a> = &'a (dyn Fn(&Overlaps, &Linearisation, &Mat) -> Vec<f64> + Sync);

/// What a path is asked for.
#[derive(Clone, Copy, Default)]
pub(super) struct Asked<'a> {
    /// Times, ascending.
    pub(super) times: &'a [f64],
    /// Ends the path at its first zero.
    pub(super) watched: Option<Watched<'a>>,
    /// Follows the shift of the mean.
    pub(super) source: Option<ShiftSource<'a>>,
}

/// An observable as a function of the state, whose first zero ends the path.
pub(super) type Watched<'a> = &'a (dyn Fn(&Overlaps) -> f64 + Sync);

/// Accuracies below this are those of quantities, others those of bands.
pub(super) const FINE: f64 = 1e-5;
/// Beyond this many numbers eigenvalues of J are computed at the ends and the middle of panels only.
const MANY: usize = 12;
/// The coefficients of a band may be so many times as rough as its averages are accurate: a thousandth is no more than the width of a
/// line. Four erf units of four have standard deviations within 3e-4 for overlaps and 1.4e-3 for the loss, in which overlaps cancel.
const ALLOWED_ROUGHNESS: f64 = 10.0;
/// Length of the first panel in units of the inverse of the largest sum of a row of J.
const FIRST_LENGTH: f64 = 4.0;
/// Second moments are sums that cancel where a run comes to rest: so much of the largest is left.
const ROUNDING_OF_STEPS: f64 = 1e-11;
/// Panels shorter than this share of the path mean that the coefficients are not smooth.
const SHORTEST: f64 = 1e-9;

/// Follows the mean and its covariance from 0 through all `times` (ascending), or to the first zero of what is watched.
pub(super) fn follow(
    lineariser: &mut Lineariser,
    start: &Overlaps,
    covariance: Mat,
    asked: Asked,
    options: PathOptions,
    monitor: &dyn Monitor,
) -> Result<Path, EngineError> {
    let Asked { times, watched, source } = asked;
    let end = times.last().copied().unwrap_or(0.0);
    let mut path =
        Path { points: Vec::new(), growth: vec![(0.0, 0.0)], error: 0.0, crossing: None, diverges: None };
    let shift = if source.is_some() { vec![0.0; covariance.rows()] } else { Vec::new() };
    let mut here = Point { time: 0.0, state: start.clone(), covariance, shift };
    let mut rest = times;
    while rest.first() == Some(&here.time) {
        path.points.push(here.clone());
        rest = &rest[1..];
    }
    if rest.is_empty() {
        return Ok(path);
    }
    let nodes = if options.accuracy < FINE { 12 } else { 6 };
    lineariser.prepare(&here.state);
    let mut first = lineariser.at(&here.state);
    finite(&first, here.time)?;
    let norm = row_norm(&first.jacobian).max(1e-300);
    // A sum of rows is far above the largest rate.
    let mut length = (FIRST_LENGTH / norm).min(end);
    // Variances of a step that are below this share of the largest along the path are rounding.
    let mut rate = None;
    let mut floor = vec![0.0; first.diffusion.rows()];
    while here.time < end {
        if monitor.cancelled() {
            return Err(EngineError::Interrupted);
        }
        // What is left is taken at once where little of it would remain.
        let left = end - here.time;
        let whole = length >= left || left - length < 0.1 * length;
        let to = if whole { end } else { here.time + length };
        let panel = Panel::along(lineariser, &here, first.clone(), to, rest, nodes, options, watched)?;
        let roughness = panel.roughness(&floor);
        let excess = roughness / options.allowed_roughness();
        if excess > 1.0 && to - here.time > SHORTEST * end {
            length = (to - here.time) * shrink(excess, nodes);
            continue;
        }
        path.error = path.error.max(panel.error());
        if options.accuracy >= FINE {
            for (i, floor) in floor.iter_mut().enumerate() {
                *floor = (panel.strongest(i) * ROUNDING_OF_STEPS).max(*floor);
            }
        }
        let so_far = path.growth.last().map_or(0.0, |(_, sum)| *sum);
        let grown = panel.growth(rate);
        rate = Some(grown.1);
        path.growth.push((panel.to, so_far + grown.0));
        let (mut saved, covariance, at_nodes) =
            panel.integrate(&here.covariance, source.is_some(), options)?;
        let mut shift = Vec::new();
        if let Some(source) = source {
            shift = panel.shift(&here, &at_nodes, source, &mut saved, options)?;
        }
        rest = &rest[saved.len()..];
        path.points.extend(saved);
        let done = (panel.to - here.time) / end;
        monitor.advance(done);
        let state = panel.states.last().expect("a panel has an end").clone();
        here = Point { time: panel.to, state, covariance, shift };
        if panel.crossed {
            path.crossing = Some(here);
            return Ok(path);
        }
        if panel.ended {
            path.diverges = Some(here.time);
            return Ok(path);
        }
        first = panel.nodes.into_iter().next_back().expect("a panel has an end");
        length = (panel.length * grow(excess, nodes)).max(1e-300);
        lineariser.prepare(&here.state);
    }
    Ok(path)
}

/// By how much a panel shrinks whose last coefficients are too large.
fn shrink(excess: f64, nodes: usize) -> f64 {
    (0.7 * excess.powf(-1.0 / nodes as f64)).clamp(0.1, 0.7)
}

/// By how much the next panel may be longer: its last coefficients but one grow as the power `nodes` − 1 of its length.
fn grow(excess: f64, nodes: usize) -> f64 {
    (0.9 * excess.max(1e-30).powf(-1.0 / (nodes - 1) as f64)).clamp(0.5, 5.0)
}

/// Refuses coefficients that are no numbers.
fn finite(node: &Linearisation, time: f64) -> Result<(), EngineError> {
    if node.jacobian.is_finite() && node.diffusion.is_finite() {
        return Ok(());
    }
    Err(EngineError::Fluctuations(format!(
        "drift or covariance of a step are not finite after time {time}\n\nhint: use a smaller learning rate"
    )))
}

fn row_norm(matrix: &Mat) -> f64 {
    (0..matrix.rows()).map(|i| matrix.row(i).iter().map(|x| x.abs()).sum::<f64>()).fold(0.0, f64::max)
}

/// A piece of the path with its coefficients at Chebyshev points.
struct Panel {
    from: f64,
    to: f64,
    length: f64,
    /// From `from` to `to`.
    times: Vec<f64>,
    states: Vec<Overlaps>,
    nodes: Vec<Linearisation>,
    /// Requested times in the panel and the states there.
    saved: Vec<(f64, Overlaps)>,
    /// Whether the watched function has its first zero at the end.
    crossed: bool,
    /// Whether the mean ends here, because it diverges.
    ended: bool,
    /// Whether averages of the rule have closed forms.
    closed: bool,
}

impl Panel {
    #[expect(clippy::too_many_arguments, reason = "the pieces of one loop")]
    fn along(
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

    fn error(&self) -> f64 {
        self.nodes.iter().map(|node| node.error).fold(0.0, f64::max)
    }

    /// The largest variance per unit of the clock that steps of the panel give to number i.
    fn strongest(&self, i: usize) -> f64 {
        self.nodes.iter().map(|node| node.diffusion[(i, i)]).fold(0.0, f64::max)
    }

    /// ∫ λ₊ over the panel, by trapezoids between its points or, for many numbers, by Simpson's rule; and λ₊ at its end. That at its
    /// beginning is known from the panel before.
    fn growth(&self, first: Option<f64>) -> (f64, f64) {
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
    fn roughness(&self, floor: &[f64]) -> f64 {
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
    fn integrate(
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
            let at = |i: usize, j: usize| flat[super::products::triangle(i, j)];
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
    fn shift(
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

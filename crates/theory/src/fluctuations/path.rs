//! Mean and covariance along a trajectory.
//!
//! The interval is cut into panels. On each of them the equations of the overlaps are solved to its Chebyshev points, where drift,
//! Jacobian and diffusion are computed; between the points they are interpolated, and the covariance obeys a linear equation whose
//! coefficients cost next to nothing. A panel is as long as the interpolation allows.

mod panel;

use super::linearise::{Linearisation, Lineariser};
use didact_math::linalg::Mat;
use didact_model::{EngineError, Monitor, Overlaps};
use panel::Panel;

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
/// The coefficients of a band may be so many times as rough as its averages are accurate: a thousandth is no more than the width of a
/// line. Four erf units of four have standard deviations within 3e-4 for overlaps and 2.6e-3 for the loss, in which overlaps cancel.
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

//! Questions about fluctuations, for any problem of plain one-pass training.

use super::error::FluctuationError;
use super::linearise::Lineariser;
use super::observer::Observer;
use super::path::{self, Asked, Path, PathOptions, Point};
use super::start;
use super::variables::Variables;
use didact_math::linalg::{Mat, dot, eigenvalues_general, solve};
use didact_model::observable::{Observable, Snapshot};
use didact_model::start::StartSpread;
use didact_model::{CurvatureRule, Monitor, Needed, NoMonitor, Overlaps, Problem};
use std::sync::Arc;

/// Numbers of the state for which the covariance is computed.
const MOST_NUMBERS: usize = 400;
/// Entries of the drift below this make a fixed point.
const FIXED: f64 = 1e-8;
/// Rates above this are unstable.
const UNSTABLE: f64 = 1e-9;

/// The theory of fluctuations of one problem.
#[derive(Debug, Clone)]
pub struct FluctuationTheory<'a> {
    pub(super) problem: &'a Problem,
    pub(super) needed: Needed,
    pub(super) accuracy: f64,
    pub(super) tolerance: f64,
    pub(super) variables: Variables,
    pub(super) centre: Overlaps,
    pub(super) spread: StartSpread,
}

/// When the mean passes a level, and d times the variance of that time over replicas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassageLaw {
    /// The time.
    pub time: f64,
    /// d Var.
    pub variance: f64,
}

/// What drives the escape from a fixed point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seed {
    /// λ, the one positive rate.
    pub rate: f64,
    /// v in units of d Var of the observable, whose change along the unstable direction is one.
    pub variance: f64,
}

impl<'a> FluctuationTheory<'a> {
    /// Of a problem, to a relative accuracy of the covariance: 1e-4 is plenty for a band.
    pub fn new(problem: &'a Problem, needed: Needed, accuracy: f64) -> Result<Self, FluctuationError> {
        problem.validate()?;
        Self::admits(problem)?;
        let spread = problem.start.spread().ok_or(FluctuationError::StartLaw)?;
        let centre = problem.start.centre(&problem.setting(0, 0))?;
        let with_teachers =
            spread.sampled_teachers || spread.earlier.as_ref().is_some_and(|earlier| earlier.with_teachers);
        let variables = Variables::new(centre.shape(), centre.blocks.len(), with_teachers);
        if variables.len() > MOST_NUMBERS {
            return Err(FluctuationError::TooLarge { numbers: variables.len(), most: MOST_NUMBERS });
        }
        coinciding_rows(problem, &centre)?;
        let tolerance = (1e-2 * accuracy).clamp(1e-11, 1e-7);
        Ok(Self { problem, needed, accuracy, tolerance, variables, centre, spread })
    }

    /// Whether fluctuations of this problem are known, found without computing anything.
    pub fn admits(problem: &Problem) -> Result<(), FluctuationError> {
        if problem.training.samples.is_some() {
            return Err(FluctuationError::TrainingSet);
        }
        if !problem.training.is_plain() {
            let way = problem.training.ways().first().map_or("this way of training", |way| way.key());
            return Err(FluctuationError::Way { way });
        }
        if problem.start.spread().is_none() {
            return Err(FluctuationError::StartLaw);
        }
        let shape = problem.rule.shape();
        let spread = problem.start.spread();
        let with_teachers = spread.is_some_and(|spread| spread.sampled_teachers);
        let numbers = Variables::new(shape, problem.spectrum.len(), with_teachers).len();
        if numbers > MOST_NUMBERS {
            return Err(FluctuationError::TooLarge { numbers, most: MOST_NUMBERS });
        }
        Ok(())
    }

    /// The state around which replicas start.
    pub fn centre(&self) -> &Overlaps {
        &self.centre
    }

    pub(super) fn lineariser(&self) -> Lineariser<'a> {
        Lineariser::new(self.problem, self.variables.clone(), self.needed, &self.centre, self.accuracy)
    }

    pub(super) fn path_options(&self) -> PathOptions {
        PathOptions { accuracy: self.accuracy, tolerance: self.tolerance }
    }

    /// Sigma at the start, replicas of an earlier stage included.
    pub(super) fn start_sigma(&self, lineariser: &Lineariser) -> Mat {
        let mut spread = self.spread.clone();
        if let Some(earlier) = &mut spread.earlier
            && let Some((drift, gradient)) = earlier.crossing.clone()
            && spread.rows.is_none()
        {
            // Replicas changed to this stage at different times: Σ → Z Σ Zᵀ (docs/derivations/fluctuations.md#eq-16).
            let after = lineariser.drift_at(&self.centre);
            let speed = dot(&gradient, &drift);
            let n = after.len();
            let map =
                Mat::from_fn(n, n, |i, j| f64::from(i == j) - (drift[i] - after[i]) * gradient[j] / speed);
            let mut left = Mat::zeros(n, n);
            left.add_product(1.0, &map, &earlier.covariance);
            let mut moved = Mat::zeros(n, n);
            moved.add_product_transposed(1.0, &left, &map);
            let mut changed = (**earlier).clone();
            changed.covariance = moved;
            *earlier = Arc::new(changed);
        }
        start::covariance(&spread, &self.variables, &self.centre, &self.problem.spectrum)
    }

    pub(super) fn observer<'s>(&'s self, observables: &'s [Arc<dyn Observable>]) -> Observer<'s> {
        Observer { problem: self.problem, variables: &self.variables, observables }
    }

    pub(super) fn follow(&self, times: &[f64], monitor: &dyn Monitor) -> Result<Path, FluctuationError> {
        let mut lineariser = self.lineariser();
        let sigma = self.start_sigma(&lineariser);
        let asked = Asked { times, ..Asked::default() };
        Ok(path::follow(&mut lineariser, &self.centre, sigma, asked, self.path_options(), monitor)?)
    }

    /// d Cov[o, o′] of a state with the covariance Σ.
    fn projected(&self, point: &Point, observables: &[Arc<dyn Observable>]) -> Result<Mat, FluctuationError> {
        let gradients = self.observer(observables).gradients(point.time, &point.state)?;
        Ok(quadratic_forms(&gradients, &point.covariance))
    }

    fn at_start(&self, covariance: Mat) -> Point {
        Point { time: 0.0, state: self.centre.clone(), covariance, shift: Vec::new() }
    }

    /// d Cov[o, o′] at the start.
    pub fn start_covariance(&self, observables: &[Arc<dyn Observable>]) -> Result<Mat, FluctuationError> {
        let covariance = self.start_sigma(&self.lineariser());
        self.projected(&self.at_start(covariance), observables)
    }

    /// ∇o D ∇o′ at the start, per unit of the clock: d² times the covariance of the increments of one step.
    pub fn diffusion(&self, observables: &[Arc<dyn Observable>]) -> Result<Mat, FluctuationError> {
        let mut lineariser = self.lineariser();
        lineariser.prepare(&self.centre);
        let covariance = lineariser.at(&self.centre).diffusion;
        self.projected(&self.at_start(covariance), observables)
    }

    /// d Cov[o, o′] at every time.
    pub fn covariances(
        &self,
        times: &[f64],
        observables: &[Arc<dyn Observable>],
    ) -> Result<Vec<Mat>, FluctuationError> {
        let path = self.follow(times, &NoMonitor)?;
        Self::reached(&path, times)?;
        path.points.iter().map(|point| self.projected(point, observables)).collect()
    }

    pub(super) fn reached(path: &Path, times: &[f64]) -> Result<(), FluctuationError> {
        match times.get(path.points.len()) {
            None => Ok(()),
            Some(wanted) => {
                let time = path.growth.last().map_or(0.0, |(time, _)| *time);
                Err(FluctuationError::Ends { time, wanted: *wanted })
            }
        }
    }

    /// The first passage of an observable through a level, either way, and its scatter (docs/derivations/fluctuations.md#eq-11).
    pub fn passage(
        &self,
        observable: &Arc<dyn Observable>,
        level: f64,
        until: f64,
    ) -> Result<PassageLaw, FluctuationError> {
        let measure = |state: &Overlaps| observable.measure(&Snapshot::new(state, self.problem)) - level;
        let no_crossing = |diverges: Option<f64>| match diverges {
            Some(at) => FluctuationError::Diverges { observable: observable.name(), level, at },
            None => FluctuationError::NoCrossing { observable: observable.name(), level, until },
        };
        let mut lineariser = self.lineariser();
        let sigma = self.start_sigma(&lineariser);
        let asked = Asked { times: &[until], watched: Some(&measure), ..Asked::default() };
        let path =
            path::follow(&mut lineariser, &self.centre, sigma, asked, self.path_options(), &NoMonitor)?;
        let point = path.crossing.ok_or_else(|| no_crossing(path.diverges))?;
        let variance = self.passage_variance(&lineariser, &point, observable)?;
        Ok(PassageLaw { time: point.time, variance })
    }

    /// d Var of the time at which an observable passes the value that it has at a point of the mean.
    pub(super) fn passage_variance(
        &self,
        lineariser: &Lineariser,
        point: &Point,
        observable: &Arc<dyn Observable>,
    ) -> Result<f64, FluctuationError> {
        let observables = [observable.clone()];
        let gradients = self.observer(&observables).gradients(point.time, &point.state)?;
        let variance = quadratic_forms(&gradients, &point.covariance)[(0, 0)];
        let speed = dot(&gradients[0].1, &lineariser.drift_at(&point.state));
        Ok(variance / (speed * speed))
    }

    /// The dimension at which one run has a standard deviation of `relative` times the observable (docs/derivations/fluctuations.md#eq-11).
    pub fn required_dimension(
        &self,
        observable: &Arc<dyn Observable>,
        time: f64,
        relative: f64,
    ) -> Result<f64, FluctuationError> {
        let path = self.follow(&[time], &NoMonitor)?;
        Self::reached(&path, &[time])?;
        let observables = [observable.clone()];
        let point = &path.points[0];
        let gradients = self.observer(&observables).gradients(time, &point.state)?;
        let value = gradients[0].0;
        if value == 0.0 {
            return Err(FluctuationError::Zero { observable: observable.name(), time });
        }
        Ok(quadratic_forms(&gradients, &point.covariance)[(0, 0)] / (relative * value).powi(2))
    }

    /// Rate and seed of the escape from the start, which must be a fixed point with one unstable direction
    /// (docs/derivations/fluctuations.md#eq-12).
    pub fn seed(&self, observable: &Arc<dyn Observable>) -> Result<Seed, FluctuationError> {
        let mut lineariser = self.lineariser();
        lineariser.prepare(&self.centre);
        let here = lineariser.at(&self.centre);
        let drift = here
            .drift
            .iter()
            .fold(0.0, |worst: f64, x| if x.is_finite() { worst.max(x.abs()) } else { f64::INFINITY });
        if !drift.is_finite() || !here.jacobian.is_finite() || drift > FIXED {
            return Err(FluctuationError::NoFixedPoint { drift: rounded(drift) });
        }
        let mut rates: Vec<f64> = eigenvalues_general(&here.jacobian).iter().map(|(real, _)| *real).collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        let unstable: Vec<f64> = rates.into_iter().filter(|rate| *rate > UNSTABLE).collect();
        let rate = match unstable.as_slice() {
            [] => return Err(FluctuationError::Stable),
            [rate] => *rate,
            many => {
                let rates: Vec<String> = many.iter().map(|rate| rounded(*rate).to_string()).collect();
                return Err(FluctuationError::ManyUnstable { count: many.len(), rates: rates.join(" and ") });
            }
        };
        let right = eigenvector(&here.jacobian, rate);
        let left = eigenvector(&here.jacobian.transpose(), rate);
        let observables = [observable.clone()];
        let gradients = self.observer(&observables).gradients(0.0, &self.centre)?;
        let seen = dot(&gradients[0].1, &right);
        let size = dot(&right, &right).sqrt() * dot(&gradients[0].1, &gradients[0].1).sqrt();
        if seen.abs() <= 1e-9 * size || size == 0.0 {
            return Err(FluctuationError::Blind { observable: observable.name() });
        }
        // r with ∇o·r = 1, l with l·r = 1.
        let along = dot(&left, &right) / seen;
        let left: Vec<f64> = left.iter().map(|x| x / along).collect();
        let mut noise = 0.0;
        for (i, x) in left.iter().enumerate() {
            noise += x * dot(here.diffusion.row(i), &left);
        }
        Ok(Seed { rate, variance: noise / (2.0 * rate) })
    }
}

/// ∇o Σ ∇o′ of all pairs.
pub(super) fn quadratic_forms(gradients: &[(f64, Vec<f64>)], sigma: &Mat) -> Mat {
    let moved: Vec<Vec<f64>> = gradients
        .iter()
        .map(|(_, gradient)| (0..sigma.rows()).map(|i| dot(sigma.row(i), gradient)).collect())
        .collect();
    Mat::from_fn(gradients.len(), gradients.len(), |a, b| dot(&gradients[a].1, &moved[b]))
}

/// Three digits, for messages.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// The eigenvector of a simple real eigenvalue, by inverse iteration.
fn eigenvector(matrix: &Mat, value: f64) -> Vec<f64> {
    let n = matrix.rows();
    let near = value * (1.0 + 1e-9) + 1e-12;
    let shifted = Mat::from_fn(n, n, |i, j| matrix[(i, j)] - if i == j { near } else { 0.0 });
    let mut vector = Mat::from_fn(n, 1, |i, _| 1.0 + 0.37 * (i as f64 * 0.754_877_666_246_693).fract());
    for _ in 0..6 {
        vector = solve(&shifted, &vector);
        let length = dot(vector.as_slice(), vector.as_slice()).sqrt();
        vector = vector.scaled(1.0 / length);
    }
    vector.as_slice().to_vec()
}

/// Refuses rows that coincide where the kick jumps.
fn coinciding_rows(problem: &Problem, centre: &Overlaps) -> Result<(), FluctuationError> {
    let jumps = problem.rule.curved().map(CurvatureRule::jumps).unwrap_or_default();
    if !jumps.trained && !jumps.frozen {
        return Ok(());
    }
    let c = centre.covariance(&problem.spectrum);
    let k = centre.shape().trained;
    for first in 0..k {
        for second in first + 1..c.rows() {
            let product = c[(first, first)] * c[(second, second)];
            if product > 0.0 && c[(first, second)].powi(2) > (1.0 - 1e-12) * product {
                return Err(FluctuationError::Coincide { first, second });
            }
        }
    }
    Ok(())
}

//! What an optimum is compared with: the best constant control, and the protocols from which a search starts.

use super::problem::{ControlProblem, Protocol, knot_times, of_key};
use super::search::Candidate;
use didact_math::ode::KeptOptions;
use didact_math::random::{RngAddress, Stream};
use didact_math::roots;
use didact_model::training::Course;
use rayon::prelude::*;

/// Values of a scan that are evenly spaced, and as many with equal ratios: objectives have several minima.
const SCANNED: usize = 100;
/// Smallest value of a scan and of a random protocol, in units of the upper bound.
const SMALLEST_SHARE: f64 = 1e-3;
/// Knots of a random protocol.
const RANDOM_KNOTS: usize = 10;
/// Halvings of a start that diverges.
const HALVINGS: usize = 40;

/// Constant controls and their objective.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// One value per control.
    pub values: Vec<f64>,
    /// J.
    pub value: f64,
}

/// Evenly spaced values and values with equal ratios between bounds, ascending; 0 is left out.
pub fn scan_values((low, high): (f64, f64), each: usize) -> Vec<f64> {
    let n = each as f64;
    let even = (0..=each).map(|i| low + (high - low) * i as f64 / n);
    let floor = if low > 0.0 { low } else { SMALLEST_SHARE * high };
    let ratio = (0..=each).map(|i| floor * (high / floor).powf(i as f64 / n));
    let mut all: Vec<f64> = even.chain(ratio).map(|x| x.clamp(low, high)).filter(|x| *x > 0.0).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

impl ControlProblem<'_> {
    /// The best constant values within the bounds: each control is scanned and refined in turn, the others as they are, until nothing
    /// changes. `None` where every value diverges.
    pub fn best_constant(&self) -> Option<Constant> {
        let rates = self.problem.training.rates_at(0.0).ok()?;
        let mut values: Vec<f64> =
            self.controls.iter().map(|c| of_key(&rates, c.key).clamp(c.bounds.0, c.bounds.1)).collect();
        let coarse =
            Self { options: KeptOptions { relative: 1e-6, absolute: 1e-9, ..self.options }, ..self.clone() };
        let one_knot = |problem: &Self, values: &[f64]| -> f64 {
            let protocol: Protocol = values.iter().map(|v| Course::constant(*v)).collect();
            problem.value(&protocol)
        };
        let mut best = f64::INFINITY;
        let rounds = if self.controls.len() == 1 { 1 } else { 3 };
        for _ in 0..rounds {
            for index in 0..self.controls.len() {
                let mut scanned = scan_values(self.controls[index].bounds, SCANNED);
                if self.controls[index].bounds.0 == 0.0 && self.rate_index() != Some(index) {
                    scanned.insert(0, 0.0);
                }
                let with = |x: f64| {
                    let mut there = values.clone();
                    there[index] = x;
                    there
                };
                let costs: Vec<f64> = scanned.par_iter().map(|x| one_knot(&coarse, &with(*x))).collect();
                let Some(at) = (0..costs.len())
                    .filter(|i| costs[*i].is_finite())
                    .min_by(|a, b| costs[*a].total_cmp(&costs[*b]))
                else {
                    continue;
                };
                let (low, high) = (scanned[at.saturating_sub(1)], scanned[(at + 1).min(scanned.len() - 1)]);
                let refined = roots::minimum(|x| one_knot(self, &with(x)), low, high, 1e-5 * (high - low));
                let end = one_knot(self, &with(scanned[at]));
                let (x, value) =
                    if end < refined.value { (scanned[at], end) } else { (refined.at, refined.value) };
                if value < best {
                    best = value;
                    values[index] = x;
                }
            }
        }
        best.is_finite().then_some(Constant { values, value: best })
    }

    /// The protocols from which a search starts: the best constant, greedy, half of the upper bound falling to the
    /// lower one over the last fifth, then random ones.
    pub fn starting_protocols(
        &self,
        count: usize,
        constant: &Constant,
        greedy: Option<&Course>,
        seed: u64,
    ) -> Vec<Candidate> {
        let mut all = vec![("constant".to_string(), self.constant(&constant.values))];
        if let (Some(index), Some(course)) = (self.rate_index(), greedy) {
            let mut protocol = self.constant(&constant.values);
            protocol[index] = course.resampled(&knot_times(self.controls[index].knots, self.horizon));
            all.push(("greedy".to_string(), protocol));
        }
        let falling = |c: &super::Control| {
            let times = knot_times(c.knots, self.horizon);
            let (low, high) = (c.bounds.0, (0.5 * c.bounds.1).max(c.bounds.0));
            let value = |t: f64| {
                let share = ((t / self.horizon - 0.8) / 0.2).clamp(0.0, 1.0);
                high + (low - high) * share
            };
            let values = times.iter().map(|t| value(*t)).collect();
            Course { times, values }
        };
        all.push(("falling".to_string(), self.controls.iter().map(falling).collect()));
        for number in all.len()..count {
            all.push((format!("random {}", number - 2), self.random_protocol(seed, number as u32)));
        }
        all.truncate(count);
        let finite = |(name, protocol): (String, Protocol)| {
            let (protocol, value) = self.halved_until_finite(protocol)?;
            Some(Candidate::new(&name, protocol, value))
        };
        all.into_iter().filter_map(finite).collect()
    }

    /// Ten knots whose values are log-uniform between the bounds.
    fn random_protocol(&self, seed: u64, number: u32) -> Protocol {
        let mut stream = Stream::at(RngAddress { seed, replica: number, step: 0, lane: 0 });
        let times = knot_times(RANDOM_KNOTS, self.horizon);
        let course = |c: &super::Control| {
            let floor = c.bounds.0.max(SMALLEST_SHARE * c.bounds.1);
            let values = times.iter().map(|_| floor * (c.bounds.1 / floor).powf(stream.uniform())).collect();
            Course { times: times.clone(), values }.resampled(&knot_times(c.knots, self.horizon))
        };
        self.controls.iter().map(course).collect()
    }

    /// A protocol that diverges is halved until its objective is finite; `None` where it never is.
    fn halved_until_finite(&self, mut protocol: Protocol) -> Option<(Protocol, f64)> {
        for _ in 0..HALVINGS {
            let value = self.value(&protocol);
            if value.is_finite() {
                return Some((protocol, value));
            }
            for (course, control) in protocol.iter_mut().zip(&self.controls) {
                course.values.iter_mut().for_each(|x| *x = (0.5 * *x).max(control.bounds.0));
            }
        }
        None
    }
}

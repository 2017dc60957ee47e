//! Units with kinks: the part of the responses that comes from kicks that jump (docs/derivations/gd-phase-transitions.md#s4-kinks).

use super::LANES;
use super::lanes::PerSample;
use super::step::{Buffers, Step};
use didact_math::gauss::normal::density;
use didact_model::rule::{Batch, KinkPlane};
use std::sync::{Mutex, PoisonError};

/// Innovations that are rarer than this many standard deviations are left out: they have 7e-6 of the weight.
const FARTHEST: f64 = 4.5;

/// Fields whose innovation is smaller than this fraction of their standard deviation are smoothed over that fraction instead.
const NARROWEST: f64 = 0.01;

/// How far from a plane its two sides are looked at.
const ASIDE: f64 = 1e-9;

/// The paths of all samples that are put on a plane where the kick jumps, on both sides of it.
///
/// φ(t) is a function of W(0), …, W(t) that is smooth but for jumps where u = n·V(r) + n_*·v crosses the offset c of a plane at some
/// step r ≤ t. Its derivative is that along the path plus a Dirac term for every such crossing,
///
///   dφ(t)/dW(s) = X_s + Σ_r δ(u(r) − c) [φ₊(t) − φ₋(t)] du(r)/dW(s),
///
/// where φ± belong to the paths that leave the plane on either side, and du/dW is the derivative along the path. The mean over the
/// newest innovation z of u(r), which no earlier number depends on, takes the Dirac term away: with u = a + b z it is the normal
/// density at z* = (c − a)/b over |b|, times the rest at z*. So every sample contributes, with this weight, the pair of paths that
/// begins where z is replaced by z* (docs/derivations/gd-phase-transitions.md#eq-30,
/// docs/derivations/gd-phase-transitions.md#eq-31).
#[derive(Debug)]
pub(super) struct Crossings {
    /// A list for each chunk of samples.
    chunks: Vec<Mutex<Vec<Crossing>>>,
}

/// A sample on a plane at one step, and how its two sides go on.
#[derive(Debug)]
struct Crossing {
    lane: usize,
    /// r.
    begin: usize,
    /// Which innovation is moved, counted over all steps, and by how much: z* − z.
    innovation: usize,
    shift: f64,
    /// Density of z at z* over |b|, times the weight of the sample.
    weight: f64,
    /// What is added to the fields at step r beyond the innovation, and what puts them on the upper side of the plane.
    placed: Vec<f64>,
    aside: Vec<f64>,
    /// du/dW_k(s), (s, k) with s ≤ r.
    slopes: Vec<f64>,
    /// φ_k(s) below and above, less that of the sample itself, (s, k) with s ≥ r.
    sides: [Vec<f64>; 2],
}

/// A plane as all samples see it at step t.
pub(super) struct PlaneNow<'a> {
    plane: &'a KinkPlane,
    /// Number of the innovation that moves u most, of those of this step, and b.
    innovation: usize,
    coefficient: f64,
    /// The width over which u is smoothed where |b| is smaller.
    narrowest: f64,
    /// Σ n_i² over trained fields.
    length: f64,
}

impl Crossings {
    pub(super) fn new(samples: usize) -> Self {
        Self { chunks: (0..samples / LANES).map(|_| Mutex::new(Vec::new())).collect() }
    }

    /// What is the same for all samples about the planes that depend on trained fields.
    pub(super) fn prepare<'a>(step: &Step, planes: &'a [KinkPlane]) -> Vec<PlaneNow<'a>> {
        let m = step.layout.trained;
        let of_plane = |plane: &'a KinkPlane| {
            let length: f64 = plane.normal[..m].iter().map(|n| n * n).sum();
            let along = |coefficients: &dyn Fn(usize) -> f64| -> f64 {
                plane.normal[..m].iter().enumerate().map(|(i, n)| n * coefficients(i)).sum()
            };
            let of =
                |number: usize| along(&|i| step.fields[i].innovations.get(number).copied().unwrap_or(0.0));
            let latent = |n: usize| along(&|i| step.fields[i].latent.get(n).copied().unwrap_or(0.0));
            let variance: f64 = (0..(step.t + 1) * m).map(|number| of(number).powi(2)).sum::<f64>()
                + (0..step.layout.frozen).map(|n| latent(n).powi(2)).sum::<f64>();
            let newest = step.t * m..(step.t + 1) * m;
            let innovation = newest.max_by(|a, b| of(*a).abs().total_cmp(&of(*b).abs()))?;
            (length > 0.0).then(|| PlaneNow {
                plane,
                innovation,
                coefficient: of(innovation),
                narrowest: NARROWEST * variance.sqrt(),
                length,
            })
        };
        planes.iter().filter_map(of_plane).collect()
    }

    /// Takes the crossings of a chunk to step t, where new ones begin, and adds their share to the responses. The samples themselves
    /// have arrived there: their fields are in the buffers, their kicks and derivatives in the blocks.
    pub(super) fn add_shares(
        &self,
        step: &Step,
        planes: &[PlaneNow],
        (chunk, blocks, weights): (usize, &[f64], &PerSample),
        buffers: &mut Buffers,
    ) {
        let mut crossings = self.chunks[chunk].lock().unwrap_or_else(PoisonError::into_inner);
        for plane in planes {
            (0..LANES)
                .for_each(|lane| crossings.extend(plane.begin(step, blocks, (lane, weights[lane]), buffers)));
        }
        if crossings.is_empty() {
            return;
        }
        let (m, times) = (step.layout.trained, step.t + 1);
        let kicks = kicks(step, chunk, &crossings, &mut buffers.fields);
        let n = 2 * crossings.len();
        let own = step.layout.view(blocks).kicks.at(step.t);
        for (at, crossing) in crossings.iter_mut().enumerate() {
            for (side, path) in crossing.sides.iter_mut().enumerate() {
                path.extend((0..m).map(|k| kicks[k * n + 2 * at + side] - own[k][crossing.lane]));
            }
            for i in 0..m {
                let jump = kicks[i * n + 2 * at + 1] - kicks[i * n + 2 * at];
                if jump != 0.0 {
                    let factor = crossing.weight * jump;
                    let sums = &mut buffers.response[i * times * m..][..crossing.slopes.len()];
                    sums.iter_mut().zip(&crossing.slopes).for_each(|(sum, slope)| sum[0] += factor * slope);
                }
            }
        }
        // Sides that begin alike, as those of a sample that no step sees, stay alike.
        let differs = |c: &Crossing| c.begin < step.t || c.sides[0] != c.sides[1];
        crossings.retain(differs);
    }
}

impl PlaneNow<'_> {
    /// The crossing that begins with a sample at this step, unless it is too far from the plane.
    fn begin(
        &self,
        step: &Step,
        blocks: &[f64],
        (lane, weight): (usize, f64),
        buffers: &Buffers,
    ) -> Option<Crossing> {
        let (m, t) = (step.layout.trained, step.t);
        let fields = |i: usize| buffers.fields[i * LANES + lane];
        let normal = &self.plane.normal;
        // Frozen fields are in the buffers only where the rule reads them, which it does here.
        let height = normal.iter().enumerate().map(|(i, n)| n * fields(i)).sum::<f64>() - self.plane.offset;
        let z = step.layout.view(blocks).moves.at(t)[self.innovation - t * m][lane];
        let exact = self.coefficient.abs() >= self.narrowest;
        let (star, width) = if exact {
            (z - height / self.coefficient, self.coefficient.abs())
        } else {
            ((height - self.coefficient * z) / self.narrowest, self.narrowest)
        };
        if !(star.abs() < FARTHEST && width > 0.0) {
            return None;
        }
        let scaled = |factor: f64| normal[..m].iter().map(|n| factor * n / self.length).collect();
        Some(Crossing {
            lane,
            begin: t,
            innovation: self.innovation,
            shift: if exact { star - z } else { 0.0 },
            weight: weight * density(star) / width,
            placed: scaled(if exact { 0.0 } else { -height }),
            aside: scaled(ASIDE * (1.0 + self.plane.offset.abs())),
            slopes: slopes(step, blocks, lane, &normal[..m]),
            sides: [Vec::new(), Vec::new()],
        })
    }
}

/// du/dW_k(s) along the path of a sample, u = n·V(t): the way back of
/// [`backward`](super::backward::backward), begun with n.
fn slopes(step: &Step, blocks: &[f64], lane: usize, normal: &[f64]) -> Vec<f64> {
    let (m, t, columns) = (step.layout.trained, step.t, step.layout.columns);
    let wide = (t + 1) * m;
    let curvature = step.layout.view(blocks).curvature;
    let mut slopes = vec![0.0; wide];
    slopes[t * m..].copy_from_slice(normal);
    let mut through = vec![0.0; m];
    for s in (0..t).rev() {
        for (j, g) in through.iter_mut().enumerate() {
            let back = &step.back[(s * m + j) * wide..][..wide];
            *g = back[(s + 1) * m..].iter().zip(&slopes[(s + 1) * m..]).map(|(b, x)| b * x).sum();
        }
        let own = curvature.at(s);
        for k in 0..m {
            slopes[s * m + k] = (0..m).map(|j| through[j] * own[j * columns + k][lane]).sum();
        }
    }
    slopes
}

/// The kicks of both sides of all crossings of a chunk, (i, crossing, side).
fn kicks(step: &Step, chunk: usize, crossings: &[Crossing], sample_fields: &mut [f64]) -> Vec<f64> {
    let m = step.layout.trained;
    let rows = m + step.layout.frozen;
    let n = 2 * crossings.len();
    let samples = step.batch(chunk, sample_fields);
    let mut fields = vec![0.0; rows * n];
    for (at, crossing) in crossings.iter().enumerate() {
        let lane = crossing.lane;
        for (side, path) in crossing.sides.iter().enumerate() {
            let column = 2 * at + side;
            for (i, field) in step.fields.iter().enumerate() {
                let moved =
                    field.innovations.get(crossing.innovation).copied().unwrap_or(0.0) * crossing.shift;
                let memory = &field.memory[crossing.begin * m..];
                let remembered: f64 = memory.iter().zip(path).map(|(c, kick)| c * kick).sum();
                let mut value = samples.fields[i * LANES + lane] + moved + remembered;
                if crossing.begin == step.t {
                    let sign = if side == 0 { -1.0 } else { 1.0 };
                    value += crossing.placed[i] + sign * crossing.aside[i];
                }
                fields[i * n + column] = value;
            }
            (m..rows).for_each(|i| fields[i * n + column] = samples.fields[i * LANES + lane]);
        }
    }
    let lanes: Vec<usize> = crossings.iter().flat_map(|c| [c.lane; 2]).collect();
    let of_lanes = |numbers: &[f64]| -> Vec<f64> {
        if numbers.is_empty() { Vec::new() } else { lanes.iter().map(|lane| numbers[*lane]).collect() }
    };
    let (noise, labels) = (of_lanes(samples.noise), of_lanes(samples.labels));
    let batch = Batch { labels: &labels, ..Batch::new(&fields, n, step.scalars, &noise) };
    let mut kicks = vec![0.0; m * n];
    match step.visit {
        None => {
            let mut scalars = vec![0.0; step.scalars.len()];
            step.equations.rule.kick_batch(&batch, &mut kicks, &mut scalars);
        }
        Some(visit) => {
            let samples: Vec<usize> = lanes.iter().map(|lane| chunk * LANES + lane).collect();
            visit.kicks(&step.equations.rule, &batch, &samples, &mut kicks);
        }
    }
    kicks
}

#[cfg(test)]
mod tests {
    use crate::dmft::{Equations, Points, Process, Sampling};
    use didact_families::Model;
    use didact_math::linalg::Mat;
    use didact_math::random::statistics::SampleMean;
    use didact_model::Overlaps;
    use serde_json::{Value, json};

    const STEPS: usize = 4;

    fn equations(model: &Value, step: f64, ratio: f64) -> Equations {
        let model: Model = serde_json::from_value(model.clone()).unwrap();
        let rule = model.rule().unwrap();
        let shape = rule.shape();
        // Rows that know something of the direction, so that its responses are seen.
        let entry = |i: usize, j: usize| match (i.min(j) < shape.trained, i == j) {
            (_, true) => 1.0,
            (true, false) => 0.2,
            (false, false) => 0.0,
        };
        let gram = Mat::from_fn(shape.rows(), shape.rows(), entry);
        let start = Overlaps::new(shape, vec![gram], model.starting_scalars(), 1).unwrap();
        Equations { label_noise: 0.2, ..Equations::new(rule, step, ratio, &start) }
    }

    /// E[φ_i(t) z] − Σ_s R_ℓ(t,s) ∂W(s)/∂z − R_ℓ(t,*) ∂v/∂z for every innovation z of the steps up to t: 0 by Stein's lemma.
    fn defects(process: &Process) -> Vec<f64> {
        let (m, f) = (process.layout().trained, process.layout().frozen);
        let (kernels, n) = (&process.kernels, process.points.samples() as f64);
        let mut found = Vec::new();
        for t in 0..=STEPS {
            for (i, column) in (0..m).flat_map(|i| (0..(t + 1) * m).map(move |c| (i, c))) {
                let mut mean = 0.0;
                for blocks in process.points.history.iter() {
                    let view = process.layout().view(blocks);
                    let (kick, z) = (&view.kicks.at(t)[i], &view.moves.at(column / m)[column % m]);
                    mean += kick.iter().zip(z).map(|(a, b)| a * b).sum::<f64>() / n;
                }
                for s in 0..=t {
                    for j in 0..m {
                        let along = process.factor.rows()[f + s * m + j].get(f + column).copied();
                        mean -= kernels.kicks_response[t][s][(i, j)] * along.unwrap_or(0.0);
                    }
                }
                found.push(mean);
            }
        }
        found
    }

    /// The derivative along the path misses the Dirac terms: without them the defects are 0.1 and more. Innovations are small at later steps, and
    /// the lemma then holds for every step by itself, also for how the response is shared out among the steps.
    #[test]
    fn responses_of_kinked_units_obey_the_lemma_of_stein() {
        let one = json!({"family": "multi-index", "activation": "relu", "link": "z + 0.5z^2"});
        let two = json!({
            "family": "multi-index", "students": 2, "activation": "abs(x)", "link": "z + 0.5z^2",
            "loss": {"kind": "pseudo-huber", "kappa": 1.0}, "weights": [2.0, -1.0], "biases": [0.2, -0.4],
        });
        for (model, step) in [(one, 0.8), (two, 1.5)] {
            let equations = equations(&model, step, 1.5);
            let shape = equations.shape();
            let of_scramble = |scramble: u32| {
                let sampling = Sampling { samples: 4096, ..Sampling::default() };
                let mut points = Points::sobol(&sampling, scramble, shape.frozen, shape.trained, STEPS + 1);
                let mut process = Process::new(&equations, &mut points);
                (0..=STEPS).for_each(|_| assert!(process.advance()));
                defects(&process)
            };
            let scrambles: Vec<Vec<f64>> = (0..16).map(of_scramble).collect();
            for at in 0..scrambles[0].len() {
                let mean = SampleMean::of(scrambles.iter().map(|defects| defects[at]));
                assert!(mean.error < 5e-3, "{at}: {mean:?}");
                assert!(mean.value.abs() < 5.0 * mean.error + 1e-4, "defect {at}: {mean:?}");
            }
        }
    }
}

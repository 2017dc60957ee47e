//! The data side: the preactivations of one training sample, sampled; kernels and responses are means over samples.

use super::LANES;
use super::factor::Factor;
use super::kernels::{Equations, Kernels};
use super::kinks::Crossings;
use super::memory::Layout;
use super::points::Points;
use super::step::{Buffers, Field, Step};
use super::ways::{Visit, Visits};
use didact_math::linalg::{Mat, cholesky_psd, solve};
use didact_model::Sample;

/// The effective process of one sample,
///
///   V(t) = W(t) − (η/δ) Σ_{s<t} R_θ(t,s) φ(s),   φ(s) = kick(V(s), v, e),   Cov(W(t),W(s)) = C_θ(t,s),  Cov(W(t),v) = C_θ(t,*),
///   C_ℓ(t,s) = E[φ(t) φ(s)ᵀ],   R_ℓ(t,s) = E[dφ(t)/dW(s)],   R_ℓ(t,*) = E[dφ(t)/dv]  (total derivatives at fixed W and e),
///
/// computed forward in t with N samples of fixed normals. Causal: kernels of step t come from those before it.
/// docs/derivations/gd-phase-transitions.md#eq-7 and docs/derivations/gd-phase-transitions.md#eq-8.
#[derive(Debug)]
pub struct Process<'a> {
    equations: &'a Equations,
    pub(super) points: &'a mut Points,
    /// Kernels so far.
    pub kernels: Kernels,
    /// Trained scalars at the current step.
    pub scalars: Vec<f64>,
    /// Of Cov(v, W(0), W(1), …).
    pub(super) factor: Factor,
    /// Responses to the frozen fields by Stein's lemma.
    stein: bool,
    /// Train and test loss of the last step, if found on the way.
    measured: Option<(f64, f64)>,
    /// Velocities of the scalars.
    scalar_velocities: Vec<f64>,
    /// Which samples the steps see, and with which noise; `None` for plain descent.
    visits: Option<Visits>,
    /// What was drawn at the last step.
    visit: Option<Visit>,
    /// What kinks of the units add to the responses; `None` for smooth units.
    crossings: Option<Crossings>,
}

impl<'a> Process<'a> {
    /// The process before its first step. The points must have a column per frozen field, one for the noise, and as many
    /// innovations as steps will be made; nothing is left in them of earlier processes.
    pub fn new(equations: &'a Equations, points: &'a mut Points) -> Self {
        let shape = equations.shape();
        let layout = points.history.layout;
        assert_eq!((layout.trained, layout.frozen), (shape.trained, shape.frozen), "points of other fields");
        let kinked = equations.rule.jumps().trained;
        // With kinks the derivative along the path is not all of the response: Stein's lemma knows the rest.
        let jumps = equations.rule.jumps().frozen || kinked;
        let paths = !equations.all_hard() && !jumps;
        points.history.fit(if paths { shape.rows() } else { shape.trained });
        let lower = cholesky_psd(&equations.frozen()).expect("frozen rows have a Gram matrix");
        let factor = Factor::new(&lower);
        points.given.prepare(equations, &factor, paths);
        let visits = Visits::new(equations, points.origin, points.samples());
        let crossings = kinked.then(|| Crossings::new(points.samples()));
        Self {
            equations,
            points,
            kernels: Kernels::default(),
            scalars: equations.scalars.clone(),
            factor,
            stein: jumps && !equations.all_hard(),
            measured: None,
            scalar_velocities: Vec::new(),
            visits,
            visit: None,
            crossings,
        }
    }

    /// Steps done: kernels of steps 0..t are known.
    pub fn steps(&self) -> usize {
        self.kernels.kicks.len()
    }

    /// One more step: the weights move, then every sample does. False, with the data side left undone, once the rows have
    /// become longer than 100 or not finite.
    pub fn advance(&mut self) -> bool {
        self.make_step(false)
    }

    /// [`advance`](Self::advance), and both losses of the step: the samples are at hand.
    pub fn advance_and_measure(&mut self) -> bool {
        self.make_step(true)
    }

    fn make_step(&mut self, measures: bool) -> bool {
        let t = self.steps();
        if t > 0 {
            let slopes = std::mem::take(&mut self.kernels.scalar_slopes);
            self.equations.move_scalars(t - 1, &mut self.scalars, &mut self.scalar_velocities, &slopes);
        }
        self.kernels.move_weights(self.equations);
        let now = &self.kernels.weights[t][t];
        if !(0..self.layout().trained).all(|i| now[(i, i)] < LARGEST_SQUARED_LENGTH) {
            return false;
        }
        self.extend_factor(t);
        let kernels = &self.kernels;
        self.visit = self.visits.as_mut().map(|visits| visits.next(t, kernels));
        // Losses are those of the clean network at Θ(t); kicks may be taken elsewhere.
        let measures = measures && self.equations.ways.is_none();
        let mut values = std::mem::take(&mut self.points.history);
        let step = Step { measures, ..self.step(t, values.layout, true) };
        let planes = self.crossings.as_ref().map(|_| self.equations.rule.kink_planes(&self.scalars));
        let planes = planes.flatten().unwrap_or_default();
        let planes_now = Crossings::prepare(&step, &planes);
        let mut means = values.visit(
            step.sums().len(),
            || Buffers::new(&step),
            |buffers, chunk, blocks| {
                let weights = self.points.weights_of(chunk);
                step.sample(chunk, blocks, weights, buffers);
                if let Some(crossings) = &self.crossings {
                    crossings.add_shares(&step, &planes_now, (chunk, blocks, weights), buffers);
                }
            },
            |buffers, out| step.collect(buffers, out),
        );
        let sums = step.sums();
        self.points.history = values;
        let n = self.points.samples() as f64;
        means.iter_mut().for_each(|sum| *sum /= n);
        let [kicks, response, frozen, scalars, losses] = sums.split(&mut means);
        self.record(kicks, response, frozen);
        self.kernels.scalar_slopes = scalars.to_vec();
        self.measured = measures.then_some((losses[0], losses[1]));
        true
    }

    pub(super) fn layout(&self) -> Layout {
        self.points.history.layout
    }

    /// What all samples share at step t: at the fields where kicks are taken, with what the step has drawn for them, or at those of the
    /// network itself.
    fn step(&self, t: usize, layout: Layout, kicking: bool) -> Step<'_> {
        let visit = self.visit.as_ref().filter(|_| kicking);
        let slopes = layout.columns > layout.trained;
        Step {
            t,
            layout,
            given: &self.points.given,
            reads_frozen: self.points.given.reads_frozen(self.equations, slopes)
                || visit.is_some_and(Visit::is_masked)
                || self.crossings.is_some(),
            visit,
            stein: self.stein,
            measures: false,
            equations: self.equations,
            scalars: &self.scalars,
            fields: if kicking { self.read_fields(t, layout) } else { self.fields(t, layout) },
            back: self.backward_coefficients(t),
        }
    }

    /// Appends the rows of W(t) to the factor of the joint covariance.
    fn extend_factor(&mut self, t: usize) {
        let Layout { trained: m, frozen: f, .. } = self.layout();
        let kernels = &self.kernels;
        for i in 0..m {
            let covariance = |column: usize| match column.checked_sub(f) {
                None => kernels.weights_frozen[t][(i, column)],
                Some(before) => kernels.weights[t][before / m][(i, before % m)],
            };
            let covariances: Vec<f64> = (0..f + t * m + i).map(covariance).collect();
            self.factor.push(&covariances, kernels.weights[t][t][(i, i)]);
        }
    }

    /// W_i(t) = Σ_c L_ic z_c, V_i(t) = W_i(t) − (η/δ) Σ_{s<t} Σ_j R_θ(t,s)_ij φ_j(s).
    fn fields(&self, t: usize, layout: Layout) -> Vec<Field> {
        (0..layout.trained).map(|i| Field::new(layout, self.coefficients(t, i, layout))).collect()
    }

    /// V_Y(t), where the kicks of step t are taken.
    fn read_fields(&self, t: usize, layout: Layout) -> Vec<Field> {
        let field = |i: usize| {
            let now = self.coefficients(t, i, layout);
            let ahead = self.equations.ways.as_ref().and_then(|ways| self.kernels.ahead_of(t, i, ways));
            let Some((a, b)) = ahead else { return Field::new(layout, now) };
            let before = self.coefficients(t - 1, i, layout);
            let mix = |now: Vec<f64>, before: &[f64]| -> Vec<f64> {
                let before = before.iter().copied().chain(std::iter::repeat(0.0));
                now.into_iter().zip(before).map(|(x, y)| a * x + b * y).collect()
            };
            let mixed = (mix(now.0, &before.0), mix(now.1, &before.1), mix(now.2, &before.2));
            Field::new(layout, mixed)
        };
        (0..layout.trained).map(field).collect()
    }

    /// Coefficients of V_i(t): of the normals of the frozen fields, of innovations and of kicks.
    fn coefficients(&self, t: usize, i: usize, layout: Layout) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let Layout { trained: m, frozen: f, .. } = layout;
        let (latent, innovations) = self.factor.rows()[f + t * m + i].split_at(f);
        let before = self.kernels.weights_response[t].iter().enumerate();
        let memory = before.flat_map(|(s, r)| {
            let weight = -self.equations.step_at(s) / self.equations.ratio;
            r.row(i).iter().map(move |r| weight * r)
        });
        (latent.to_vec(), innovations.to_vec(), memory.collect())
    }

    /// −(η/δ) R_θ(r,s)_kj, (s, j) x (r, k).
    fn backward_coefficients(&self, t: usize) -> Vec<f64> {
        let m = self.equations.shape().trained;
        let mut out = vec![0.0; t * m * (t + 1) * m];
        for (at, out) in out.iter_mut().enumerate() {
            let (row, column) = (at / ((t + 1) * m), at % ((t + 1) * m));
            let (s, j, r, k) = (row / m, row % m, column / m, column % m);
            if r > s {
                let memory = -self.equations.step_at(s) / self.equations.ratio;
                *out = memory * self.kernels.read_response(r, s)[(k, j)];
            }
        }
        out
    }

    /// Appends the kernels of the data side, given in the order of [`Sums::split`](super::step::Sums::split).
    fn record(&mut self, kicks: &[f64], response: &[f64], frozen: &[f64]) {
        let Layout { trained: m, frozen: f, .. } = self.layout();
        let blocks = |means: &[f64]| -> Vec<Mat> {
            means.chunks_exact(m * m).map(|block| Mat::from_fn(m, m, |i, j| block[i * m + j])).collect()
        };
        let (kicks, responses) = (blocks(kicks), blocks(response));
        let mut star = Mat::from_fn(m, f, |i, j| frozen[i * f + j]);
        if self.stein {
            // E[φ vᵀ] = R_ℓ(t,*) T + Σ_s R_ℓ(t,s) C_θ(s,*): no derivative of the label is needed
            // (docs/derivations/gd-phase-transitions.md#eq-12).
            for (s, response) in responses.iter().enumerate() {
                star.add_scaled(-1.0, &response.times(self.kernels.read_frozen(s)));
            }
            star = solve(&self.equations.frozen(), &star.transpose()).transpose();
        }
        if let Some(hard) = &self.equations.hard {
            let along = star.times(hard);
            star.add_scaled(-1.0, &along);
        }
        self.kernels.kicks.push(kicks);
        self.kernels.kicks_response.push(responses);
        self.kernels.kicks_frozen.push(star);
    }

    /// Train loss E l(y, f(V(t))) and test loss E l(y, f(W(t))) of the last step, label noise included: those found on the way, or
    /// by another visit to all samples.
    pub fn losses(&self) -> (f64, f64) {
        self.measured.unwrap_or_else(|| {
            let layout = self.layout();
            let step = self.step(self.steps() - 1, layout, false);
            let mut fields = vec![0.0; (layout.trained + layout.frozen) * LANES];
            let (mut train, mut test) = (0.0, 0.0);
            for (chunk, blocks) in self.points.history.iter().enumerate() {
                let losses = step.losses(chunk, blocks, self.points.weights_of(chunk), &mut fields);
                train += losses[0];
                test += losses[1];
            }
            let n = self.points.samples() as f64;
            (train / n, test / n)
        })
    }

    /// Whether the last step saw a part of the samples only.
    pub fn has_batch(&self) -> bool {
        self.visit.as_ref().is_some_and(|visit| !visit.shares.is_empty())
    }

    /// The mean loss over the batch of the last step, of training by mini-batches.
    pub fn batch_loss(&self) -> Option<f64> {
        let shares = &self.visit.as_ref()?.shares;
        if shares.is_empty() {
            return None;
        }
        let (mut sum, mut count) = (0.0, 0.0);
        let mut at = 0;
        self.for_every_sample(|sample, weight| {
            if shares[at] > 0.0 {
                sum += weight * self.equations.rule.loss(sample);
                count += weight;
            }
            at += 1;
        });
        (count > 0.0).then_some(sum / count)
    }

    /// Calls `visit` with every sample of the last step (V(t), v, e as a rule sees them) and its probability.
    pub fn for_every_sample(&self, mut visit: impl FnMut(&Sample, f64)) {
        let layout = self.layout();
        let step = Step { reads_frozen: true, ..self.step(self.steps() - 1, layout, false) };
        let n = self.points.samples() as f64;
        let rows = layout.trained + layout.frozen;
        let (mut fields, mut sample) = (vec![0.0; rows * LANES], vec![0.0; rows]);
        for (chunk, blocks) in self.points.history.iter().enumerate() {
            step.moved(chunk, blocks, &mut fields);
            let batch = step.batch(chunk, &mut fields);
            for (lane, weight) in self.points.weights_of(chunk).iter().enumerate() {
                visit(&batch.sample(lane, &mut sample), weight / n);
            }
        }
    }
}

/// A replica whose rows are longer than 100 has left every reasonable range.
const LARGEST_SQUARED_LENGTH: f64 = 1e4;

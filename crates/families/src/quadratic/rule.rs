//! The learning rule of quadratic units and its averages, exact at any covariance of the fields.

use super::state::risk;
use didact_math::linalg::Mat;
use didact_model::averages::QuadratureEstimate;
use didact_model::loss::Loss;
use didact_model::rule::{
    Averages, Batch, BatchRule, CurvatureAverages, CurvatureRule, Kick, LabelledRule, Law, LocalRule, Needed,
    Sample, Shape,
};

/// loss = e², e = (1/p*) Σ u² − (1/p) Σ λ²; kick_k = −(4/p) e λ_k (docs/derivations/quadratic-networks.md#eq-1).
#[derive(Debug, Clone)]
pub(super) struct QuadraticRule {
    students: usize,
    teachers: usize,
}

impl QuadraticRule {
    pub(super) fn new(students: usize, teachers: usize) -> Self {
        Self { students, teachers }
    }

    /// D_k in e = Σ_k D_k h_k²: −1/p on students, 1/p* on teachers.
    fn weight(&self, row: usize) -> f64 {
        if row < self.students { -1.0 / self.students as f64 } else { 1.0 / self.teachers as f64 }
    }

    fn error(&self, sample: &Sample) -> f64 {
        let (own, teacher) = sample.fields.split_at(self.students);
        let square = |h: &[f64]| h.iter().map(|h| h * h).sum::<f64>();
        square(teacher) / self.teachers as f64 - square(own) / self.students as f64 + sample.noise
    }
}

impl LocalRule for QuadraticRule {
    fn shape(&self) -> Shape {
        Shape { trained: self.students, frozen: self.teachers, ..Shape::default() }
    }

    fn loss(&self, sample: &Sample) -> f64 {
        Loss::SQUARE.value(0.0, self.error(sample))
    }

    #[inline]
    fn kick(&self, sample: &Sample, out: &mut Kick) {
        let factor = -4.0 / self.students as f64 * self.error(sample);
        for (c, h) in out.rows.iter_mut().zip(sample.fields) {
            *c = factor * h;
        }
    }

    /// ∂kick_i/∂h_k = −(4/p) (e δ_ik + 2 D_k h_k h_i).
    fn curvature(&self, sample: &Sample, out: &mut Mat) {
        let (gain, error, h) = (-4.0 / self.students as f64, self.error(sample), sample.fields);
        for i in 0..self.students {
            for k in 0..h.len() {
                let own = if i == k { error } else { 0.0 };
                out[(i, k)] = gain * (own + 2.0 * self.weight(k) * h[k] * h[i]);
            }
        }
    }

    /// With Σ the covariance of all fields and D = diag(−1/p, …; 1/p*, …), e = hᵀ D h + noise:
    ///
    ///   A_ik = −(4/p) [tr(DΣ) δ_ik + 2 Σ_ik D_k],
    ///   N = (16/p²) [(tr(DΣ)² + 2 tr(DΣDΣ) + Δ) Σ + 4 tr(DΣ) ΣDΣ + 8 ΣDΣDΣ] on the students.
    ///
    /// (docs/derivations/quadratic-networks.md#eq-1b). For orthonormal teachers these give the equations of motion
    /// docs/derivations/quadratic-networks.md#eq-3, docs/derivations/quadratic-networks.md#eq-4 and
    /// docs/derivations/quadratic-networks.md#eq-5.
    fn averages(&self, law: &Law, needed: Needed, out: &mut Averages) {
        let (c, p, rows) = (law.covariance, self.students, self.students + self.teachers);
        let gain = -4.0 / p as f64;
        let trace: f64 = (0..rows).map(|k| self.weight(k) * c[(k, k)]).sum();
        for i in 0..p {
            for k in 0..rows {
                let own = if i == k { trace } else { 0.0 };
                out.drift[(i, k)] = gain * (own + 2.0 * c[(i, k)] * self.weight(k));
            }
        }
        out.error = 0.0;
        if needed == Needed::Drift {
            return;
        }
        // ΣDΣ, all rows: its diagonal gives tr(DΣDΣ), its student rows the rest.
        out.scratch.resize(rows * rows, 0.0);
        let once = &mut out.scratch;
        for i in 0..rows {
            let target = &mut once[i * rows..(i + 1) * rows];
            target.fill(0.0);
            for k in 0..rows {
                let factor = c[(i, k)] * self.weight(k);
                target.iter_mut().zip(c.row(k)).for_each(|(t, x)| *t += factor * x);
            }
        }
        let square: f64 = (0..rows).map(|k| self.weight(k) * once[k * rows + k]).sum();
        let level = trace * trace + 2.0 * square + law.label_noise * law.label_noise;
        for i in 0..p {
            for j in 0..=i {
                let twice: f64 = (0..rows).map(|k| once[i * rows + k] * self.weight(k) * c[(k, j)]).sum();
                let value = level * c[(i, j)] + 4.0 * trace * once[i * rows + j] + 8.0 * twice;
                out.noise[(i, j)] = gain * gain * value;
                out.noise[(j, i)] = out.noise[(i, j)];
            }
        }
    }

    fn risk_within(&self, law: &Law, _accuracy: f64) -> QuadratureEstimate {
        let (c, p, rows) = (law.covariance, self.students, self.students + self.teachers);
        if !c.is_finite() {
            return QuadratureEstimate::exact(f64::NAN);
        }
        let value = risk(&c.block(0..p, 0..p), &c.block(0..p, p..rows), &c.block(p..rows, p..rows));
        QuadratureEstimate::exact(value)
    }

    fn batch(&self) -> Option<&dyn BatchRule> {
        Some(self)
    }

    fn labelled(&self) -> Option<&dyn LabelledRule> {
        Some(self)
    }

    fn curved(&self) -> Option<&dyn CurvatureRule> {
        Some(self)
    }
}

impl BatchRule for QuadraticRule {
    fn kick_batch(&self, batch: &Batch, rows: &mut [f64], _scalars: &mut [f64]) {
        let size = batch.size;
        // The last row holds the errors of all samples until the other rows are written; then it is multiplied itself.
        let (earlier, last) = rows.split_at_mut((self.students - 1) * size);
        last.copy_from_slice(batch.noise);
        for (row, fields) in batch.fields.chunks_exact(size).enumerate() {
            let weight = self.weight(row);
            last.iter_mut().zip(fields).for_each(|(e, h)| *e += weight * h * h);
        }
        let gain = -4.0 / self.students as f64;
        last.iter_mut().for_each(|e| *e *= gain);
        for (out, fields) in earlier.chunks_exact_mut(size).zip(batch.fields.chunks_exact(size)) {
            for ((o, h), e) in out.iter_mut().zip(fields).zip(&*last) {
                *o = e * h;
            }
        }
        let fields = &batch.fields[(self.students - 1) * size..self.students * size];
        last.iter_mut().zip(fields).for_each(|(e, h)| *e *= h);
    }
}

impl LabelledRule for QuadraticRule {
    fn label(&self, frozen: &[f64], noise: f64) -> f64 {
        frozen.iter().map(|u| u * u).sum::<f64>() / self.teachers as f64 + noise
    }
}

impl CurvatureRule for QuadraticRule {
    /// With h = F z, Σ = F Fᵀ and c_ij = (8/p²) h_i h_j − (4/p) e δ_ij: `E[c]` as in A, and
    /// `E[c_ij (z zᵀ − 1)]` = (8/p²) (f_i f_jᵀ + f_j f_iᵀ) − δ_ij (8/p) Σ_k D_k f_k f_kᵀ, f_k the rows of F. This is
    /// the Hessian docs/derivations/quadratic-networks.md#eq-28.
    fn curvature_averages(&self, factor: &Mat, _scalars: &[f64], out: &mut CurvatureAverages) {
        let (p, rows, width) = (self.students, factor.rows(), factor.cols());
        let scale = 8.0 / (p as f64).powi(2);
        let covariance = factor.gram();
        let trace: f64 = (0..rows).map(|k| self.weight(k) * covariance[(k, k)]).sum();
        let shared = Mat::from_fn(width, width, |a, b| {
            -8.0 / p as f64 * (0..rows).map(|k| self.weight(k) * factor[(k, a)] * factor[(k, b)]).sum::<f64>()
        });
        for i in 0..p {
            for j in 0..p {
                let own = f64::from(i == j);
                out.mean[(i, j)] = scale * covariance[(i, j)] - own * 4.0 / p as f64 * trace;
                let (f, g) = (factor.row(i), factor.row(j));
                out.second[i * p + j] = Mat::from_fn(width, width, |a, b| {
                    scale * (f[a] * g[b] + g[a] * f[b]) + own * shared[(a, b)]
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::random::{RngAddress, Stream};
    use didact_model::averages::curvature_by_quadrature;

    #[test]
    fn curvature_averages_are_those_of_quadrature() {
        let mut stream = Stream::at(RngAddress { seed: 3, replica: 0, step: 0, lane: 0 });
        // The last span is smaller than the number of rows: dependent rows are no special case.
        for (p, teachers, span) in [(2, 1, 3), (1, 2, 3), (2, 2, 3)] {
            let rule = QuadraticRule::new(p, teachers);
            let factor = Mat::from_fn(p + teachers, span, |_, _| 0.6 * stream.normal());
            let mut known = CurvatureAverages::new(p, span);
            let mut slow = CurvatureAverages::new(p, span);
            rule.curvature_averages(&factor, &[], &mut known);
            curvature_by_quadrature(&rule, &factor, &[], &mut slow);
            known.mean.add_scaled(-1.0, &slow.mean);
            assert!(known.mean.max_abs() < 1e-12 + slow.error, "{p} {teachers}");
            for (a, b) in known.second.iter_mut().zip(&slow.second) {
                a.add_scaled(-1.0, b);
                assert!(a.max_abs() < 1e-12 + slow.error, "{p} {teachers}: {a:?}");
            }
            assert!(slow.error < 1e-9, "{}", slow.error);
        }
    }
}

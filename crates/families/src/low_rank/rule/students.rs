//! The students: rank-one fine-tuning and the networks it is compared with.
//!
//! All read their fields as trained rows first, then the frozen rows W (and, for a refit, û).

use super::network::{Network, UNITS_PER_CALL};
use didact_math::linalg::dot;
use didact_model::rule::{Kick, KinkPlane, Shape};
use didact_model::teacher_student::{Student, Teacher};

/// The labels f(x; c, u); fields are W x, then u·x.
#[derive(Debug, Clone)]
pub(in crate::low_rank) struct Perturbed {
    /// The network.
    pub(in crate::low_rank) network: Network,
    /// c.
    pub(in crate::low_rank) loading: Vec<f64>,
}

impl Teacher for Perturbed {
    fn directions(&self) -> usize {
        self.loading.len() + 1
    }
    #[inline]
    fn label(&self, fields: &[f64]) -> f64 {
        let k = self.loading.len();
        self.network.output(&fields[..k], &self.loading, fields[k])
    }
}

/// The planes on which slopes of the units jump; `normal` writes how a unit is made of so many fields.
fn planes(network: &Network, rows: usize, normal: impl Fn(usize, &mut [f64])) -> Vec<KinkPlane> {
    let kinks = || network.activation.kinks().iter().filter(|kink| kink.jump != 0.0);
    let of_unit = |i: usize| {
        let mut unit = vec![0.0; rows];
        normal(i, &mut unit);
        kinks().map(move |kink| KinkPlane { normal: unit.clone(), offset: kink.at })
    };
    (0..network.units()).flat_map(of_unit).collect()
}

/// f(x; ĉ, û) with û trained and ĉ frozen, or trained as scalars.
#[derive(Debug, Clone)]
pub(in crate::low_rank) struct RankOne {
    /// The network.
    pub(in crate::low_rank) network: Network,
    /// ĉ, or where it starts.
    pub(in crate::low_rank) loading: Vec<f64>,
    /// Whether ĉ is trained.
    pub(in crate::low_rank) trained: bool,
}

impl RankOne {
    /// ĉ.
    pub(in crate::low_rank) fn loadings<'a>(&'a self, scalars: &'a [f64]) -> &'a [f64] {
        if self.trained { scalars } else { &self.loading }
    }
}

impl Student for RankOne {
    fn shape(&self) -> Shape {
        let k = self.loading.len();
        Shape { trained: 1, frozen: k, scalars: if self.trained { k } else { 0 }, ..Shape::default() }
    }

    fn output(&self, fields: &[f64], scalars: &[f64]) -> f64 {
        self.network.output(&fields[1..=self.loading.len()], self.loadings(scalars), fields[0])
    }

    /// ∂f/∂(û·x) = A κ ξ Σ_i λ_i ĉ_i σ′_i,   ∂f/∂ĉ_l = A κ ξ λ_l σ′_l û·x.
    #[inline]
    fn gradient(&self, fields: &[f64], scalars: &[f64], out: &mut Kick) -> f64 {
        let Network { strength, scale, output_scale, .. } = self.network;
        let (k, along) = (self.loading.len(), fields[0]);
        let gain = output_scale * scale * strength;
        let (mut value, mut slope) = (0.0, 0.0);
        let (mut values, mut slopes) = ([0.0; UNITS_PER_CALL], [0.0; UNITS_PER_CALL]);
        let loadings = self.loadings(scalars).chunks(UNITS_PER_CALL);
        let chunks = loadings
            .zip(fields[1..=k].chunks(UNITS_PER_CALL))
            .zip(self.network.second_layer.chunks(UNITS_PER_CALL));
        for (at, ((c, y), lambda)) in chunks.enumerate() {
            let (values, slopes) = (&mut values[..c.len()], &mut slopes[..c.len()]);
            self.network.preactivations(y, c, along, values);
            self.network.activation.values_and_slopes(values, slopes);
            value += dot(lambda, values);
            slopes.iter_mut().zip(lambda).for_each(|(s, l)| *s *= l);
            slope += dot(c, slopes);
            if self.trained {
                let own = &mut out.scalars[at * UNITS_PER_CALL..];
                own.iter_mut().zip(slopes).for_each(|(g, s)| *g = gain * *s * along);
            }
        }
        out.rows[0] = gain * slope;
        output_scale * value
    }

    fn has_kinks(&self) -> bool {
        self.network.activation.slope_jumps()
    }

    fn kink_planes(&self, scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        let Network { strength, scale, .. } = self.network;
        let loadings = self.loadings(scalars);
        Some(planes(&self.network, 1 + loadings.len(), |i, normal| {
            normal[0] = scale * strength * loadings[i];
            normal[1 + i] = scale;
        }))
    }
}

/// A Σ_i λ_i σ(κ(w_i·x + Δ_i·x)) with rows Δ_i that are trained: all of the first layer.
#[derive(Debug, Clone)]
pub(in crate::low_rank) struct FullRank {
    /// The network.
    pub(in crate::low_rank) network: Network,
}

impl Student for FullRank {
    fn shape(&self) -> Shape {
        let k = self.network.units();
        Shape { trained: k, frozen: k, ..Shape::default() }
    }

    fn output(&self, fields: &[f64], _scalars: &[f64]) -> f64 {
        let (change, base) = fields.split_at(self.network.units());
        let units = self.network.second_layer.iter().zip(base).zip(change);
        let value = |((l, y), d): ((&f64, &f64), &f64)| {
            l * self.network.activation.value(self.network.scale * (y + d))
        };
        self.network.output_scale * units.map(value).sum::<f64>()
    }

    fn gradient(&self, fields: &[f64], _scalars: &[f64], out: &mut Kick) -> f64 {
        let Network { scale, output_scale, .. } = self.network;
        let (change, base) = fields.split_at(self.network.units());
        let mut sum = 0.0;
        for (i, (&l, (&y, &d))) in self.network.second_layer.iter().zip(base.iter().zip(change)).enumerate() {
            let (value, slope) = self.network.activation.value_and_slope(scale * (y + d));
            sum += l * value;
            out.rows[i] = output_scale * scale * l * slope;
        }
        output_scale * sum
    }

    fn has_kinks(&self) -> bool {
        self.network.activation.slope_jumps()
    }

    fn kink_planes(&self, _scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        let k = self.network.units();
        Some(planes(&self.network, 2 * k, |i, normal| {
            normal[i] = self.network.scale;
            normal[k + i] = self.network.scale;
        }))
    }
}

/// A Σ_i λ_i σ(v̂_i·x): k free rows that know nothing of W. With one unit, the single-index student.
#[derive(Debug, Clone)]
pub(in crate::low_rank) struct FromScratch {
    /// The network.
    pub(in crate::low_rank) network: Network,
}

impl Student for FromScratch {
    fn shape(&self) -> Shape {
        Shape { trained: self.network.units(), ..Shape::default() }
    }

    fn output(&self, fields: &[f64], _scalars: &[f64]) -> f64 {
        let units = self.network.second_layer.iter().zip(fields);
        self.network.output_scale * units.map(|(l, h)| l * self.network.activation.value(*h)).sum::<f64>()
    }

    fn gradient(&self, fields: &[f64], _scalars: &[f64], out: &mut Kick) -> f64 {
        let mut sum = 0.0;
        let mut values = [0.0; UNITS_PER_CALL];
        let units = self.network.second_layer.chunks(UNITS_PER_CALL).zip(fields.chunks(UNITS_PER_CALL));
        for ((weights, fields), slopes) in units.zip(out.rows.chunks_mut(UNITS_PER_CALL)) {
            let values = &mut values[..weights.len()];
            values.copy_from_slice(&fields[..weights.len()]);
            self.network.activation.values_and_slopes(values, slopes);
            sum += dot(weights, values);
            slopes.iter_mut().zip(weights).for_each(|(slope, l)| *slope *= self.network.output_scale * l);
        }
        self.network.output_scale * sum
    }

    fn has_kinks(&self) -> bool {
        self.network.activation.slope_jumps()
    }

    fn kink_planes(&self, _scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        Some(planes(&self.network, self.network.units(), |i, normal| normal[i] = 1.0))
    }
}

/// The labels A σ(u·x) of a single-index teacher.
#[derive(Debug, Clone)]
pub(in crate::low_rank) struct SingleIndex {
    /// σ and A.
    pub(in crate::low_rank) network: Network,
}

impl Teacher for SingleIndex {
    fn directions(&self) -> usize {
        1
    }
    fn label(&self, fields: &[f64]) -> f64 {
        let mut value = [fields[0]];
        self.network.activation.values(&mut value);
        self.network.output_scale * value[0]
    }
}

/// Σ_j a_j σ(κ(w_j·x ± ξ û·x/√k)): 2k output weights are refitted, û is kept
/// (docs/derivations/low-rank-perturbation.md#s6-7).
///
/// Frozen fields are W x, u·x (not read), û·x.
#[derive(Debug, Clone)]
pub(in crate::low_rank) struct SecondLayer {
    /// The network.
    pub(in crate::low_rank) network: Network,
}

impl SecondLayer {
    fn features(&self, fields: &[f64]) -> impl Iterator<Item = f64> {
        let k = self.network.units();
        let Network { strength, scale, output_scale, .. } = self.network;
        let shift = strength * fields[k + 1] / (k as f64).sqrt();
        let activation = &self.network.activation;
        let feature = move |at: usize| {
            let y = fields[at % k] + if at < k { shift } else { -shift };
            output_scale * activation.value(scale * y)
        };
        (0..2 * k).map(feature)
    }
}

impl Student for SecondLayer {
    fn shape(&self) -> Shape {
        let k = self.network.units();
        Shape { frozen: k + 2, scalars: 2 * k, ..Shape::default() }
    }

    fn output(&self, fields: &[f64], scalars: &[f64]) -> f64 {
        self.features(fields).zip(scalars).map(|(f, a)| f * a).sum()
    }

    fn gradient(&self, fields: &[f64], scalars: &[f64], out: &mut Kick) -> f64 {
        let mut sum = 0.0;
        for ((g, f), a) in out.scalars.iter_mut().zip(self.features(fields)).zip(scalars) {
            *g = f;
            sum += f * a;
        }
        sum
    }

    fn has_kinks(&self) -> bool {
        self.network.activation.slope_jumps()
    }
}

//! Gradient noise V(m) = 4 E[D² F²] and V_u(m) = 4 E[D² F² b²] for orthonormal W, without sampling
//! (docs/derivations/low-rank-perturbation.md#s5-4).
//!
//! Given a = û·x and b = e·x (e the part of u beyond û) the neurons are independent. Their conditional moments are
//! one-dimensional integrals; joint cumulants add over neurons; what is left is an average over (a, b).

use super::network::Network;
use super::outer::{OuterRule, Point, TwoSlopes, smooth_rule};
use didact_math::gauss::GaussianRule;
use didact_math::gauss::normal::{cdf, density};
use didact_math::gauss::quadrature::gauss_hermite;

/// Neurons that have the same c_i, ĉ_i and λ_i.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Class {
    /// c_i.
    pub loading: f64,
    /// ĉ_i.
    pub student_loading: f64,
    /// λ_i.
    pub weight: f64,
}

/// The classes of an instance and how many neurons each has.
pub fn classes(network: &Network, loading: &[f64], student_loading: &[f64]) -> (Vec<Class>, Vec<usize>) {
    let (mut classes, mut counts) = (Vec::<Class>::new(), Vec::new());
    for ((&loading, &student_loading), &weight) in
        loading.iter().zip(student_loading).zip(&network.second_layer)
    {
        let class = Class { loading, student_loading, weight };
        if let Some(at) = classes.iter().position(|c| *c == class) {
            counts[at] += 1;
        } else {
            classes.push(class);
            counts.push(1);
        }
    }
    (classes, counts)
}

/// Averages of a sample at one overlap.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GradientNoise {
    /// V = 4 E[D² F²]; E|spherical gradient|² = (d_⊥ − 2) V + V_u.
    pub whole: f64,
    /// V_u = 4 E[D² F² b²]; E(gradient·u)² = (1 − m²) V_u.
    pub along: f64,
    /// `E[D²] = Φ(m)`.
    pub loss: f64,
    /// E[2 D F b] = h(m) √(1 − m²).
    pub drift: f64,
    /// `E[F²]`: label noise of variance s² adds `4 s² E[F²]` to V.
    pub gain: f64,
}

/// Joint cumulants of (D_i, F_i) given (a, b), orders up to (2, 2): 10, 01, 20, 11, 02, 21, 12, 22
/// (docs/derivations/low-rank-perturbation.md#eq-34).
type Cumulants = [f64; 8];

/// Conditional cumulants of every class at every point of the outer rule, for one overlap: any numbers of neurons per
/// class can then be averaged.
#[derive(Debug, Clone)]
pub struct NoiseTable {
    points: Vec<Point>,
    cumulants: Vec<Vec<Cumulants>>,
}

/// Why V has no deterministic value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoiseError {
    /// A kink in a curved activation.
    #[error(
        "the gradient noise of `{0}` is not available: it has kinks and is curved between them\n\n\
         hint: use a smooth, polynomial or piecewise linear activation (relu, abs)"
    )]
    Activation(String),
    /// c_i = 0 has no kink line.
    #[error("loading {0} is zero; the gradient noise needs every c_i and ĉ_i different from zero")]
    Loading(usize),
}

/// What [`NoiseTable::new`] refuses, found without computing anything.
pub fn check_noise(network: &Network, classes: &[Class]) -> Result<(), NoiseError> {
    let activation = &*network.activation;
    if activation.kinks().is_empty() {
        return Ok(());
    }
    if let Some(at) = classes.iter().position(|c| c.loading == 0.0 || c.student_loading == 0.0) {
        return Err(NoiseError::Loading(at));
    }
    TwoSlopes::of(activation).map(|_| ()).ok_or_else(|| NoiseError::Activation(activation.name()))
}

impl NoiseTable {
    /// The table of an orthonormal base at overlap m.
    pub fn new(network: &Network, classes: &[Class], m: f64) -> Result<Self, NoiseError> {
        check_noise(network, classes)?;
        let kinked = !network.activation.kinks().is_empty();
        // Pre-activations move by κ per unit of y and by κ ξ max|c| per unit of a or z.
        let reach = classes.iter().fold(0.0, |r: f64, c| r.max(c.loading.abs()).max(c.student_loading.abs()));
        let steepness = network.scale * (network.strength * reach).max(1.0);
        let ratios: Vec<f64> =
            if kinked { classes.iter().map(|c| c.student_loading / c.loading).collect() } else { Vec::new() };
        let rule = OuterRule {
            activation: &*network.activation,
            m,
            ratios,
            sharpness: network.strength * reach,
            steepness,
        };
        let points = rule.points().ok_or_else(|| NoiseError::Activation(network.activation.name()))?;
        let inner = Inner::of(network, steepness);
        let cumulants = classes
            .iter()
            .map(|class| points.iter().map(|p| cumulants(&inner.moments(network, class, p.a, p.z))).collect())
            .collect();
        Ok(Self { points, cumulants })
    }

    /// The averages with `counts` neurons per class.
    pub fn average(&self, counts: &[usize]) -> GradientNoise {
        let mut sum = GradientNoise::default();
        for (at, point) in self.points.iter().enumerate() {
            let mut k = [0.0; 8];
            for (class, &count) in self.cumulants.iter().zip(counts) {
                for (k, c) in k.iter_mut().zip(&class[at]) {
                    *k += count as f64 * c;
                }
            }
            let [k10, k01, k20, k11, k02, k21, k12, k22] = k;
            let both = k22
                + 2.0 * k21 * k01
                + 2.0 * k12 * k10
                + k20 * k02
                + 2.0 * k11 * k11
                + k20 * k01 * k01
                + k02 * k10 * k10
                + 4.0 * k11 * k10 * k01
                + (k10 * k01).powi(2);
            let weight = point.weight;
            sum.whole += weight * 4.0 * both;
            sum.along += weight * 4.0 * both * point.b * point.b;
            sum.loss += weight * (k20 + k10 * k10);
            sum.drift += weight * 2.0 * (k11 + k10 * k01) * point.b;
            sum.gain += weight * (k02 + k01 * k01);
        }
        sum
    }
}

/// V, V_u and the rest for an instance with orthonormal W at overlap m; label noise of standard deviation s included.
pub fn gradient_noise(
    network: &Network,
    loading: &[f64],
    student_loading: &[f64],
    m: f64,
    label_noise: f64,
) -> Result<GradientNoise, NoiseError> {
    let (classes, counts) = classes(network, loading, student_loading);
    let mut noise = NoiseTable::new(network, &classes, m)?.average(&counts);
    let extra = 4.0 * label_noise * label_noise * noise.gain;
    noise.whole += extra;
    // F is independent of b.
    noise.along += extra;
    Ok(noise)
}

/// Moments M_rs = E[D^r F^s | a, b], r, s ≤ 2, indexed by r, then s.
type Moments = [[f64; 3]; 3];

/// How the average over y_i is done.
enum Inner {
    /// Two straight pieces: in closed form.
    Linear(TwoSlopes),
    /// Nodes in y.
    Rule(GaussianRule),
}

impl Inner {
    fn of(network: &Network, steepness: f64) -> Self {
        let activation = &*network.activation;
        if let Some(slopes) = TwoSlopes::of(activation) {
            return Self::Linear(slopes);
        }
        match activation.degree() {
            Some(degree) => Self::Rule(gauss_hermite(2 * degree.max(1)).clone()),
            None => Self::Rule(smooth_rule(activation, steepness)),
        }
    }

    /// D = A λ [σ(κ(y + ξ c z)) − σ(κ(y + ξ ĉ a))],   F = A κ ξ λ ĉ σ′(κ(y + ξ ĉ a)).
    fn moments(&self, network: &Network, class: &Class, a: f64, z: f64) -> Moments {
        let Network { scale, strength, output_scale, .. } = *network;
        let (size, shift) = (output_scale * class.weight, strength * class.student_loading * a);
        let gain = size * scale * strength * class.student_loading;
        let teacher = strength * class.loading * z;
        match self {
            Self::Linear(slopes) => linear_moments(slopes, -teacher, -shift, size * scale, gain),
            Self::Rule(rule) => {
                let mut moments = Moments::default();
                for (&y, &w) in rule.nodes.iter().zip(&rule.weights) {
                    let (value, slope) = network.activation.value_and_slope(scale * (y + shift));
                    let d = size * (network.activation.value(scale * (y + teacher)) - value);
                    add(&mut moments, w, d, gain * slope);
                }
                moments
            }
        }
    }
}

fn add(moments: &mut Moments, weight: f64, d: f64, f: f64) {
    let (ds, fs) = ([1.0, d, d * d], [1.0, f, f * f]);
    for (row, d) in moments.iter_mut().zip(ds) {
        for (m, f) in row.iter_mut().zip(fs) {
            *m += weight * d * f;
        }
    }
}

/// σ(z) = s₊ z₊ − s₋ (−z)₊: D is linear and F constant between the kinks y = p of the teacher and y = q of the student.
fn linear_moments(slopes: &TwoSlopes, p: f64, q: f64, size: f64, gain: f64) -> Moments {
    let (low, high) = (p.min(q), p.max(q));
    let mut moments = Moments::default();
    let mut before = [1.0, 0.0, 1.0];
    for (middle, end) in [(low - 1.0, Some(low)), (f64::midpoint(low, high), Some(high)), (high + 1.0, None)]
    {
        let after = end.map_or([0.0; 3], upper_moments);
        // ∫ y^n φ over the piece.
        let [e0, e1, e2] = std::array::from_fn(|n| before[n] - after[n]);
        before = after;
        let (teacher, student) = (slopes.at(middle - p), slopes.at(middle - q));
        let (rise, level) = (size * (teacher - student), size * (student * q - teacher * p));
        let f = gain * student;
        let powers =
            [e0, level * e0 + rise * e1, level * level * e0 + 2.0 * level * rise * e1 + rise * rise * e2];
        for (row, d) in moments.iter_mut().zip(powers) {
            for (m, f) in row.iter_mut().zip([1.0, f, f * f]) {
                *m += d * f;
            }
        }
    }
    moments
}

/// ∫_t^∞ y^n φ(y) dy for n = 0, 1, 2.
fn upper_moments(t: f64) -> [f64; 3] {
    let (tail, height) = (cdf(-t), density(t));
    [tail, height, tail + t * height]
}

fn cumulants(m: &Moments) -> Cumulants {
    let [[_, m01, m02], [m10, m11, m12], [m20, m21, m22]] = *m;
    [
        m10,
        m01,
        m20 - m10 * m10,
        m11 - m10 * m01,
        m02 - m01 * m01,
        m21 - 2.0 * m11 * m10 - m20 * m01 + 2.0 * m10 * m10 * m01,
        m12 - 2.0 * m11 * m01 - m02 * m10 + 2.0 * m01 * m01 * m10,
        m22 - 2.0 * m21 * m01 - 2.0 * m12 * m10 - m20 * m02 - 2.0 * m11 * m11
            + 2.0 * m20 * m01 * m01
            + 2.0 * m02 * m10 * m10
            + 8.0 * m11 * m10 * m01
            - 6.0 * (m10 * m01).powi(2),
    ]
}

/// [h, V, V_u] of the single-index baseline: teacher A σ(u·x), student A σ(û·x)
/// (docs/derivations/low-rank-perturbation.md#s6-1).
pub fn single_index(
    activation: &dyn didact_math::activation::Activation,
    output_scale: f64,
    m: f64,
) -> Result<[f64; 3], NoiseError> {
    let rule = OuterRule { activation, m, ratios: Vec::new(), sharpness: 1.0, steepness: 1.0 };
    let points = rule.points().ok_or_else(|| NoiseError::Activation(activation.name()))?;
    let (mut whole, mut along) = (0.0, 0.0);
    for point in points {
        let (value, slope) = activation.value_and_slope(point.a);
        let force = 2.0 * (activation.value(point.z) - value) * slope;
        whole += point.weight * force * force;
        along += point.weight * (force * point.b).powi(2);
    }
    let (second, fourth) = (output_scale.powi(2), output_scale.powi(4));
    let h = 2.0 * second * super::network::Kernel::new(activation, 1.0).slope(m);
    Ok([h, fourth * whole, fourth * along])
}

#[cfg(test)]
mod tests {
    use super::super::network::Mode;
    use super::super::population::Instance;
    use super::*;
    use didact_math::activation::parse;
    use didact_math::linalg::Mat;
    use didact_math::random::statistics::Moments as Sample;
    use didact_math::random::{RngAddress, Stream};

    const B: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0];
    const S: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 1.0, -1.0, -1.0, 1.0];

    fn instance(name: &str, xi: f64) -> Instance {
        let network = Network::new(parse(name).unwrap(), vec![1.0; 8], xi, Mode::Normalised);
        let root = 8f64.sqrt();
        Instance {
            network,
            gram: Mat::identity(8),
            loading: B.iter().map(|b| b / root).collect(),
            student_loading: S.iter().map(|b| b / root).collect(),
        }
    }

    #[test]
    fn its_by_products_are_the_loss_and_the_signal() {
        for name in ["relu", "abs", "quad", "He3", "h4", "sigmoid", "tanh", "erf(z/sqrt2)"] {
            for xi in [1.0, 8f64.sqrt(), 8.0 * 8f64.sqrt()] {
                let it = instance(name, xi);
                for m in [-0.7, 0.0, 0.4, 1.0] {
                    let noise =
                        gradient_noise(&it.network, &it.loading, &it.student_loading, m, 0.0).unwrap();
                    let (loss, h) = (it.loss(&[m])[0], it.signal(&[m])[0]);
                    let drift = h * (1.0 - m * m).max(0.0).sqrt();
                    assert!(
                        (noise.loss - loss).abs() < 1e-9 * (1.0 + loss),
                        "{name} {xi} {m}: {noise:?} {loss}"
                    );
                    assert!(
                        (noise.drift - drift).abs() < 1e-9 * (1.0 + h.abs()),
                        "{name} {xi} {m}: {noise:?} {drift}"
                    );
                }
            }
        }
    }

    #[test]
    fn values_of_the_reference_instance_at_zero_overlap() {
        // V(0) of the reference instance: docs/derivations/low-rank-perturbation.md#s10.
        for (name, value) in [("sigmoid", 0.89), ("relu", 272.0), ("quad", 68736.0), ("He3", 335_880.0)] {
            let it = instance(name, 8f64.sqrt());
            let v = gradient_noise(&it.network, &it.loading, &it.student_loading, 0.0, 0.0).unwrap().whole;
            assert!((v / value - 1.0).abs() < 4e-3, "{name}: {v}");
        }
    }

    #[test]
    fn it_is_the_second_moment_of_sampled_gradients() {
        for (name, noise_level) in [("relu", 0.0), ("abs", 0.5), ("sigmoid", 0.2)] {
            let it = instance(name, 3.0);
            let m = 0.3;
            let exact =
                gradient_noise(&it.network, &it.loading, &it.student_loading, m, noise_level).unwrap();
            let mut stream = Stream::at(RngAddress { seed: 4, replica: 0, step: 0, lane: 0 });
            let (mut whole, mut along) = (Sample::default(), Sample::default());
            for _ in 0..200_000 {
                let y: Vec<f64> = (0..8).map(|_| stream.normal()).collect();
                let (a, b) = (stream.normal(), stream.normal());
                let z = m * a + (1.0 - m * m).sqrt() * b;
                let d = it.network.output(&y, &it.loading, z) - it.network.output(&y, &it.student_loading, a)
                    + noise_level * stream.normal();
                let f: f64 = (0..8)
                    .map(|i| {
                        let at = it.network.scale * (y[i] + 3.0 * it.student_loading[i] * a);
                        it.network.scale * 3.0 * it.student_loading[i] * it.network.activation.slope(at)
                    })
                    .sum();
                whole.push(4.0 * (d * f).powi(2));
                along.push(4.0 * (d * f * b).powi(2));
            }
            assert!(
                (whole.mean() - exact.whole).abs() < 4.0 * whole.standard_error(),
                "{name}: {exact:?} {}",
                whole.mean()
            );
            assert!(
                (along.mean() - exact.along).abs() < 4.0 * along.standard_error(),
                "{name}: {exact:?} {}",
                along.mean()
            );
        }
    }

    #[test]
    fn the_linear_single_index_student_has_v_of_eight_times_one_minus_m() {
        let h1 = parse("h1").unwrap();
        for m in [-0.5, 0.0, 0.7, 1.0] {
            let [h, whole, _] = single_index(&*h1, 1.0, m).unwrap();
            assert!((h - 2.0).abs() < 1e-13 && (whole - 8.0 * (1.0 - m)).abs() < 1e-12, "{m}: {whole}");
        }
        for (name, v) in [("h1", 8.0), ("h2", 48.0), ("h3", 384.0), ("h4", 3424.0)] {
            let got = single_index(&*parse(name).unwrap(), 1.0, 0.0).unwrap()[1];
            assert!((got / v - 1.0).abs() < 1e-12, "{name}: {got}");
        }
        let relu = single_index(&*parse("relu").unwrap(), 1.0, 0.4).unwrap();
        assert!((relu[1] - 1.3188412975).abs() < 1e-9 && (relu[2] - 2.4587349084).abs() < 1e-9, "{relu:?}");
    }
}

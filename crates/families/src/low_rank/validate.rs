//! What this family refuses, and why.

use super::dynamics::{FiniteStep, has_useful_step};
use super::network::Network;
use super::noise::NoiseError;
use super::{
    Base, Loading, LowRank, NamedBase, NamedLoading, NamedScale, NamedStart, OutputScale, StartLaw,
    StudentKind,
};
use crate::{ModelError, Refusal};
use didact_math::activation::{self, Activation};
use didact_math::linalg::{Mat, dot, is_psd};
use didact_model::problem::Problem;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

fn invalid(name: &'static str, message: impl Into<String>) -> ModelError {
    ModelError::Invalid { name, message: message.into() }
}

/// σ, if it depends on its argument.
pub(super) fn activation(text: &str) -> Result<Arc<dyn Activation>, ModelError> {
    let parsed =
        activation::parse(text).map_err(|source| ModelError::Activation { name: "activation", source })?;
    let constant = (1..=4).all(|i| {
        let z = 0.37 * f64::from(i);
        parsed.value(z) == parsed.value(-z) && parsed.slope(z) == 0.0 && parsed.slope(-z) == 0.0
    });
    if constant {
        return Err(invalid("activation", format!("`{text}` is constant: nothing can be learned from it")));
    }
    Ok(parsed)
}

/// |c| = 1 to 1e-9.
pub(super) fn unit_loading(name: &'static str, list: &[f64]) -> Result<(), String> {
    let length = dot(list, list).sqrt();
    if (length - 1.0).abs() > 1e-9 {
        return Err(format!("{name} has length {length}; it must be a unit vector (to 1e-9)"));
    }
    Ok(())
}

/// Entries ±1/√k.
pub(super) fn is_quantised(list: &[f64]) -> bool {
    let entry = (list.len() as f64).sqrt().recip();
    list.iter().all(|c| (c.abs() - entry).abs() < 1e-9)
}

/// A Gram matrix of unit rows.
pub(super) fn unit_gram(gram: &Mat) -> Result<(), String> {
    if let Some(i) = (0..gram.rows()).find(|&i| (gram[(i, i)] - 1.0).abs() > 1e-9) {
        return Err(format!("the base has G[{i},{i}] = {}; its rows must be unit vectors", gram[(i, i)]));
    }
    if gram.asymmetry() > 1e-10 || !is_psd(gram) {
        return Err("the base is no Gram matrix: it is not symmetric, or has a negative eigenvalue".into());
    }
    Ok(())
}

/// The network of a description with A = 1, everything about it checked.
pub(super) fn unscaled_network(spec: &LowRank) -> Result<Network, ModelError> {
    let k = spec.units;
    if k == 0 {
        return Err(ModelError::Zero { name: "units" });
    }
    let activation = activation(&spec.activation)?;
    check_strength(spec)?;
    check_loadings(spec)?;
    check_base(spec)?;
    let second_layer = spec.second_layer.clone().unwrap_or_else(|| vec![1.0; k]);
    if second_layer.len() != k {
        return Err(ModelError::Length { name: "second-layer", given: second_layer.len(), expected: k });
    }
    if let Some(&value) = second_layer.iter().find(|l| !l.is_finite()) {
        return Err(ModelError::NotFinite { name: "second-layer", value });
    }
    if !(0.0..=1.0).contains(&spec.inside) {
        return Err(invalid("inside", format!("inside is {}; |Π_W u| lies between 0 and 1", spec.inside)));
    }
    if let StartLaw::Overlap(m) = spec.start
        && (m.is_nan() || m.abs() > 1.0)
    {
        return Err(invalid("start", format!("the starting overlap is {m}; |m| <= 1 is needed")));
    }
    if spec.train_loading && spec.student != StudentKind::RankOne {
        return Err(invalid("train-loading", "only the student `rank-one` has a loading to train"));
    }
    Ok(Network::new(activation, second_layer, spec.xi(), spec.mode))
}

/// The network of a description.
pub(super) fn network(spec: &LowRank) -> Result<Network, ModelError> {
    let mut network = unscaled_network(spec)?;
    network.output_scale = match output_scale(spec)? {
        Scale::Known(scale) => scale,
        Scale::Step { signs, student_signs } => largest_step(&network, &signs, &student_signs)
            .map_err(|e| invalid("output-scale", e.to_string()))?
            .ok_or_else(no_useful_step)?
            .sqrt(),
    };
    Ok(network)
}

/// The same with A = NaN where a rule must compute it first: everything about it is checked, and nothing can be learned
/// from it by mistake.
pub(super) fn draft_network(spec: &LowRank) -> Result<Network, ModelError> {
    let mut network = unscaled_network(spec)?;
    network.output_scale = match output_scale(spec)? {
        Scale::Known(scale) => scale,
        Scale::Step { signs, student_signs } => {
            let useful = is_useful(&network, &signs, &student_signs);
            if !useful.map_err(|e| invalid("output-scale", e.to_string()))? {
                return Err(no_useful_step());
            }
            f64::NAN
        }
    };
    Ok(network)
}

fn no_useful_step() -> ModelError {
    invalid(
        "output-scale",
        "no step is useful on this instance: the signal vanishes or changes its sign before m = 0.9 \
         (condition 3 fails)\n\nhint: use another `instance`, a smaller strength, or give output-scale",
    )
}

fn check_strength(spec: &LowRank) -> Result<(), ModelError> {
    match (spec.strength, spec.relative_strength) {
        (Some(_), Some(_)) => {
            Err(invalid("relative-strength", "give `strength` (ξ) or `relative-strength` (ξ/√k), not both"))
        }
        (None, None) => Err(invalid("strength", "give `strength` (ξ) or `relative-strength` (ξ/√k)")),
        _ if spec.xi().is_finite() && spec.xi() > 0.0 => Ok(()),
        (strength, _) => {
            let name = if strength.is_some() { "strength" } else { "relative-strength" };
            let value = spec.strength.or(spec.relative_strength).unwrap_or(f64::NAN);
            Err(invalid(
                name,
                format!(
                    "{name} is {value}; it must be positive: without a perturbation there is nothing to learn"
                ),
            ))
        }
    }
}

fn check_loadings(spec: &LowRank) -> Result<(), ModelError> {
    for (name, loading) in [("loading", &spec.loading), ("student-loading", &spec.student_loading)] {
        let Loading::Given(list) = loading else { continue };
        if list.len() != spec.units {
            return Err(ModelError::Length { name, given: list.len(), expected: spec.units });
        }
        unit_loading(name, list).map_err(|message| invalid(name, message))?;
    }
    Ok(())
}

fn check_base(spec: &LowRank) -> Result<(), ModelError> {
    match &spec.base {
        Base::Gram(rows) => {
            let gram = Mat::from_rows(rows).filter(|g| g.rows() == spec.units && g.cols() == spec.units);
            let gram = gram.ok_or_else(|| {
                invalid("base", format!("the Gram matrix of the base must be {0} x {0}", spec.units))
            })?;
            unit_gram(&gram).map_err(|message| invalid("base", message))
        }
        Base::Named(NamedBase::OrthogonalTeacher) => {
            let quantised = match &spec.loading {
                Loading::Given(list) => is_quantised(list),
                Loading::Named(law) => *law != NamedLoading::Sphere,
            };
            if quantised && (spec.xi() - 1.0).abs() < 1e-9 {
                return Ok(());
            }
            Err(invalid(
                "base",
                "base = \"orthogonal-teacher\" needs strength = 1 and a quantised loading ±1/√k",
            ))
        }
        Base::Named(_) => Ok(()),
    }
}

/// A, or what it is computed from.
enum Scale {
    Known(f64),
    /// The largest useful step of these signs.
    Step {
        signs: Vec<f64>,
        student_signs: Vec<f64>,
    },
}

fn output_scale(spec: &LowRank) -> Result<Scale, ModelError> {
    match spec.output_scale {
        OutputScale::Given(scale) if scale.is_finite() && scale != 0.0 => Ok(Scale::Known(scale)),
        OutputScale::Given(scale) => {
            Err(invalid("output-scale", format!("output-scale is {scale}; it must be finite and not 0")))
        }
        OutputScale::Named(NamedScale::InverseStrength) => Ok(Scale::Known(1.0 / spec.xi())),
        OutputScale::Named(rule @ (NamedScale::UsefulStep | NamedScale::TypicalStep)) => {
            let name = if rule == NamedScale::UsefulStep { "useful-step" } else { "typical-step" };
            let refuse = |why: &str| Err(invalid("output-scale", format!("output-scale = \"{name}\" {why}")));
            if spec.mode != super::network::Mode::Normalised {
                return refuse("needs the normalised mode");
            }
            if spec.student == StudentKind::SingleIndex {
                return refuse("is a rule for fine-tuning");
            }
            let (c, own) = match rule {
                NamedScale::TypicalStep => spec.typical_loadings(),
                _ => spec.loadings(),
            };
            let signs = |list: &[f64]| -> Vec<f64> { list.iter().map(|x| x.signum()).collect() };
            Ok(Scale::Step { signs: signs(&c), student_signs: signs(&own) })
        }
    }
}

/// Answers about instances, remembered: every point of a sweep over d or replicas asks the same, and those that ask at the
/// same time wait for one answer.
struct Answers<T>(Mutex<BTreeMap<String, Arc<OnceLock<T>>>>);

impl<T: Clone> Answers<T> {
    const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    fn of(
        &self,
        network: &Network,
        signs: &[f64],
        student_signs: &[f64],
        compute: impl FnOnce(&Network, &[f64], &[f64]) -> T,
    ) -> T {
        let Network { activation, second_layer, strength, .. } = network;
        let key = format!("{} {strength} {second_layer:?} {signs:?} {student_signs:?}", activation.name());
        let answer = self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
        answer.get_or_init(|| compute(network, signs, student_signs)).clone()
    }
}

fn largest_step(network: &Network, signs: &[f64], student_signs: &[f64]) -> Result<Option<f64>, NoiseError> {
    static KNOWN: Answers<Result<Option<f64>, NoiseError>> = Answers::new();
    KNOWN.of(network, signs, student_signs, |network, signs, student_signs| {
        Ok(FiniteStep::new(network, signs, student_signs, 0.0)?.largest_step())
    })
}

fn is_useful(network: &Network, signs: &[f64], student_signs: &[f64]) -> Result<bool, NoiseError> {
    static KNOWN: Answers<Result<bool, NoiseError>> = Answers::new();
    KNOWN.of(network, signs, student_signs, has_useful_step)
}

/// What the training must respect.
pub(super) fn admits(spec: &LowRank, problem: &Problem) -> Result<(), Refusal> {
    let refuse = |key, message: String, hint: &str| Err(Refusal { key, message, hint: hint.into() });
    if problem.spectrum.eigenvalues() != [1.0] {
        let message = "rank-one fine-tuning is defined for isotropic inputs: rows of W, u and û that are orthonormal then have independent fields \
                       of variance 1, on which the output scale and the start off W rest; another covariance correlates them"
            .to_string();
        let hint =
            "remove `spectrum` from [data], or write the model as a `formula`, which takes any spectrum";
        return refuse("data.spectrum", message, hint);
    }
    let k = spec.units;
    let constraint = &problem.training.constraint;
    let shape = problem.rule.shape();
    let on_base = spec.student != StudentKind::SingleIndex;
    if let Some(d) = problem.dimension
        && on_base
        && spec.base == Base::default()
        && d < k as u64 + 3
    {
        let message = format!("d = {d} is too small for {k} orthonormal rows and their complement");
        return refuse("data.dimension", message, &format!("use d >= {}", k + 3));
    }
    if constraint.off_frozen && shape.frozen > k {
        let message = "`off-frozen` keeps û off u as well, so nothing could be learned".to_string();
        return refuse("training.constraint", message, "use off-own = true: the rows of W");
    }
    let from_zero = matches!(spec.student, StudentKind::LazyFullRank | StudentKind::FirstMoment);
    if from_zero && constraint.sphere.is_some() {
        let message = "the rows of this student start at zero: they have no length to keep".to_string();
        return refuse("training.constraint.sphere", message, "remove `sphere` from [training.constraint]");
    }
    let restricted = constraint.off_own;
    if restricted && spec.inside > 0.0 {
        let message = format!(
            "û is kept off W, but u is not orthogonal to W (inside = {}): it can never be reached",
            spec.inside
        );
        return refuse("training.constraint.off-own", message, "remove off-own, or set inside = 0");
    }
    let uniform = spec.start == StartLaw::Named(NamedStart::Uniform);
    if restricted && uniform && matches!(spec.student, StudentKind::RankOne | StudentKind::LazyRankOne) {
        let message = "û is kept off W, but starts anywhere in R^d".to_string();
        return refuse("model.start", message, "use start = \"complement\"");
    }
    Ok(())
}

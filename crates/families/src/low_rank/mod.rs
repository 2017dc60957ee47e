//! Rank-one fine-tuning of a two-layer network, between lazy training and feature learning.
//!
//!   teacher f* = A Σ_i λ_i σ(κ(w_i + ξ c_i u)·x),   student f̂ = A Σ_i λ_i σ(κ(w_i + ξ ĉ_i û)·x),   loss = (f* − f̂)².
//!
//! W, λ and ξ are known; û is learned on the sphere by one-pass SGD, ĉ is frozen or learned with it. Baselines on the
//! same footing: lazy students, all rows from scratch, a single index, the first-moment estimator, a refit.
//! A. K. Dayi and S. Chen, COLT 2025 (arXiv:2411.15385); derivations: docs/derivations/low-rank-perturbation.md#s1,
//! errata of the paper: docs/derivations/low-rank-perturbation.md#s7.

mod loading;
pub mod network;
mod observables;
pub mod predictions;
mod quantities;
mod rule;
mod start;
mod validate;

use super::{Family, ModelError, Reference, Refusal};
use didact_model::linearised::{Linearised, Origin};
use didact_model::observable::Observable;
use didact_model::problem::Problem;
use didact_model::quantity::Quantity;
use didact_model::rule::LocalRule;
use didact_model::start::Start;
use loading::typical_signs;
pub use loading::{Loading, NamedLoading};
use network::{Mode, Network};
pub use predictions::{basins, dynamics, lazy, noise, orthonormal, population, theorem};
use rule::baselines::{FirstMoment, LazyForms};
use rule::students::{FromScratch, FullRank, Perturbed, RankOne, SecondLayer, SingleIndex};
use rule::{SharedForms, shared};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use start::{Base, NamedBase, NamedStart, StartLaw, rank_of_gram};
use start::{Lane, LowRankStart};
use std::sync::Arc;

/// What is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StudentKind {
    /// û of W + ξ ĉ ûᵀ, and ĉ with `train-loading`.
    #[default]
    RankOne,
    /// The same, linearised around û = 0.
    LazyRankOne,
    /// All rows of the first layer, linearised around W (NTK).
    LazyFullRank,
    /// k free rows that know nothing of W.
    FromScratch,
    /// One row that learns A σ(u·x): the limit ξ → ∞.
    SingleIndex,
    /// û = Σ x (f* − f_base): no fit, an average.
    FirstMoment,
    /// 2k output weights on features of a kept û.
    SecondLayer,
}

/// A: a number, or chosen by a rule. It multiplies the signal by A² and the noise by A⁴, so it only rescales the step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`output-scale` is a number, `inverse-strength`, `useful-step` or `typical-step`"
)]
pub enum OutputScale {
    /// As given.
    Given(f64),
    /// By a rule.
    Named(NamedScale),
}

impl Default for OutputScale {
    fn default() -> Self {
        Self::Given(1.0)
    }
}

/// Rules for A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NamedScale {
    /// A = 1/ξ, as in the simulations of the source.
    InverseStrength,
    /// A such that the largest useful learning rate of this instance is 1, computed from the signs of c and ĉ as if W were
    /// orthonormal: the step rule (docs/derivations/low-rank-perturbation.md#eq-53) is then `learning-rate = 0.25`
    /// whatever σ, k and ξ.
    UsefulStep,
    /// The same for the typical signs of this width (`loading = "typical"`) in place of the instance's own. One step for all
    /// instances, so that instances can be drawn at random without looking at them; one with an unusually small signal
    /// may then find it too large.
    TypicalStep,
}

/// Rank-one fine-tuning and its baselines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LowRank {
    /// What is trained.
    #[serde(default)]
    pub student: StudentKind,
    /// σ.
    pub activation: String,
    /// k.
    #[schemars(range(max = 2048))]
    pub units: usize,
    /// ξ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<f64>,
    /// ξ/√k, in place of `strength`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_strength: Option<f64>,
    /// κ.
    #[serde(default)]
    pub mode: Mode,
    /// A.
    #[serde(default)]
    pub output_scale: OutputScale,
    /// λ; ones unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_layer: Option<Vec<f64>>,
    /// W.
    #[serde(default)]
    pub base: Base,
    /// c.
    #[serde(default)]
    pub loading: Loading,
    /// ĉ, or where it starts.
    #[serde(default)]
    pub student_loading: Loading,
    /// Trains ĉ too; the description then keeps it on the sphere with `training.constraint.scalar-sphere`.
    #[serde(default)]
    pub train_loading: bool,
    /// α = |Π_W u|: the part of u inside the span of W.
    #[serde(default)]
    pub inside: f64,
    /// û at the start: `complement` of W, `uniform`, an overlap, or `{ scaled = m_0 √d_⊥ }`.
    #[serde(default)]
    pub start: StartLaw,
    /// Seed of what is random in the instance: c, ĉ, W and u. Replicas share the instance.
    #[serde(default)]
    pub instance: u64,
}

impl LowRank {
    /// k units of σ at strength ξ: orthonormal base, quantised loadings, frozen ĉ, normalised mode.
    pub fn new(activation: &str, units: usize, strength: f64) -> Self {
        Self {
            student: StudentKind::RankOne,
            activation: activation.into(),
            units,
            strength: Some(strength),
            relative_strength: None,
            mode: Mode::Normalised,
            output_scale: OutputScale::default(),
            second_layer: None,
            base: Base::default(),
            loading: Loading::default(),
            student_loading: Loading::default(),
            train_loading: false,
            inside: 0.0,
            start: StartLaw::default(),
            instance: 0,
        }
    }

    /// c and ĉ.
    pub fn loadings(&self) -> (Vec<f64>, Vec<f64>) {
        let draw = |loading: &Loading, lane: Lane| loading.draw(self.units, self.instance, lane);
        (draw(&self.loading, Lane::Loading), draw(&self.student_loading, Lane::StudentLoading))
    }

    /// c and ĉ with the sums of a typical draw.
    fn typical_loadings(&self) -> (Vec<f64>, Vec<f64>) {
        (typical_signs(self.units, Lane::Loading), typical_signs(self.units, Lane::StudentLoading))
    }

    /// ξ; zero when it is not given.
    fn xi(&self) -> f64 {
        match (self.strength, self.relative_strength) {
            (Some(strength), _) => strength,
            (None, Some(relative)) => relative * (self.units as f64).sqrt(),
            (None, None) => 0.0,
        }
    }

    /// κ √(1 + ξ²/k): length of a perturbed row with quantised c.
    fn radius(&self) -> f64 {
        let xi = self.xi();
        self.mode.scale(self.units.max(1), xi) * (1.0 + xi * xi / self.units.max(1) as f64).sqrt()
    }

    /// The rule of a network of these parameters.
    fn rule_of(&self, network: &Network) -> Arc<dyn LocalRule> {
        let (loading, student_loading) = self.loadings();
        let teacher = Perturbed { network: network.clone(), loading: loading.clone() };
        let rank_one = RankOne {
            network: network.clone(),
            loading: student_loading,
            trained: self.train_loading && self.student == StudentKind::RankOne,
        };
        let forms = SharedForms { network: network.clone(), loading: loading.clone() };
        let lazy_forms = LazyForms { network: network.clone(), loading };
        match self.student {
            StudentKind::RankOne => Arc::new(shared(rank_one, teacher, forms)),
            StudentKind::LazyRankOne => {
                let student = Linearised { student: rank_one, origin: Origin::Zero, scalars: Vec::new() };
                Arc::new(shared(student, teacher, lazy_forms))
            }
            StudentKind::LazyFullRank => {
                let inner = FullRank { network: network.clone() };
                let student = Linearised { student: inner, origin: Origin::Zero, scalars: Vec::new() };
                Arc::new(shared(student, teacher, lazy_forms))
            }
            StudentKind::FromScratch => {
                Arc::new(shared(FromScratch { network: network.clone() }, teacher, forms))
            }
            StudentKind::SingleIndex => {
                let one = Network { second_layer: vec![1.0], ..network.clone() };
                let teacher = SingleIndex { network: one.clone() };
                Arc::new(shared(FromScratch { network: one }, teacher, forms))
            }
            StudentKind::FirstMoment => Arc::new(FirstMoment { teacher }),
            StudentKind::SecondLayer => {
                Arc::new(shared(SecondLayer { network: network.clone() }, teacher, forms))
            }
        }
    }

    fn starting_values(&self) -> Vec<f64> {
        match self.student {
            StudentKind::SecondLayer => vec![0.0; 2 * self.units],
            StudentKind::RankOne if self.train_loading => self.loadings().1,
            _ => Vec::new(),
        }
    }
}

impl Family for LowRank {
    const NAME: &'static str = "low-rank-perturbation";
    const SUMMARY: &'static str =
        "rank-one fine-tuning of a two-layer network, with lazy, from-scratch and single-index baselines";

    fn references(&self) -> Vec<Reference> {
        vec![Reference {
            key: "DayiChen2025",
            citation: "A. K. Dayi and S. Chen, Low-rank fine-tuning lies between lazy training and feature learning, COLT, PMLR 291:1415 (2025)",
            locator: "arXiv:2411.15385",
        }]
    }

    fn rule(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
        Ok(self.rule_of(&validate::network(self)?))
    }

    /// Without the noise that the rules for A weigh against the signal.
    fn draft(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
        Ok(self.rule_of(&validate::draft_network(self)?))
    }

    fn starting_scalars(&self) -> Vec<f64> {
        self.starting_values()
    }

    fn start(&self) -> Result<Option<Arc<dyn Start>>, ModelError> {
        validate::unscaled_network(self)?;
        Ok(Some(Arc::new(LowRankStart {
            student: self.student,
            base: self.base.clone(),
            loading: self.loadings().0,
            inside: self.inside,
            law: self.start.clone(),
            instance: self.instance,
            radius: self.radius(),
            scalars: self.starting_values(),
        })))
    }

    fn admits(&self, problem: &Problem) -> Result<(), Refusal> {
        validate::admits(self, problem)
    }

    fn observables(&self) -> Vec<Arc<dyn Observable>> {
        observables::of(self)
    }

    fn quantities() -> &'static [Quantity] {
        quantities::ALL
    }

    fn examples() -> Vec<Self> {
        let mut all: Vec<Self> =
            ["relu", "He3", "sigmoid", "erf(z/sqrt2)", "abs"].map(|name| Self::new(name, 2, 1.5)).into();
        let given = |list: &[f64]| Loading::Given(list.to_vec());
        all.push(Self { train_loading: true, mode: Mode::Raw, ..Self::new("tanh", 2, 1.2) });
        all.push(Self {
            train_loading: true,
            loading: given(&[0.6, -0.8]),
            student_loading: given(&[0.28, 0.96]),
            second_layer: Some(vec![1.0, -0.7]),
            ..Self::new("sigmoid", 2, 1.7)
        });
        for student in [
            StudentKind::FromScratch,
            StudentKind::SingleIndex,
            StudentKind::LazyRankOne,
            StudentKind::LazyFullRank,
            StudentKind::FirstMoment,
            StudentKind::SecondLayer,
        ] {
            all.push(Self {
                student,
                output_scale: OutputScale::Given(0.8),
                ..Self::new("erf(z/sqrt2)", 2, 1.1)
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_typical_step_is_the_useful_one_of_typical_signs() {
        let typical = || Loading::Named(NamedLoading::Typical);
        let scaled = |scale, spec: LowRank| {
            let spec = LowRank { output_scale: OutputScale::Named(scale), ..spec };
            validate::network(&spec).unwrap().output_scale
        };
        let drawn = LowRank { instance: 3, ..LowRank::new("He3", 20, 2.0) };
        let signs = LowRank { loading: typical(), student_loading: typical(), ..drawn.clone() };
        let expected = scaled(NamedScale::UsefulStep, signs.clone());
        assert_eq!(scaled(NamedScale::TypicalStep, drawn), expected);
        assert_eq!(scaled(NamedScale::TypicalStep, signs), expected);
    }

    #[test]
    fn with_the_useful_step_as_unit_every_activation_has_largest_step_one() {
        for name in ["relu", "He3", "sigmoid"] {
            let scale = OutputScale::Named(NamedScale::UsefulStep);
            let spec = LowRank { output_scale: scale, instance: 1, ..LowRank::new(name, 8, 1.0) };
            let network = validate::network(&spec).unwrap();
            let (c, own) = spec.loadings();
            let signs = |list: &[f64]| -> Vec<f64> { list.iter().map(|x| x.signum()).collect() };
            let largest = dynamics::FiniteStep::new(&network, &signs(&c), &signs(&own), 0.0)
                .unwrap()
                .largest_step()
                .unwrap();
            assert!((largest - 1.0).abs() < 1e-10, "{name}: {largest}");
        }
    }

    #[test]
    fn a_draft_has_everything_but_the_scale() {
        let spec = LowRank {
            output_scale: OutputScale::Named(NamedScale::UsefulStep),
            instance: 1,
            ..LowRank::new("relu", 8, 1.0)
        };
        let (draft, rule) = (spec.draft().unwrap(), spec.rule().unwrap());
        assert_eq!(draft.shape(), rule.shape());
        // The scale was not computed, and no number can come of it by mistake.
        let fields: Vec<f64> = (0..draft.shape().rows()).map(|i| 0.3 + 0.1 * i as f64).collect();
        let sample = didact_model::rule::Sample { fields: &fields, scalars: &[], noise: 0.0 };
        assert!(draft.loss(&sample).is_nan() && rule.loss(&sample) > 0.0);
    }
}

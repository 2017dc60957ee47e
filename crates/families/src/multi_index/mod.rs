//! Two-layer students of multi-index targets.
//!
//!   student f = (1/m) Σ_j a_j σ(θ_j·x + b_j),   label y = h(z1, …, zk, e),  z_n = v_n·x,   loss ℓ(y, f),
//!
//! with a_j and b_j fixed, or trained as scalars. Montanari & Wang, *Phase Transitions for Feature Learning in Neural Networks* (2026), train it by
//! full-batch gradient descent for O(1) steps; the rule serves every other engine as well. The per-sample gradient
//! carries 1/m: to move a wide student in O(1) steps take a learning rate proportional to m
//! (docs/derivations/gd-phase-transitions.md#s2).

mod rule;

use super::{Family, ModelError, Reference};
use didact_math::activation;
use didact_model::link::Link;
use didact_model::loss::Loss;
use didact_model::problem::Problem;
use didact_model::rule::LocalRule;
use rule::MultiIndexRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A two-layer student, its second layer frozen or trained, that learns a multi-index target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MultiIndex {
    /// m, hidden units of the student.
    #[serde(default = "one")]
    #[schemars(range(max = 2048))]
    pub students: usize,
    /// k, latent directions of the target.
    #[serde(default = "one")]
    #[schemars(range(max = 2048))]
    pub directions: usize,
    /// σ: a name (`gelu`, `quadratic`, `tanh`, …) or an expression in x.
    pub activation: String,
    /// h: a formula in z1 … zk and the noise e, such as `z1^2` or `1{z1>0} z2`; noise is added to the label unless named.
    pub link: String,
    /// ℓ(y, f).
    #[serde(default = "square")]
    pub loss: Loss,
    /// a_j; all 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
    /// b_j; all 0 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub biases: Option<Vec<f64>>,
    /// Trains the a_j as scalars.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub train_output: bool,
    /// Trains the b_j as scalars, behind the a_j.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub train_biases: bool,
}

fn one() -> usize {
    1
}

fn square() -> Loss {
    Loss::HALF_SQUARE
}

impl MultiIndex {
    /// One unit of σ, a = 1, b = 0, and one latent direction.
    pub fn single(activation: &str, link: &str, loss: Loss) -> Self {
        Self {
            students: 1,
            directions: 1,
            activation: activation.into(),
            link: link.into(),
            loss,
            weights: None,
            biases: None,
            train_output: false,
            train_biases: false,
        }
    }

    /// a_j.
    fn weights(&self) -> Vec<f64> {
        self.weights.clone().unwrap_or_else(|| vec![1.0; self.students])
    }

    /// b_j.
    fn biases(&self) -> Vec<f64> {
        self.biases.clone().unwrap_or_else(|| vec![0.0; self.students])
    }

    fn parsed_link(&self) -> Result<Link, ModelError> {
        Link::parse(&self.link, self.directions)
            .map_err(|e| ModelError::Invalid { name: "link", message: e.to_string() })
    }
}

impl Family for MultiIndex {
    const NAME: &'static str = "multi-index";
    const SUMMARY: &'static str =
        "a two-layer student, its second layer frozen or trained, learns a formula of a few projections";

    fn references(&self) -> Vec<Reference> {
        vec![
            Reference {
                key: "MontanariWang2026",
                citation: "A. Montanari and Z. Wang, Phase Transitions for Feature Learning in Neural Networks (2026)",
                locator: "arXiv:2602.01434",
            },
            Reference {
                key: "CelentanoChengMontanari2021",
                citation: "M. Celentano, C. Cheng and A. Montanari, The high-dimensional asymptotics of first order methods with random data (2021)",
                locator: "arXiv:2112.07572",
            },
        ]
    }

    fn rule(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
        for (name, count) in [("students", self.students), ("directions", self.directions)] {
            if count == 0 {
                return Err(ModelError::Zero { name });
            }
        }
        let list = |name, list: Vec<f64>| {
            if list.len() != self.students {
                return Err(ModelError::Length { name, given: list.len(), expected: self.students });
            }
            match list.iter().find(|v| !v.is_finite()) {
                Some(&value) => Err(ModelError::NotFinite { name, value }),
                None => Ok(list),
            }
        };
        let weights = list("weights", self.weights())?;
        let biases = list("biases", self.biases())?;
        let activation = activation::parse(&self.activation)
            .map_err(|source| ModelError::Activation { name: "activation", source })?;
        let link = self.parsed_link()?;
        check_link(&self.link, &link)?;
        if let Some((name, value)) = self.loss.parameter().filter(|(_, v)| !(v.is_finite() && *v > 0.0)) {
            let message = format!("{name} is {value}; it must be positive and finite");
            return Err(ModelError::Invalid { name: "loss", message });
        }
        let m = self.students as f64;
        let weights = weights.iter().map(|a| a / m).collect();
        Ok(Arc::new(MultiIndexRule {
            activation,
            weights,
            gains: vec![1.0 / m; self.students],
            biases,
            train_output: self.train_output,
            train_biases: self.train_biases,
            link,
            loss: self.loss,
        }))
    }

    fn starting_scalars(&self) -> Vec<f64> {
        let trained = |train: bool, list: Vec<f64>| if train { list } else { Vec::new() };
        [trained(self.train_output, self.weights()), trained(self.train_biases, self.biases())].concat()
    }

    fn standard_noise(&self) -> f64 {
        self.parsed_link().map_or(0.0, |link| link.standard_noise())
    }

    fn warning(&self, problem: &Problem) -> Option<String> {
        let noisy = self.parsed_link().is_ok_and(|link| link.names_noise());
        (noisy && problem.training.label_noise == 0.0).then(|| {
            "the link names the noise e, but training.label-noise is 0, so that e is 0; 1 makes it a standard normal".into()
        })
    }

    fn examples() -> Vec<Self> {
        let huber = |kappa| Loss::PseudoHuber { kappa };
        vec![
            Self::single("gelu", "z^2", huber(1.0)),
            Self {
                weights: Some(vec![1.5]),
                biases: Some(vec![-0.3]),
                ..Self::single("quadratic", "z^2", huber(2.0))
            },
            Self::single("linear", "z", Loss::HALF_SQUARE),
            Self::single("tanh", "z + 0.3z^2", Loss::LogCosh),
            Self::single("gelu", "z^3 - 3z", Loss::Huber { kappa: 1.0 }),
            Self::single("gelu", "tanh(z^2)", Loss::Logistic),
            Self {
                students: 2,
                directions: 2,
                weights: Some(vec![1.5, -1.0]),
                biases: Some(vec![0.1, -0.3]),
                ..Self::single("gelu", "z1+z2+z1*z2", huber(1.0))
            },
            Self {
                students: 2,
                weights: Some(vec![1.5, -1.0]),
                biases: Some(vec![0.1, -0.3]),
                train_output: true,
                train_biases: true,
                ..Self::single("tanh", "z + 0.3z^2", huber(1.0))
            },
            Self { train_biases: true, ..Self::single("relu", "z^2", Loss::HALF_SQUARE) },
            Self { directions: 2, ..Self::single("poly(0, 0, 0.5)", "z1*z2*(1 + e)", huber(1.0)) },
        ]
    }
}

/// A label that is not finite on likely inputs would spoil every average.
fn check_link(text: &str, link: &Link) -> Result<(), ModelError> {
    let k = link.directions();
    // Every coordinate in turn, then all together, over five standard deviations; no node sits on 0.
    for step in 0..=100 {
        let at = 0.1 * f64::from(step) - 4.97;
        for moved in 0..=k {
            let z: Vec<f64> = (0..k).map(|j| if j == moved || moved == k { at } else { 0.3 }).collect();
            for noise in [-1.3, 0.7] {
                let label = link.label(&z, noise);
                if !label.is_finite() {
                    let message = format!("`{text}` is {label} at z = {z:?}; labels must be finite");
                    return Err(ModelError::Invalid { name: "link", message });
                }
            }
        }
    }
    Ok(())
}

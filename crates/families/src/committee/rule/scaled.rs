//! A committee whose trained output weights are multiplied by fixed factors.

use super::CommitteeRule;
use didact_model::averages::QuadratureEstimate;
use didact_model::rule::{
    Averages, CurvatureRule, Jumps, Kick, KinkPlane, Law, LocalRule, Needed, Sample, Shape,
};

/// f = Σ_i factor_i a_i σ(h_i), the a_i being trained: the committee at scalars factor_i a_i.
#[derive(Debug)]
pub(super) struct ScaledOutputs {
    pub(super) rule: CommitteeRule,
    pub(super) factors: Vec<f64>,
}

impl ScaledOutputs {
    fn scaled(&self, scalars: &[f64]) -> Vec<f64> {
        scalars.iter().zip(&self.factors).map(|(a, f)| a * f).collect()
    }

    /// ∂/∂a_i = factor_i ∂/∂(factor_i a_i).
    fn scale(&self, slopes: &mut [f64]) {
        slopes.iter_mut().zip(&self.factors).for_each(|(slope, f)| *slope *= f);
    }
}

impl LocalRule for ScaledOutputs {
    fn shape(&self) -> Shape {
        self.rule.shape()
    }

    fn loss(&self, sample: &Sample) -> f64 {
        self.rule.loss(&Sample { scalars: &self.scaled(sample.scalars), ..*sample })
    }

    fn kick(&self, sample: &Sample, out: &mut Kick) {
        self.rule.kick(&Sample { scalars: &self.scaled(sample.scalars), ..*sample }, out);
        self.scale(&mut out.scalars);
    }

    fn averages(&self, law: &Law, needed: Needed, out: &mut Averages) {
        self.rule.averages(&Law { scalars: &self.scaled(law.scalars), ..*law }, needed, out);
        self.scale(&mut out.scalars);
    }

    fn risk_within(&self, law: &Law, accuracy: f64) -> QuadratureEstimate {
        self.rule.risk_within(&Law { scalars: &self.scaled(law.scalars), ..*law }, accuracy)
    }

    fn curved(&self) -> Option<&dyn CurvatureRule> {
        Some(self)
    }
}

impl CurvatureRule for ScaledOutputs {
    fn jumps(&self) -> Jumps {
        self.rule.jumps()
    }

    fn kink_planes(&self, scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        self.rule.kink_planes(scalars)
    }
}

//! Hidden units, whose outputs can be scaled one by one.

use super::LocalRule;
use std::sync::Arc;

/// Rules of networks whose output is a sum over hidden units: what is left out at random, scaled or pruned needs to know no more.
pub trait HiddenUnits: LocalRule {
    /// How many there are.
    fn units(&self) -> usize;

    /// The same rule with the output of unit i multiplied by `factors[i]`, in the student alone. Rows and scalars keep their meaning.
    fn with_unit_factors(&self, factors: &[f64]) -> Arc<dyn LocalRule>;
}

/// Every choice of units that take part, each with probability `keep` and scaled by 1/keep, as rules with their probabilities.
///
/// `None` where the rule has no hidden units.
pub fn masked_rules(rule: &Arc<dyn LocalRule>, keep: f64) -> Option<Vec<(f64, Arc<dyn LocalRule>)>> {
    let hidden = rule.hidden()?;
    let units = hidden.units();
    let masked = |mask: u32| {
        let taking_part = |i: &usize| mask >> i & 1 == 1;
        let factors: Vec<f64> = (0..units).map(|i| if taking_part(&i) { 1.0 / keep } else { 0.0 }).collect();
        let count = mask.count_ones() as i32;
        let probability = keep.powi(count) * (1.0 - keep).powi(units as i32 - count);
        (probability, hidden.with_unit_factors(&factors))
    };
    Some((0..1_u32 << units).map(masked).collect())
}

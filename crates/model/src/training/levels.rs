//! Training of a part of the inputs: the directions of the largest eigenvalues.
//!
//! With P the projector on the eigenspaces of the n largest eigenvalues, one step is
//!
//!   w_i ← w_i − s kick_i(h) P x:
//!
//! what a row has outside stays as it was at the start and acts as noise on what is learned
//! (docs/derivations/power-law-spectra.md#s5-1). Per eigenspace b the overlaps obey the equations of plain descent inside and dG_b = 0
//! outside, so that they stay closed.

use super::{Training, TrainingError};
use crate::problem::Problem;
use crate::spectrum::Spectrum;

impl Training {
    /// Which eigenspaces are trained, in the order of the spectrum.
    pub fn trained_eigenspaces(&self, spectrum: &Spectrum) -> Vec<bool> {
        let Some(count) = self.trained_levels else { return vec![true; spectrum.len()] };
        let values = spectrum.eigenvalues();
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[b].total_cmp(&values[a]));
        let mut trained = vec![false; values.len()];
        order.into_iter().take(count).for_each(|b| trained[b] = true);
        trained
    }

    /// Refuses a number of levels that the spectrum does not have, and constraints on whole rows.
    pub(super) fn validate_levels(&self, problem: &Problem) -> Result<(), TrainingError> {
        let Some(trained) = self.trained_levels else { return Ok(()) };
        let levels = problem.spectrum.len();
        if trained == 0 || trained > levels {
            return Err(TrainingError::Levels { trained, levels });
        }
        let constraint = &self.constraint;
        let with = match () {
            () if constraint.sphere.is_some() => "sphere",
            () if constraint.barred(&*problem.rule) > 0 => "off-frozen",
            () => return Ok(()),
        };
        Err(TrainingError::LevelsWith { with })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_eigenvalues_are_trained_whatever_their_order() {
        let spectrum = Spectrum::new(vec![0.5, 2.0, 1.0], vec![0.4, 0.3, 0.3]).unwrap();
        let of = |levels| {
            Training { trained_levels: levels, ..Training::online(0.1) }.trained_eigenspaces(&spectrum)
        };
        assert_eq!(of(Some(1)), [false, true, false]);
        assert_eq!(of(Some(2)), [false, true, true]);
        assert_eq!(of(None), [true; 3]);
    }
}

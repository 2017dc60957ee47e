//! Half-loss times over an ensemble of random starts, and the learning rate that makes them shortest
//! (docs/derivations/quadratic-networks.md#s4-6).

use super::singular::{HalfLoss, SingularFlow};
use didact_math::linalg::Mat;
use didact_math::ode::OdeError;
use didact_math::random::statistics::Moments;
use didact_math::random::{RngAddress, Stream};
use didact_math::roots::minimum;

/// Starts Q(0) = 1 with overlaps ρ_kl ~ N(0, ε²), addressed by seed and number.
#[derive(Debug, Clone, Copy)]
pub(in crate::quadratic) struct Starts {
    pub students: usize,
    pub teachers: usize,
    /// ε.
    pub deviation: f64,
    pub count: u32,
    pub seed: u64,
}

/// Half-loss times over the starts.
#[derive(Debug, Clone)]
pub(in crate::quadratic) struct HalfLossTimes {
    /// Over the starts that reached half of their loss.
    pub times: Moments,
    /// How many did not.
    pub missed: u32,
}

impl Starts {
    /// ρ(0) of one start.
    pub(in crate::quadratic) fn draw(&self, number: u32) -> Mat {
        let mut stream = Stream::at(RngAddress { seed: self.seed, replica: number, step: 0, lane: 0 });
        Mat::from_fn(self.students, self.teachers, |_, _| self.deviation * stream.normal())
    }

    /// Half-loss times of all starts, in α at a learning rate, in t = η α for the flow.
    pub(in crate::quadratic) fn half_loss(
        &self,
        learning_rate: Option<f64>,
        cap: f64,
    ) -> Result<HalfLossTimes, OdeError> {
        let (mut times, mut missed) = (Moments::default(), 0);
        for number in 0..self.count {
            match SingularFlow::new(&self.draw(number), 1.0, learning_rate).half_loss(cap)? {
                HalfLoss::Reached(time) => times.push(time),
                HalfLoss::Diverged(_) | HalfLoss::Later | HalfLoss::Never(_) => missed += 1,
            }
        }
        Ok(HalfLossTimes { times, missed })
    }

    /// The learning rate in [low, high] with the shortest mean half-loss time, and that time; the starts are the same
    /// at every learning rate, so the mean is a smooth function of it.
    pub(in crate::quadratic) fn best_learning_rate(
        &self,
        low: f64,
        high: f64,
        cap: f64,
    ) -> Result<(f64, f64), OdeError> {
        let mut failure = None;
        let mean = |eta: f64| match self.half_loss(Some(eta), cap) {
            Ok(found) if found.missed == 0 => found.times.mean(),
            Ok(_) => f64::INFINITY,
            Err(error) => {
                failure = Some(error);
                f64::INFINITY
            }
        };
        let found = minimum(mean, low, high, 1e-3 * high);
        failure.map_or(Ok((found.at, found.value)), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_half_loss_time_has_the_published_u_shape() {
        // Means over 300 starts, docs/derivations/quadratic-networks.md#f2: 54.2(2) at 0.1, 30.1(1) at 0.27, 49.5(4) at
        // 0.40.
        let starts = Starts { students: 3, teachers: 3, deviation: 0.01, count: 60, seed: 5 };
        for (eta, mean, error) in [(0.1, 54.2, 0.2), (0.27, 30.1, 0.1), (0.40, 49.5, 0.4)] {
            let found = starts.half_loss(Some(eta), 1e4).unwrap();
            assert_eq!(found.missed, 0);
            let allowed = 4.0 * found.times.standard_error().hypot(error);
            assert!((found.times.mean() - mean).abs() < allowed, "{eta}: {}", found.times.mean());
        }
    }
}

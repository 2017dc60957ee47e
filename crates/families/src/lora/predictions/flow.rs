//! Gradient flow of an adapter: trajectories, first passages, and where it ends
//! (docs/derivations/lora.md#s4, docs/derivations/lora.md#s6).

use super::landscape::{AdapterState, Landscape};
use didact_math::activation::Form;
use didact_math::ode::{Direction, FieldFn, Method, OdeError, OdeEvent, Options, Solution, Stop, solve};

/// Gradient flow in the time that runs δ times as fast as that of the loss: u′ = −δ ∂L/∂u, and so on.
#[derive(Debug, Clone, Copy)]
pub struct Flow<'a> {
    /// Loss and frozen weights.
    pub landscape: &'a Landscape,
    /// δ: 1, or 1/(k k!) for a Hermite unit.
    pub delta: f64,
}

/// Why a flow has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FlowError {
    /// Bad times or start.
    #[error(transparent)]
    Request(#[from] OdeError),
    /// Ended before its last time.
    #[error("the flow ended early: {0}")]
    Ended(Stop),
}

/// Where a flow ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// The teacher: test error 0.
    Teacher,
    /// Minus the teacher, for an even student: test error 0 as well.
    Mirror,
    /// W = 0: the output of the student is constant. |m| = 1 there too, so |m| → 1 alone is no success.
    Silence,
    /// Another stationary point.
    Spurious,
    /// None within the time.
    NotConverged,
}

impl Destination {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Teacher => "recovered",
            Self::Mirror => "mirror",
            Self::Silence => "trapped at zero",
            Self::Spurious => "trapped at a spurious point",
            Self::NotConverged => "not converged",
        }
    }
}

/// The end of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowEnd {
    /// Which point.
    pub destination: Destination,
    /// The state there.
    pub state: AdapterState,
    /// When it was still moving last.
    pub time: f64,
}

/// Steps of an integration. Flows of a few numbers need some thousand; one that needs more has a time scale far from the others.
const MOST_STEPS: u64 = 20_000;

/// Below this speed (per unit of rescaled time) a flow has arrived; plateaus of He_10 still move at 1e-8.
const ARRIVED: f64 = 1e-11;
/// How close to a named point counts as being there.
const NEAR: f64 = 1e-6;

impl Flow<'_> {
    /// States at the given times, counted from the start.
    pub fn states(&self, start: AdapterState, times: &[f64]) -> Result<Vec<AdapterState>, FlowError> {
        let end = times.iter().copied().fold(0.0, f64::max);
        let solution = self.solve(start, end, times, &[])?;
        match solution.report.stop {
            Stop::ReachedEnd => Ok(solution.states.iter().map(|s| state(s)).collect()),
            stop => Err(FlowError::Ended(stop)),
        }
    }

    /// The first time at which `excess` is not negative any more, and the state then; `None` when the cap comes first.
    pub fn first_passage(
        &self,
        start: AdapterState,
        cap: f64,
        excess: impl Fn(AdapterState) -> f64,
    ) -> Result<Option<(f64, AdapterState)>, FlowError> {
        if excess(start) >= 0.0 {
            return Ok(Some((0.0, start)));
        }
        let passage = OdeEvent {
            name: "passage".into(),
            function: Box::new(|_, y: &[f64]| excess(state(y))),
            direction: Direction::Rising,
            terminal: true,
        };
        let solution = self.solve(start, cap, &[], &[passage, self.arrival()])?;
        match solution.report.stop {
            Stop::Event { index: 0, time } => Ok(Some((time, state(&solution.last_state)))),
            Stop::Event { .. } | Stop::ReachedEnd => Ok(None),
            stop => Err(FlowError::Ended(stop)),
        }
    }

    /// The speed below which the flow has arrived. Averages of units that grow as fast as eˣ are large numbers whose rounding would keep
    /// it moving for ever.
    fn arrived(&self) -> f64 {
        let population = &self.landscape.population;
        if population.student.form() != Form::General {
            return ARRIVED;
        }
        ARRIVED * (population.power(1.0) + population.squared_slope(1.0)).max(1.0)
    }

    /// The flow stands still.
    fn arrival(&self) -> OdeEvent<'_> {
        let arrived = self.arrived();
        let slowness = move |s: AdapterState| {
            let v = self.landscape.velocity(s);
            arrived - self.delta * v.amplitude.abs().max(v.overlap.abs()).max(v.stray.abs())
        };
        OdeEvent {
            name: "arrival".into(),
            function: Box::new(move |_, y: &[f64]| slowness(state(y))),
            direction: Direction::Rising,
            terminal: true,
        }
    }

    /// Follows the flow until it stands still, or for `cap`.
    pub fn end(&self, start: AdapterState, cap: f64) -> Result<FlowEnd, FlowError> {
        let solution = self.solve(start, cap, &[], &[self.arrival()])?;
        let (last, time) = (state(&solution.last_state), solution.last_time);
        let destination = match solution.report.stop {
            Stop::Event { .. } | Stop::ReachedEnd => self.classify(last),
            stop => return Err(FlowError::Ended(stop)),
        };
        Ok(FlowEnd { destination, state: last, time })
    }

    /// Which point a state is at. Spurious points are those where |m| = 1 and nothing moves.
    fn classify(&self, state: AdapterState) -> Destination {
        let population = &self.landscape.population;
        let law = self.landscape.law(state);
        let error = 2.0 * population.loss(law);
        if error.abs() < NEAR * population.power(1.0).max(1.0) {
            return if law.overlap < 0.0 { Destination::Mirror } else { Destination::Teacher };
        }
        let v = self.landscape.velocity(state);
        let still = self.delta * v.amplitude.abs().max(v.overlap.abs()) < 1e-7;
        match still {
            _ if law.student < NEAR => Destination::Silence,
            true if state.overlap.abs() > 1.0 - NEAR => Destination::Spurious,
            _ => Destination::NotConverged,
        }
    }

    /// Polynomial units make the flow stiff (rates of He_12 spread over twelve decades); the others do not.
    fn solve(
        &self,
        start: AdapterState,
        end: f64,
        times: &[f64],
        events: &[OdeEvent<'_>],
    ) -> Result<Solution, FlowError> {
        let stiff = self.landscape.population.student.degree().is_some_and(|k| k > 1);
        let options = Options {
            method: if stiff { Method::Stiff } else { Method::Dop853 },
            relative: 1e-10,
            absolute: 1e-13,
            step_limit: Some(MOST_STEPS),
            ..Options::default()
        };
        let n = if self.landscape.is_misaligned() { 3 } else { 2 };
        let mut field = FieldFn::new(n, |_: f64, y: &[f64], out: &mut [f64]| {
            let v = self.landscape.velocity(state(y));
            let all = [v.amplitude, v.overlap, v.stray];
            out.iter_mut().zip(all).for_each(|(o, v)| *o = self.delta * v);
        });
        let begin = [start.amplitude, start.overlap, start.stray];
        Ok(solve(&mut field, 0.0, &begin[..n], end, times, events, &options)?)
    }
}

/// u²/2 + log(1 − m²)/2, which the flow of linear units under the correlation loss conserves
/// (docs/derivations/lora.md#eq-45).
pub fn correlation_invariant(amplitude: f64, overlap: f64) -> f64 {
    0.5 * (amplitude * amplitude + (-overlap * overlap).ln_1p())
}

fn state(y: &[f64]) -> AdapterState {
    AdapterState {
        amplitude: y[0],
        overlap: y[1].clamp(-1.0, 1.0),
        stray: y.get(2).map_or(0.0, |q| q.clamp(-1.0, 1.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::hermite::time_scale;
    use super::super::population::{LossName, Population};
    use super::*;
    use didact_math::activation::parse;

    fn matched(name: &str, mu: f64) -> Landscape {
        Landscape::aligned(Population::matched(parse(name).unwrap()), mu)
    }

    fn end_of(k: usize, mu: f64, start: f64, cap: f64) -> FlowEnd {
        let landscape = matched(&format!("He{k}"), mu);
        Flow { landscape: &landscape, delta: 1.0 / time_scale(k) }
            .end(AdapterState::aligned(start, start), cap)
            .unwrap()
    }

    #[test]
    fn times_to_half_overlap_are_those_of_the_experiments_table() {
        let start = AdapterState::aligned(1e-3f64.sqrt(), 1e-3f64.sqrt());
        for (name, mu, delta, expected, within) in [
            ("linear", 0.1, 1.0, 5.12, 0.005),
            ("linear", 0.5, 1.0, 13.03, 0.005),
            ("linear", 0.9, 1.0, 284.6, 0.05),
            ("relu", 0.5, 1.0, 24.98, 0.005),
            ("sigmoid", 0.1, 1.0, 116.5, 0.05),
            ("He2", 0.4, 1.0 / time_scale(2), 5.09, 0.005),
            ("He3", 0.4, 1.0 / time_scale(3), 121.8, 0.05),
            ("He4", 0.1, 1.0 / time_scale(4), 115.7, 0.05),
        ] {
            let landscape = matched(name, mu);
            let flow = Flow { landscape: &landscape, delta };
            let (time, _) = flow.first_passage(start, 1e5, |s| s.overlap.abs() - 0.5).unwrap().unwrap();
            assert!((time - expected).abs() <= within, "{name} {mu}: {time}");
        }
    }

    #[test]
    fn odd_hermite_units_below_their_singular_alignment_fall_silent() {
        for (k, mu, expected) in [
            (3, 0.1, Destination::Silence),
            (3, 0.3, Destination::Silence),
            (3, 0.4, Destination::Teacher),
            (3, 0.7, Destination::Teacher),
            (5, 0.3, Destination::Silence),
            (5, 0.5, Destination::Teacher),
        ] {
            let end = end_of(k, mu, 0.0316, 1e6);
            assert_eq!(end.destination, expected, "He_{k} at {mu}: {end:?}");
            assert!(end.state.overlap.abs() > 1.0 - 1e-6);
        }
    }

    #[test]
    fn high_even_hermite_units_end_at_their_lower_singular_alignment() {
        // Stiff: an explicit method needs minutes for these (docs/derivations/lora.md#s6).
        for (k, mu, effective) in
            [(10, 0.5, 0.3967893025649656), (12, 0.5, 0.3720964574079293), (10, 0.6, 1.0), (12, 0.7, 1.0)]
        {
            let landscape = matched(&format!("He{k}"), mu);
            let end = end_of(k, mu, 0.0316, 1e7);
            let c = landscape.law(end.state).overlap;
            assert!((c.abs() - effective).abs() < 1e-5, "He_{k} at {mu}: {end:?}, c = {c}");
        }
        assert_eq!(end_of(10, 0.1, 0.0316, 1e5).destination, Destination::NotConverged);
    }

    #[test]
    fn the_loss_falls_along_every_flow_and_signs_are_a_symmetry() {
        for (name, labels) in [("erf(z)", "plain"), ("relu", "squared"), ("He3", "plain"), ("He4", "squared")]
        {
            let unit = parse(name).unwrap();
            let population = Population::new(unit.clone(), labels, unit, LossName::Half).unwrap();
            let landscape = Landscape { misalignment: 0.3, nu: 0.2, ..Landscape::aligned(population, 0.4) };
            let scale = landscape.population.power(1.0).max(1.0);
            let flow = Flow { landscape: &landscape, delta: 1.0 / scale };
            let times: Vec<f64> = (0..=40).map(f64::from).collect();
            let start = AdapterState { amplitude: 0.05, overlap: 0.04, stray: -0.03 };
            let states = flow.states(start, &times).unwrap();
            let losses: Vec<f64> = states.iter().map(|s| landscape.loss(*s)).collect();
            assert!(losses.windows(2).all(|w| w[1] <= w[0] + 1e-9 * scale), "{name} {labels}: {losses:?}");
            let mirror = AdapterState { amplitude: -0.05, overlap: -0.04, stray: 0.03 };
            for (a, b) in states.iter().zip(flow.states(mirror, &times).unwrap()) {
                assert!((a.amplitude + b.amplitude).abs() < 1e-8 && (a.overlap + b.overlap).abs() < 1e-8);
                assert!(a.overlap.abs() <= 1.0);
            }
        }
    }

    #[test]
    fn misaligned_pretraining_ends_half_way_between_the_two_directions() {
        for name in ["linear", "erf(z)", "relu"] {
            let landscape = Landscape { misalignment: 0.6, ..matched(name, 0.4) };
            let flow = Flow { landscape: &landscape, delta: 1.0 };
            let start = AdapterState { amplitude: 0.03, overlap: 0.03, stray: -0.02 };
            let end = flow.end(start, 1e5).unwrap();
            let half = 0.5f64.sqrt();
            assert_eq!(end.destination, Destination::Teacher, "{name}: {end:?}");
            assert!((end.state.overlap.abs() - half).abs() < 1e-5, "{name}: {end:?}");
            assert!((end.state.stray + end.state.overlap).abs() < 1e-5, "{name}: {end:?}");
            assert!((end.state.amplitude.abs() - 2f64.sqrt() * 0.6).abs() < 1e-5, "{name}: {end:?}");
        }
    }

    #[test]
    fn correlation_loss_of_linear_units_conserves_its_invariant() {
        let unit = parse("linear").unwrap();
        let population = Population::new(unit.clone(), "plain", unit, LossName::Correlation).unwrap();
        let landscape = Landscape::aligned(population, 0.4);
        let states = Flow { landscape: &landscape, delta: 1.0 }
            .states(AdapterState::aligned(0.05, 0.1), &[0.0, 1.0, 3.0])
            .unwrap();
        let invariant = |s: &AdapterState| correlation_invariant(s.amplitude, s.overlap);
        for s in &states {
            assert!((invariant(s) - invariant(&states[0])).abs() < 1e-10, "{s:?}");
        }
    }
}

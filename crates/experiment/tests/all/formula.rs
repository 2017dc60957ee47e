//! Models written as formulas: those that spell out a family learn as the family does, in every engine.

use crate::common::checked;
use didact_families::Model;
use didact_families::committee::Committee;
use didact_families::formula::FormulaModel;
use didact_families::lora::LoraSingleIndex;
use didact_families::multi_index::MultiIndex;
use didact_families::quadratic::QuadraticNetworks;
use didact_math::linalg::Mat;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::loss::Loss;
use didact_model::problem::StepScaling;
use didact_model::start::Given;
use didact_model::{
    Clock, Engine, Law, NoMonitor, Overlaps, Problem, Record, Samples, Spectrum, Training, Trajectory,
    observable,
};
use didact_simulate::{Direct, FullBatch, Reduced};
use didact_theory::OrderParameterOde;
use didact_theory::dmft::{Dmft, Sampling};
use didact_theory::order_parameters::Numerical;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A family and the formula that spells it out, with where they start and how they are trained.
struct Pair {
    family: Model,
    formula: FormulaModel,
    q: Vec<Vec<f64>>,
    r: Vec<Vec<f64>>,
    scalars: Vec<f64>,
    training: Training,
}

fn pairs() -> Vec<Pair> {
    let noisy = |rate: f64, label_noise: f64| Training { label_noise, ..Training::online(rate) };
    let sphere = Constraint { sphere: Some(Retraction::Euclidean), ..Constraint::none() };
    let two = || vec![vec![0.5, 0.1], vec![0.1, 0.4]];
    vec![
        Pair {
            family: Model::Committee(Committee::soft(2, 2, "erf(z/sqrt2)")),
            formula: FormulaModel::new(
                2,
                2,
                0,
                "(sum(erf(h[i]/sqrt(2)), i) - sum(erf(v[i]/sqrt(2)), i) - e)^2/2",
            ),
            q: two(),
            r: vec![vec![0.3, 0.05], vec![0.1, 0.25]],
            scalars: vec![],
            training: noisy(0.7, 0.2),
        },
        Pair {
            family: Model::Committee(Committee { train_output: true, ..Committee::soft(2, 1, "tanh") }),
            formula: FormulaModel::new(2, 1, 2, "(sum(a[i]*tanh(h[i]), i) - tanh(v))^2/2"),
            q: two(),
            r: vec![vec![0.3], vec![-0.1]],
            scalars: vec![0.8, 0.6],
            training: Training::online(0.5),
        },
        Pair {
            family: Model::QuadraticNetworks(QuadraticNetworks::new(2, 2)),
            formula: FormulaModel::new(2, 2, 0, "(|v|^2/2 - |h|^2/2)^2"),
            q: two(),
            r: vec![vec![0.3, 0.05], vec![0.1, 0.25]],
            scalars: vec![],
            training: Training::online(0.1),
        },
        Pair {
            family: Model::LoraSingleIndex(LoraSingleIndex::matched(0.4, "tanh")),
            formula: FormulaModel {
                parameters: BTreeMap::from([("mu".into(), 0.4)]),
                ..FormulaModel::new(1, 1, 1, "(tanh(mu*v + a*h) - tanh(v))^2/2")
            },
            q: vec![vec![1.0]],
            r: vec![vec![0.3]],
            scalars: vec![0.5],
            training: Training { constraint: sphere, ..Training::online(0.5) },
        },
        Pair {
            family: Model::MultiIndex(MultiIndex {
                students: 2,
                directions: 2,
                weights: Some(vec![1.0, -0.5]),
                biases: Some(vec![0.2, 0.0]),
                ..MultiIndex::single("gelu", "z1*z2 + z1", Loss::PseudoHuber { kappa: 1.0 })
            }),
            formula: FormulaModel::new(
                2,
                2,
                0,
                "sqrt(1 + (gelu(h1 + 0.2)/2 - gelu(h2)/4 - (v1*v2 + v1 + e))^2) - 1",
            ),
            q: two(),
            r: vec![vec![0.3, 0.05], vec![0.1, 0.25]],
            scalars: vec![],
            training: noisy(2.0, 0.1),
        },
    ]
}

impl Pair {
    /// The two problems, alike but for the rule.
    fn problems(&self, dimension: Option<u64>) -> [Problem; 2] {
        [self.family.clone(), Model::Formula(self.formula.clone())].map(|model| {
            let (rule, spectrum) = (model.rule().unwrap(), Spectrum::isotropic());
            let rows = |rows: &[Vec<f64>]| Mat::from_rows(rows).unwrap();
            let teachers = Mat::identity(rule.shape().frozen);
            let blocks = (&rows(&self.q), &rows(&self.r), &teachers);
            let start = Overlaps::spread(rule.shape(), &spectrum, blocks, self.scalars.clone()).unwrap();
            let problem = Problem {
                rule,
                about: model.about(),
                spectrum,
                dimension,
                training: self.training.clone(),
                start: Arc::new(Given(start)),
                clock: Clock::Alpha,
            };
            problem.validate().unwrap();
            model.admits(&problem).unwrap();
            problem
        })
    }
}

fn record(problem: &Problem, times: &[f64], replicas: u32) -> Record {
    let names = ["Q[*,*]", "R[*,*]"];
    let observables = names.iter().flat_map(|n| observable::parse(n, problem).unwrap()).collect();
    Record { seed: 11, replicas, ..Record::new(times.to_vec(), observables) }
}

/// The largest distance of two runs, over columns, replicas and times.
fn distance(a: &Trajectory, b: &Trajectory) -> f64 {
    let curves = |run: &Trajectory| -> Vec<f64> {
        run.column_names().flat_map(|name| run.curves(name).unwrap().concat()).collect()
    };
    let (a, b) = (curves(a), curves(b));
    assert!(a.len() == b.len() && a.iter().chain(&b).all(|x| x.is_finite()));
    a.iter().zip(&b).fold(0.0, |worst, (a, b)| worst.max((a - b).abs()))
}

/// Relative error that theory is asked for.
const BUDGET: f64 = 1e-4;

/// The two, started and trained alike, by one engine: their distance, and the error that the averages of the formula state.
fn compare(
    pair: &Pair,
    engine: &dyn Engine,
    dimension: Option<u64>,
    times: &[f64],
    replicas: u32,
) -> (f64, f64) {
    let [own, written] = pair.problems(dimension).map(|problem| {
        let record = record(&problem, times, replicas);
        engine.run(&problem, &record, &NoMonitor).unwrap()
    });
    let stated = written.statistics.iter().filter_map(|s| s.quadrature_error).fold(0.0, f64::max);
    (distance(&own, &written), stated)
}

#[test]
fn formulas_that_spell_out_a_family_make_its_steps() {
    for pair in pairs() {
        // Replicas of `reduced` step in groups where they can; single ones step by another way.
        for replicas in [1, 4] {
            let (apart, _) = compare(&pair, &Reduced, Some(200), &[0.0, 0.5, 2.0], replicas);
            assert!(apart < 1e-10, "reduced, {:?}: {apart:e}", pair.formula.loss);
        }
        let (apart, _) = compare(&pair, &Direct, Some(60), &[0.0, 0.5, 2.0], 1);
        assert!(apart < 1e-10, "direct, {:?}: {apart:e}", pair.formula.loss);
        let batches = Pair { training: Training { batch: 21, ..pair.training.clone() }, ..pair };
        for (engine, d) in [(&Reduced as &dyn Engine, 200), (&Direct, 60)] {
            let (apart, _) = compare(&batches, engine, Some(d), &[0.0, 0.2], 1);
            assert!(apart < 1e-10, "{} in batches, {:?}: {apart:e}", engine.name(), batches.formula.loss);
        }
    }
}

/// Full-batch descent of the two on the same training set, or its mean-field theory with the same samples.
#[test]
fn formulas_that_spell_out_a_family_descend_on_its_training_set() {
    let pairs = pairs();
    let mean_field = Dmft { sampling: Sampling { samples: 1024, ..Sampling::default() }, scrambles: 2 };
    for pair in [&pairs[0], &pairs[4]] {
        for (engine, dimension) in [(&FullBatch::default() as &dyn Engine, Some(80)), (&mean_field, None)] {
            let [own, written] = pair.problems(dimension).map(|problem| {
                let training = Training {
                    samples: Some(Samples::PerDimension(3.0)),
                    scaling: StepScaling::Plain,
                    ..problem.training.clone()
                };
                let problem = Problem { training, clock: Clock::Steps, ..problem };
                let names = ["train_loss", "R[*,*]", "Q[*,*]"];
                let observables =
                    names.iter().flat_map(|n| observable::parse(n, &problem).unwrap()).collect();
                let record = Record::new(vec![0.0, 3.0, 6.0], observables);
                engine.run(&problem, &record, &NoMonitor).unwrap()
            });
            let apart = distance(&own, &written);
            assert!(apart < 1e-11, "{}, {:?}: {apart:e}", engine.name(), pair.formula.loss);
        }
    }
}

#[test]
fn formulas_that_spell_out_a_family_follow_its_order_parameters() {
    for pair in pairs() {
        let numerical = Numerical::Budget { error: BUDGET, any_method: true };
        let engine = OrderParameterOde { numerical, ..OrderParameterOde::default() };
        let (apart, stated) = compare(&pair, &engine, None, &[0.0, 0.5], 1);
        // The error of a slope over a time of 1/2, by a learning rate of at most 2 and a factor 2 from both sides of an overlap; and
        // what the run may err by.
        let allowed = 2.0 * stated + 2.0 * BUDGET;
        assert!(apart < allowed && stated < 2e-3, "{:?}: {apart:e}, {stated:e}", pair.formula.loss);
    }
}

/// The risk of a formula is within its stated error of that of the family.
#[test]
fn formulas_that_spell_out_a_family_have_its_risk() {
    for pair in pairs() {
        let [own, written] = pair.problems(None);
        let start = own.start.limit(own.rule.shape(), &own.spectrum).unwrap();
        let covariance = start.moment(&own.spectrum, 1);
        let law = Law { covariance: &covariance, scalars: &start.scalars, label_noise: 0.0 };
        let [exact, estimate] = [own, written].map(|problem| problem.rule.risk_within(&law, BUDGET));
        let allowed = 6.0 * (exact.error + estimate.error) + 1e-8;
        assert!(
            (exact.value - estimate.value).abs() < allowed,
            "{}: {exact:?} {estimate:?}",
            pair.formula.loss
        );
        assert!(estimate.error < 1e-3 * estimate.value, "{}: {estimate:?}", pair.formula.loss);
    }
}

#[test]
fn a_wrong_formula_is_marked_where_it_is_wrong() {
    let text = |loss: &str| {
        format!(
            "title = \"Wrong\"\n[model]\nfamily = \"formula\"\ntrained = 2\nfrozen = 1\nloss = {loss}\n\
             [training]\nlearning-rate = 0.1\n[record]\ntimes = [0, 1]\nobserve = [\"loss\"]\n\
             [[run]]\nname = \"theory\"\nengine = \"ode\"\n"
        )
    };
    for (loss, line, column) in [
        ("\"(tanh(h1) + tahn(h2) - v1)^2\"", 6, 21),
        ("'(tanh(h1) + tanh(h3) - v1)^2'", 6, 26),
        ("\"\"\"(tanh(h1)\n  + tahn(h2) - v1)^2\"\"\"", 7, 5),
        ("\"(h1 + h2 - v1\"", 6, 9),
        ("\"(h1 + h2 - v1)^\"", 6, 24),
        ("\"sum(h[i], i, 1, 3)^2\"", 6, 13),
    ] {
        let error = checked(&text(loss)).err().expect("a wrong formula");
        let place = error.place.as_ref().unwrap_or_else(|| panic!("{loss}: {error}"));
        assert_eq!((place.line, place.column), (line, column), "{error}");
    }
}

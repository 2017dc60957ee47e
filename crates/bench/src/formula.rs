//! Models written as formulas against the families that they spell out: time per step of `reduced` and `direct`.

use crate::harness::{Times, timed};
use didact_families::Model;
use didact_families::committee::Committee;
use didact_families::formula::FormulaModel;
use didact_families::lora::LoraSingleIndex;
use didact_families::multi_index::MultiIndex;
use didact_families::quadratic::QuadraticNetworks;
use didact_math::linalg::Mat;
use didact_model::constraint::{Constraint, Retraction};
use didact_model::loss::Loss;
use didact_model::start::Given;
use didact_model::{Clock, Engine, NoMonitor, Overlaps, Problem, Record, Spectrum, Training};
use didact_simulate::{Direct, Reduced};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Turns in which the two alternate; the least time of each counts.
const TURNS: usize = 9;

/// A family and the formula that spells it out.
struct Pair {
    name: &'static str,
    family: Model,
    formula: FormulaModel,
    scalars: Vec<f64>,
    /// Rows of length 1 that stay so, as the LoRA family asks for.
    sphere: bool,
}

fn pairs() -> Vec<Pair> {
    let mu = BTreeMap::from([("mu".to_string(), 0.4)]);
    let erf = "(sum(erf(h[i]/sqrt(2)), i) - sum(erf(v[i]/sqrt(2)), i))^2/2";
    let pair = |name, family, formula| Pair { name, family, formula, scalars: vec![], sphere: false };
    vec![
        pair(
            "committee, erf, K = M = 2",
            Model::Committee(Committee::soft(2, 2, "erf(z/sqrt2)")),
            FormulaModel::new(2, 2, 0, erf),
        ),
        pair(
            "committee, erf, K = M = 4",
            Model::Committee(Committee::soft(4, 4, "erf(z/sqrt2)")),
            FormulaModel::new(4, 4, 0, erf),
        ),
        Pair {
            scalars: vec![0.5],
            sphere: true,
            ..pair(
                "LoRA, erf",
                Model::LoraSingleIndex(LoraSingleIndex::matched(0.4, "erf(z)")),
                FormulaModel {
                    parameters: mu,
                    ..FormulaModel::new(1, 1, 1, "(erf(mu*v + a*h) - erf(v))^2/2")
                },
            )
        },
        pair(
            "quadratic, p = p* = 4",
            Model::QuadraticNetworks(QuadraticNetworks::new(4, 4)),
            FormulaModel::new(4, 4, 0, "(|v|^2/4 - |h|^2/4)^2"),
        ),
        pair(
            "multi-index, gelu, m = 3",
            Model::MultiIndex(MultiIndex {
                students: 3,
                directions: 2,
                ..MultiIndex::single("gelu", "z1+z2+z1*z2", Loss::PseudoHuber { kappa: 1.0 })
            }),
            FormulaModel::new(3, 2, 0, "sqrt(1 + (sum(gelu(h[i]), i)/3 - (v1 + v2 + v1*v2))^2) - 1"),
        ),
    ]
}

impl Pair {
    fn problems(&self, batch: usize) -> [Problem; 2] {
        [self.family.clone(), Model::Formula(self.formula.clone())].map(|model| {
            let (rule, spectrum) = (model.rule().expect("a rule"), Spectrum::isotropic());
            let shape = rule.shape();
            let variance = if self.sphere { 1.0 } else { 0.3 };
            let q = Mat::identity(shape.trained).scaled(variance);
            let r = Mat::from_fn(shape.trained, shape.frozen, |i, j| 0.01 * (1 + (i + 2 * j) % 3) as f64);
            let blocks = (&q, &r, &Mat::identity(shape.frozen));
            let start = Overlaps::spread(shape, &spectrum, blocks, self.scalars.clone()).expect("overlaps");
            let sphere = self.sphere.then_some(Retraction::Euclidean);
            let constraint = Constraint { sphere, ..Constraint::none() };
            Problem {
                rule,
                about: model.about(),
                spectrum,
                dimension: Some(1000),
                training: Training { batch, constraint, ..Training::online(0.1) },
                start: Arc::new(Given(start)),
                clock: Clock::Steps,
            }
        })
    }
}

/// Prints, for each pair, engine and batch, the microseconds per step and replica of both and their ratio.
pub(crate) fn against_families() {
    let engines: [(&str, &dyn Engine, usize, u32, u32); 5] = [
        ("reduced", &Reduced, 1, 1, 100_000),
        ("reduced, eight replicas", &Reduced, 1, 8, 50_000),
        ("reduced, batch 1000", &Reduced, 1000, 1, 300),
        ("direct", &Direct, 1, 1, 20_000),
        ("direct, batch 1000", &Direct, 1000, 1, 30),
    ];
    for pair in pairs() {
        for (name, engine, batch, replicas, steps) in engines {
            let problems = pair.problems(batch);
            let record = Record { replicas, ..Record::new(vec![f64::from(steps)], Vec::new()) };
            let mut least = [f64::INFINITY; 2];
            // The first turn warms up caches and tables.
            for turn in 0..=TURNS {
                for (problem, least) in problems.iter().zip(&mut least) {
                    let (Times { wall, cpu }, _) =
                        timed(|| engine.run(problem, &record, &NoMonitor).expect("a run"));
                    if turn > 0 {
                        *least = least.min(cpu.unwrap_or(wall));
                    }
                }
            }
            let micros = least.map(|seconds| 1e6 * seconds / f64::from(steps) / f64::from(replicas));
            let line = json!({"cost": "formula", "model": pair.name, "engine": name, "us_family": micros[0],
                              "us_formula": micros[1], "ratio": micros[1] / micros[0]});
            println!("{line}");
        }
    }
}

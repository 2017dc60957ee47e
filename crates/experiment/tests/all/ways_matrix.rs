//! Every family, way of training and engine: each cell runs or is refused with its reason, and the guide shows which.

use didact_experiment::engines::EngineSpec;
use didact_families::Model;
use didact_math::linalg::Mat;
use didact_model::problem::ProblemError;
use didact_model::start::{FrozenRows, RandomRows, RowLaw};
use didact_model::training::{
    Adam, Batches, Drift, FactorSchedule, GradientMap, InputLaw, Momentum, Samples, StepScaling, Training,
    TrainingError, Way,
};
use didact_model::{Clock, Engine, EngineError, NoMonitor, Problem, Record, Spectrum, observable};
use didact_theory::OdeOptions;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

fn training(way: Way, frozen: usize) -> Training {
    let base = Training { label_noise: 0.1, ..Training::online(0.05) };
    match way {
        Way::Beta => Training { momentum: Some(Momentum::heavy_ball(0.5)), ..base },
        Way::Rate => Training { momentum: Some(Momentum::rate(2.0)), ..base },
        Way::Schedules => Training { schedule: FactorSchedule::formula("1/(1+t)").unwrap(), ..base },
        Way::LabelNoiseSchedule => {
            Training { label_noise_schedule: FactorSchedule::formula("exp(-t)").unwrap(), ..base }
        }
        Way::Batches => Training { batches: Some(Batches::independent(0.5)), ..base },
        Way::Clip => Training { gradient: GradientMap::Clip(0.3), ..base },
        Way::Normalised => Training { gradient: GradientMap::Normalised, ..base },
        Way::Sign => Training { gradient: GradientMap::Sign, ..base },
        Way::Adam => Training { gradient: GradientMap::Adam(Adam { rate: 2.0, beta: 0.9 }), ..base },
        Way::Drift => Training { drift: Some(Drift::diffusion(0.2)), ..base },
        Way::Rotation => {
            let omega = Mat::from_fn(frozen, frozen, |i, j| match (i + 1 == frozen, j + 1 == frozen) {
                (false, true) if i + 2 == frozen => 0.3,
                (true, false) if j + 2 == frozen => -0.3,
                _ => 0.0,
            });
            Training { drift: Some(Drift::rotation(omega)), ..base }
        }
        Way::Dropout => Training { dropout: Some(0.7), ..base },
        Way::WeightNoise => Training { weight_noise: 0.3, ..base },
        Way::InputNoise => Training { input_noise: 0.3, ..base },
        Way::Inputs => Training { inputs: InputLaw::Rademacher, ..base },
        Way::TrainedLevels => Training { trained_levels: Some(1), ..base },
    }
}

/// What became of a cell.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Runs,
    /// By the engine, whatever the family.
    Engine(String),
    /// By the way of training itself: labels of a training set, no hidden units.
    Problem(String),
    /// By the engine for a reason that is none of training: kinks, no training set.
    Other(String),
}

fn cell(model: &Model, way: Way, engine: &dyn Engine, on_training_set: bool) -> Cell {
    let rule = model.rule().unwrap();
    let shape = rule.shape();
    let mut training = training(way, shape.frozen);
    if on_training_set {
        training.samples = Some(Samples::PerDimension(3.0));
        training.scaling = StepScaling::Plain;
    }
    let dimension = 2 * shape.rows() as u64 + 8;
    let problem = Problem {
        rule,
        about: model.about(),
        spectrum: Spectrum::isotropic(),
        dimension: Some(dimension),
        training,
        start: Arc::new(RandomRows {
            trained: RowLaw::Sphere { radius: 0.7 },
            frozen: FrozenRows::Gram(Mat::identity(shape.frozen)),
            scalars: model.starting_scalars(),
        }),
        clock: if on_training_set { Clock::Steps } else { Clock::Alpha },
    };
    if let Err(error) = problem.validate() {
        let ProblemError::Training(error) = error else { panic!("{way:?} of {}: {error}", model.family()) };
        return Cell::Problem(error.to_string());
    }
    let times = if on_training_set { vec![0.0, 2.0] } else { vec![0.0, 2.0 / dimension as f64] };
    let record = Record::new(times, observable::parse("loss", &problem).unwrap());
    match engine.run(&problem, &record, &NoMonitor) {
        Ok(run) => {
            let losses = &run.curves("loss").unwrap()[0];
            assert!(
                losses.len() == 2 && losses.iter().all(|l| l.is_finite()),
                "{way:?} of {} in {}: {losses:?}",
                model.family(),
                engine.name()
            );
            Cell::Runs
        }
        Err(error @ EngineError::Training { .. }) => {
            let (reason, instead) = engine.refuses(way).expect("the engine said so");
            assert!(error.to_string().contains(reason) && error.to_string().contains(instead));
            Cell::Engine(error.to_string())
        }
        Err(EngineError::Problem(ProblemError::Training(error))) => Cell::Problem(error.to_string()),
        Err(error) => Cell::Other(error.to_string()),
    }
}

fn engines() -> Vec<(Box<dyn Engine>, bool)> {
    EngineSpec::catalogue()
        .into_iter()
        // A table of another program trains in no way.
        .filter(|registered| registered.name != "recorded")
        .map(|registered| {
            let spec = match registered.name.as_str() {
                // Two steps of a run, and whether they can be made at all, need no accuracy.
                "ode" => EngineSpec::Ode(OdeOptions { tolerance: Some(1e-2), ..OdeOptions::default() }),
                name => EngineSpec::named(name).unwrap(),
            };
            let engine = spec.engine().unwrap();
            let on_training_set = ["full-batch", "dmft"].contains(&registered.name.as_str());
            (engine, on_training_set)
        })
        .collect()
}

/// One small instance per family.
fn families() -> Vec<Model> {
    let mut found: BTreeMap<&'static str, Model> = BTreeMap::new();
    for example in Model::examples() {
        let family = example.family();
        let size = |model: &Model| {
            let shape = model.rule().unwrap().shape();
            (shape.rows() + shape.scalars + 100 * usize::from(shape.frozen < 2), shape.trained)
        };
        match found.get(family) {
            Some(known) if size(known) <= size(&example) => {}
            _ => {
                found.insert(family, example);
            }
        }
    }
    found.into_values().collect()
}

#[test]
fn every_family_way_and_engine_runs_or_is_refused_with_its_reason() {
    let (mut ran, mut refused) = (0, 0);
    for model in families() {
        for (engine, on_training_set) in engines() {
            for way in Way::ALL {
                let found = cell(&model, way, engine.as_ref(), on_training_set);
                let expected = engine.refuses(way);
                match &found {
                    Cell::Runs => {
                        assert!(expected.is_none(), "{way:?} of {}: {}", model.family(), engine.name());
                        ran += 1;
                    }
                    Cell::Engine(_) => refused += 1,
                    Cell::Problem(message) => {
                        let known = [
                            TrainingError::NoHiddenUnits.to_string(),
                            TrainingError::BatchesOfNothing.to_string(),
                            TrainingError::RateOnTrainingSet.to_string(),
                            TrainingError::LabelsDrawnOnce { key: "" }.to_string(),
                            TrainingError::Rotation.to_string(),
                        ];
                        assert!(known.contains(message), "{way:?} of {}: {message}", model.family());
                        refused += 1;
                    }
                    Cell::Other(message) => {
                        assert!(message.contains("kink"), "{way:?} of {}: {message}", model.family());
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(ran > 200 && refused > 100, "{ran} cells run, {refused} are refused");
}

fn table() -> String {
    let engines = engines();
    let mut text = String::from("| way | ");
    text += &engines.iter().map(|(e, _)| format!("`{}`", e.name())).collect::<Vec<_>>().join(" | ");
    text += " |\n|---|";
    text += &"---|".repeat(engines.len());
    text.push('\n');
    let mut reasons = Vec::new();
    for way in Way::ALL {
        let mut row = format!("| `{}` ", way.example());
        for (engine, on_training_set) in &engines {
            let problem = match (way, on_training_set) {
                (Way::Batches, false) => Some(TrainingError::BatchesOfNothing.to_string()),
                (Way::Rate, true) => Some(TrainingError::RateOnTrainingSet.to_string()),
                (Way::LabelNoiseSchedule | Way::Drift | Way::Rotation, true) => {
                    Some(TrainingError::LabelsDrawnOnce { key: "" }.to_string())
                }
                _ => None,
            };
            let engine_says = engine
                .refuses(way)
                .map(|(reason, instead)| format!("`{}` cannot {reason}; {instead}", engine.name()));
            row += match problem.or(engine_says) {
                None => "| yes ",
                Some(reason) => {
                    if !reasons.contains(&reason) {
                        reasons.push(reason);
                    }
                    "| no "
                }
            };
        }
        text += &row;
        text += "|\n";
    }
    text += "\nReasons:\n\n";
    for reason in reasons {
        text += &format!("- {reason}\n");
    }
    text += "\nBy family:\n\n";
    for model in families() {
        let hidden = model.rule().unwrap().hidden().is_some();
        let what = if hidden { "all ways" } else { "all ways but `dropout`: dropout needs hidden units" };
        text += &format!("- `{}`: {what}\n", model.family());
    }
    text
}

#[test]
fn the_table_of_the_guide_is_what_engines_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/training-rules.md");
    let guide = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = ("<!-- matrix -->\n", "<!-- end of matrix -->");
    let (before, rest) = guide.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let wanted = format!("{before}{begin}\n{}\n{end}{after}", table());
    if std::env::var_os("DIDACT_UPDATE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    } else {
        assert!(
            guide == wanted,
            "the table is stale: DIDACT_UPDATE=1 cargo test -p didact-experiment table_of_the_guide"
        );
    }
}

//! From a description to a problem, a record and an engine.

use crate::description::{
    DataSpec, Description, MethodSpec, NamedTeachers, RestartSpec, RowsSpec, RunSpec, ScalarsLaw,
    ScalarsSpec, StartSpec, TeachersSpec,
};
use crate::source::{Diagnostic, Source, nearest};
use crate::spectra;
use didact_families::Model;
use didact_math::linalg::Mat;
use didact_math::ode::{Method, Options, Saving};
use didact_model::composed_start::{Restart, ScalarLaw, WithScalars};
use didact_model::observable;
use didact_model::problem::ProblemError;
use didact_model::start::{FrozenRows, Given, RandomRows, RowLaw, Start};
use didact_model::{Engine, Event, Needed, Overlaps, Problem, Record, Samples, Shape, Spectrum, Training};
use didact_simulate::{Direct, FullBatch, Reduced};
use didact_theory::{Numerical, OrderParameterOde};
use didact_theory::dmft::{Dmft, Sampling};
use std::sync::Arc;

/// Engines by name, with one line each.
pub const ENGINES: [(&str, &str); 5] = [
    ("ode", "order-parameter equations: the limit of infinite dimension, with error control"),
    ("reduced", "the overlaps alone, exact in law at any finite d, at a cost free of d"),
    ("direct", "plain SGD on d-dimensional weights"),
    ("full-batch", "gradient descent on a fixed training set of n samples in d dimensions"),
    (
        "dmft",
        "dynamical mean-field theory of full-batch: the limit of infinite n and d, with sampling errors",
    ),
];

/// The engine of a run.
pub fn engine(run: &RunSpec, source: &Source) -> Result<Box<dyn Engine>, Diagnostic> {
    check_options(run, source)?;
    match run.engine.as_str() {
        "ode" => {
            let needed =
                if run.quadratic_term == Some(false) { Needed::Drift } else { Needed::DriftAndNoise };
            let relative = run.tolerance.unwrap_or(1e-9);
            if !(relative > 0.0 && relative < 1.0) {
                let message = format!(
                    "the tolerance of run `{}` is {relative}; use a number between 0 and 1",
                    run.name
                );
                return Err(Diagnostic::new(message).at_key(source, "run.tolerance"));
            }
            let method = match run.method {
                None | Some(MethodSpec::Explicit) => Method::Dop853,
                Some(MethodSpec::Multistep) => Method::Adams,
                Some(MethodSpec::Stiff) => Method::Stiff,
                Some(MethodSpec::Stabilised) => Method::Stabilised,
            };
            let options = Options {
                method,
                relative,
                absolute: relative * 1e-3,
                // Steps cut short would spoil the memory of a multistep method.
                saving: if method == Method::Adams { Saving::Dense } else { Saving::Landing },
                ..Options::default()
            };
            let numerical = Numerical::Budget {
                error: run.tolerance.unwrap_or(Numerical::USUAL_ERROR),
                any_method: run.method.is_none(),
            };
            Ok(Box::new(OrderParameterOde { options, needed, numerical }))
        }
        "reduced" => Ok(Box::new(Reduced)),
        "direct" => Ok(Box::new(Direct)),
        "full-batch" => Ok(Box::new(FullBatch {
            precision: run.precision.unwrap_or_default(),
            storage: run.inputs.unwrap_or_default(),
        })),
        "dmft" => {
            let usual = Dmft::default();
            Ok(Box::new(Dmft {
                sampling: Sampling {
                    samples: run.samples.unwrap_or(usual.sampling.samples),
                    spread: run.spread.unwrap_or(usual.sampling.spread),
                    ..usual.sampling
                },
                scrambles: run.scrambles.unwrap_or(usual.scrambles),
            }))
        }
        other => {
            let names = ENGINES.map(|e| e.0);
            let hint = match nearest(other, &names) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("engines are {}", names.join(", ")),
            };
            Err(Diagnostic::new(format!("unknown engine `{other}` of run `{}`", run.name))
                .hint(hint)
                .at_key(source, "run.engine"))
        }
    }
}

/// Options of a run that belong to another engine are slips.
fn check_options(run: &RunSpec, source: &Source) -> Result<(), Diagnostic> {
    let own = [
        ("quadratic-term", "ode", run.quadratic_term.is_some()),
        ("tolerance", "ode", run.tolerance.is_some()),
        ("method", "ode", run.method.is_some()),
        ("precision", "full-batch", run.precision.is_some()),
        ("inputs", "full-batch", run.inputs.is_some()),
        ("samples", "dmft", run.samples.is_some()),
        ("scrambles", "dmft", run.scrambles.is_some()),
        ("spread", "dmft", run.spread.is_some()),
    ];
    let known = ENGINES.iter().any(|e| e.0 == run.engine);
    match own.iter().find(|(_, engine, given)| *given && known && run.engine != *engine) {
        Some((option, engine, _)) => {
            let message =
                format!("run `{}`: `{option}` belongs to engine `{engine}`, not `{}`", run.name, run.engine);
            Err(Diagnostic::new(message).at_key(source, "run"))
        }
        None => Ok(()),
    }
}

/// A section that runs cannot do without.
fn section<'a, T>(found: Option<&'a T>, name: &str, source: &Source) -> Result<&'a T, Diagnostic> {
    found.ok_or_else(|| {
        Diagnostic::new(format!("the section `[{name}]` is missing"))
            .hint("a run needs [model], [training] and [record]; without runs, give [[scan]] or [[measure]] only")
            .at_key(source, "run")
    })
}

/// The problem of a description, with the rule as far as a check needs it: [`Model::rule`] makes the one that can be run.
pub fn problem(description: &Description, source: &Source) -> Result<Problem, Diagnostic> {
    let model = section(description.model.as_ref(), "model", source)?;
    let rule =
        model.draft().map_err(|e| Diagnostic::new(&e).at_key(source, &format!("model.{}", e.key())))?;
    let spectrum = spectra::build(&description.data.spectrum, source)
        .map_err(|e| Diagnostic::new(e).at_key(source, "data.spectrum"))?;
    let training = section(description.training.as_ref(), "training", source)?;
    let start = start(description, model, rule.shape(), &spectrum, source)?;
    let label_noise = training.label_noise.unwrap_or(rule.standard_noise());
    let problem = Problem {
        rule,
        spectrum,
        dimension: description.data.dimension,
        training: Training {
            learning_rate: training.learning_rate,
            scaling: training.scaling,
            scalar_ratio: training.scalar_ratio,
            batch: training.batch,
            label_noise,
            constraint: training.constraint,
            samples: samples(&description.data, source)?,
        },
        start,
        clock: section(description.record.as_ref(), "record", source)?.clock,
    };
    problem.validate().map_err(|e| {
        let key = match &e {
            ProblemError::LearningRate(_) => "training.learning-rate",
            ProblemError::ScalarRatio(_) => "training.scalar-ratio",
            ProblemError::Power(_) => "training.scaling",
            ProblemError::Batch | ProblemError::FullBatchBatch(_) => "training.batch",
            ProblemError::LabelNoise(_) => "training.label-noise",
            ProblemError::WeightDecay(_) => "training.constraint.weight-decay",
            ProblemError::OffOwn => "training.constraint.off-own",
            ProblemError::Dimension { .. } | ProblemError::TooSmall { .. } => "data.dimension",
            ProblemError::Spectrum(_) => "data.spectrum",
            ProblemError::SampleRatio(_) | ProblemError::NoSamples { ratio: Some(_) } => {
                "data.samples-per-dimension"
            }
            ProblemError::NoSamples { ratio: None } => "data.samples",
            ProblemError::FullBatchScaling => "training",
            ProblemError::FullBatchClock => "record",
        };
        Diagnostic::new(&e).at_key(source, key)
    })?;
    model.admits(&problem).map_err(|e| Diagnostic::new(&e.message).hint(&e.hint).at_key(source, e.key))?;
    Ok(problem)
}

/// The training set, if there is one.
fn samples(data: &DataSpec, source: &Source) -> Result<Option<Samples>, Diagnostic> {
    match (data.samples_per_dimension, data.samples) {
        (Some(_), Some(_)) => Err(Diagnostic::new("`samples` and `samples-per-dimension` are both given")
            .hint("give n, or n/d")
            .at_key(source, "data.samples")),
        (Some(ratio), None) => Ok(Some(Samples::PerDimension(ratio))),
        (None, count) => Ok(count.map(Samples::Count)),
    }
}

fn matrix(rows: &[Vec<f64>], key: &str, source: &Source) -> Result<Mat, Diagnostic> {
    Mat::from_rows(rows).ok_or_else(|| {
        Diagnostic::new(format!("the rows of `{key}` have different lengths")).at_key(source, key)
    })
}

fn start(
    description: &Description,
    model: &Model,
    shape: Shape,
    spectrum: &Spectrum,
    source: &Source,
) -> Result<Arc<dyn Start>, Diagnostic> {
    let StartSpec { students, teachers, q, r, scalars } = &description.start;
    if description.start == StartSpec::default() {
        let own =
            model.start().map_err(|e| Diagnostic::new(&e).at_key(source, &format!("model.{}", e.key())))?;
        if let Some(own) = own {
            return Ok(own);
        }
    }
    let law = match scalars {
        Some(given) => Some(scalar_law(given, "start.scalars", source)?),
        None => model.scalar_law().filter(|_| description.data.dimension.is_some()),
    };
    let scalars = match &law {
        Some(ScalarLaw::Given(list)) => list.clone(),
        _ => model.starting_scalars(),
    };
    let with_scalars = |rows: Arc<dyn Start>| -> Arc<dyn Start> {
        match law {
            Some(scalars @ (ScalarLaw::Fixed { .. } | ScalarLaw::Gaussian { .. })) => {
                Arc::new(WithScalars { rows, scalars })
            }
            _ => rows,
        }
    };
    let gram = match teachers {
        TeachersSpec::Named(NamedTeachers::Orthonormal) => Some(Mat::identity(shape.frozen)),
        TeachersSpec::Named(NamedTeachers::Sampled) => None,
        TeachersSpec::Gram(rows) => Some(matrix(rows, "start.teachers", source)?),
    };
    if let Some(t) = &gram {
        let square = t.rows() == shape.frozen && t.cols() == shape.frozen;
        if !square {
            let message = format!(
                "`teachers` is {} x {}, but the model has {} frozen rows",
                t.rows(),
                t.cols(),
                shape.frozen
            );
            return Err(Diagnostic::new(message).at_key(source, "start.teachers"));
        }
        if t.asymmetry() > 1e-10 * t.max_abs() {
            let message = "the teacher overlaps are not symmetric";
            return Err(Diagnostic::new(message).at_key(source, "start.teachers"));
        }
        if let Err(error) = didact_math::linalg::cholesky_psd(t) {
            let message = format!("the teacher overlaps are impossible: {error}");
            let hint = "overlaps of real vectors have no negative eigenvalue; check the off-diagonal entries";
            return Err(Diagnostic::new(message).hint(hint).at_key(source, "start.teachers"));
        }
    }
    match (q, r, gram) {
        (Some(q), r, Some(t)) => {
            let q = matrix(q, "start.q", source)?;
            let r = match r {
                Some(r) => matrix(r, "start.r", source)?,
                None => Mat::zeros(shape.trained, shape.frozen),
            };
            let overlaps = Overlaps::spread(shape, spectrum, (&q, &r, &t), scalars)
                .map_err(|e| Diagnostic::new(e).at_key(source, "start.q"))?;
            Ok(with_scalars(Arc::new(Given(overlaps))))
        }
        (Some(_), _, None) => {
            Err(Diagnostic::new("given overlaps `q` need given teachers, not `sampled` ones")
                .at_key(source, "start.teachers"))
        }
        (None, Some(_), _) => Err(Diagnostic::new("`r` is given without `q`").at_key(source, "start.r")),
        (None, None, gram) => {
            let trained = row_law(students, "start.students", source)?;
            let frozen = gram.map_or(FrozenRows::Sampled, FrozenRows::Gram);
            Ok(with_scalars(Arc::new(RandomRows { trained, frozen, scalars })))
        }
    }
}

/// The law of random rows, of a length that makes sense.
fn row_law(rows: &RowsSpec, key: &str, source: &Source) -> Result<RowLaw, Diagnostic> {
    let (law, length) = match *rows {
        RowsSpec::Gaussian { deviation } => (RowLaw::Gaussian { deviation }, deviation),
        RowsSpec::Sphere { radius } => (RowLaw::Sphere { radius }, radius),
        RowsSpec::Orthogonal { radius } => (RowLaw::Orthogonal { radius }, radius),
    };
    if !(length.is_finite() && length >= 0.0) {
        let message = format!("rows of length {length}; it must be finite and not negative");
        return Err(Diagnostic::new(message).at_key(source, key));
    }
    Ok(law)
}

/// The law of trained scalars, of finite numbers.
fn scalar_law(scalars: &ScalarsSpec, key: &str, source: &Source) -> Result<ScalarLaw, Diagnostic> {
    let refused = |message: String| Err(Diagnostic::new(message).at_key(source, key));
    match scalars {
        ScalarsSpec::Given(list) => match list.iter().find(|a| !a.is_finite()) {
            Some(bad) => refused(format!("`scalars` holds {bad}, which is not a finite number")),
            None => Ok(ScalarLaw::Given(list.clone())),
        },
        ScalarsSpec::Law(ScalarsLaw::Fixed { size }) if size.is_finite() => {
            Ok(ScalarLaw::Fixed { size: *size })
        }
        ScalarsSpec::Law(ScalarsLaw::Gaussian { deviation })
            if deviation.is_finite() && *deviation >= 0.0 =>
        {
            Ok(ScalarLaw::Gaussian { deviation: *deviation })
        }
        ScalarsSpec::Law(ScalarsLaw::Fixed { size: bad } | ScalarsLaw::Gaussian { deviation: bad }) => {
            refused(format!("scalars of size {bad}; it must be finite, and a deviation not negative"))
        }
    }
}

/// What a schedule begins anew after a stage.
pub fn restart(spec: &RestartSpec, key: &str, source: &Source) -> Result<Restart, Diagnostic> {
    let RestartSpec { scalars, students } = spec;
    if scalars.is_none() && students.is_none() {
        let message = "a `restart` that restarts nothing";
        let hint = "give `scalars` (a list, or a law), `students` (a law), or both";
        return Err(Diagnostic::new(message).hint(hint).at_key(source, key));
    }
    Ok(Restart {
        scalars: scalars.as_ref().map(|s| scalar_law(s, &format!("{key}.scalars"), source)).transpose()?,
        rows: students.as_ref().map(|s| row_law(s, &format!("{key}.students"), source)).transpose()?,
    })
}

/// What the problem's run writes down.
pub fn record(description: &Description, problem: &Problem, source: &Source) -> Result<Record, Diagnostic> {
    let spec = section(description.record.as_ref(), "record", source)?;
    let times = spec.times.numbers().ok_or_else(|| {
        Diagnostic::new("`times` is no list of numbers, and no range with points and positive ends")
            .at_key(source, "record.times")
    })?;
    let parse = |text: &str, key: &str| {
        observable::parse(text, problem).map_err(|e| Diagnostic::new(e).at_key(source, key))
    };
    let mut observables = Vec::new();
    for text in &spec.observe {
        observables.extend(parse(text, "record.observe")?);
    }
    let mut record = Record::new(times, observables);
    for event in &spec.event {
        let found = parse(&event.observable, "record.event.observable")?;
        let [observable] = found.as_slice() else {
            let message = format!("event `{}` watches several observables; name one", event.name);
            return Err(Diagnostic::new(message).at_key(source, "record.event.observable"));
        };
        record.events.push(Event {
            name: event.name.clone(),
            observable: observable.clone(),
            level: event.level,
            crossing: event.crossing,
            stops: event.stops,
        });
    }
    record.replicas = spec.replicas;
    record.seed = spec.seed;
    record.watch_every = spec.watch_every;
    record.validate().map_err(|e| Diagnostic::new(e).at_key(source, "record.times"))?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Told that there is none, the user is asked whether that was meant.
    #[test]
    fn links_that_name_their_noise_have_it_unless_told() {
        let noise = |link: &str, told: &str| {
            let text = format!(
                r#"
                title = "Named noise"

                [model]
                family = "multi-index"
                activation = "tanh"
                link = "{link}"

                [training]
                learning-rate = 0.1
                {told}

                [record]
                times = [0, 1]
                observe = ["loss"]
                "#
            );
            let source = Source { name: "test.toml".into(), text };
            let problem = problem(&source.description().unwrap(), &source).unwrap();
            (problem.training.label_noise, problem.rule.warning(&problem).is_some())
        };
        assert_eq!(noise("z*(1 + 0.2e)", ""), (1.0, false));
        assert_eq!(noise("z*(1 + 0.2e)", "label-noise = 0"), (0.0, true));
        assert_eq!(noise("z^2", ""), (0.0, false));
    }
}

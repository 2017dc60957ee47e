//! The problem of a description: rule, inputs, training, start and clock.

use super::section;
use super::start::start;
use crate::description::{DataSpec, Description, InputsSpec, RateSpec, TrainingSpec};
use crate::source::{Diagnostic, Source};
use crate::spectra;
use didact_model::problem::ProblemError;
use didact_model::training::{
    Batches, Drift, FactorSchedule, InputLaw, Momentum, NamedSchedule, ScheduleSpec, TrainingError,
};
use didact_model::{Problem, Samples, Training};
use std::sync::Arc;

/// The problem of a description, with the rule as far as a check needs it: [`didact_families::Model::rule`] makes the one that can be run.
pub fn problem(description: &Description, source: &Source) -> Result<Problem, Diagnostic> {
    let model = section(description.model.as_ref(), "model", source)?;
    let rule = model.draft().map_err(|e| Diagnostic::of_model(&e, source))?;
    let spectrum = spectra::build(&description.data.spectrum, source)
        .map_err(|e| Diagnostic::new(e).at_key(source, "data.spectrum"))?;
    let training = section(description.training.as_ref(), "training", source)?;
    let start = start(description, model, rule.shape(), &spectrum, source)?;
    let label_noise = training.label_noise.unwrap_or(model.standard_noise());
    let problem = Problem {
        rule,
        about: model.about(),
        spectrum,
        dimension: description.data.dimension,
        training: way_of_training(training, &description.data, label_noise, source)?,
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
            ProblemError::Training(error) => error.key(),
        };
        Diagnostic::new(&e).at_key(source, key)
    })?;
    model.admits(&problem).map_err(|e| Diagnostic::new(&e.message).hint(&e.hint).at_key(source, e.key))?;
    Ok(problem)
}

/// All that is said of training.
fn way_of_training(
    spec: &TrainingSpec,
    data: &DataSpec,
    label_noise: f64,
    source: &Source,
) -> Result<Training, Diagnostic> {
    let refused = |error: TrainingError| Diagnostic::new(&error).at_key(source, error.key());
    let schedule = |given: &Option<ScheduleSpec>, key: &'static str| -> Result<FactorSchedule, Diagnostic> {
        let made = given.clone().map(FactorSchedule::new).transpose();
        Ok(made.map_err(|error| refused(TrainingError::formula(key, error)))?.unwrap_or_default())
    };
    let (learning_rate, course) = match &spec.learning_rate {
        RateSpec::Number(rate) => (*rate, None),
        RateSpec::Course(course) => {
            let (times, values) = (course.times.clone(), course.values.clone());
            (1.0, Some(ScheduleSpec::Named(NamedSchedule::Course { times, values })))
        }
    };
    if course.is_some() && spec.schedule.is_some() {
        return Err(Diagnostic::new("the learning rate is a course, and has a schedule too")
            .hint("give the learning rate as a number, or remove `schedule`")
            .at_key(source, "training.schedule"));
    }
    let rate_schedule = match &course {
        Some(_) => schedule(&course, "training.learning-rate")?,
        None => schedule(&spec.schedule, "training.schedule")?,
    };
    Ok(Training {
        learning_rate,
        scaling: spec.scaling,
        scalar_ratio: spec.scalar_ratio,
        batch: spec.batch,
        label_noise,
        constraint: spec.constraint,
        samples: samples(data, source)?,
        schedule: rate_schedule,
        label_noise_schedule: schedule(&spec.label_noise_schedule, "training.label-noise-schedule")?,
        weight_decay_schedule: schedule(&spec.weight_decay_schedule, "training.weight-decay-schedule")?,
        momentum: spec.momentum.as_ref().map(Momentum::new).transpose().map_err(refused)?,
        gradient: spec.gradient,
        batches: spec.batches.as_ref().map(Batches::new).transpose().map_err(refused)?,
        drift: data.drift.as_ref().map(Drift::new).transpose().map_err(refused)?,
        dropout: spec.dropout.map(|dropout| dropout.keep),
        input_noise: spec.input_noise,
        weight_noise: spec.weight_noise,
        inputs: input_law(data, source)?,
        trained_levels: spec.trained_levels,
    })
}

/// The law of the inputs.
fn input_law(data: &DataSpec, source: &Source) -> Result<InputLaw, Diagnostic> {
    Ok(match &data.inputs {
        InputsSpec::Gaussian => InputLaw::Gaussian,
        InputsSpec::Rademacher => InputLaw::Rademacher,
        InputsSpec::Laplace => InputLaw::Laplace,
        InputsSpec::Rows(table) => {
            if table.digest.is_none() {
                // Changes of keys are not read ahead, so that results would not know what the file held.
                return Err(Diagnostic::new(
                    "rows of a table are named in [data] itself, not by a change of it",
                )
                .hint("write a description for each table")
                .at_key(source, "data.inputs"));
            }
            let (found, _) = spectra::table_rows(&table.path, source)?;
            let axes = found.rows.cols() as u64;
            if data.dimension.is_some_and(|d| d != axes) {
                let message = format!("`{}` has {axes} features that vary, not d", table.path);
                return Err(Diagnostic::new(message)
                    .hint(format!("set `dimension = {axes}` in [data], or leave it out"))
                    .at_key(source, "data.dimension"));
            }
            InputLaw::Rows(Arc::new(found.rows))
        }
    })
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
            (problem.training.label_noise, problem.about.warning(&problem).is_some())
        };
        assert_eq!(noise("z*(1 + 0.2e)", ""), (1.0, false));
        assert_eq!(noise("z*(1 + 0.2e)", "label-noise = 0"), (0.0, true));
        assert_eq!(noise("z^2", ""), (0.0, false));
    }
}

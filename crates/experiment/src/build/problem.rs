//! The problem of a description: rule, inputs, training, start and clock.

use super::section;
use super::start::start;
use crate::description::{DataSpec, Description};
use crate::source::{Diagnostic, Source};
use crate::spectra;
use didact_model::problem::ProblemError;
use didact_model::{Problem, Samples, Training};

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

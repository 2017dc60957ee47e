//! What is fed: every reader of text or bytes that comes from outside.
//!
//! A target takes an input and answers in a line, which tells kinds of answers apart. It must not panic, whatever it is given.

use crate::corpus;
use didact_experiment::{Experiment, Size, Source, fuzzing, quantities};
use didact_families::Model;
use didact_figure::interactive::Prose;
use didact_math::activation;
use didact_math::expression::Expression;
use didact_model::link::Link;
use didact_model::spectrum::file;
use serde_json::{Map, Value};
use std::hint::black_box;

/// One reader.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Good inputs to start from.
    pub(crate) corpus: fn() -> Vec<Vec<u8>>,
    /// How many inputs it reads in about a minute, on one of two busy cores in a development build.
    pub(crate) a_minute: u64,
    /// Words of its language.
    pub(crate) words: &'static [&'static str],
    /// Reads an input.
    pub(crate) run: fn(&[u8]) -> String,
}

/// All of them.
pub(crate) const ALL: &[Target] = &[
    Target {
        name: "description",
        about: "descriptions in TOML: reader and every check before a run",
        corpus: corpus::descriptions,
        a_minute: 170_000,
        words: corpus::KEYS,
        run: |input| check(input, "fuzz.toml"),
    },
    Target {
        name: "json",
        about: "descriptions in JSON, and the JSON files of a run folder",
        corpus: corpus::json,
        a_minute: 3_700_000,
        words: corpus::KEYS,
        run: json,
    },
    Target {
        name: "overrides",
        about: "changes by [quick], [full], [sweep] and runs of a small description",
        corpus: corpus::overrides,
        a_minute: 1_300_000,
        words: corpus::KEYS,
        run: overrides,
    },
    Target {
        name: "expression",
        about: "formulas: activations, observables, measures",
        corpus: corpus::expressions,
        a_minute: 400_000,
        words: corpus::FUNCTIONS,
        run: expression,
    },
    Target {
        name: "link",
        about: "links and the models that are made of formulas",
        corpus: corpus::links,
        a_minute: 450_000,
        words: corpus::FUNCTIONS,
        run: link,
    },
    Target {
        name: "tex",
        about: "labels in TeX",
        corpus: corpus::labels,
        a_minute: 120_000,
        words: corpus::TEX,
        run: tex,
    },
    Target {
        name: "spectrum",
        about: "files of eigenvalues or data, as text and as .npy",
        corpus: corpus::spectra,
        a_minute: 8_800_000,
        words: &["1e-300", "1 2\n3 4\n", "# comment\n", "\u{93}NUMPY"],
        run: spectrum,
    },
    Target {
        name: "npz",
        about: "tables of a run folder",
        corpus: corpus::archives,
        a_minute: 4_200_000,
        words: &["PK", "'<f8'"],
        run: npz,
    },
    Target {
        name: "compute",
        about: "quantities at inputs that are wrong in kind, size or number",
        corpus: corpus::calls,
        a_minute: 20_000,
        words: &[
            "1e100",
            "1e-100",
            "[1,1]",
            "[[1,2],[2,1]]",
            "\"He60\"",
            "\"exp(x)\"",
            "{\"from\":1,\"to\":10,\"points\":3}",
        ],
        run: compute,
    },
];

pub(crate) fn find(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|target| target.name == name)
}

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

/// A description up to the point where something would run. Only small ones are planned: a plan of a large one may take
/// seconds, and costs are what `check` is for.
fn check(input: &[u8], name: &str) -> String {
    let source = Source { name: name.into(), text: text(input) };
    let description = match source.description() {
        Ok(description) => description,
        Err(error) => return error.to_string(),
    };
    let points: usize = description.sweep.values().map(|v| v.expand().map_or(1, |list| list.len())).product();
    if points * description.run.len() > 16 || description.scan.len() > 4 {
        return "too many runs for here".into();
    }
    match Experiment::new(source, Size::Normal, None) {
        Ok(experiment) => {
            let costs: f64 = experiment.costs().iter().map(|cost| cost.memory).sum();
            format!("planned {} {}", experiment.runs.len(), costs.is_finite())
        }
        Err(error) => error.to_string(),
    }
}

fn json(input: &[u8]) -> String {
    let whole = text(input);
    let files = fuzzing::run_files(&whole);
    format!("{} {files}", check(input, "fuzz.json"))
}

fn overrides(input: &[u8]) -> String {
    let mut whole = corpus::SMALL.as_bytes().to_vec();
    whole.extend_from_slice(input);
    check(&whole, "fuzz.toml")
}

const POINTS: [f64; 5] = [-3.0, -0.5, 0.0, 0.7, 40.0];

fn expression(input: &[u8]) -> String {
    let whole = text(input);
    let free = match Expression::parse_free(&whole) {
        Ok(formula) => {
            let count = formula.variables().len();
            let mut slope = vec![0.0; count];
            for x in POINTS {
                let at = vec![x; count];
                black_box((formula.value(&at), formula.gradient(&at, &mut slope)));
                (0..count).for_each(|variable| {
                    black_box(formula.jet(&at, variable));
                });
            }
            format!("formula of {count} variables")
        }
        Err(error) => error.to_string(),
    };
    let unit = match activation::parse(&whole) {
        Ok(unit) => {
            POINTS.iter().for_each(|z| {
                black_box(unit.jet(*z));
            });
            format!("activation with {} kinks", unit.kinks().len())
        }
        Err(error) => error.to_string(),
    };
    format!("{free} {unit}")
}

fn link(input: &[u8]) -> String {
    let whole = text(input);
    let mut answer = String::new();
    for directions in [1, 2, 3] {
        match Link::parse(&whole, directions) {
            Ok(link) => {
                POINTS.iter().for_each(|z| {
                    black_box(link.label(&vec![*z; directions], 0.3));
                });
                answer += "link ";
            }
            Err(error) => answer += &error.to_string(),
        }
    }
    let model =
        serde_json::json!({"family": "multi-index", "activation": "tanh", "link": whole, "directions": 1});
    answer + &built(&model)
}

/// The rule of a model, as far as a check makes it.
fn built(model: &Value) -> String {
    match serde_json::from_value::<Model>(model.clone()).map(|model| model.draft()) {
        Ok(Ok(rule)) => format!("model of {} rows", rule.shape().rows()),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    }
}

fn tex(input: &[u8]) -> String {
    let label = text(input);
    let html = Prose::default().html(&label);
    let drawn = html.matches("<svg").count();
    let figure = didact_figure::Figure {
        panels: vec![didact_figure::Panel {
            x: didact_figure::Axis::linear(label).range(0.0, 1.0),
            y: didact_figure::Axis::linear("y").range(0.0, 1.0),
            ..didact_figure::Panel::default()
        }],
        ..didact_figure::Figure::default()
    };
    match didact_figure::to_svg(&figure) {
        Ok(_) => format!("label with {drawn} formulas"),
        Err(error) => error.to_string(),
    }
}

fn spectrum(input: &[u8]) -> String {
    match file::from_bytes(input) {
        Ok(found) => format!("spectrum of {} eigenvalues", found.spectrum.len()),
        Err(error) => error.to_string(),
    }
}

fn npz(input: &[u8]) -> String {
    fuzzing::npz(input)
}

/// `quantity {inputs}`: the path of a quantity, a blank, and its inputs as JSON.
fn compute(input: &[u8]) -> String {
    let whole = text(input);
    let Some((path, inputs)) = whole.split_once(' ') else { return "no inputs".into() };
    let Ok(inputs) = serde_json::from_str::<Map<String, Value>>(inputs) else { return "no JSON".into() };
    // Not through `quantities::compute`, which catches panics.
    match quantities::find(path).map(|quantity| quantity.evaluate(&inputs)) {
        Ok(Ok(answer)) => format!("{path} with {} entries", answer.len()),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error,
    }
}

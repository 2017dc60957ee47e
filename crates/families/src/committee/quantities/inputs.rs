//! Inputs that many quantities share, and how they are read.

use didact_model::quantity::{Arguments, Input, Kind, LARGEST_NUMBER, QuantityError};
use didact_model::spectrum::file::{self, FileSpectrum};
use didact_model::spectrum::{MeasuredSpectrum, Spectrum};
use serde_json::{Value, json};
use std::path::Path;

/// An optional input.
pub(super) const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Input {
    Input { name, kind, default: Some("null"), about }
}

/// An input that must be given.
pub(super) const fn required(name: &'static str, kind: Kind, about: &'static str) -> Input {
    Input { name, kind, default: None, about }
}

/// An input with a value unless given.
pub(super) const fn default(
    name: &'static str,
    kind: Kind,
    value: &'static str,
    about: &'static str,
) -> Input {
    Input { name, kind, default: Some(value), about }
}

pub(super) const LEVELS: Input = optional("L", Kind::Count, "distinct eigenvalues of a normalised power law");
pub(super) const BETA: Input =
    optional("beta", Kind::Number, "its exponent: lambda_l proportional to l^-(1+beta)");
pub(super) const LAM: Input = optional("lam", Kind::Numbers, "eigenvalues, in place of a power law");
pub(super) const WEIGHTS: Input =
    optional("weights", Kind::Numbers, "fractions of the dimensions that have them; equal unless given");
pub(super) const FILE: Input =
    optional("file", Kind::File, ".npy or .csv of eigenvalues, or of data (samples x features)");
pub(super) const MEASURED: Input = optional(
    "measured",
    Kind::Text,
    "measured eigenvalues that come with the program: cifar-10, fashion-mnist, mnist",
);
pub(super) const ETA: Input = required("eta", Kind::Number, "learning rate");
pub(super) const VARIANCE: Input =
    default("sigma_J2", Kind::Number, "0", "variance of the student's components at the start");
pub(super) const ALPHA: Input = required(
    "alpha",
    Kind::Any,
    "examples/N: a number, an increasing list, or { from, to, points, spacing }",
);
pub(super) const DIMENSION: Input = optional("N", Kind::Count, "input dimension");
pub(super) const UNITS: Input =
    required("M", Kind::Count, "hidden units of student and teacher, output weights 1/sqrt(M)");

/// Hidden units where matrices of them are computed with.
pub(super) const MOST_HIDDEN: usize = 200;

/// The six inputs of a spectrum, and others.
macro_rules! with_spectrum {
    ($($input:expr),* $(,)?) => {
        &[
            $crate::committee::quantities::inputs::LEVELS,
            $crate::committee::quantities::inputs::BETA,
            $crate::committee::quantities::inputs::LAM,
            $crate::committee::quantities::inputs::WEIGHTS,
            $crate::committee::quantities::inputs::FILE,
            $crate::committee::quantities::inputs::MEASURED,
            $($input),*
        ]
    };
}
pub(super) use with_spectrum;

/// A refusal with its reason.
pub(super) fn refuse<T>(message: impl Into<String>) -> Result<T, QuantityError> {
    Err(QuantityError::Domain(message.into()))
}

/// Any error of the library as a refusal.
pub(super) fn refused(error: impl std::fmt::Display) -> QuantityError {
    QuantityError::Domain(error.to_string())
}

/// A spectrum and where it came from.
pub(super) struct GivenSpectrum {
    pub(super) spectrum: Spectrum,
    /// (L, β) of a normalised power law.
    pub(super) law: Option<(usize, f64)>,
    /// Equal eigenvalues that were merged, directions without variance that were left out.
    pub(super) merged: usize,
    pub(super) dropped: usize,
    /// N, when a file says it.
    pub(super) dimension: Option<u64>,
}

/// Distinct eigenvalues of a spectrum whose modes are computed, at a cost that grows with their square.
const MOST_MODES: usize = 10_000;

/// Eigenvalues below this fraction of the largest: squares and inverses of such ratios leave the range of numbers.
const SMALLEST_RATIO: f64 = 1e-60;

/// The spectrum: `L` and `beta`, or `lam`, or `file`, or `measured`.
pub(super) fn spectrum(arguments: &Arguments) -> Result<GivenSpectrum, QuantityError> {
    spectrum_up_to(arguments, MOST_MODES)
}

/// The spectrum, with at most so many distinct eigenvalues.
pub(super) fn spectrum_up_to(arguments: &Arguments, most: usize) -> Result<GivenSpectrum, QuantityError> {
    if arguments.given("L") {
        arguments.count_up_to("L", most)?;
    }
    let given = any_spectrum(arguments)?;
    let (levels, eigenvalues) = (given.spectrum.len(), given.spectrum.eigenvalues());
    if levels > most {
        return refuse(format!("the spectrum has {levels} eigenvalues; up to {most} can be computed"));
    }
    let (smallest, largest) =
        eigenvalues.iter().fold((f64::MAX, 0.0_f64), |(s, l), e| (s.min(*e), l.max(*e)));
    if smallest < SMALLEST_RATIO * largest {
        return refuse(format!(
            "the eigenvalues range from {largest:e} down to {smallest:e}; ratios down to {SMALLEST_RATIO:e} can be computed"
        ));
    }
    Ok(given)
}

fn any_spectrum(arguments: &Arguments) -> Result<GivenSpectrum, QuantityError> {
    let plain =
        |spectrum: Spectrum, law| GivenSpectrum { spectrum, law, merged: 0, dropped: 0, dimension: None };
    let found = |found: FileSpectrum| GivenSpectrum {
        merged: found.merged,
        dropped: found.dropped,
        dimension: Some(found.dimension),
        ..plain(found.spectrum, None)
    };
    let law = arguments.given("L") || arguments.given("beta");
    let (list, file, measured) =
        (arguments.given("lam"), arguments.given("file"), arguments.given("measured"));
    if arguments.given("weights") && !list {
        return refuse("`weights` belong to eigenvalues `lam`; a power law and a file have their own");
    }
    match (law, list, file, measured) {
        (true, false, false, false) => {
            if !arguments.given("L") {
                return refuse("a power law needs `L`, the number of distinct eigenvalues, beside `beta`");
            }
            let levels = arguments.count("L");
            if !arguments.given("beta") {
                if levels == 1 {
                    return Ok(plain(Spectrum::isotropic(), None));
                }
                return refuse("a power law needs `beta` beside `L`; L = 1 alone is isotropic");
            }
            let beta = arguments.number("beta");
            Ok(plain(Spectrum::power_law(levels, beta).map_err(refused)?, Some((levels, beta))))
        }
        (false, true, false, false) => {
            let eigenvalues = arguments.numbers("lam");
            let equal = || vec![1.0 / eigenvalues.len().max(1) as f64; eigenvalues.len()];
            let weights = if arguments.given("weights") { arguments.numbers("weights") } else { equal() };
            let whole = Spectrum::new(eigenvalues, weights).map_err(refused)?;
            let merged = whole.len() - whole.merged().len();
            Ok(GivenSpectrum { merged, ..plain(whole, None) })
        }
        (false, false, true, false) => {
            file::read(Path::new(arguments.text("file"))).map(found).map_err(refused)
        }
        (false, false, false, true) => {
            let name = arguments.text("measured");
            let Some(spectrum) = MeasuredSpectrum::named(name) else {
                let known = MeasuredSpectrum::ALL.map(|(name, _)| name).join(", ");
                return refuse(format!("`measured` is \"{name}\"; there are {known}"));
            };
            spectrum.read().map(found).map_err(refused)
        }
        (false, false, false, false) => {
            refuse("give a spectrum: `L` and `beta`, or `lam` (and `weights`), or `file`, or `measured`")
        }
        _ => refuse("give one spectrum: `L` and `beta`, or `lam` (and `weights`), or `file`, or `measured`"),
    }
}

/// η > 0; its square times that of an eigenvalue is a number too.
pub(super) fn learning_rate(arguments: &Arguments) -> Result<f64, QuantityError> {
    let rate = positive(arguments, "eta")?;
    if (1e-30..=1e30).contains(&rate) {
        return Ok(rate);
    }
    refuse(format!("`eta` is {rate:e}; learning rates from 1e-30 to 1e30 can be computed"))
}

/// A number above 0.
pub(super) fn positive(arguments: &Arguments, name: &str) -> Result<f64, QuantityError> {
    let value = arguments.number(name);
    if value > 0.0 { Ok(value) } else { refuse(format!("`{name}` is {value}; it must be positive")) }
}

/// 1 + σ_J², σ_J² ≥ 0.
pub(super) fn initial(arguments: &Arguments) -> Result<f64, QuantityError> {
    Ok(1.0 + not_negative(arguments, "sigma_J2")?)
}

/// A number not below 0.
pub(super) fn not_negative(arguments: &Arguments, name: &str) -> Result<f64, QuantityError> {
    let value = arguments.number(name);
    if value >= 0.0 { Ok(value) } else { refuse(format!("`{name}` is {value}; a variance is not negative")) }
}

/// N, given or known from a file; `None` when neither.
pub(super) fn dimension(arguments: &Arguments, given: &GivenSpectrum) -> Option<u64> {
    if arguments.given("N") { Some(arguments.count("N") as u64) } else { given.dimension }
}

/// N, or who needs it.
pub(super) fn needed_dimension(arguments: &Arguments, given: &GivenSpectrum) -> Result<u64, QuantityError> {
    match dimension(arguments, given) {
        Some(n) => Ok(n),
        None => refuse("`N`, the input dimension, is missing"),
    }
}

/// The values of α, and whether it was a lone one.
pub(super) struct Times {
    pub(super) values: Vec<f64>,
    single: bool,
}

impl Times {
    /// One number per α: a number for a lone α, else a list.
    pub(super) fn answer(&self, f: impl Fn(f64) -> f64) -> Value {
        let values: Vec<f64> = self.values.iter().map(|a| f(*a)).collect();
        self.list(&values)
    }

    /// As [`Times::answer`], of values computed already.
    pub(super) fn list(&self, values: &[f64]) -> Value {
        if self.single { json!(values[0]) } else { json!(values) }
    }
}

/// α: not negative, increasing; `"inf"` is the limit.
pub(super) fn times(arguments: &Arguments) -> Result<Times, QuantityError> {
    let value = arguments.value("alpha");
    let number = |v: &Value| match v {
        Value::String(word) if word == "inf" => Some(f64::INFINITY),
        other => other.as_f64(),
    };
    let (values, single) = match value {
        Value::Array(list) => (list.iter().map(number).collect(), false),
        Value::Object(_) => (grid(value), false),
        lone => (number(lone).map(|v| vec![v]), true),
    };
    let Some(values) = values.filter(|v: &Vec<f64>| !v.is_empty()) else {
        return Err(QuantityError::Type {
            name: "alpha".into(),
            value: value.to_string(),
            expected: "a number, a list, or { from = 1, to = 100, points = 20, spacing = \"log\" }",
        });
    };
    if values.len() as u64 > MOST_TIMES {
        return refuse(format!("`alpha` holds {} numbers; up to {MOST_TIMES} can be computed", values.len()));
    }
    if let Some(bad) = values.iter().find(|a| a.is_finite() && **a > LARGEST_NUMBER) {
        return refuse(format!("`alpha` holds {bad:e}; numbers up to 1e100, or \"inf\", can be computed"));
    }
    if let Some(bad) = values.iter().find(|a| a.is_nan() || **a < 0.0) {
        return refuse(format!("`alpha` holds {bad}; it counts examples per dimension and is not negative"));
    }
    if let Some([before, after]) = values.windows(2).find(|w| w[0] >= w[1]) {
        return refuse(format!("`alpha` does not increase: {before} comes before {after}"));
    }
    Ok(Times { values, single })
}

/// Points of a grid of α.
const MOST_TIMES: u64 = 100_000;

fn grid(value: &Value) -> Option<Vec<f64>> {
    let number = |key: &str| value.get(key).and_then(Value::as_f64).filter(|v| v.is_finite());
    let points = value.get("points")?.as_u64().filter(|points| *points <= MOST_TIMES)? as usize;
    let (from, to) = (number("from")?, number("to")?);
    match value.get("spacing").and_then(Value::as_str).unwrap_or("linear") {
        "log" if from > 0.0 && to > 0.0 => Some(didact_model::record::log_times(from, to, points)),
        "linear" => Some(didact_model::record::linear_times(from, to, points)),
        _ => None,
    }
}

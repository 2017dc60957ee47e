//! Linear units: learning curves, modes, critical rates, windows.

use super::inputs::{
    ALPHA, DIMENSION, ETA, VARIANCE, default, dimension, initial, learning_rate, not_negative, optional,
    refuse, refused, required, spectrum, times, with_spectrum,
};
use crate::committee::predictions::regression::{
    self, CurveSize, Regression, critical_rate, critical_rate_at, optimal_rate,
};
use crate::committee::predictions::small_rate::{self, PowerLaw};
use crate::committee::predictions::specialised::rate_coefficients;
use didact_model::quantity::{Answer, Arguments, Input, Kind, Quantity, QuantityError};
use didact_model::spectrum::Spectrum;
use serde_json::json;

const NOISE: Input = default("noise_var", Kind::Number, "0", "variance of the label noise");
const STUDENTS: Input = default("K", Kind::Count, "1", "hidden units of the student");
const TEACHERS: Input = default("M", Kind::Count, "1", "hidden units of the teacher");

pub(super) const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "linear-error",
        summary: "linear units: mean error against alpha, exact in the learning rate, at small rate, as integral, at finite N",
        inputs: with_spectrum![ETA, VARIANCE, NOISE, STUDENTS, TEACHERS, DIMENSION, ALPHA],
        outputs: &[
            "alpha",
            "exact",
            "small-rate",
            "ratio",
            "integral",
            "first-gamma",
            "power-law",
            "zeroth-order",
            "upper-bound",
            "finite-size",
        ],
        compute: error,
    },
    Quantity {
        name: "linear-modes",
        summary: "linear units: rates and weights of the modes of the learning curve, and the eigenvalues they come from",
        inputs: with_spectrum![ETA],
        outputs: &["rates", "k", "decay", "bare", "shift", "weight", "eigenvalue"],
        compute: modes,
    },
    Quantity {
        name: "linear-critical-rate",
        summary: "linear units: largest stable learning rate (also at finite N), and the one that learns fastest in the end",
        inputs: with_spectrum![DIMENSION],
        outputs: &["critical", "optimal", "optimal-decay", "finite-size"],
        compute: critical,
    },
    Quantity {
        name: "linear-overlaps",
        summary: "linear units at small learning rate: R^(1) and Q^(1) against alpha",
        inputs: with_spectrum![ETA, VARIANCE, ALPHA],
        outputs: &["alpha", "R", "Q"],
        compute: overlaps,
    },
    Quantity {
        name: "linear-noise-floor",
        summary: "linear units: the error that label noise leaves, whatever the spectrum",
        inputs: &[
            ETA,
            required("noise_var", Kind::Number, "variance of the label noise"),
            default("nu1", Kind::Number, "1", "mean eigenvalue"),
            STUDENTS,
            TEACHERS,
        ],
        outputs: &["error"],
        compute: noise_floor,
    },
    Quantity {
        name: "power-law-window",
        summary: "range of alpha in which the error of a power-law spectrum is a power law, linear or erf units",
        inputs: &[
            required("L", Kind::Count, "distinct eigenvalues"),
            required("beta", Kind::Number, "exponent of the spectrum"),
            ETA,
            optional("M", Kind::Count, "hidden units of erf committees, for their slow and fast groups"),
        ],
        outputs: &["from", "to", "exponent", "erf-fast", "erf-slow"],
        compute: window,
    },
];

/// Refuses rates at which the mean error grows without bound.
pub(super) fn stable(rate: f64, spectrum: &Spectrum, dimension: Option<u64>) -> Result<(), QuantityError> {
    let limit = critical_rate(spectrum);
    if rate >= limit {
        return refuse(format!(
            "the learning rate {rate} is not below the critical rate 2/nu_1 = {limit:.6}: the error diverges\n\n\
             hint: see committee/linear-critical-rate"
        ));
    }
    let Some(n) = dimension else { return Ok(()) };
    let limit = critical_rate_at(spectrum, n as f64);
    if rate >= limit {
        return refuse(format!(
            "the learning rate {rate} is not below the critical rate {limit:.6} at N = {n}: the mean error of SGD diverges\n\n\
             hint: leave `N` out for the limit of large multiplicities"
        ));
    }
    Ok(())
}

fn error(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let given = spectrum(arguments)?;
    let dimension = dimension(arguments, &given);
    let (variance, times) = (not_negative(arguments, "sigma_J2")?, times(arguments)?);
    // K linear units learn from M as one from one at other rates (docs/derivations/power-law-spectra.md#eq-19).
    let ratio = arguments.number("M") / arguments.number("K");
    let (rate, variance) = (learning_rate(arguments)? * ratio, variance * ratio);
    stable(rate, &given.spectrum, dimension)?;
    let mut regression = Regression::new(&given.spectrum, rate, variance);
    regression.label_noise = not_negative(arguments, "noise_var")?;
    let exact = regression.curve(CurveSize::Limit);
    let start = 1.0 + variance;
    let mut answer: Answer = vec![
        ("alpha", times.answer(|a| a)),
        ("exact", times.answer(|a| exact.error(a))),
        ("small-rate", times.answer(|a| small_rate::error(&given.spectrum, rate, start, a))),
        ("ratio", times.answer(|a| exact.error(a) / small_rate::error(&given.spectrum, rate, start, a))),
    ];
    if let Some((levels, beta)) = given.law {
        let law = PowerLaw::new(levels, beta, rate, start).map_err(refused)?;
        answer.extend([
            ("integral", times.answer(|a| law.integral(a))),
            ("first-gamma", times.answer(|a| law.first_gamma_only(a))),
            ("power-law", times.answer(|a| law.leading(a))),
            ("zeroth-order", times.answer(|a| law.zeroth_order(a))),
            ("upper-bound", times.answer(|a| law.upper_bound(a))),
        ]);
    }
    if let Some(n) = dimension {
        given.spectrum.multiplicities(n).map_err(refused)?;
        let finite = regression.curve(CurveSize::Dimension(n as f64));
        answer.push(("finite-size", times.answer(|a| finite.error(a))));
    }
    Ok(answer)
}

/// Modes in order of decreasing |μ_k|, which is that of decreasing eigenvalue: they interlace.
fn modes(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let given = spectrum(arguments)?;
    let merged = given.spectrum.merged();
    let rate = learning_rate(arguments)?;
    let regression = Regression::new(&merged, rate, 0.0);
    let curve = regression.curve(CurveSize::Limit);
    let (values, amplitudes) = curve.modes();
    let count = merged.len() as f64;
    let decays: Vec<f64> = values.iter().map(|mu| -mu / rate).collect();
    let bare: Vec<f64> = merged.eigenvalues().iter().map(|l| 2.0 * l).collect();
    let shifts: Vec<f64> = bare.iter().zip(&decays).map(|(b, d)| b - d).collect();
    let ranks: Vec<usize> = (1..=values.len()).collect();
    Ok(vec![
        ("rates", json!(Regression::new(&given.spectrum, rate, 0.0).rates())),
        ("k", json!(ranks)),
        ("decay", json!(decays)),
        ("bare", json!(bare)),
        ("shift", json!(shifts)),
        ("weight", json!(amplitudes.iter().map(|a| 2.0 * count * a).collect::<Vec<f64>>())),
        ("eigenvalue", json!(merged.eigenvalues())),
    ])
}

fn critical(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let given = spectrum(arguments)?;
    let (optimal, decay) = optimal_rate(&given.spectrum);
    let mut answer: Answer = vec![
        ("critical", json!(critical_rate(&given.spectrum))),
        ("optimal", json!(optimal)),
        ("optimal-decay", json!(decay)),
    ];
    if let Some(n) = dimension(arguments, &given) {
        given.spectrum.multiplicities(n).map_err(refused)?;
        answer.push(("finite-size", json!(critical_rate_at(&given.spectrum, n as f64))));
    }
    Ok(answer)
}

fn overlaps(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (given, rate, times) = (spectrum(arguments)?, learning_rate(arguments)?, times(arguments)?);
    let variance = initial(arguments)? - 1.0;
    let at = |a: f64| small_rate::overlaps(&given.spectrum, rate, variance, a);
    Ok(vec![
        ("alpha", times.answer(|a| a)),
        ("R", times.answer(|a| at(a).0)),
        ("Q", times.answer(|a| at(a).1)),
    ])
}

fn noise_floor(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let rate = learning_rate(arguments)? * arguments.number("M") / arguments.number("K");
    let floor = regression::noise_floor(arguments.number("nu1"), rate, not_negative(arguments, "noise_var")?);
    if floor.is_infinite() {
        return refuse(format!("the learning rate {rate} is not below 2/nu_1: the error diverges"));
    }
    Ok(vec![("error", json!(floor))])
}

/// The window of linear units, and those of the slow and fast groups of M erf units after the plateau.
fn window(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let rate = learning_rate(arguments)?;
    let at = |rate: f64| {
        let law = PowerLaw::new(arguments.count_up_to("L", 1_000_000)?, arguments.number("beta"), rate, 1.0)
            .map_err(refused)?;
        Ok::<_, QuantityError>((law.window(), law.exponent()))
    };
    let (linear, exponent) = at(rate)?;
    let mut answer: Answer =
        vec![("from", json!(linear.from)), ("to", json!(linear.to)), ("exponent", json!(-exponent))];
    if arguments.given("M") {
        let (slow, fast) = rate_coefficients(arguments.number("M"));
        for (name, coefficient) in [("erf-fast", fast), ("erf-slow", slow)] {
            let window = at(0.5 * rate * coefficient)?.0;
            answer.push((name, json!([window.from, window.to])));
        }
    }
    Ok(answer)
}

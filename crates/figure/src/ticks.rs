//! Where ticks stand and what they say.
//!
//! Each axis has a list of candidates from dense to sparse; the first whose labels fit is taken.

use crate::error::Result;
use crate::figure::ScaleKind;
use crate::scale::Scale;

/// Ticks of one axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ticks {
    pub(crate) major: Vec<Tick>,
    pub(crate) minor: Vec<f64>,
    /// Factor and offset common to all labels, as TeX: `$\times 10^{-7} + 1$`.
    pub(crate) note: Option<String>,
}

/// A labelled tick.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// The densest ticks for which `fits` holds; the sparsest there are if none do. `length` is that of the axis in points.
pub(crate) fn choose(
    scale: &Scale,
    given: Option<&[f64]>,
    length: f64,
    mut fits: impl FnMut(&Ticks) -> Result<bool>,
) -> Result<Ticks> {
    if let Some(given) = given {
        return Ok(as_given(scale, given));
    }
    let mut sparsest = Ticks::default();
    for candidate in candidates(scale, length) {
        if fits(&candidate)? {
            return Ok(candidate);
        }
        sparsest = candidate;
    }
    // Labels that collide say less than the first and last alone, and these less than one.
    for keep in [2, 1] {
        if sparsest.major.len() > keep && !fits(&sparsest)? {
            let dropped = sparsest.major.drain(1..sparsest.major.len() + 1 - keep).map(|tick| tick.value);
            sparsest.minor.extend(dropped);
            sparsest.minor.sort_by(f64::total_cmp);
        }
    }
    Ok(sparsest)
}

fn candidates(scale: &Scale, length: f64) -> Vec<Ticks> {
    match scale.kind {
        ScaleKind::Linear => linear(scale, length),
        ScaleKind::Log => log(scale, length),
    }
}

/// No axis is easier to read with more labels than this.
const MOST_LABELS: usize = 9;
/// Minor ticks closer than this (in pt) make a grey smear.
const CLOSEST_MINOR: f64 = 3.0;

/// Steps of 1, 2 or 5 times a power of ten.
fn linear(scale: &Scale, length: f64) -> Vec<Ticks> {
    let usual = linear_up_to(MOST_LABELS, scale, length);
    if usual.iter().any(|ticks| ticks.major.len() >= 4) {
        return usual;
    }
    // Between steps of 2 and of 5 there may be ranges with three labels or ten, and nothing in between.
    linear_up_to(MOST_LABELS + 2, scale, length)
}

fn linear_up_to(most: usize, scale: &Scale, length: f64) -> Vec<Ticks> {
    let span = scale.high - scale.low;
    let first = (span / MOST_LABELS as f64).log10().floor() as i32;
    let mut candidates = Vec::new();
    for exponent in first..first + 4 {
        for mantissa in [1, 2, 5] {
            let step = Step { mantissa, exponent };
            let values = step.multiples(scale.low, scale.high);
            if values.len() > most || values.len() < 2 {
                continue;
            }
            let (labels, note) = linear_labels(&values, exponent);
            let spacing = length * step.size() / span;
            let minor_step = match mantissa {
                1 if spacing >= 5.0 * CLOSEST_MINOR => Some(Step { mantissa: 2, exponent: exponent - 1 }),
                1 if spacing >= 2.0 * CLOSEST_MINOR => Some(Step { mantissa: 5, exponent: exponent - 1 }),
                2 if spacing >= 4.0 * CLOSEST_MINOR => Some(Step { mantissa: 5, exponent: exponent - 1 }),
                2 if spacing >= 2.0 * CLOSEST_MINOR => Some(Step { mantissa: 1, exponent }),
                5 if spacing >= 5.0 * CLOSEST_MINOR => Some(Step { mantissa: 1, exponent }),
                _ => None,
            };
            let minor = minor_step.map_or_else(Vec::new, |step| step.multiples(scale.low, scale.high));
            candidates.push(Ticks {
                minor: without(minor, &values, step.size()),
                major: ticks(&values, labels),
                note,
            });
        }
    }
    candidates
}

/// A round step m × 10^e.
#[derive(Clone, Copy)]
struct Step {
    mantissa: i32,
    exponent: i32,
}

impl Step {
    fn size(self) -> f64 {
        self.times(1.0)
    }

    /// `count` steps; dividing by a power of ten rounds once, so 3 × 0.1 is 0.3.
    fn times(self, count: f64) -> f64 {
        let whole = count * f64::from(self.mantissa);
        if self.exponent < 0 {
            whole / power_of_ten(-self.exponent)
        } else {
            whole * power_of_ten(self.exponent)
        }
    }

    /// The multiples in [low, high], ends included even if rounding puts them just outside.
    fn multiples(self, low: f64, high: f64) -> Vec<f64> {
        let (low_steps, high_steps) = (low / self.size(), high / self.size());
        let slack = 1e-9f64.max(4.0 * f64::EPSILON * low_steps.abs().max(high_steps.abs()));
        let (first, last) = ((low_steps - slack).ceil(), (high_steps + slack).floor());
        // An axis has at most ~50 minor ticks; more means that the step is below the spacing of the numbers.
        let count = (last - first + 1.0).clamp(0.0, 100.0) as usize;
        let mut values: Vec<f64> =
            (0..count).map(|i| self.times(first + i as f64).clamp(low, high)).collect();
        values.dedup();
        values
    }
}

fn power_of_ten(exponent: i32) -> f64 {
    10f64.powi(exponent)
}

/// `values` without those in `taken`.
fn without(values: Vec<f64>, taken: &[f64], step: f64) -> Vec<f64> {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * step;
    values.into_iter().filter(|&value| !taken.iter().any(|&other| near(value, other))).collect()
}

fn ticks(values: &[f64], labels: Vec<String>) -> Vec<Tick> {
    values.iter().zip(labels).map(|(&value, label)| Tick { value, label }).collect()
}

/// More decimals than this and the labels show the difference from a common offset.
const MOST_DECIMALS: i32 = 5;

/// Labels with the same number of decimals; a common factor for very large or small values, a common offset for values
/// that differ only far behind the point.
fn linear_labels(values: &[f64], step_exponent: i32) -> (Vec<String>, Option<String>) {
    let largest = values.iter().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let magnitude = if largest > 0.0 { largest.log10().floor() as i32 } else { 0 };
    let plain = |values: &[f64], factor: i32| -> Vec<String> {
        let decimals = (factor - step_exponent).max(0) as usize;
        values.iter().map(|value| decimal(value / power_of_ten(factor), decimals)).collect()
    };
    let scaled = if (-2..5).contains(&magnitude) { 0 } else { magnitude };
    if scaled - step_exponent <= MOST_DECIMALS {
        let note = (scaled != 0).then(|| format!("$\\times 10^{{{scaled}}}$"));
        return (plain(values, scaled), note);
    }
    let unit = step_exponent + 1;
    // The offset has one digit fewer than the span of the labels.
    let place = unit + 1;
    let offset = (values[0] / power_of_ten(place)).floor() * power_of_ten(place);
    let differences: Vec<f64> = values.iter().map(|value| value - offset).collect();
    let written = decimal(offset.abs(), (-place).max(0) as usize);
    let written = written.trim_matches('$');
    let written =
        if written.contains('.') { written.trim_end_matches('0').trim_end_matches('.') } else { written };
    let sign = if offset < 0.0 { '-' } else { '+' };
    (plain(&differences, unit), Some(format!("$\\times 10^{{{unit}}} {sign} {written}$")))
}

/// A number as a formula, so that its minus sign is one; never −0.
fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let zero = text.trim_start_matches('-').bytes().all(|byte| matches!(byte, b'0' | b'.'));
    format!("${}$", if zero { text.trim_start_matches('-') } else { &text })
}

/// Decades (every one, every second, …); below two decades also 2, 5 or all digits; below that linear steps.
fn log(scale: &Scale, length: f64) -> Vec<Ticks> {
    let (low, high) = (scale.low.log10(), scale.high.log10());
    let (first, last) = ((low - 1e-9).ceil() as i32, (high + 1e-9).floor() as i32);
    let per_decade = length / (high - low);
    let inside = |value: f64| (scale.low * (1.0 - 1e-9)..=scale.high * (1.0 + 1e-9)).contains(&value);
    let clamp = |value: f64| value.clamp(scale.low, scale.high);
    let digits = |digits: &[i32]| -> Vec<(i32, i32)> {
        (first - 1..=last)
            .flat_map(|decade| digits.iter().map(move |&digit| (digit, decade)))
            .filter(|&(digit, decade)| inside(Step { mantissa: digit, exponent: decade }.size()))
            .collect()
    };
    let value = |&(digit, decade): &(i32, i32)| clamp(Step { mantissa: digit, exponent: decade }.size());
    let minor_digits = || -> Vec<f64> { digits(&[2, 3, 4, 5, 6, 7, 8, 9]).iter().map(value).collect() };

    let mut candidates = Vec::new();
    if last > first {
        for stride in [1, 2, 3, 4, 5, 10, 20, 50, 100, 200] {
            let decades: Vec<i32> = (first..=last).filter(|decade| decade.rem_euclid(stride) == 0).collect();
            if decades.len() > MOST_LABELS + 2 || decades.len() < 2 {
                continue;
            }
            let major = decades
                .iter()
                .map(|&decade| Tick { value: clamp(power_of_ten(decade)), label: log_label(1, decade) });
            // Nine minor ticks per decade need room; between labelled decades the others are the minor ticks.
            let minor = if stride == 1 && per_decade >= 3.0 * CLOSEST_MINOR {
                minor_digits()
            } else if stride > 1 && per_decade >= CLOSEST_MINOR / 1.5 {
                (first..=last)
                    .filter(|decade| decade.rem_euclid(stride) != 0)
                    .map(|d| clamp(power_of_ten(d)))
                    .collect()
            } else {
                Vec::new()
            };
            candidates.push(Ticks { major: major.collect(), minor, note: None });
        }
        if !candidates.is_empty() {
            return candidates;
        }
    }
    // From dense to sparse, each spread as evenly over a decade as digits allow.
    for set in [
        &[1, 2, 3, 4, 5, 6, 7, 8, 9][..],
        &[1, 2, 3, 4, 6, 8],
        &[1, 2, 3, 5, 7],
        &[1, 2, 3, 5],
        &[1, 2, 5],
        &[3, 5],
        &[1, 3],
    ] {
        let major = digits(set);
        if !(2..=MOST_LABELS - 2).contains(&major.len()) || major.len() < 3 && set.len() == 9 {
            continue;
        }
        let plain = major.iter().all(|(_, decade)| (-3..4).contains(decade));
        let label = |&(digit, decade): &(i32, i32)| {
            if plain { plain_label(digit, decade) } else { log_label(digit, decade) }
        };
        let values: Vec<f64> = major.iter().map(value).collect();
        let minor = without(minor_digits(), &values, scale.low);
        candidates.push(Ticks {
            major: ticks(&values, major.iter().map(label).collect()),
            minor,
            note: None,
        });
    }
    if candidates.is_empty() { linear(scale, length) } else { candidates }
}

fn log_label(digit: i32, decade: i32) -> String {
    if digit == 1 { format!("$10^{{{decade}}}$") } else { format!("${digit}\\times 10^{{{decade}}}$") }
}

fn plain_label(digit: i32, decade: i32) -> String {
    decimal(Step { mantissa: digit, exponent: decade }.size(), (-decade).max(0) as usize)
}

/// The ticks that the user asked for, as far as they lie on the axis.
fn as_given(scale: &Scale, given: &[f64]) -> Ticks {
    let mut values: Vec<f64> =
        given.iter().copied().filter(|&value| (scale.low..=scale.high).contains(&value)).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let decade = |value: f64| {
        let decade = value.log10().round() as i32;
        ((value / power_of_ten(decade) - 1.0).abs() < 1e-9).then_some(decade)
    };
    if scale.kind == ScaleKind::Log && values.iter().all(|&value| decade(value).is_some()) {
        let labels =
            values.iter().filter_map(|&value| decade(value)).map(|decade| log_label(1, decade)).collect();
        return Ticks { major: ticks(&values, labels), ..Ticks::default() };
    }
    let digits = |value: f64| format!("{value}").split_once('.').map_or(0, |(_, digits)| digits.len() as i32);
    let decimals = values.iter().map(|&value| digits(value)).max().unwrap_or(0);
    let (labels, note) =
        if values.is_empty() { (Vec::new(), None) } else { linear_labels(&values, -decimals) };
    Ticks { major: ticks(&values, labels), minor: Vec::new(), note }
}

#[cfg(test)]
#[path = "ticks_tests.rs"]
mod tests;

//! A formula for a function that is known by its values alone: sampled once, fitted by Chebyshev series on panels, checked at
//! points that the fit has not seen.

use super::jet::Jet;
use super::sampled::Sampled;
use std::f64::consts::PI;
use std::fmt;

/// Samples of a panel, at the zeros of the Chebyshev polynomial of this order.
const NODES: usize = 32;
/// A panel is fitted when its last coefficients are below this fraction of the scale of the function.
const CONVERGED: f64 = 2e-14;
/// Coefficients below this fraction of the scale are left out.
const NEGLIGIBLE: f64 = 1e-17;
/// A panel that has been halved so often holds a kink or a jump.
const HALVINGS: u32 = 22;
/// Kinks that are looked for.
const MOST_KINKS: usize = 32;
/// Largest error at held-out points, as a fraction of the scale.
const ALLOWED: f64 = 1e-11;
/// Held-out points of a panel.
const HELD_OUT: usize = 5;

/// What is fitted and how well.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The name by which a formula calls the function: `name(x)`.
    pub name: String,
    /// Where the function or its slope jumps, named or found.
    pub kinks: Vec<f64>,
    /// Largest error at the held-out points.
    pub error: f64,
    /// The same as a fraction of the largest value of the function on the same panel, or on |x| ≤ 1 where that is larger.
    pub relative_error: f64,
    /// Number of panels.
    pub panels: usize,
    /// Values that were asked for.
    pub samples: usize,
}

/// Why a function cannot be fitted.
#[derive(Clone, Debug, PartialEq)]
pub enum SampleFitError<E> {
    /// The function itself failed.
    Function(E),
    /// A wrong range or a kink outside of it.
    Range(String),
    /// A value that is not finite.
    NotFinite {
        /// Where.
        at: f64,
        /// The value.
        value: f64,
    },
    /// Two calls gave different values.
    NotRepeatable {
        /// Where.
        at: f64,
    },
    /// No series came near enough.
    NotSmooth {
        /// Near where.
        at: f64,
        /// The kinks that were found or named.
        kinks: Vec<f64>,
    },
    /// More panels than a formula may have.
    TooLarge(String),
}

impl<E: fmt::Display> fmt::Display for SampleFitError<E> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function(error) => write!(out, "{error}"),
            Self::Range(text) | Self::TooLarge(text) => out.write_str(text),
            Self::NotFinite { at, value } => write!(
                out,
                "the function is {value} at {at}; it must be finite where it is sampled\nhint: choose a smaller `reach`"
            ),
            Self::NotRepeatable { at } => write!(
                out,
                "two calls of the function at {at} gave different values\nhint: a function must not depend on anything but its argument"
            ),
            Self::NotSmooth { at, kinks } if kinks.len() >= MOST_KINKS => write!(
                out,
                "the function is not smooth at {at} and at {MOST_KINKS} more points; it looks like noise\nhint: sample a smooth function"
            ),
            Self::NotSmooth { at, .. } => {
                write!(out, "the function cannot be fitted near {at}\nhint: name its kinks: `kinks=[{at}]`")
            }
        }
    }
}

impl<E: fmt::Display + fmt::Debug> std::error::Error for SampleFitError<E> {}

/// Fits a function on |x| ≤ `reach`; beyond, it goes on as a straight line. `kinks` are the points at which it or its slope
/// jumps; without them they are looked for. The function is called with many points at a time, about thirty times.
pub fn fit<E>(
    mut function: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
    reach: f64,
    kinks: Option<&[f64]>,
) -> Result<Fitted, SampleFitError<E>> {
    if !(reach > 0.0 && reach <= 1e6) {
        return Err(SampleFitError::Range(format!("the reach is {reach}; use a number between 0 and 10^6")));
    }
    if let Some(outside) = kinks.unwrap_or_default().iter().find(|k| k.is_nan() || k.abs() >= reach) {
        return Err(SampleFitError::Range(format!("a kink at {outside} lies outside of the reach {reach}")));
    }
    let mut samples = 0;
    let mut call = |x: &[f64]| {
        samples += x.len();
        let values = function(x).map_err(SampleFitError::Function)?;
        match x.iter().zip(&values).find(|(_, value)| !value.is_finite()) {
            Some((&at, &value)) => Err(SampleFitError::NotFinite { at, value }),
            None => Ok(values),
        }
    };
    let middle: Vec<f64> = (0..=64).map(|i| reach.min(1.0) * (f64::from(i) / 32.0 - 1.0)).collect();
    let (values, again) = (call(&middle)?, call(&middle)?);
    if let Some(i) = (0..middle.len()).find(|&i| values[i].to_bits() != again[i].to_bits()) {
        return Err(SampleFitError::NotRepeatable { at: middle[i] });
    }
    let scale = values.iter().fold(f64::MIN_POSITIVE, |most, v| v.abs().max(most));
    let kinks = match kinks {
        Some(kinks) => {
            let mut kinks = kinks.to_vec();
            kinks.sort_by(f64::total_cmp);
            kinks.dedup();
            kinks
        }
        None => find_kinks(&mut call, reach, scale)?,
    };
    let intervals = graded(reach, &kinks);
    let (panels, gaps) = panels(&mut call, intervals, scale, ALLOWED)?;
    if let Some(gap) = gaps.first() {
        return Err(SampleFitError::NotSmooth { at: f64::midpoint(gap.0, gap.1), kinks });
    }
    let mut all: Vec<(f64, bool)> = panels.iter().map(|p| (p.from, kinks.contains(&p.from))).collect();
    all.push((reach, false));
    let sampled = Sampled::new(&all, panels.iter().map(|p| p.series.clone()).collect())
        .map_err(SampleFitError::TooLarge)?;
    let HeldOut { error, relative, refused_at } = held_out(&mut call, &panels, &sampled, scale)?;
    if let Some(at) = refused_at {
        return Err(SampleFitError::NotSmooth { at, kinks });
    }
    let (name, panels) = (sampled.name(), panels.len());
    Ok(Fitted { name, kinks, error, relative_error: relative, panels, samples })
}

/// A part of the line with its series.
struct Panel {
    from: f64,
    to: f64,
    series: Vec<f64>,
    /// Largest value of the function on it.
    largest: f64,
}

impl Panel {
    /// The series at a point of the panel.
    fn jet(&self, x: f64) -> Jet {
        let one = Sampled::new(&[(self.from, false), (self.to, false)], vec![self.series.clone()]);
        one.map_or(Jet::constant(f64::NAN), |panel| panel.jet(x.clamp(self.from, self.to), 0.0))
    }
}

type Interval = (f64, f64);

/// Halves intervals until a series fits each; those that are halved too often are returned apart, unless the series fits to
/// `at_last` by then (next to a jump of the curvature it does). Every round asks for the values of all intervals at once.
fn panels<E>(
    call: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, SampleFitError<E>>,
    intervals: Vec<Interval>,
    scale: f64,
    at_last: f64,
) -> Result<(Vec<Panel>, Vec<Interval>), SampleFitError<E>> {
    let (mut done, mut gaps): (Vec<Panel>, Vec<Interval>) = (Vec::new(), Vec::new());
    let mut open = intervals;
    for round in 0..=HALVINGS {
        let nodes: Vec<f64> = open.iter().flat_map(|&(a, b)| nodes(a, b)).collect();
        let values = if nodes.is_empty() { Vec::new() } else { call(&nodes)? };
        let mut next = Vec::new();
        for (&(from, to), values) in open.iter().zip(values.chunks_exact(NODES)) {
            let largest = values.iter().fold(0.0, |most: f64, v| v.abs().max(most));
            let bound = largest.max(scale);
            let mut series = coefficients(values);
            let needed = if round == HALVINGS { at_last } else { CONVERGED };
            if series[NODES - 4..].iter().all(|c| c.abs() <= needed * bound) {
                let kept =
                    series.iter().rposition(|c| c.abs() > NEGLIGIBLE * bound).map_or(1, |last| last + 1);
                series.truncate(kept);
                done.push(Panel { from, to, series, largest });
            } else if round == HALVINGS {
                gaps.push((from, to));
            } else {
                let half = f64::midpoint(from, to);
                next.extend([(from, half), (half, to)]);
            }
        }
        // Noise makes every interval fail: it is found before it fills the memory.
        if next.len() > 4 * MOST_KINKS + 256 {
            return Err(SampleFitError::NotSmooth { at: next[0].0, kinks: vec![next[0].0; MOST_KINKS] });
        }
        open = next;
    }
    done.sort_by(|a, b| a.from.total_cmp(&b.from));
    gaps.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok((done, gaps))
}

/// The line in parts that grow with the distance from 0, so that a panel is not much larger than the scale on which the
/// function was looked at; kinks are ends of parts.
fn graded(reach: f64, kinks: &[f64]) -> Vec<Interval> {
    let mut ends = vec![-reach, reach];
    ends.extend_from_slice(kinks);
    let mut distance = 1.0;
    while distance < 0.75 * reach {
        // An end close to a kink would leave a sliver between the two.
        let free = |at: &f64| kinks.iter().all(|kink| (kink - at).abs() > 0.1 * distance);
        ends.extend([-distance, distance].iter().filter(|at| free(at)));
        distance *= 2.0;
    }
    ends.sort_by(f64::total_cmp);
    ends.windows(2).map(|w| (w[0], w[1])).collect()
}

/// Where no series fits, or two that do fit do not go on into each other: a kink is where the series on both sides meet, a
/// jump where the values change sides.
fn find_kinks<E>(
    call: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, SampleFitError<E>>,
    reach: f64,
    scale: f64,
) -> Result<Vec<f64>, SampleFitError<E>> {
    let (panels, gaps) = panels(call, graded(reach, &[]), scale, CONVERGED)?;
    let mut kinks: Vec<f64> = Vec::new();
    for pair in panels.windows(2).filter(|pair| pair[0].to == pair[1].from) {
        let (left, right) = (pair[0].jet(pair[0].to), pair[1].jet(pair[1].from));
        let size = pair[0].largest.max(pair[1].largest).max(scale);
        let width = (pair[0].to - pair[0].from).min(pair[1].to - pair[1].from);
        let value_jumps = (right.value - left.value).abs() > 1e-9 * size;
        if value_jumps || (right.slope - left.slope).abs() > 1e-7 * (size / width).max(1.0) {
            kinks.push(pair[0].to);
        }
    }
    // Gaps side by side belong to one kink.
    let mut merged: Vec<Interval> = Vec::new();
    for (from, to) in gaps {
        match merged.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => merged.push((from, to)),
        }
    }
    if merged.len() > MOST_KINKS {
        return Err(SampleFitError::NotSmooth { at: merged[0].0, kinks: vec![merged[0].0; MOST_KINKS] });
    }
    for (from, to) in merged {
        let left = panels.iter().rfind(|p| p.to <= from);
        let right = panels.iter().find(|p| p.from >= to);
        let (Some(left), Some(right)) = (left, right) else {
            return Err(SampleFitError::NotSmooth { at: f64::midpoint(from, to), kinks });
        };
        kinks.push(meeting_point(call, left, right)?);
    }
    kinks.sort_by(f64::total_cmp);
    Ok(kinks)
}

/// The point between two panels at which the function changes from one series to the other.
fn meeting_point<E>(
    call: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, SampleFitError<E>>,
    left: &Panel,
    right: &Panel,
) -> Result<f64, SampleFitError<E>> {
    let (mut low, mut high) = (left.to, right.from);
    // Straight lines from the ends of the panels: the gap is so short that they are the function.
    let (Jet { value: a, slope: p, .. }, Jet { value: b, slope: q, .. }) = (left.jet(low), right.jet(high));
    // a + p (x − low) = b + q (x − high)
    let width = high - low;
    let meet = low + (b - a - q * width) / (p - q);
    if p != q && meet >= low - width && meet <= high + width {
        // The lines meet where they should to about thirteen digits; a decimal number so near is what was meant.
        let short = (1e12 * meet).round() / 1e12;
        return Ok(if (short - meet).abs() <= 1e-13 { short } else { meet });
    }
    while {
        let middle = f64::midpoint(low, high);
        low < middle && middle < high
    } {
        let middle = f64::midpoint(low, high);
        let value = call(&[middle])?[0];
        if (value - a).abs() <= (value - b).abs() { low = middle } else { high = middle }
    }
    Ok(high)
}

/// What the fit is off by at points that it has not seen.
struct HeldOut {
    /// The largest error.
    error: f64,
    /// The largest error relative to the scale.
    relative: f64,
    /// Where that is, if it is more than allowed.
    refused_at: Option<f64>,
}

fn held_out<E>(
    call: &mut impl FnMut(&[f64]) -> Result<Vec<f64>, SampleFitError<E>>,
    panels: &[Panel],
    sampled: &Sampled,
    scale: f64,
) -> Result<HeldOut, SampleFitError<E>> {
    // Multiples of the golden ratio: none of them is a node.
    let fraction = |i: usize| (0.618_033_988_749_894_9 * (i + 1) as f64).fract();
    let inside =
        |p: &Panel| (0..HELD_OUT).map(|i| p.from + (p.to - p.from) * fraction(i)).collect::<Vec<f64>>();
    let points: Vec<f64> = panels.iter().flat_map(inside).collect();
    let values = call(&points)?;
    let mut found = HeldOut { error: 0.0, relative: 0.0, refused_at: None };
    for (i, (&x, value)) in points.iter().zip(&values).enumerate() {
        let off = (sampled.value(x) - value).abs();
        found.error = found.error.max(off);
        let share = off / panels[i / HELD_OUT].largest.max(scale);
        if share > found.relative {
            found.relative = share;
            found.refused_at = (share > ALLOWED).then_some(x);
        }
    }
    Ok(found)
}

/// The zeros of T_n on an interval, none of which is an end of it.
fn nodes(from: f64, to: f64) -> impl Iterator<Item = f64> {
    (0..NODES).map(move |j| {
        let t = -(PI * (j as f64 + 0.5) / NODES as f64).cos();
        f64::midpoint(from, to) + 0.5 * (to - from) * t
    })
}

/// Chebyshev coefficients of the polynomial through the values at the nodes.
fn coefficients(values: &[f64]) -> Vec<f64> {
    let n = values.len() as f64;
    let one = |k: usize| {
        let term = |(j, v): (usize, &f64)| v * (PI * k as f64 * (n - 1.0 - j as f64 + 0.5) / n).cos();
        let sum: f64 = values.iter().enumerate().map(term).sum();
        sum * if k == 0 { 1.0 } else { 2.0 } / n
    };
    (0..values.len()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Expression;
    use super::*;
    use crate::activation;
    use std::convert::Infallible;

    fn fitted(f: impl Fn(f64) -> f64, kinks: Option<&[f64]>) -> Fitted {
        let call = |x: &[f64]| Ok::<_, Infallible>(x.iter().map(|&x| f(x)).collect());
        fit(call, 40.0, kinks).unwrap()
    }

    #[test]
    fn smooth_functions_are_fitted_with_their_derivatives() {
        for name in ["tanh", "gelu", "sigmoid", "erf(z)", "He3", "sin(3*x)/(1 + x^2)"] {
            let exact = activation::parse(name).unwrap();
            let fit = fitted(|x| exact.value(x), None);
            assert!(fit.kinks.is_empty() && fit.relative_error < 1e-13, "{name}: {fit:?}");
            let own = activation::parse(&format!("{}(x)", fit.name)).unwrap();
            for i in -60..=60 {
                let x = 0.0997 * f64::from(i);
                let ((a, b, c), (p, q, r)) = (exact.jet(x), own.jet(x));
                let size = 1.0 + a.abs();
                assert!((a - p).abs() < 1e-13 * size, "{name} at {x}: {a} {p}");
                assert!((b - q).abs() < 1e-11 * size, "{name}′ at {x}: {b} {q}");
                assert!((c - r).abs() < 1e-8 * size, "{name}″ at {x}: {c} {r}");
            }
            for k in 0..6 {
                let (a, b) = (exact.hermite(k, 1.3), own.hermite(k, 1.3));
                assert!((a - b).abs() < 1e-12, "{name}: c_{k} is {a} and {b}");
            }
        }
    }

    #[test]
    fn kinks_are_found_where_they_are() {
        let leaky = |x: f64| if x > 0.3 { x } else { 0.3 + 0.1 * (x - 0.3) };
        for kinks in [None, Some([0.3])] {
            let fit = fitted(leaky, kinks.as_ref().map(|k| &k[..]));
            assert!(matches!(fit.kinks[..], [at] if (at - 0.3).abs() < 1e-12), "{:?}", fit.kinks);
            let own = activation::parse(&format!("{}(z)", fit.name)).unwrap();
            let kink = own.kinks()[0];
            assert!((kink.jump - 0.9).abs() < 1e-10 && own.kinks().len() == 1, "{kink:?}");
        }
        assert_eq!(fitted(|x| x.max(0.0), None).kinks, [0.0]);
        let two = fitted(|x: f64| (x.abs() - 1.0).abs().tanh(), None);
        assert!(
            two.kinks.iter().zip([-1.0, 0.0, 1.0]).all(|(a, b)| (a - b).abs() < 1e-12),
            "{:?}",
            two.kinks
        );
        assert_eq!(two.kinks.len(), 3);
        // A jump of the curvature alone is no kink, but the fit must come through it.
        let bent = fitted(|x: f64| if x > 0.3 { x.sin() } else { x.sin() + (x - 0.3).powi(2) }, None);
        let own = activation::parse(&format!("{}(z)", bent.name)).unwrap();
        assert!(own.kinks().is_empty() && bent.relative_error < 1e-11, "{:?} {bent:?}", own.kinks());
    }

    #[test]
    fn jumps_are_found_and_known() {
        let fit = fitted(|x| if x < 0.25 { -1.0 } else { x }, None);
        assert_eq!(fit.kinks, [0.25]);
        let formula = Expression::parse(&format!("{}(y)", fit.name), &["y"]).unwrap();
        assert!(formula.has_jumps());
        let jump = formula.breaks()[0];
        assert!((jump.value_jump - 1.25).abs() < 1e-12, "{jump:?}");
        let error = activation::parse(&format!("{}(x)", fit.name)).unwrap_err().to_string();
        assert!(error.contains("jumps by 1.25") && error.contains("at 0.25"), "{error}");
    }

    #[test]
    fn what_is_no_function_is_refused() {
        let refuse = |f: &mut dyn FnMut(f64) -> f64, reach| {
            let call = |x: &[f64]| Ok::<_, Infallible>(x.iter().map(|&x| f(x)).collect());
            fit(call, reach, None).unwrap_err().to_string()
        };
        assert!(refuse(&mut |x| (x * x).exp(), 40.0).contains("smaller `reach`"));
        assert!(refuse(&mut |x| x.ln(), 40.0).contains("NaN at"));
        let mut calls = 0.0;
        let mut drifting = |x: f64| {
            calls += 1e-9;
            x + calls
        };
        assert!(refuse(&mut drifting, 40.0).contains("different values"));
        // A hash of the argument: repeatable noise.
        let mut noise = |x: f64| (x.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64;
        assert!(refuse(&mut noise, 40.0).contains("looks like noise"));
        assert!(refuse(&mut |x| x, 0.0).contains("the reach is 0"));
    }
}

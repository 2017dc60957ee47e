//! Functions that are known by numbers: piecewise Chebyshev series, written in a formula as
//! `sampled[-8, !0, 8; 0.5, 0.25; 1, 2, 3](x)`.
//!
//! The first group holds the ends of the panels, ascending; every further group the Chebyshev coefficients of one panel,
//! f(x) = Σ_k c_k T_k(t) with t = (2x − a − b)/(b − a) in \[−1, 1\]. An exclamation mark before an inner end says that f or
//! its slope jumps there. Beyond the first and the last end the function goes on as a straight line.
//! [`fit`](super::fit) makes such a series from samples.

use super::jet::Jet;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, OnceLock};

/// Panels of one function.
const MOST_PANELS: usize = 4096;
/// Coefficients of one panel.
const MOST_COEFFICIENTS: usize = 64;
/// Smaller jumps of the curvature are rounding.
const BEND: f64 = 1e-6;
/// How formulas call such a function.
pub(super) const PREFIX: &str = "sampled[";

/// A formula as messages show it: the numbers of functions that are given by numbers are left out.
pub(crate) fn abbreviated(formula: &str) -> String {
    let mut pieces = formula.split(PREFIX);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.split_once(']').map_or("", |(_, rest)| rest);
        text = text + PREFIX + "…]" + rest;
    }
    text
}

/// A piecewise Chebyshev series.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    /// Ends of the panels.
    ends: Vec<f64>,
    /// Inner ends at which the function or its slope jumps.
    breaks: Vec<f64>,
    /// The first and the last end, where the curvature (the slope of a derivative) jumps to that of a straight line. Between panels of
    /// one smooth function it jumps by rounding only, which narrow panels make large.
    bends: Vec<f64>,
    /// Coefficients of every panel.
    panels: Vec<Vec<f64>>,
    jumps: bool,
    /// Which derivative of a function of a formula this is: the function itself (0) goes on as a straight line beyond its ends, its
    /// slope (1) as a constant, and all further ones vanish there.
    order: usize,
    /// The derivative, once it was asked for.
    derivative: OnceLock<Box<Sampled>>,
}

/// Formulas hold such functions by reference; two are the same when their numbers are.
impl PartialEq for Sampled {
    fn eq(&self, other: &Self) -> bool {
        (self.order, &self.ends, &self.breaks, &self.panels)
            == (other.order, &other.ends, &other.breaks, &other.panels)
    }
}

impl Eq for Sampled {}

impl Hash for Sampled {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.order, self.ends.len(), self.breaks.len()).hash(state);
    }
}

impl Sampled {
    /// From ends (with a mark where there is a break) and one list of coefficients per panel.
    pub(super) fn new(ends: &[(f64, bool)], panels: Vec<Vec<f64>>) -> Result<Self, String> {
        if ends.len() < 2 || ends.len() > MOST_PANELS + 1 {
            return Err(format!(
                "`sampled` has {} ends of panels; 2 to {} are possible",
                ends.len(),
                MOST_PANELS + 1
            ));
        }
        if panels.len() + 1 != ends.len() {
            return Err(format!(
                "`sampled` has {} ends, so {} panels, but coefficients of {}",
                ends.len(),
                ends.len() - 1,
                panels.len()
            ));
        }
        if let Some(i) = panels.iter().position(|c| c.is_empty() || c.len() > MOST_COEFFICIENTS) {
            return Err(format!(
                "panel {} of `sampled` has {} coefficients; 1 to {MOST_COEFFICIENTS} are possible",
                i + 1,
                panels[i].len()
            ));
        }
        if ends.windows(2).any(|w| w[0].0 >= w[1].0) {
            return Err("the ends of the panels of `sampled` must increase".into());
        }
        if ends[0].1 || ends[ends.len() - 1].1 {
            return Err("only inner ends of `sampled` can be breaks".into());
        }
        let breaks = ends.iter().filter(|end| end.1).map(|end| end.0).collect();
        Ok(Self::of_panels(ends.iter().map(|end| end.0).collect(), breaks, panels, 0))
    }

    fn of_panels(ends: Vec<f64>, breaks: Vec<f64>, panels: Vec<Vec<f64>>, order: usize) -> Self {
        let (bends, derivative) = (Vec::new(), OnceLock::new());
        let mut made = Self { ends, breaks, bends, panels, jumps: false, order, derivative };
        let bends = |at: &f64| {
            let [left, right] = [-1.0, 1.0].map(|side| made.jet(*at, side));
            // Where the curvature of a function jumps, its derivative has a kink.
            let pairs = [(left.slope, right.slope), (left.curvature, right.curvature)];
            let jumps = |(l, r): &(f64, f64)| (r - l).abs() > BEND * (1.0 + l.abs() + r.abs());
            !made.breaks.contains(at) && pairs.iter().any(jumps)
        };
        let outer = [made.ends[0], made.ends[made.ends.len() - 1]];
        made.bends = outer.into_iter().filter(bends).collect();
        made.jumps = made.breaks.iter().any(|&at| {
            let (left, right) = (made.jet(at, -1.0).value, made.jet(at, 1.0).value);
            (right - left).abs() > 1e-11 * (1.0 + left.abs() + right.abs())
        });
        made
    }

    /// f′, in the same panels. With f = Σ c_k T_k(t), the coefficients of df/dt follow from d_{k−1} = d_{k+1} + 2 k c_k, the last one
    /// first, where that of T_0 is halved.
    pub(super) fn derivative(&'static self) -> &'static Self {
        self.derivative.get_or_init(|| {
            let slopes = |(series, ends): (&Vec<f64>, &[f64])| {
                let scale = 2.0 / (ends[1] - ends[0]);
                let mut slopes = vec![0.0; series.len() + 1];
                for k in (1..series.len()).rev() {
                    slopes[k - 1] = slopes[k + 1] + 2.0 * k as f64 * series[k];
                }
                slopes[0] *= 0.5;
                slopes.truncate((series.len() - 1).max(1));
                slopes.iter().map(|d| d * scale).collect()
            };
            let panels = self.panels.iter().zip(self.ends.windows(2)).map(slopes).collect();
            Box::new(Self::of_panels(self.ends.clone(), self.breaks.clone(), panels, self.order + 1))
        })
    }

    /// Reads the text between the brackets.
    fn parse(text: &str) -> Result<Self, String> {
        let number = |word: &str| {
            let value = word.trim().parse::<f64>().ok().filter(|v| v.is_finite());
            value.ok_or_else(|| format!("`{}` in `sampled` is not a finite number", word.trim()))
        };
        let mut groups = text.split(';');
        let end = |word: &str| {
            let word = word.trim();
            let plain = word.strip_prefix('!');
            Ok((number(plain.unwrap_or(word))?, plain.is_some()))
        };
        let ends: Vec<(f64, bool)> =
            groups.next().unwrap_or_default().split(',').map(end).collect::<Result<_, String>>()?;
        let panels =
            groups.map(|group| group.split(',').map(number).collect()).collect::<Result<_, String>>()?;
        Self::new(&ends, panels)
    }

    /// The function of a name such as `sampled[0, 1; 2]`. Equal texts share one table, which stays for the life of the
    /// program, so that formulas can copy it like any other function.
    pub(super) fn named(name: &str) -> Result<&'static Self, String> {
        static KNOWN: Mutex<BTreeMap<String, &'static Sampled>> = Mutex::new(BTreeMap::new());
        let mut known = KNOWN.lock().expect("no thread panics while it holds the lock");
        if let Some(found) = known.get(name) {
            return Ok(found);
        }
        let inside = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(']'));
        let made: &'static Self = Box::leak(Box::new(Self::parse(inside.unwrap_or_default())?));
        known.insert(name.to_owned(), made);
        Ok(made)
    }

    /// The name under which a formula calls it; numbers are written so that they are read back to the last bit.
    pub(super) fn name(&self) -> String {
        let mut text = PREFIX.to_string();
        for (i, end) in self.ends.iter().enumerate() {
            let mark = if self.breaks.contains(end) { "!" } else { "" };
            let comma = if i > 0 { "," } else { "" };
            write!(text, "{comma}{mark}{end:?}").expect("a string");
        }
        for panel in &self.panels {
            text.push(';');
            for (i, coefficient) in panel.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                write!(text, "{comma}{coefficient:?}").expect("a string");
            }
        }
        text.push(']');
        text
    }

    /// Where the function or its slope jumps, ascending.
    pub(super) fn breaks(&self) -> &[f64] {
        &self.breaks
    }

    /// Where the function, its slope or its curvature jumps.
    pub(super) fn breaks_and_bends(&self) -> impl Iterator<Item = f64> {
        self.breaks.iter().chain(&self.bends).copied()
    }

    /// True when the function itself jumps.
    pub(super) fn has_jumps(&self) -> bool {
        self.jumps
    }

    /// f, f′, f″ at x + 0 (`side` = 1), at x − 0 (−1), or half-way between the two (0).
    pub(super) fn jet(&self, x: f64, side: f64) -> Jet {
        let last = self.panels.len() - 1;
        // The panel that begins at x or before it.
        let right = self.ends.partition_point(|&end| end <= x).saturating_sub(1).min(last);
        if x == self.ends[right] && right > 0 && side <= 0.0 {
            let left = self.in_panel(right - 1, x);
            if side < 0.0 || !self.breaks.contains(&x) {
                return left;
            }
            let right = self.in_panel(right, x);
            return Jet {
                value: f64::midpoint(left.value, right.value),
                slope: f64::midpoint(left.slope, right.slope),
                curvature: f64::midpoint(left.curvature, right.curvature),
            };
        }
        let (low, high) = (self.ends[0], self.ends[last + 1]);
        let (below, above) = (x < low || x == low && side < 0.0, x > high || x == high && side > 0.0);
        if below || above {
            let end = if below { low } else { high };
            let edge = self.in_panel(right, end);
            return match self.order {
                0 => Jet { value: edge.value + edge.slope * (x - end), slope: edge.slope, curvature: 0.0 },
                1 => Jet { value: edge.value, slope: 0.0, curvature: 0.0 },
                _ => Jet { value: 0.0, slope: 0.0, curvature: 0.0 },
            };
        }
        self.in_panel(right, x)
    }

    /// f(x) alone.
    pub(super) fn value(&self, x: f64) -> f64 {
        self.jet(x, 0.0).value
    }

    /// Clenshaw's recurrence for the series and its first two derivatives.
    fn in_panel(&self, panel: usize, x: f64) -> Jet {
        let (a, b) = (self.ends[panel], self.ends[panel + 1]);
        let scale = 2.0 / (b - a);
        let t = ((x - a) - (b - x)) / (b - a);
        let series = &self.panels[panel];
        let ([mut b1, mut b2], [mut d1, mut d2], [mut e1, mut e2]) = ([0.0; 2], [0.0; 2], [0.0; 2]);
        for &c in series[1..].iter().rev() {
            (e1, e2) = (2.0 * t * e1 - e2 + 4.0 * d1, e1);
            (d1, d2) = (2.0 * t * d1 - d2 + 2.0 * b1, d1);
            (b1, b2) = (2.0 * t * b1 - b2 + c, b1);
        }
        Jet {
            value: t * b1 - b2 + series[0],
            slope: (b1 + t * d1 - d2) * scale,
            curvature: (2.0 * d1 + t * e1 - e2) * scale * scale,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Expression;
    use super::*;

    #[test]
    fn a_series_is_the_sum_of_its_chebyshev_polynomials() {
        // T0 + 2 T1 + 3 T2 + 4 T3 on [1, 5]: t = (x − 3)/2.
        let sampled = Sampled::new(&[(1.0, false), (5.0, false)], vec![vec![1.0, 2.0, 3.0, 4.0]]).unwrap();
        for x in [1.0, 1.7, 3.0, 4.2, 5.0] {
            let t: f64 = (x - 3.0) / 2.0;
            let jet = sampled.jet(x, 0.0);
            let value = 1.0 + 2.0 * t + 3.0 * (2.0 * t * t - 1.0) + 4.0 * (4.0 * t.powi(3) - 3.0 * t);
            let slope = (2.0 + 12.0 * t + 4.0 * (12.0 * t * t - 3.0)) / 2.0;
            let curvature = (12.0 + 96.0 * t) / 4.0;
            assert!((jet.value - value).abs() < 1e-13, "{x}");
            assert!((jet.slope - slope).abs() < 1e-13, "{x}");
            assert!((jet.curvature - curvature).abs() < 1e-12, "{x}");
        }
        // A straight line beyond the ends.
        let (edge, far) = (sampled.jet(5.0, 0.0), sampled.jet(7.0, 0.0));
        assert_eq!((far.value, far.slope, far.curvature), (edge.value + 2.0 * edge.slope, edge.slope, 0.0));
    }

    #[test]
    fn a_formula_with_a_sampled_kink_finds_it() {
        // max(u, 0) in two panels, at u = 2x − 1.
        let formula = Expression::parse("sampled[-8, !0, 8; 0; 4, 4](2*x - 1) + x^2", &["x"]).unwrap();
        let plain = Expression::parse("relu(2*x - 1) + x^2", &["x"]).unwrap();
        assert_eq!(formula.breaks(), plain.breaks());
        for x in [-1.0, 0.0, 0.3, 0.5, 0.8, 2.0] {
            let (own, exact) = (formula.jet(&[x], 0), plain.jet(&[x], 0));
            assert!((own.value - exact.value).abs() < 1e-14, "{x}");
            assert_eq!((own.slope, own.curvature), (exact.slope, exact.curvature), "{x}");
        }
        assert!(!formula.has_jumps());
        assert!(Expression::parse("sampled[-8, !0, 8; 0; 1](x)", &["x"]).unwrap().has_jumps());
    }

    /// Averages took the finest of all grids, a minute each, where a curved panel goes over into the straight line beyond the last end.
    #[test]
    fn ends_at_which_the_curvature_jumps_are_found() {
        let bends = |text: &str| Expression::parse(text, &["x"]).unwrap().curvature_breaks();
        assert_eq!(bends("sampled[-4, !0, 4; 0; 1.35, 1.6, 0.25](x - 0.5)"), [4.5]);
        assert_eq!(bends("sampled[-4, 4; 1, 2, 3](2*x)"), [-2.0, 2.0]);
        // x in two panels, and x² in two panels inside of |x| < 1; far out nothing has weight.
        assert_eq!(bends("sampled[-1, 0, 1; -0.5, 0.5; 0.5, 0.5](x)"), [0.0; 0]);
        assert_eq!(bends("sampled[-1, 0, 1; 0.375, -0.5, 0.125; 0.375, 0.5, 0.125](x)"), [-1.0, 1.0]);
        assert_eq!(bends("sampled[-40, 40; 1, 2, 3](x)"), [0.0; 0]);
        let activation = crate::activation::parse("sampled[-4, !0, 4; 0; 1.35, 1.6, 0.25](x - 0.5)").unwrap();
        assert_eq!(activation.resolution(), 0.3);
    }

    #[test]
    fn derivatives_are_those_of_the_series() {
        let name = "sampled[-2, !0.5, 3; 0.3, -1, 0.25, 0.125, 2; 1, 2, -0.5]";
        let sampled = Sampled::named(name).unwrap();
        let (first, second) = (sampled.derivative(), sampled.derivative().derivative());
        for x in [-4.0, -2.5, -1.0, 0.2, 0.5, 1.0, 2.9, 3.5] {
            let jet = sampled.jet(x, 0.0);
            assert!((first.value(x) - jet.slope).abs() < 1e-13, "{x}");
            assert!((second.value(x) - jet.curvature).abs() < 1e-12, "{x}");
        }
        assert!(first.has_jumps());
    }

    #[test]
    fn messages_show_no_numbers_of_a_function_that_is_given_by_numbers() {
        assert_eq!(
            abbreviated("2*sampled[0, 1; 1](x) + sampled[0, 1; 2](x)"),
            "2*sampled[…](x) + sampled[…](x)"
        );
        assert_eq!(abbreviated("tanh(x[1])"), "tanh(x[1])");
    }

    #[test]
    fn names_are_read_back_to_the_last_bit() {
        let panels = vec![vec![0.1, -1e-17, f64::MIN_POSITIVE], vec![1.0 / 3.0]];
        let sampled = Sampled::new(&[(-0.1, false), (0.7, true), (1e10, false)], panels).unwrap();
        assert_eq!(*Sampled::named(&sampled.name()).unwrap(), sampled);
    }

    #[test]
    fn broken_tables_are_refused_in_words() {
        for (text, words) in [
            ("sampled[1](x)", "1 ends"),
            ("sampled[0, 1](x)", "coefficients of 0"),
            ("sampled[1, 0; 2](x)", "must increase"),
            ("sampled[0, 1; ](x)", "not a finite number"),
            ("sampled[0, nan; 1](x)", "`nan` in `sampled`"),
            ("sampled[!0, 1; 1](x)", "inner ends"),
            ("sampled[0, 1; 1](x, x)", "takes 1 argument"),
            ("sampled[0, 1; 1]", "is a function"),
            ("sampled[0, 1; 1", "never closed"),
        ] {
            let error = Expression::parse(text, &["x"]).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}

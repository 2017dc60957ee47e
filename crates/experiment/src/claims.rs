//! Sentences as checks: *holds*, *within bound*, *differs from print*, *not judged at this size* or *fails*.

use crate::Size;
use crate::description::{Bound, Check, Claim};
use crate::jobs::NOT_YET;
use crate::measures::{Estimate, Measured};
use crate::points::Point;
use crate::results::Missing;
use serde::{Deserialize, Serialize};

/// The verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// True in these results.
    Holds,
    /// Not true in these results.
    Fails,
    /// What is computed is right, and what is printed is not: the erratum says so.
    DiffersFromPrint,
    /// True, and within what the source proves, which is a bound and not a value.
    WithinBound,
    /// Too small or too noisy to tell.
    NotJudged,
}

impl Verdict {
    /// As words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "FAILS",
            Self::DiffersFromPrint => "differs from print",
            Self::WithinBound => "within bound",
            Self::NotJudged => "not judged at this size",
        }
    }
}

/// A claim with its verdict and the numbers behind it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The sentence.
    pub says: String,
    /// Where it stands.
    pub source: String,
    /// The verdict.
    pub verdict: Verdict,
    /// The numbers: what was found, what was expected.
    pub evidence: String,
}

/// Judges every claim on the results of an experiment of this size.
pub fn judge<'a>(
    claims: impl IntoIterator<Item = &'a Claim>,
    size: Size,
    points: &[Point],
    measured: &[Measured],
) -> Vec<Judged> {
    claims.into_iter().map(|claim| judge_one(claim, size, points, measured)).collect()
}

/// What a check says of one number or of all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    True,
    /// What it stands on is not computed yet, as in a sweep that is shared out.
    NotYet,
    /// Within a tolerance that would fit nearly anything.
    TooWide,
    False,
}

fn judge_one(claim: &Claim, size: Size, points: &[Point], measured: &[Measured]) -> Judged {
    let waits = size < claim.judged_from;
    let (found, evidence) = match evidence(claim, points, measured) {
        Ok(found) => found,
        // What it stands on may be there at the larger size alone.
        Err(_) if waits => (Found::False, "there is no number".into()),
        Err(why) if why.ends_with(NOT_YET) => (Found::NotYet, why.replace(" failed: ", ": ")),
        Err(why) => (Found::False, why),
    };
    let mut judged = Judged {
        says: claim.says.clone(),
        source: claim.source.clone(),
        verdict: match found {
            Found::True if claim.erratum.is_some() => Verdict::DiffersFromPrint,
            Found::True if claim.bound.is_some() => Verdict::WithinBound,
            Found::True => Verdict::Holds,
            Found::TooWide | Found::NotYet => Verdict::NotJudged,
            Found::False => Verdict::Fails,
        },
        evidence,
    };
    if let Some(erratum) = &claim.erratum {
        judged.evidence += &format!("; printed {} ({}{})", erratum.printed, erratum.id, note(&erratum.note));
    }
    if let Some(bound) = &claim.bound {
        judged.evidence += &format!("; {}", words_of(bound));
    }
    if found == Found::TooWide {
        judged.evidence += "; the standard error is too large to tell";
    }
    if waits {
        judged.verdict = Verdict::NotJudged;
        judged.evidence = format!("judged at {} size; here {}", claim.judged_from.name(), judged.evidence);
    }
    judged
}

impl Bound {
    fn admits(&self, value: f64) -> bool {
        self.at_least.is_none_or(|least| value >= least) && self.at_most.is_none_or(|most| value <= most)
    }
}

fn words_of(bound: &Bound) -> String {
    let ends = [(bound.at_least, "at least"), (bound.at_most, "at most")];
    let ends: Vec<String> =
        ends.iter().filter_map(|(end, words)| Some(format!("{words} {}", (*end)?))).collect();
    let about = match (bound.id.as_str(), bound.note.as_str()) {
        ("", "") => String::new(),
        (id, "") => format!(" ({id})"),
        ("", note) => format!(" ({note})"),
        (id, note) => format!(" ({id}: {note})"),
    };
    format!("proved: {}{about}", ends.join(" and "))
}

fn note(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

fn evidence(claim: &Claim, points: &[Point], measured: &[Measured]) -> Result<(Found, String), String> {
    let find =
        |name: &str| measured.iter().find(|m| m.name == name).ok_or_else(|| format!("no measure `{name}`"));
    let measure = find(&claim.measure)?;
    let chosen: Vec<&Point> = points.iter().filter(|p| p.matches(&claim.at)).collect();
    if chosen.is_empty() {
        return Err("no point of the sweep matches".into());
    }
    let mut chosen = if measure.global { vec![chosen[0]] } else { chosen };
    // A claim over a sweep speaks of the points at which its run runs.
    let left_out = |point: &&Point| matches!(measure.at(point), Err(Missing::LeftOut { .. }));
    if !chosen.iter().all(left_out) {
        chosen.retain(|point| !left_out(point));
    }
    if let Some(key) = claim.check.increases_with.as_ref().or(claim.check.decreases_with.as_ref()) {
        return order(key, claim.check.increases_with.is_some(), measure, &chosen);
    }
    let (mut found, mut texts) = (Found::True, Vec::new());
    for point in chosen {
        let estimate = measure.at(point)?;
        let expected = match &claim.check.equals_measure {
            Some(name) => Some(find(name)?.at(point)?),
            None => claim.check.equals.map(Estimate::exact),
        };
        let (here, text) = compare(&claim.check, estimate, expected);
        found = found.max(here);
        if claim.bound.as_ref().is_some_and(|bound| !bound.admits(estimate.value)) {
            found = Found::False;
        }
        texts.push((point.label(), text));
    }
    Ok((found, joined(&texts, points.len() > 1 && !measure.global)))
}

/// Numbers found at several points, each with its point if that is asked for; a number that is the same at all of them once.
fn joined(texts: &[(String, String)], with_points: bool) -> String {
    match texts {
        [(_, first), rest @ ..] if rest.len() > 1 && rest.iter().all(|(_, text)| text == first) => {
            format!("at all {} points: {first}", texts.len())
        }
        _ => {
            let one = |(point, text): &(String, String)| {
                if with_points { format!("{point}: {text}") } else { text.clone() }
            };
            texts.iter().map(one).collect::<Vec<_>>().join("; ")
        }
    }
}

fn order(key: &str, rising: bool, measure: &Measured, points: &[&Point]) -> Result<(Found, String), String> {
    let mut pairs = Vec::new();
    for point in points {
        let x = point.values.get(key).and_then(serde_json::Value::as_f64);
        pairs
            .push((x.ok_or_else(|| format!("`{key}` is not swept over numbers"))?, measure.at(point)?.value));
    }
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let holds =
        pairs.len() > 1 && pairs.windows(2).all(|w| if rising { w[1].1 > w[0].1 } else { w[1].1 < w[0].1 });
    let text: Vec<String> = pairs.iter().map(|(x, y)| format!("{} at {x}", digits(*y))).collect();
    Ok((if holds { Found::True } else { Found::False }, text.join(", ")))
}

/// A number with as many digits as a reader can use.
pub fn digits(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-3..1e6).contains(&magnitude) {
        format!("{value:.4e}")
    } else {
        format!("{value:.5}")
    }
}

fn compare(check: &Check, estimate: Estimate, expected: Option<Estimate>) -> (Found, String) {
    let Estimate { value, error, .. } = estimate;
    // Claims are judged by the standard error, also where an interval has two different ends.
    let mut text = Estimate::new(value, error).to_string();
    let (mut holds, mut too_wide) = (value.is_finite(), false);
    if let Some(want) = expected {
        let random = check.sigmas.map(|s| s * error.hypot(want.error));
        let tolerance = [check.absolute, check.relative.map(|r| r * want.value.abs()), random];
        let tolerance = tolerance.into_iter().flatten().fold(0.0, f64::max);
        // Around 0 there is no scale by which an error could be called large, unless the claim names one.
        let half = (want.value != 0.0).then(|| want.value.abs() / 2.0);
        too_wide = check.resolution.or(half).is_some_and(|widest| random > Some(widest));
        holds &= (value - want.value).abs() <= tolerance;
        text += &format!(", expected {} within {tolerance:.2e}", digits(want.value));
    }
    // Beside a bound alone standard errors are a distance that must be kept from it.
    let sigmas = check.sigmas.filter(|_| expected.is_none());
    let distance = sigmas.map_or(0.0, |s| s * error);
    let kept = sigmas.map_or(String::new(), |s| format!(" by {s} standard errors"));
    if let Some(least) = check.at_least {
        holds &= value - distance >= least;
        text += &format!(", at least {}{kept}", digits(least));
    }
    if let Some(most) = check.at_most {
        holds &= value + distance <= most;
        text += &format!(", at most {}{kept}", digits(most));
    }
    let found = match (holds, too_wide) {
        (false, _) => Found::False,
        (true, true) => Found::TooWide,
        (true, false) => Found::True,
    };
    (found, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claim(check: serde_json::Value, erratum: Option<f64>) -> Claim {
        let mut value = json!({"says": "x is two", "measure": "x", "check": check});
        if let Some(printed) = erratum {
            value["erratum"] = json!({"id": "E1", "printed": printed});
        }
        serde_json::from_value(value).unwrap()
    }

    fn points(values: &[f64]) -> (Vec<Point>, Vec<Measured>) {
        let point =
            |(index, _): (usize, &f64)| Point { index, values: [("n".to_string(), json!(index))].into() };
        let estimates = values.iter().map(|&value| Ok(Estimate::new(value, 0.1))).collect();
        let measured = Measured { name: "x".into(), values: estimates, global: false };
        (values.iter().enumerate().map(point).collect(), vec![measured])
    }

    fn verdict(check: serde_json::Value, erratum: Option<f64>, values: &[f64]) -> Verdict {
        let (points, measured) = points(values);
        judge(&[claim(check, erratum)], Size::Normal, &points, &measured)[0].verdict
    }

    #[test]
    fn values_hold_within_their_tolerance_only() {
        assert_eq!(verdict(json!({"equals": 2, "sigmas": 3}), None, &[2.25]), Verdict::Holds);
        assert_eq!(verdict(json!({"equals": 2, "sigmas": 2}), None, &[2.25]), Verdict::Fails);
        assert_eq!(verdict(json!({"equals": 2, "relative": 0.2}), None, &[2.25]), Verdict::Holds);
        assert_eq!(verdict(json!({"equals": 2, "absolute": 0.2}), None, &[2.25]), Verdict::Fails);
        assert_eq!(verdict(json!({"at-least": 2, "at-most": 3}), None, &[2.25]), Verdict::Holds);
        assert_eq!(verdict(json!({"at-least": 2, "sigmas": 2}), None, &[2.25]), Verdict::Holds);
        assert_eq!(verdict(json!({"at-least": 2, "sigmas": 3}), None, &[2.25]), Verdict::Fails);
        assert_eq!(verdict(json!({"at-most": 3}), None, &[f64::NAN]), Verdict::Fails);
        assert_eq!(verdict(json!({"at-most": 3}), None, &[1.0, 4.0]), Verdict::Fails, "one point is enough");
    }

    #[test]
    fn a_number_that_is_the_same_everywhere_is_said_once() {
        let found = |values: &[f64]| {
            let (points, measured) = points(values);
            judge(&[claim(json!({"at-most": 3}), None)], Size::Normal, &points, &measured)[0].evidence.clone()
        };
        assert_eq!(found(&[2.0; 12]), "at all 12 points: 2.00000 ± 0.10000, at most 3.00000");
        assert_eq!(found(&[2.0, 1.0, 2.0]).matches("n = ").count(), 3);
    }

    #[test]
    fn orders_are_strict() {
        assert_eq!(verdict(json!({"increases-with": "n"}), None, &[1.0, 2.0, 3.0]), Verdict::Holds);
        assert_eq!(verdict(json!({"increases-with": "n"}), None, &[1.0, 1.0]), Verdict::Fails);
        assert_eq!(verdict(json!({"decreases-with": "n"}), None, &[3.0, 2.0]), Verdict::Holds);
    }

    #[test]
    fn an_erratum_differs_from_print_and_names_the_number() {
        let (points, measured) = points(&[2.0]);
        let check = json!({"equals": 2, "absolute": 0.01});
        let judged = &judge(&[claim(check.clone(), Some(1.0))], Size::Normal, &points, &measured)[0];
        assert_eq!(judged.verdict, Verdict::DiffersFromPrint);
        assert!(judged.evidence.contains("printed 1 (E1)"), "{}", judged.evidence);
        // What is computed must still be right.
        assert_eq!(verdict(check, Some(1.0), &[3.0]), Verdict::Fails);
    }

    #[test]
    fn an_error_that_fits_nearly_anything_decides_nothing() {
        let judged = |check| verdict(check, None, &[1.57]);
        // The standard error is 0.1.
        assert_eq!(judged(json!({"equals": 1, "sigmas": 18})), Verdict::NotJudged, "within 1.8 of 1");
        assert_eq!(judged(json!({"equals": 1, "sigmas": 18, "resolution": 2})), Verdict::Holds);
        assert_eq!(judged(json!({"equals": 1, "sigmas": 6, "resolution": 0.5})), Verdict::NotJudged);
        assert_eq!(judged(json!({"equals": 9, "sigmas": 50})), Verdict::Fails, "outside even so");
        assert_eq!(judged(json!({"equals": 0, "sigmas": 18})), Verdict::Holds, "0 has no scale");
    }

    #[test]
    fn a_claim_waits_for_the_size_that_can_decide_it() {
        let (points, measured) = points(&[4.0]);
        let mut claim = claim(json!({"at-most": 3}), None);
        claim.judged_from = Size::Normal;
        let at = |size| judge(std::slice::from_ref(&claim), size, &points, &measured).remove(0);
        assert_eq!(at(Size::Quick).verdict, Verdict::NotJudged);
        assert_eq!(
            at(Size::Quick).evidence,
            "judged at normal size; here 4.00000 ± 0.10000, at most 3.00000"
        );
        assert_eq!(at(Size::Normal).verdict, Verdict::Fails);
        assert_eq!(at(Size::Full).verdict, Verdict::Fails);
    }

    #[test]
    fn a_bound_must_admit_the_number() {
        let (points, measured) = points(&[1.0]);
        let at = |most: f64| {
            let mut claim = claim(json!({"equals": 1, "sigmas": 3}), None);
            claim.bound =
                Some(Bound { id: String::new(), at_most: Some(most), at_least: None, note: "loose".into() });
            judge(&[claim], Size::Normal, &points, &measured).remove(0)
        };
        assert_eq!(at(3.0).verdict, Verdict::WithinBound);
        assert!(at(3.0).evidence.ends_with("; proved: at most 3 (loose)"), "{}", at(3.0).evidence);
        assert_eq!(at(0.5).verdict, Verdict::Fails);
    }
}

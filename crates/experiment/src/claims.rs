//! Sentences as checks: *holds*, *fails*, or *differs from print*.

use crate::description::{Check, Claim};
use crate::measure::{Estimate, Measured};
use crate::points::Point;
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
}

impl Verdict {
    /// As words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "FAILS",
            Self::DiffersFromPrint => "differs from print",
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

/// Judges every claim.
pub fn judge(claims: &[&Claim], points: &[Point], measured: &[Measured]) -> Vec<Judged> {
    claims.iter().map(|claim| judge_one(claim, points, measured)).collect()
}

fn judge_one(claim: &Claim, points: &[Point], measured: &[Measured]) -> Judged {
    let (holds, evidence) = match evidence(claim, points, measured) {
        Ok(found) => found,
        Err(why) => (false, why),
    };
    let mut judged = Judged {
        says: claim.says.clone(),
        source: claim.source.clone(),
        verdict: if holds { Verdict::Holds } else { Verdict::Fails },
        evidence,
    };
    if let Some(erratum) = &claim.erratum {
        judged.evidence += &format!("; printed {} ({}{})", erratum.printed, erratum.id, note(&erratum.note));
        if holds {
            judged.verdict = Verdict::DiffersFromPrint;
        }
    }
    judged
}

fn note(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

fn evidence(claim: &Claim, points: &[Point], measured: &[Measured]) -> Result<(bool, String), String> {
    let find =
        |name: &str| measured.iter().find(|m| m.name == name).ok_or_else(|| format!("no measure `{name}`"));
    let measure = find(&claim.measure)?;
    let chosen: Vec<&Point> = points.iter().filter(|p| p.matches(&claim.at)).collect();
    if chosen.is_empty() {
        return Err("no point of the sweep matches".into());
    }
    let chosen = if measure.global { vec![chosen[0]] } else { chosen };
    if let Some(key) = claim.check.increases_with.as_ref().or(claim.check.decreases_with.as_ref()) {
        return order(key, claim.check.increases_with.is_some(), measure, &chosen);
    }
    let (mut holds, mut texts) = (true, Vec::new());
    for point in chosen {
        let estimate = measure.at(point)?;
        let expected = match &claim.check.equals_measure {
            Some(name) => Some(find(name)?.at(point)?),
            None => claim.check.equals.map(|value| Estimate { value, error: 0.0 }),
        };
        let (ok, text) = compare(&claim.check, estimate, expected);
        holds &= ok;
        texts.push(if points.len() > 1 && !measure.global {
            format!("{}: {text}", point.label())
        } else {
            text
        });
    }
    Ok((holds, texts.join("; ")))
}

fn order(key: &str, rising: bool, measure: &Measured, points: &[&Point]) -> Result<(bool, String), String> {
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
    Ok((holds, text.join(", ")))
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

fn compare(check: &Check, estimate: Estimate, expected: Option<Estimate>) -> (bool, String) {
    let Estimate { value, error } = estimate;
    let mut text = digits(value);
    if error > 0.0 {
        text += &format!(" ± {}", digits(error));
    }
    let mut holds = value.is_finite();
    if let Some(want) = expected {
        let tolerance = [
            check.absolute,
            check.relative.map(|r| r * want.value.abs()),
            check.sigmas.map(|s| s * error.hypot(want.error)),
        ];
        let tolerance = tolerance.into_iter().flatten().fold(0.0, f64::max);
        holds &= (value - want.value).abs() <= tolerance;
        text += &format!(", expected {} within {tolerance:.2e}", digits(want.value));
    }
    if let Some(least) = check.at_least {
        holds &= value >= least;
        text += &format!(", at least {}", digits(least));
    }
    if let Some(most) = check.at_most {
        holds &= value <= most;
        text += &format!(", at most {}", digits(most));
    }
    (holds, text)
}

//! What is known of an experiment as the page shows it: JSON with texts as the command line prints them, and drawings as HTML.

use didact_experiment::claims::{Verdict, digits};
use didact_experiment::explain::{self, Explanation, LiveQuantity};
use didact_experiment::live::{Live, LiveNumber, LiveOutcome, LivePlan};
use didact_experiment::measures::{Dependency, Measured};
use didact_experiment::points::Point;
use didact_experiment::{Diagnostic, Experiment, Source};
use didact_figure::Figure;
use didact_figure::interactive::{Framed, Prose, escape};
use serde_json::{Map, Value, json};

/// Bytes of numbers beside a drawing.
const NUMBERS: usize = 60_000;

/// Points of a sweep whose numbers are listed one by one.
const LISTED: usize = 12;

/// Characters of a text that is shown beside a number.
const LONGEST: usize = 400;

/// An error with its place in the text and at the form.
pub(crate) fn error(diagnostic: &Diagnostic) -> Value {
    let place = diagnostic.place.as_ref();
    json!({
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        "key": diagnostic.key(),
        "line": place.map(|p| p.line),
        "column": place.map(|p| p.column),
        "length": place.map(|p| p.length),
    })
}

/// The description with every default, as data.
pub(crate) fn resolved(experiment: &Experiment) -> Value {
    serde_json::to_value(&experiment.resolved).unwrap_or_default()
}

/// The description as text and as data: as it is written, and with every default.
pub(crate) fn description(source: &Source, experiment: &Experiment, resolved: &Value) -> Value {
    json!({
        "text": source.text,
        "values": source.plain().unwrap_or_default(),
        "resolved": resolved,
        "title": experiment.resolved.title,
        "folder": experiment.folder_name(),
        "remarks": experiment.remarks(),
        "references": references(experiment),
    })
}

fn references(experiment: &Experiment) -> Vec<Value> {
    let all = experiment.resolved.references();
    all.iter().map(|r| json!({"key": r.key, "citation": r.citation, "locator": r.locator})).collect()
}

/// Measures, predictions, claims and drawings; drawings alone, without numbers and tools, if they are to be light.
pub(crate) fn outcome(live: &Live, outcome: &LiveOutcome, beside: &[LiveQuantity], light: bool) -> Value {
    let mut prose = Prose::default();
    let drawn = |(name, figure): &(String, _)| {
        if light { drawing(name, figure) } else { framed(name, figure, &mut prose) }
    };
    let figures: Vec<Value> = outcome.figures.iter().map(drawn).collect();
    let claims: Vec<Value> = outcome
        .claims
        .iter()
        .map(|(judged, progress)| {
            json!({
                "says": prose.html(&judged.says),
                "source": prose.html(&judged.source),
                "verdict": judged.verdict.words(),
                "class": match judged.verdict {
                    Verdict::Holds => "holds",
                    Verdict::Fails => "fails",
                    Verdict::DiffersFromPrint => "differs",
                    Verdict::WithinBound => "within",
                    Verdict::NotJudged => "not-judged",
                },
                "evidence": escape(&cut(&judged.evidence)),
                "progress": progress.word(),
            })
        })
        .collect();
    let points = &live.experiment.points;
    let numbers = |list: &[LiveNumber]| -> Vec<Value> { list.iter().map(|n| number(n, points)).collect() };
    json!({
        "figures": figures,
        "measures": numbers(&outcome.measures),
        "readings": numbers(&outcome.readings),
        "beside": beside.iter().map(quantity).collect::<Vec<_>>(),
        "claims": claims,
        "failures": outcome.failures.iter().map(|f| cut(f)).collect::<Vec<_>>(),
        "definitions": prose.definitions(),
    })
}

fn drawing(name: &str, figure: &Result<Figure, String>) -> Value {
    let svg = figure
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|f| didact_figure::to_svg(f).map_err(|e| e.to_string()));
    match svg {
        Ok(svg) => json!({"name": name, "svg": svg}),
        Err(why) => json!({"name": name, "waits": why}),
    }
}

fn framed(name: &str, figure: &Result<Figure, String>, prose: &mut Prose) -> Value {
    let html = figure.as_ref().map_err(Clone::clone).and_then(|figure| {
        let framed = Framed { figure, name, files: false, room: NUMBERS };
        framed.html(prose).map_err(|error| error.to_string())
    });
    match html {
        Ok(html) => json!({"name": name, "html": html}),
        Err(why) => json!({"name": name, "waits": why}),
    }
}

/// A number with its text as `didact run` prints it.
fn number(number: &LiveNumber, points: &[Point]) -> Value {
    let LiveNumber { measured, progress, engines, kind } = number;
    let kind_name = serde_json::to_value(kind).ok().and_then(|kind| Some(kind["kind"].as_str()?.to_string()));
    let mut explain: Vec<String> = kind_name.iter().map(|kind| format!("measure:{kind}")).collect();
    for dependency in kind.depends_on() {
        if let Dependency::Quantity { path, .. } = dependency {
            explain.push(format!("quantity:{}", path.name));
        }
    }
    explain.extend(engines.iter().map(|engine| format!("engine:{engine}")));
    json!({
        "name": measured.name,
        "progress": progress.word(),
        "values": values(measured, points),
        "explain": explain,
    })
}

/// One row per point of the sweep, as far as they are few; else their range.
fn values(measured: &Measured, points: &[Point]) -> Vec<Value> {
    let row = |label: String, found: &didact_experiment::measures::Found| match found {
        Ok(estimate) => json!({"at": label, "text": estimate.to_string(), "value": estimate.value}),
        Err(why) => json!({"at": label, "why": cut(&why.to_string())}),
    };
    if let [only] = measured.values.as_slice() {
        return vec![row(String::new(), only)];
    }
    if measured.values.len() <= LISTED {
        let rows = points.iter().zip(&measured.values);
        return rows.map(|(point, found)| row(point.label(), found)).collect();
    }
    let numbers: Vec<f64> = measured.values.iter().flatten().map(|e| e.value).collect();
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let text = match numbers.len() {
        0 => return vec![json!({"at": "", "why": "no number at any point"})],
        n => format!("{} to {} at {n} points", digits(least), digits(most)),
    };
    vec![json!({"at": "", "text": text})]
}

fn quantity(quantity: &LiveQuantity) -> Value {
    let explain = [format!("quantity:{}", quantity.quantity)];
    let found = match &quantity.value {
        Ok(value) => json!({"at": "", "text": digits(*value), "value": value}),
        Err(why) => json!({"at": "", "why": cut(why)}),
    };
    json!({"name": quantity.says, "entry": quantity.entry, "progress": "final", "values": [found], "explain": explain})
}

/// What the parts would take, in words for a reader.
pub(crate) fn plan(plan: &LivePlan) -> Value {
    json!({
        "theory": plan.theory_seconds,
        "simulation": plan.simulation_seconds,
        "memory": plan.memory,
        "scanPoints": plan.scan_points,
    })
}

/// The explanations of these things as HTML.
pub(crate) fn explanations(asked: &[String]) -> Result<Value, Diagnostic> {
    let mut prose = Prose::default();
    let mut all = Vec::new();
    for what in asked {
        let Explanation { says, tex, derivation } = explain::of(what)?;
        all.push(json!({
            "what": what,
            "says": prose.html(&says),
            "equation": tex.map(|tex| prose.html(&format!("${tex}$"))),
            "page": derivation.as_ref().map(|d| &d.0),
            "anchor": derivation.as_ref().map(|d| &d.1),
        }));
    }
    let mut answer = Map::new();
    answer.insert("explanations".into(), all.into());
    answer.insert("definitions".into(), prose.definitions().into());
    Ok(Value::Object(answer))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

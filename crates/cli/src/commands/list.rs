//! `didact list`: what there is, one line each; `didact list quantities NAME` and `didact list papers NAME` say more of one.

use crate::exit::Ending;
use crate::papers::{self, Covered, Paper, PlannedCost};
use didact_experiment::engines::EngineSpec;
use didact_experiment::source::nearest;
use didact_experiment::{Diagnostic, Size, quantities};
use didact_families::Model;
use didact_model::quantity::Quantity;
use rayon::prelude::*;
use serde_json::{Value, json};

/// Name and one line.
type Rows = Vec<(String, String)>;

/// A list by its name, and what makes it.
type Group = (&'static str, fn() -> Rows);

/// The lists, in the order in which they are printed.
const GROUPS: [Group; 7] = [
    ("families", || owned(Model::catalogue())),
    ("engines", || EngineSpec::catalogue().into_iter().map(|e| (e.name, e.about.into())).collect()),
    ("activations", || owned(didact_math::activation::catalogue())),
    ("functions", didact_math::expression::catalogue),
    ("observables", || owned(didact_model::observable::CATALOGUE)),
    ("quantities", || quantities::all().into_iter().map(|(path, q)| (path, q.summary.into())).collect()),
    ("papers", || papers::all().into_iter().map(|p| (p.key.into(), p.row.title)).collect()),
];

fn owned<'a>(list: impl IntoIterator<Item = (&'a str, &'a str)>) -> Rows {
    list.into_iter().map(|(name, about)| (name.into(), about.into())).collect()
}

pub(crate) fn list(what: Option<&str>, name: Option<&str>, as_json: bool) -> Result<Ending, Diagnostic> {
    match (what, name) {
        (Some("papers"), None) => papers(&papers::all(), as_json)?,
        (Some("papers"), Some(name)) => paper(name, as_json)?,
        (Some("quantities"), Some(name)) => {
            let found = quantities::find(name).map_err(Diagnostic::new)?;
            if as_json {
                say!("{:#}", quantity_json(name, found));
            } else {
                quantity(name, found);
            }
        }
        (what, None) => groups(what, as_json)?,
        (what, Some(name)) => {
            let message = format!("`{}` has nothing to say of `{name}` alone", what.unwrap_or_default());
            return Err(Diagnostic::new(message)
                .hint("quantities and papers have: `didact list quantities committee/plateau`"));
        }
    }
    Ok(Ending::Done)
}

fn groups(what: Option<&str>, as_json: bool) -> Result<(), Diagnostic> {
    let names = GROUPS.map(|g| g.0);
    if let Some(wanted) = what.filter(|w| !names.contains(w)) {
        let hint = nearest(wanted, &names)
            .map_or_else(|| format!("lists are {}", names.join(", ")), |n| format!("did you mean `{n}`?"));
        return Err(Diagnostic::new(format!("nothing to list under `{wanted}`")).hint(hint));
    }
    let chosen = GROUPS.iter().filter(|g| what.is_none_or(|w| w == g.0));
    if as_json {
        let object: serde_json::Map<_, _> =
            chosen.map(|(name, rows)| ((*name).to_string(), json!(rows()))).collect();
        say!("{:#}", Value::Object(object));
        return Ok(());
    }
    for (name, rows) in chosen {
        say!("{name}");
        for (key, about) in rows() {
            say!("  {key:<26} {about}");
        }
    }
    Ok(())
}

/// A quantity: what it is, its inputs and the entries of its answer.
pub(crate) fn quantity(path: &str, quantity: &Quantity) {
    say!("{path}: {}", quantity.summary);
    say!("inputs");
    for input in quantity.inputs {
        let default = match input.default {
            None => "required".into(),
            Some("null") => "optional".into(),
            Some(value) => format!("default {value}"),
        };
        say!("  {:<16} {:<22} {default:<18} {}", input.name, input.kind.words(), input.about);
    }
    say!("outputs\n  {}", quantity.outputs.join(", "));
}

fn quantity_json(path: &str, quantity: &Quantity) -> Value {
    let inputs = quantity.inputs.iter().map(|input| {
        json!({"name": input.name, "type": input.kind.words(), "required": input.default.is_none(),
               "default": input.default.and_then(|d| serde_json::from_str::<Value>(d).ok()), "about": input.about})
    });
    json!({"quantity": path, "summary": quantity.summary, "inputs": inputs.collect::<Vec<_>>(), "outputs": quantity.outputs})
}

const SIZES: [(&str, Size); 3] = [("quick", Size::Quick), ("normal", Size::Normal), ("full", Size::Full)];

/// The papers with the planner's estimate of their time at each size.
pub(crate) fn papers(papers: &[Paper], as_json: bool) -> Result<(), Diagnostic> {
    let costs: Vec<[PlannedCost; 3]> = papers
        .par_iter()
        .map(|paper| {
            let [quick, normal, full] = SIZES.map(|(_, size)| paper.estimate(size));
            Ok([quick?, normal?, full?])
        })
        .collect::<Result<_, Diagnostic>>()?;
    if as_json {
        let rows = papers.iter().zip(&costs).map(|(paper, costs)| {
            let estimates: serde_json::Map<String, Value> = SIZES
                .iter()
                .zip(costs)
                .map(|((size, _), cost)| {
                    let estimate =
                        json!({"seconds-of-one-core": cost.seconds, "scan-points": cost.scan_points});
                    ((*size).to_string(), estimate)
                })
                .collect();
            let mut row = paper_json(paper);
            row["estimates"] = Value::Object(estimates);
            row
        });
        say!("{:#}", json!({"papers": rows.collect::<Vec<_>>()}));
        return Ok(());
    }
    say!("papers");
    say!(
        "  {:<24} {:>7} {:>9}  {:>10} {:>10} {:>10}  title",
        "key",
        "figures",
        "covered",
        "--quick",
        "normal",
        "--full"
    );
    for (paper, costs) in papers.iter().zip(&costs) {
        let [quick, normal, full] = costs.map(PlannedCost::words);
        let figures = paper.figures.len();
        let covered =
            paper.covered().map_or_else(String::new, |counts| counts.map(|n| n.to_string()).join("/"));
        say!(
            "  {:<24} {figures:>7} {covered:>9}  {quick:>10} {normal:>10} {full:>10}  {}",
            paper.key,
            paper.row.title
        );
    }
    say!(
        "  covered: figures, tables and theorems of the source that are the same here, partly here, missing; `didact list papers KEY` names them"
    );
    say!(
        "  times: seconds of one core as the planner estimates them, not measured; `+` where scans come on top, which it cannot estimate"
    );
    Ok(())
}

/// One paper: its row of the registry and its figures.
fn paper(key: &str, as_json: bool) -> Result<(), Diagnostic> {
    let papers = papers::all();
    let figures = papers::find(&papers, key)?;
    let paper = figures[0].0;
    if as_json {
        say!("{:#}", paper_json(paper));
        return Ok(());
    }
    let row = &paper.row;
    say!("{}: {}\n  {}. {}", paper.key, row.title, row.citation, row.locator);
    for (what, text) in [
        ("families", row.families.join(", ").as_str()),
        ("guide", &row.guide),
        ("derivation", &row.derivation),
        ("golden numbers", &row.golden),
    ] {
        say!("  {what:<16} {text}");
    }
    say!("figures");
    for (paper, figure) in figures {
        say!("  {:<44} {}", format!("{}/{}", paper.key, figure.name), figure.title());
    }
    if !row.coverage.is_empty() {
        say!("what of the source is here");
    }
    for Covered { item, figures, state, why } in &row.coverage {
        let shown = if why.is_empty() { figures.join(", ") } else { why.clone() };
        say!("  {:<8} {item}: {shown}", state.word());
    }
    Ok(())
}

fn paper_json(paper: &Paper) -> Value {
    let row = &paper.row;
    let figure =
        |f: &papers::PaperFigure| json!({"figure": format!("{}/{}", paper.key, f.name), "title": f.title()});
    let covered =
        |c: &Covered| json!({"item": c.item, "figures": c.figures, "state": c.state.word(), "why": c.why});
    json!({"key": paper.key, "title": row.title, "citation": row.citation, "locator": row.locator,
           "families": row.families, "guide": row.guide, "golden": row.golden, "derivation": row.derivation,
           "figures": paper.figures.iter().map(figure).collect::<Vec<_>>(),
           "coverage": row.coverage.iter().map(covered).collect::<Vec<_>>()})
}

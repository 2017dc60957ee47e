//! Scans as tables of a report: what varies, and what was found there.

use crate::claims::digits;
use crate::quantities::{Entries, Scan};
use crate::words::Words;
use didact_figure::interactive::{Prose, escape};
use serde_json::Value;

/// Longer scans are curves: they stand in their own files.
const MOST_ROWS: usize = 60;
/// Longer lists are curves too.
const MOST_NUMBERS: usize = 8;

/// The table of a scan; `None` if it is too long, or has nothing to show.
pub(crate) fn html(scan: &Scan, words: &Words, prose: &mut Prose) -> Option<String> {
    if scan.rows.is_empty() || scan.rows.len() > MOST_ROWS {
        return None;
    }
    let inputs: Vec<Vec<(String, String)>> = scan.rows.iter().map(|(p, _)| flat(&p.values)).collect();
    let known: Vec<Option<Vec<(String, String)>>> =
        scan.rows.iter().map(|(_, e)| e.as_ref().ok().map(shown)).collect();
    let varying = names(inputs.iter()).into_iter().filter(|name| {
        let first = find(&inputs[0], name);
        inputs.len() == 1 || inputs.iter().any(|row| find(row, name) != first)
    });
    let (varying, entries): (Vec<String>, Vec<String>) = (varying.collect(), names(known.iter().flatten()));
    if entries.is_empty() {
        return None;
    }
    let cell = |tag: &str, text: &str| format!("<{tag}>{}</{tag}>", escape(text));
    let head: String =
        varying.iter().chain(&entries).map(|name| format!("<th>{}</th>", words.key(name, prose))).collect();
    let mut body = String::new();
    for ((inputs, known), (_, result)) in inputs.iter().zip(&known).zip(&scan.rows) {
        body += "<tr>";
        body += &varying.iter().map(|name| cell("td", find(inputs, name))).collect::<String>();
        match (known, result) {
            (Some(row), _) => {
                body += &entries.iter().map(|name| cell("td", find(row, name))).collect::<String>();
            }
            (None, Err(why)) => {
                body += &format!("<td colspan={}>{}</td>", entries.len(), escape(&why.to_string()));
            }
            (None, Ok(_)) => {}
        }
        body += "</tr>\n";
    }
    let name = escape(&scan.name);
    Some(format!(
        "<h3>{name}</h3><div class=scroll><table class=small><tr>{head}</tr>\n{body}</table></div>\n"
    ))
}

/// Inputs with the fields of tables under dotted names, as text.
fn flat(values: &std::collections::BTreeMap<String, Value>) -> Vec<(String, String)> {
    fn add(name: String, value: &Value, out: &mut Vec<(String, String)>) {
        match value {
            Value::Object(fields) => {
                fields.iter().for_each(|(key, value)| add(format!("{name}.{key}"), value, out));
            }
            other => out.push((name, text(other))),
        }
    }
    let mut out = Vec::new();
    values.iter().for_each(|(name, value)| add(name.clone(), value, &mut out));
    out
}

/// Numbers, words and short lists.
fn shown(entries: &Entries) -> Vec<(String, String)> {
    let short = |value: &Value| value.as_array().is_none_or(|list| list.len() <= MOST_NUMBERS);
    entries.iter().filter(|(_, v)| short(v)).map(|(name, v)| (name.clone(), text(v))).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(value) if value.fract() != 0.0 => digits(value),
            _ => number.to_string(),
        },
        Value::String(words) => words.clone(),
        Value::Null => "–".into(),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// All names, in the order of their first appearance.
fn names<'a>(rows: impl Iterator<Item = &'a Vec<(String, String)>>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (name, _) in rows.flatten() {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}

fn find<'a>(row: &'a [(String, String)], name: &str) -> &'a str {
    row.iter().find(|(known, _)| known == name).map_or("", |(_, text)| text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Point;
    use crate::quantities::NoAnswer;
    use serde_json::json;

    #[test]
    fn a_scan_shows_what_varies_and_what_was_found() {
        let row = |index: usize, kappa: f64, found: Result<Value, NoAnswer>| {
            let model = json!({ "family": "f", "loss": { "kind": "huber", "kappa": kappa } });
            let values = [("model".to_string(), model)].into();
            let entries =
                found.map(|v| [("delta".to_string(), v), ("curve".to_string(), json!(vec![0.5; 99]))].into());
            (Point { index, values }, entries)
        };
        let rows =
            vec![row(0, 1.0, Ok(json!(6.25))), row(1, 2.0, Err(NoAnswer::Refused("no <answer>".into())))];
        let scan = Scan { name: "losses".into(), rows };
        let html = html(&scan, &Words::default(), &mut Prose::default()).unwrap();
        assert!(html.contains("<h3>losses</h3>"));
        assert!(html.contains("<tr><th>model.loss.kappa</th><th>delta</th></tr>"), "{html}");
        assert!(html.contains("<td>6.25"), "{html}");
        assert!(html.contains("<td colspan=1>no &lt;answer&gt;</td>"), "{html}");
        assert!(!html.contains("curve") && !html.contains("family"), "{html}");
    }

    #[test]
    fn curves_are_no_tables() {
        let row = |index: usize| {
            let values = [("x".to_string(), json!(index))].into();
            (Point { index, values }, Ok([("y".to_string(), json!(1.0))].into()))
        };
        let scan = Scan { name: "curve".into(), rows: (0..61).map(row).collect() };
        assert_eq!(html(&scan, &Words::default(), &mut Prose::default()), None);
    }
}

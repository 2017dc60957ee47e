//! Series of scans: an entry against an input, a list against a list, a list in bins, two inputs as a map, or guides at entries.

use super::{Drawable, Look};
use crate::description::{Series, SeriesStyle};
use crate::points::Point;
use crate::quantities::{Entries, Scan};
use didact_figure::{ColourBar, HeatMap, Layer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

impl Drawable<'_> {
    pub(super) fn scan_series(&self, series: &Series, name: &str) -> Result<Vec<Layer>, String> {
        let scan =
            self.results.scans.iter().find(|s| s.name == name).ok_or_else(|| format!("no scan `{name}`"))?;
        if series.style == SeriesStyle::Guides {
            return guides(scan, series);
        }
        let y = needed(series.y.as_ref(), name, "y")?;
        if series.style == SeriesStyle::Map {
            return map(scan, series, y);
        }
        if rows(scan, series).any(|(_, e)| e.is_some_and(|e| e.get(y).is_some_and(Value::is_array))) {
            return curves(scan, series, y);
        }
        let x = needed(series.x.as_ref(), name, "x")?;
        // One curve per combination of the inputs that vary beside the one along it.
        let along = along(scan, series, x);
        let along = along.as_str();
        let mut curves: Vec<(Point, Vec<f64>, Vec<f64>)> = Vec::new();
        for (point, entries) in rows(scan, series) {
            let mut others = point.clone();
            others.values.remove(along);
            let known = curves.iter().position(|(known, ..)| known.values == others.values);
            let at = known.unwrap_or(curves.len());
            if known.is_none() {
                curves.push((others, Vec::new(), Vec::new()));
            }
            let (_, xs, ys) = &mut curves[at];
            xs.push(coordinate(scan, point, entries, x)?);
            ys.push(entries.map_or(Ok(f64::NAN), |e| number(scan, e, y))?);
        }
        Ok(curves.into_iter().map(|(point, xs, ys)| drawn(&Look::new(series, &point), xs, ys)).collect())
    }
}

fn needed<'a>(key: Option<&'a String>, scan: &str, axis: &str) -> Result<&'a str, String> {
    key.map(String::as_str).ok_or_else(|| format!("the series of scan `{scan}` needs `{axis}`"))
}

fn rows<'a>(scan: &'a Scan, series: &'a Series) -> impl Iterator<Item = (&'a Point, Option<&'a Entries>)> {
    scan.rows.iter().filter(|(p, _)| p.matches(&series.at)).map(|(p, e)| (p, e.as_ref().ok()))
}

/// The input that varies along a curve: x, or the number with the most values where x is an entry, as in a curve that is given
/// by a parameter.
fn along(scan: &Scan, series: &Series, x: &str) -> String {
    let points = || rows(scan, series).map(|(point, _)| point);
    if points().any(|p| p.values.contains_key(x)) {
        return x.to_string();
    }
    let numbers = points().flat_map(|p| &p.values).filter(|(_, value)| value.is_number());
    let mut values: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (key, value) in numbers {
        values.entry(key).or_default().insert(value.to_string());
    }
    values.into_iter().max_by_key(|(_, seen)| seen.len()).map_or(x, |(key, _)| key).to_string()
}

/// An entry as a number. An entry that is null (the quantity has no value there) is a gap; a missing one is a slip.
fn number(scan: &Scan, entries: &Entries, name: &str) -> Result<f64, String> {
    let value = entries.get(name).ok_or_else(|| {
        let known: Vec<&str> = entries.keys().map(String::as_str).collect();
        format!("scan `{}` has no entry `{name}`; it has {}", scan.name, known.join(", "))
    })?;
    Ok(value.as_f64().unwrap_or(f64::NAN))
}

/// The abscissa of a row: an input that varies, or else an entry.
fn coordinate(scan: &Scan, point: &Point, entries: Option<&Entries>, name: &str) -> Result<f64, String> {
    match (point.values.get(name), entries) {
        (Some(value), _) => {
            value.as_f64().ok_or_else(|| format!("`{name}` of scan `{}` is no number", scan.name))
        }
        (None, Some(entries)) => number(scan, entries, name),
        (None, None) => Ok(f64::NAN),
    }
}

fn list(entries: &Entries, name: &str) -> Option<Vec<f64>> {
    let values = entries.get(name)?.as_array()?;
    Some(values.iter().map(|v| v.as_f64().unwrap_or(f64::NAN)).collect())
}

/// One curve (or histogram) per row of the scan.
fn curves(scan: &Scan, series: &Series, y: &str) -> Result<Vec<Layer>, String> {
    let mut layers = Vec::new();
    for (point, entries) in rows(scan, series) {
        // A row without an answer is left out of the drawing, not of the tables.
        let Some(entries) = entries else { continue };
        let look = Look::new(series, point);
        let ys = list(entries, y).ok_or_else(|| format!("`{y}` of scan `{}` is no list", scan.name))?;
        if series.style == SeriesStyle::Histogram {
            layers.push(look.histogram(&ys)?);
            continue;
        }
        let x = needed(series.x.as_ref(), &scan.name, "x")?;
        let xs = list(entries, x).ok_or_else(|| format!("`{x}` of scan `{}` is no list", scan.name))?;
        if xs.len() != ys.len() {
            return Err(format!(
                "scan `{}`: `{x}` has {} numbers and `{y}` has {}",
                scan.name,
                xs.len(),
                ys.len()
            ));
        }
        layers.push(drawn(&look, xs, ys));
    }
    Ok(layers)
}

fn drawn(look: &Look, x: Vec<f64>, y: Vec<f64>) -> Layer {
    if look.series.style == SeriesStyle::Markers {
        let none = vec![[0.0; 2]; x.len()];
        return look.markers(x, y, &none);
    }
    look.line(x, y)
}

/// Lines at an entry or an input of every row that has an answer, one for each number of a list: vertical at `x`, horizontal at `y`.
fn guides(scan: &Scan, series: &Series) -> Result<Vec<Layer>, String> {
    let name = match (&series.x, &series.y) {
        (Some(x), None) => x,
        (None, Some(y)) => y,
        _ => return Err(format!("guides of scan `{}` need one of `x` and `y`", scan.name)),
    };
    let mut layers = Vec::new();
    // Without groups one entry of the legend, named after the first, stands for all.
    let first = rows(scan, series).next().and_then(|(point, _)| Look::new(series, point).legend);
    for (point, entries) in rows(scan, series) {
        let mut look = Look::new(series, point);
        if look.group.is_none() {
            look.legend.clone_from(&first);
        }
        let several = entries.filter(|_| !point.values.contains_key(name)).and_then(|e| list(e, name));
        let places = match several {
            Some(places) => places,
            None => vec![coordinate(scan, point, entries, name)?],
        };
        layers.extend(places.into_iter().filter(|at| at.is_finite()).map(|at| look.guide(at)));
    }
    Ok(layers)
}

/// A scan over two evenly spaced inputs: cells are centred at the grid points.
fn map(scan: &Scan, series: &Series, y: &str) -> Result<Vec<Layer>, String> {
    let x = needed(series.x.as_ref(), &scan.name, "x")?;
    let z = needed(series.z.as_ref(), &scan.name, "z")?;
    let mut cells = Vec::new();
    for (point, entries) in rows(scan, series) {
        let at = |name: &str| coordinate(scan, point, None, name);
        cells.push((at(x)?, at(y)?, entries.map_or(Ok(f64::NAN), |e| number(scan, e, z))?));
    }
    let axis = |get: &dyn Fn(&(f64, f64, f64)) -> f64| {
        let mut values: Vec<f64> = cells.iter().map(get).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    };
    let (xs, ys) = (axis(&|c| c.0), axis(&|c| c.1));
    if xs.len() < 2 || ys.len() < 2 || xs.iter().chain(&ys).any(|v| v.is_nan()) {
        return Err(format!("a map of scan `{}` needs two inputs that vary, `{x}` and `{y}`", scan.name));
    }
    let mut values = vec![vec![f64::NAN; xs.len()]; ys.len()];
    for (at_x, at_y, value) in cells {
        let (i, j) = (xs.partition_point(|v| *v < at_x), ys.partition_point(|v| *v < at_y));
        values[j][i] = value;
    }
    let edges = |v: &[f64]| {
        let half = (v[v.len() - 1] - v[0]) / (v.len() - 1) as f64 / 2.0;
        [v[0] - half, v[v.len() - 1] + half]
    };
    Ok(vec![Layer::HeatMap(HeatMap {
        values: values.into_iter().map(Into::into).collect(),
        x: edges(&xs),
        y: edges(&ys),
        bar: series.legend.clone().map(|label| ColourBar { label }),
        ..HeatMap::default()
    })])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Results;
    use serde_json::json;

    fn scan() -> Scan {
        let row = |index: usize, a: f64, b: f64| {
            let values = [("a".to_string(), json!(a)), ("b".to_string(), json!(b))].into();
            let entries = [
                ("sum".to_string(), json!(a + b)),
                ("list".to_string(), json!([a, b])),
                ("twice".to_string(), json!([2.0 * a, 2.0 * b])),
            ];
            (Point { index, values }, Ok(entries.into()))
        };
        Scan {
            name: "s".into(),
            rows: vec![row(0, 1.0, 5.0), row(1, 1.0, 6.0), row(2, 2.0, 5.0), row(3, 2.0, 6.0)],
        }
    }

    fn draw(series: Series) -> Vec<Layer> {
        let results = Results { scans: vec![scan()], ..Results::default() };
        let series = Series { scan: Some("s".into()), ..series };
        Drawable { results: &results, measured: &[] }.scan_series(&series, "s").unwrap()
    }

    #[test]
    fn inputs_beside_the_axis_make_a_curve_each() {
        let text = |t: &str| Some(t.to_string());
        let layers =
            draw(Series { x: text("a"), y: text("sum"), legend: text("b = {b}"), ..Series::default() });
        let [Layer::Line(first), Layer::Line(second)] = layers.as_slice() else {
            panic!("two lines: {layers:?}")
        };
        assert_eq!((first.x.to_vec(), first.y.to_vec()), (vec![1.0, 2.0], vec![6.0, 7.0]));
        assert_eq!(second.y.to_vec(), vec![7.0, 8.0]);
        assert_eq!(second.legend.as_deref(), Some("b = 6"));
    }

    #[test]
    fn an_entry_against_an_entry_is_a_curve_along_the_input_that_varies() {
        let text = |t: &str| Some(t.to_string());
        let at = [("b".to_string(), json!(5.0))].into();
        let layers = draw(Series { x: text("sum"), y: text("sum"), at, ..Series::default() });
        let [Layer::Line(line)] = layers.as_slice() else { panic!("one line: {layers:?}") };
        assert_eq!((line.x.to_vec(), line.y.to_vec()), (vec![6.0, 7.0], vec![6.0, 7.0]));
    }

    #[test]
    fn guides_stand_at_an_entry_of_every_row() {
        let text = |t: &str| Some(t.to_string());
        let style = SeriesStyle::Guides;
        let lines = draw(Series { x: text("sum"), legend: text("sums"), style, ..Series::default() });
        let guides: Vec<(Option<f64>, Option<&str>)> = lines
            .iter()
            .map(|l| {
                let Layer::Guide(guide) = l else { panic!("a guide: {l:?}") };
                (guide.x, guide.legend.as_deref())
            })
            .collect();
        assert_eq!(
            guides,
            [6.0, 7.0, 7.0, 8.0].map(|x| (Some(x), Some("sums"))),
            "one text is one entry of the legend, with the strokes of all"
        );
    }

    #[test]
    fn guides_at_a_list_are_horizontal_lines_in_the_colour_of_their_group() {
        let text = |t: &str| Some(t.to_string());
        let (style, at) = (SeriesStyle::Guides, [("b".to_string(), json!(6.0))].into());
        let series = Series { y: text("list"), group: text("a = {a}"), at, style, ..Series::default() };
        let lines: Vec<(Option<f64>, Option<f64>, Option<String>)> = draw(series)
            .into_iter()
            .map(|l| {
                let Layer::Guide(guide) = l else { panic!("a guide: {l:?}") };
                (guide.x, guide.y, guide.group)
            })
            .collect();
        let of = |y: f64, a: &str| (None, Some(y), Some(format!("a = {a}")));
        assert_eq!(lines, [of(1.0, "1"), of(6.0, "1"), of(2.0, "2"), of(6.0, "2")]);
    }

    #[test]
    fn lists_are_curves_and_two_inputs_are_a_map() {
        let text = |t: &str| Some(t.to_string());
        let curves = draw(Series { x: text("list"), y: text("twice"), ..Series::default() });
        let Layer::Line(last) = &curves[3] else { panic!("a line") };
        assert_eq!((curves.len(), last.x.to_vec(), last.y.to_vec()), (4, vec![2.0, 6.0], vec![4.0, 12.0]));
        let map = draw(Series {
            x: text("a"),
            y: text("b"),
            z: text("sum"),
            style: SeriesStyle::Map,
            ..Series::default()
        });
        let [Layer::HeatMap(map)] = map.as_slice() else { panic!("a map: {map:?}") };
        assert_eq!((map.x, map.y), ([0.5, 2.5], [4.5, 6.5]));
        assert_eq!(
            map.values.iter().map(|r| r.to_vec()).collect::<Vec<_>>(),
            vec![vec![6.0, 7.0], vec![7.0, 8.0]]
        );
    }
}

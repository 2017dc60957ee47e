//! Nothing may leave the page, and no two labels may meet, whatever the ranges.

use proptest::prelude::*;

use super::*;
use crate::figure::{Axis, Inset, Legend, Panel};
use crate::layer::{ColourBar, HeatMap, Layer, Line};
use crate::scene::Text;

/// Boxes may touch by this much (pt): side bearings of the glyphs are wider.
const TOUCH: f64 = 0.05;

fn faults(figure: &Figure) -> Vec<String> {
    let page = page(figure).unwrap();
    let paper = Rect { left: 0.0, top: 0.0, right: page.width, bottom: page.height };
    let texts: Vec<(&Text, Rect)> =
        page.texts().into_iter().map(|text| (text, text.bounds().grown(-TOUCH))).collect();
    let mut faults = Vec::new();
    for (index, (text, area)) in texts.iter().enumerate() {
        if !paper.contains(area) {
            faults.push(format!("`{}` leaves the page: {area:?}", text.typeset.source));
        }
        for (other, its_area) in &texts[..index] {
            if area.overlaps(its_area) {
                faults.push(format!("`{}` meets `{}`", text.typeset.source, other.typeset.source));
            }
        }
    }
    faults
}

fn line(x: [f64; 2], y: [f64; 2]) -> Layer {
    Layer::Line(Line { x: x.to_vec().into(), y: y.to_vec().into(), ..Line::default() })
}

fn any_axis() -> impl Strategy<Value = Axis> {
    let label = prop::sample::select(vec![
        "",
        "$\\alpha$",
        "generalisation error $\\epsilon_g$",
        "a label that goes on and on about the sample ratio $\\alpha = P/N$ of the experiment",
        "$\\frac{\\sum_k \\lambda_k}{\\sqrt{1+\\beta}}$",
    ]);
    let linear = (-1e6..1e6f64, -8..8i32, 1.0..10.0f64).prop_map(|(low, exponent, mantissa)| {
        let span = (mantissa * 10f64.powi(exponent)).max(low.abs() * 1e-9);
        (crate::ScaleKind::Linear, [low, low + span])
    });
    let log = (-30.0..20.0f64, 0.01..25.0f64)
        .prop_map(|(low, decades)| (crate::ScaleKind::Log, [10f64.powf(low), 10f64.powf(low + decades)]));
    (label, prop_oneof![linear, log]).prop_map(|(label, (scale, range))| Axis {
        label: label.into(),
        scale,
        range: Some(range),
        ticks: None,
    })
}

fn any_panel() -> impl Strategy<Value = Panel> {
    (any_axis(), any_axis(), any::<bool>(), any::<bool>()).prop_map(|(x, y, titled, heat)| {
        let (across, up) = (x.range.unwrap_or_default(), y.range.unwrap_or_default());
        let layer = if heat {
            let values = vec![vec![across[0], across[1]].into()];
            let bar = Some(ColourBar { label: y.label.clone() });
            Layer::HeatMap(HeatMap { values, x: across, y: up, bar, ..HeatMap::default() })
        } else {
            line(across, up)
        };
        Panel {
            title: titled.then(|| "a title over the panel".into()),
            x,
            y,
            layers: vec![layer],
            ..Panel::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn one_panel_of_any_range_has_its_labels_apart_and_on_the_page(panel in any_panel()) {
        let figure = Figure { panels: vec![panel], title: Some("Title".into()), ..Figure::default() };
        prop_assert_eq!(faults(&figure), Vec::<String>::new());
    }

    #[test]
    fn so_do_six_panels_with_a_legend(panels in prop::collection::vec(any_panel(), 6)) {
        let mut panels = panels;
        for (index, panel) in panels.iter_mut().enumerate() {
            let (x, y) = (panel.x.range.unwrap_or_default(), panel.y.range.unwrap_or_default());
            let Layer::Line(mut entry) = line(x, y) else { continue };
            entry.legend = Some(format!("series {index} with $n = {index}$"));
            panel.layers.push(Layer::Line(entry));
        }
        let figure = Figure { panels, columns: Some(2), ..Figure::default() };
        prop_assert_eq!(faults(&figure), Vec::<String>::new());
    }
}

#[test]
fn an_automatic_inset_and_an_inner_legend_keep_apart() {
    let mut curve = Line { legend: Some("theory".into()), ..Line::default() };
    curve.x = (0..100).map(f64::from).collect();
    curve.y = (0..100).map(|x| 1.0 / (1.0 + f64::from(x))).collect();
    let small = Panel {
        x: Axis::linear("$x$"),
        y: Axis::linear("$y$"),
        layers: vec![line([0.0, 1.0], [0.0, 1.0])],
        ..Panel::default()
    };
    let panel = Panel {
        x: Axis::linear("time"),
        y: Axis::linear("loss"),
        layers: vec![Layer::Line(curve)],
        insets: vec![Inset { panel: small, place: None }],
        ..Panel::default()
    };
    let figure = Figure { panels: vec![panel], legend: Legend::Inside, ..Figure::default() };
    assert_eq!(faults(&figure), Vec::<String>::new());
}

/// Its labels covered ticks of the outer frame.
#[test]
fn an_inset_that_is_asked_for_at_the_edge_is_moved_off_the_ticks() {
    let small = Panel { layers: vec![line([0.0, 1000.0], [0.0, 1.0])], ..Panel::default() };
    let inset = Inset { panel: small, place: Some([0.7, 0.7, 0.3, 0.3]) };
    let panel = Panel { layers: vec![line([0.0, 1.0], [0.0, 1.0])], insets: vec![inset], ..Panel::default() };
    let page = page(&Figure { panels: vec![panel], ..Figure::default() }).unwrap();
    let of = |inset: bool| page.panels.iter().find(|placed| placed.inset == inset).unwrap();
    // Major ticks are 4 pt long.
    assert!(of(false).view.frame.grown(-4.0).contains(&of(true).outer));
}

#[test]
fn a_crowded_panel_makes_room_for_its_legend_above_the_data() {
    let crowd = |k: i32| {
        let wave = |x: i32| ((f64::from(x) + 9.0 * f64::from(k)) / 11.0).sin();
        let x = (0..100).map(f64::from).collect();
        Layer::Line(Line {
            x,
            y: (0..100).map(wave).collect(),
            legend: Some(format!("$k = {k}$")),
            ..Line::default()
        })
    };
    let panel = Panel { layers: (0..9).map(crowd).collect(), ..Panel::default() };
    let figure = |range| {
        let y = Axis { range, ..Axis::default() };
        Figure { panels: vec![Panel { y, ..panel.clone() }], legend: Legend::Inside, ..Figure::default() }
    };
    let none = [0.0];
    let (_, wanted) = attempt(&figure(None), &none).unwrap();
    assert!(wanted[0] > 0.1 && wanted[0] <= 0.5, "{wanted:?}");
    let (_, wanted) = attempt(&figure(None), &wanted).unwrap();
    assert_eq!(wanted, none, "with that room it hides nothing");
    assert_eq!(faults(&figure(None)), Vec::<String>::new());
    // A given range is kept, whatever the legend hides.
    let given = page(&figure(Some([-1.0, 1.0]))).unwrap();
    assert!(given.texts().iter().all(|text| text.typeset.source != "$1.5$"));
}

#[test]
fn letters_go_on_after_z() {
    let figure = Figure { panels: vec![Panel::default(); 28], ..Figure::default() };
    let letters = letters(&figure);
    assert_eq!([&letters[0], &letters[25], &letters[26], &letters[27]], ["(a)", "(z)", "(aa)", "(ab)"]);
}

#[test]
fn too_many_columns_are_refused_with_the_room_they_leave() {
    let panel = Panel { layers: vec![line([0.0, 1.0], [0.0, 1.0])], ..Panel::default() };
    let figure = Figure {
        panels: vec![panel; 12],
        columns: Some(12),
        width: Some(Width::ONE_COLUMN),
        ..Figure::default()
    };
    let message = page(&figure).unwrap_err().to_string();
    assert!(message.contains("12 per row in 246 pt"), "{message}");
}

#[test]
fn frames_of_one_column_are_aligned() {
    let panel = |low: f64| Panel { layers: vec![line([0.0, 1.0], [low, low + 1e-3])], ..Panel::default() };
    let figure = Figure { panels: vec![panel(0.0), panel(1234.5)], columns: Some(1), ..Figure::default() };
    let lefts: Vec<f64> = page(&figure).unwrap().panels.iter().map(|panel| panel.view.frame.left).collect();
    assert_eq!(lefts.len(), 2);
    assert_eq!(lefts[0], lefts[1]);
}

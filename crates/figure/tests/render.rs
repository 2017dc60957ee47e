//! Figures through the public interface: every layer in every format, the same bytes each time, clear refusals.

use didact_figure::{
    Annotation, Axis, Band, Colour, ColourBar, ColourMap, Column, Density, ErrorBars, Figure, Guide, HeatMap,
    Histogram, HistogramStyle, Inset, Layer, Legend, Line, Marker, Markers, Panel, Slope, Stroke, Uneven,
    Width,
};

fn values(count: usize, f: impl Fn(f64) -> f64) -> Column {
    (0..count).map(|i| f(1.0 + i as f64)).collect()
}

/// One of each kind; all fit on axes from 1 to 20 and 0.01 to 10.
fn layers() -> Vec<Layer> {
    let x = values(20, |x| x);
    vec![
        Layer::HeatMap(HeatMap {
            values: vec![vec![0.0, 1.0, f64::NAN].into(), vec![-1.0, 0.5, 2.0].into()],
            x: [1.0, 20.0],
            y: [0.01, 10.0],
            map: ColourMap::Diverging,
            range: None,
            bar: Some(ColourBar { label: "$q$".into() }),
        }),
        Layer::Line(Line {
            x: x.clone(),
            y: values(20, |x| if x == 7.0 { f64::INFINITY } else { 1.0 / x }),
            legend: Some("theory".into()),
            group: Some("g".into()),
            stroke: Some(Stroke::DashDotted),
            ..Line::default()
        }),
        Layer::Band(Band {
            x: x.clone(),
            lower: values(20, |x| 0.5 / x - 0.1),
            upper: values(20, |x| 2.0 / x),
            group: Some("g".into()),
            ..Band::default()
        }),
        Layer::Markers(Markers {
            x: x.clone(),
            y: values(20, |x| 1.1 / x),
            x_error: Some(values(20, |_| 0.3).into()),
            y_error: Some(ErrorBars::Uneven(Uneven {
                below: values(20, |x| 2.0 / x),
                above: values(20, |x| 0.5 / x),
            })),
            marker: Some(Marker::Pentagon),
            group: Some("g".into()),
            ..Markers::default()
        }),
        Layer::Histogram(Histogram {
            edges: values(5, |x| 2.0 * x),
            heights: values(4, |x| x),
            ..Histogram::default()
        }),
        Layer::Histogram(Histogram {
            edges: values(5, |x| 2.0 * x),
            heights: vec![1.0, f64::NAN, 2.0, 3.0].into(),
            normalise: true,
            style: HistogramStyle::Steps,
            ..Histogram::default()
        }),
        Layer::Density(Density {
            x,
            y: values(20, |x| (-x / 5.0).exp()),
            legend: Some("density".into()),
            ..Density::default()
        }),
        Layer::Guide(Guide { x: Some(5.0), legend: Some("critical".into()), ..Guide::default() }),
        Layer::Guide(Guide { y: Some(0.5), colour: Some(Colour::Hex("#ff0000".into())), ..Guide::default() }),
        Layer::Slope(Slope {
            exponent: -1.0,
            from: [2.0, 1.0],
            to_x: 10.0,
            label: Some("$\\alpha^{-1}$".into()),
            ..Slope::default()
        }),
    ]
}

fn panel(layers: Vec<Layer>, y: Axis) -> Panel {
    Panel { x: Axis::log("$x$").range(1.0, 20.0), y, layers, ..Panel::default() }
}

/// Every kind of layer on log and linear axes, an inset, annotations, both legends.
fn everything() -> Figure {
    let annotation =
        Annotation { text: "here".into(), at: [3.0, 3.0], arrow_to: Some([8.0, 0.2]), colour: None };
    let inset =
        Inset { panel: panel(vec![layers().remove(1)], Axis::log("$y$")), place: Some([0.6, 0.6, 0.3, 0.3]) };
    let mut first = panel(layers(), Axis::log("$y$").range(0.01, 10.0));
    first.annotations.push(annotation);
    first.insets.push(inset);
    let mut second = panel(layers(), Axis::linear("$y$").range(-1.0, 10.0));
    second.legend = Some(Legend::Inside);
    Figure {
        title: Some("Everything".into()),
        panels: vec![first, second],
        caption: Some("A & B < C".into()),
        ..Figure::default()
    }
}

fn parse(svg: &str) -> usvg::Tree {
    usvg::Tree::from_str(svg, &usvg::Options::default()).unwrap()
}

#[test]
fn every_layer_alone_is_valid_svg_with_ink() {
    for layer in layers() {
        for y in [Axis::log("").range(0.01, 10.0), Axis::linear("").range(-1.0, 10.0)] {
            let kind = layer.kind();
            let with = didact_figure::to_svg(&Figure {
                panels: vec![panel(vec![layer.clone()], y.clone())],
                ..Figure::default()
            });
            let without =
                didact_figure::to_svg(&Figure { panels: vec![panel(vec![], y)], ..Figure::default() });
            let (with, without) = (with.unwrap(), without.unwrap());
            parse(&with);
            assert!(with.len() > without.len() + 30, "{kind} drew nothing");
            assert!(!with.contains("NaN") && !with.contains("inf"), "{kind} wrote a number that is none");
        }
    }
}

#[test]
fn the_page_has_the_width_asked_for() {
    let svg = didact_figure::to_svg(&Figure { width: Some(Width::Points(360.0)), ..everything() }).unwrap();
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"360pt\""));
    // usvg counts 96 pixels to the inch.
    assert!((parse(&svg).size().width() - 480.0).abs() < 0.01);
    assert!(svg.contains("<desc>A &amp; B &lt; C</desc>"));
}

#[test]
fn a_figure_survives_json() {
    let figure = everything();
    let text = serde_json::to_string(&figure).unwrap();
    let back: Figure = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
    assert_eq!(didact_figure::to_svg(&back).unwrap(), didact_figure::to_svg(&figure).unwrap());
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    let figure = everything();
    assert_eq!(didact_figure::to_svg(&figure).unwrap(), didact_figure::to_svg(&figure).unwrap());
    #[cfg(feature = "png")]
    assert!(didact_figure::to_png(&figure, 100.0).unwrap() == didact_figure::to_png(&figure, 100.0).unwrap());
    #[cfg(feature = "pdf")]
    assert!(didact_figure::to_pdf(&figure).unwrap() == didact_figure::to_pdf(&figure).unwrap());
    assert!(didact_figure::to_html(&figure).unwrap() == didact_figure::to_html(&figure).unwrap());
}

#[cfg(feature = "png")]
#[test]
fn a_png_has_the_pixels_asked_for() {
    let png = didact_figure::to_png(
        &Figure {
            width: Some(Width::Points(144.0)),
            panels: vec![panel(layers(), Axis::linear(""))],
            ..Figure::default()
        },
        150.0,
    )
    .unwrap();
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(u32::from_be_bytes([png[16], png[17], png[18], png[19]]), 300);
    assert!(didact_figure::to_png(&everything(), f64::NAN).is_err());
}

#[cfg(feature = "pdf")]
#[test]
fn a_pdf_embeds_the_regular_bold_and_italic_faces() {
    let pdf = didact_figure::to_pdf(&everything()).unwrap();
    assert!(pdf.starts_with(b"%PDF-"));
    let has = |name: &[u8]| pdf.windows(name.len()).any(|window| window == name);
    assert!(has(b"KaTeX_Main-Regular") && has(b"KaTeX_Main-Bold") && has(b"KaTeX_Math-Italic"));
    assert!(!has(b"KaTeX_Main-Italic"), "text must not fall back to the italic face");
}

#[test]
fn a_hundred_thousand_points_make_a_small_file() {
    let count = 100_000;
    let x: Column = (0..count).map(f64::from).collect();
    let noisy = Line {
        y: x.iter().map(|x| (x * 1e-4).sin() + 0.2 * (x * 12.9898).sin()).collect(),
        x,
        ..Line::default()
    };
    let figure = Figure {
        panels: vec![Panel { layers: vec![Layer::Line(noisy)], ..Panel::default() }],
        ..Figure::default()
    };
    let svg = didact_figure::to_svg(&figure).unwrap();
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
}

fn message(layer: Layer) -> String {
    let figure = Figure {
        panels: vec![Panel::default(), Panel { layers: vec![layer], ..Panel::default() }],
        ..Figure::default()
    };
    didact_figure::to_svg(&figure).unwrap_err().to_string()
}

#[test]
fn wrong_layers_are_named_by_panel_place_and_kind() {
    let two: Column = vec![1.0, 2.0].into();
    let short = message(Layer::Line(Line { x: two.clone(), y: vec![1.0].into(), ..Line::default() }));
    assert_eq!(short, "panel (b), layer 1 (line): `y` has 1 values, expected 2");
    let edges = message(Layer::Histogram(Histogram {
        edges: two.clone(),
        heights: two.clone(),
        ..Histogram::default()
    }));
    assert!(edges.contains("`edges` has 2 values, expected 3"), "{edges}");
    let falling =
        Histogram { edges: vec![1.0, 3.0, 2.0].into(), heights: two.clone(), ..Histogram::default() };
    assert!(message(Layer::Histogram(falling)).contains("increasing"));
    let ragged = HeatMap {
        values: vec![two.clone(), vec![1.0].into()],
        x: [0.0, 1.0],
        y: [0.0, 1.0],
        ..HeatMap::default()
    };
    assert!(message(Layer::HeatMap(ragged)).contains("`values` has 1 values, expected 2"));
    assert!(message(Layer::HeatMap(HeatMap::default())).contains("`values` is empty"));
    assert!(message(Layer::Guide(Guide::default())).contains("exactly one of `x` and `y`"));
    assert!(message(Layer::Slope(Slope::default())).contains("one side of zero"));
}

#[test]
fn figures_that_cannot_be_drawn_say_why() {
    let error = |figure: &Figure| didact_figure::to_svg(figure).unwrap_err().to_string();
    assert!(error(&Figure::default()).contains("no panels"));
    assert!(error(&Figure { columns: Some(0), ..everything() }).contains("`columns` is 0"));
    assert!(error(&Figure { width: Some(Width::Points(-3.0)), ..everything() }).contains("`width` is -3"));
    assert!(error(&Figure { aspect: Some(f64::NAN), ..everything() }).contains("`aspect` is NaN"));
    let mut nested = everything();
    let inset = nested.panels[0].insets[0].clone();
    nested.panels[0].insets[0].panel.insets.push(inset);
    assert!(error(&nested).contains("panel (a): an inset cannot have insets"));
    let mut coloured = everything();
    coloured.panels[0].annotations[0].colour = Some(Colour::Hex("blue".into()));
    assert!(error(&coloured).contains("`blue` is not a colour"));
    let mut labelled = everything();
    labelled.panels[0].x.label = "ratio $\\alpha^$".into();
    assert!(error(&labelled).contains("label `ratio $\\alpha^$`, character"));
}

#[test]
fn empty_layers_are_fine_beside_others_and_empty_panels_with_ranges() {
    let empty = Layer::Line(Line::default());
    let mut some = layers();
    some.push(empty.clone());
    let figure = Figure {
        panels: vec![panel(some, Axis::log("")), panel(vec![empty], Axis::linear("").range(0.0, 1.0))],
        ..Figure::default()
    };
    parse(&didact_figure::to_svg(&figure).unwrap());
}

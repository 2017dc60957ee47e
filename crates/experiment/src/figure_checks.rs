//! Figures before there is anything to draw: series that can be drawn of what they name, and a trial drawing in which
//! every series is a short line, so that TeX, colours, ranges and sizes are refused before anything runs.

use crate::description::{
    Description, FigureSpec, InsetSpec, PanelSpec, ScanSpec, Series, SeriesStyle, Values,
};
use crate::draw::curves_of_measure;
use crate::experiment::Run;
use crate::points::Point;
use crate::quantities;
use crate::source::{Diagnostic, nearest};
use didact_figure::{Band, Colour, Figure, Guide, Inset, Layer, Line, Markers, Panel, ScaleKind};

/// Values of the trial drawing; positive, for logarithmic axes.
const TRIAL: [f64; 2] = [1.0, 2.0];

/// Points of a sweep that the trial drawing shows.
const TRIAL_POINTS: usize = 40;

/// What figures are checked against.
pub(crate) struct FigureChecks<'a> {
    pub(crate) description: &'a Description,
    pub(crate) points: &'a [Point],
    pub(crate) runs: &'a [Run],
}

/// What is wrong with a series, and the key of it that is wrong.
type Wrong = (&'static str, Diagnostic);

impl FigureChecks<'_> {
    /// One series: what it draws, in which style, along which key. Names of runs, measures and scans are known to exist.
    pub(crate) fn series(&self, series: &Series) -> Result<(), Wrong> {
        if series.band.is_some() {
            if series.band.is_some_and(|band| band.runs() == 0.0) {
                return Err(("band", Diagnostic::new("`of-mean` is 0; a mean is of at least 1 run")));
            }
            if series.run.is_none() {
                return Err(("band", Diagnostic::new("`band` belongs to a series of a run")));
            }
            if series.style != SeriesStyle::Line {
                return Err(("band", Diagnostic::new("`band` needs `style = \"line\"`")));
            }
        }
        let guides = series.style == SeriesStyle::Guides;
        let scanned = series.style == SeriesStyle::Map || guides && series.measure.is_none();
        match (&series.run, &series.measure, &series.scan) {
            (Some(_), None, None) | (None, Some(_), None) if scanned => {
                let message = if guides {
                    "guides are drawn of a scan or a measure"
                } else {
                    "maps are drawn of a scan"
                };
                Err(("style", Diagnostic::new(message).hint("use another `style`, or draw a `scan`")))
            }
            (Some(run), None, None) => self.of_run(series, run),
            (None, Some(measure), None) => self.of_measure(series, measure),
            (None, None, Some(scan)) => self.of_scan(series, scan),
            _ => Err(("run", Diagnostic::new("a series draws one of `run`, `measure` and `scan`"))),
        }
    }

    fn of_run(&self, series: &Series, run: &str) -> Result<(), Wrong> {
        self.swept(series)?;
        let mut here = self.runs.iter().filter(|r| r.name == run && r.point.matches(&series.at));
        let Some(first) = here.next() else {
            let message = format!("no point of the sweep matches the series of run `{run}`");
            return Err(("at", Diagnostic::new(message).hint("give values that the sweep takes")));
        };
        let columns = first.schedule.columns();
        let deviations = format!("sd({})", series.y.as_deref().unwrap_or("loss"));
        let with_band = |run: &Run| run.schedule.columns().contains(&deviations);
        if series.band.is_some() && !(with_band(first) && here.all(with_band)) {
            let message = format!("the run `{run}` has no band: it needs `fluctuations = true`");
            return Err(("band", Diagnostic::new(message)));
        }
        match series.x.as_deref() {
            None | Some("time") => Ok(()),
            Some(x) => known("x", "column", x, columns.iter().map(String::as_str)),
        }
    }

    fn of_measure(&self, series: &Series, measure: &str) -> Result<(), Wrong> {
        self.swept(series)?;
        if series.style == SeriesStyle::Guides {
            return match (series.x.as_deref(), series.y.as_deref()) {
                (Some("value"), None) | (None, Some("value")) => Ok(()),
                _ => {
                    let message =
                        format!("guides at the measure `{measure}` need `x = \"value\"` or `y = \"value\"`");
                    Err((
                        "measure",
                        Diagnostic::new(message).hint("`x` makes vertical lines, `y` horizontal ones"),
                    ))
                }
            };
        }
        let Some(key) = series.x.as_deref() else {
            let message = format!("the series of measure `{measure}` needs a swept key as `x`");
            return Err((
                "measure",
                Diagnostic::new(message).hint("add `x = \"data.dimension\"`, or whatever [sweep] varies"),
            ));
        };
        known("x", "swept key", key, self.description.sweep.keys().map(String::as_str))?;
        let here = self.points.iter().filter(|p| p.matches(&series.at));
        if here.into_iter().any(|p| p.values.get(key).is_none_or(|v| !v.is_number())) {
            return Err(("x", Diagnostic::new(format!("`{key}` is not swept over numbers"))));
        }
        Ok(())
    }

    fn of_scan(&self, series: &Series, name: &str) -> Result<(), Wrong> {
        let Some(scan) = self.description.scan.iter().find(|s| s.name == name) else { return Ok(()) };
        let inputs = || scan.over.keys().map(String::as_str);
        for key in series.at.keys() {
            known("at", "input that varies", key, inputs())?;
        }
        let needed = |axis: &'static str, given: &Option<String>| {
            if given.is_some() {
                return Ok(());
            }
            Err(("scan", Diagnostic::new(format!("the series of scan `{name}` needs `{axis}`"))))
        };
        match series.style {
            SeriesStyle::Guides if series.x.is_some() == series.y.is_some() => {
                let message = format!("guides of scan `{name}` need one of `x` and `y`");
                return Err(("scan", Diagnostic::new(message)));
            }
            SeriesStyle::Guides => {}
            SeriesStyle::Map => {
                for (axis, given) in [("x", &series.x), ("y", &series.y), ("z", &series.z)] {
                    needed(axis, given)?;
                }
                for (axis, given) in [("x", &series.x), ("y", &series.y)] {
                    known(axis, "input that varies", given.as_deref().unwrap_or_default(), inputs())?;
                }
            }
            SeriesStyle::Histogram => needed("y", &series.y)?,
            _ => {
                needed("y", &series.y)?;
                needed("x", &series.x)?;
            }
        }
        entries(series, scan)
    }

    /// Keys of `at` are swept.
    fn swept(&self, series: &Series) -> Result<(), Wrong> {
        let keys = || self.description.sweep.keys().map(String::as_str);
        series.at.keys().try_for_each(|key| known("at", "swept key", key, keys()))
    }

    /// A drawing of a figure in which every series is a short line, a few points or a band.
    pub(crate) fn trial(&self, figure: &FigureSpec) -> Result<(), Diagnostic> {
        let drawn = didact_figure::to_svg(&self.draft(figure)).map(|_| ());
        drawn.map_err(|error| Diagnostic::new(format!("figure `{}`: {error}", figure.name)))
    }

    /// The figure of the trial drawing.
    pub(crate) fn draft(&self, figure: &FigureSpec) -> Figure {
        Figure {
            title: figure.title.clone(),
            panels: figure.panel.iter().map(|panel| self.trial_panel(panel)).collect(),
            columns: figure.columns,
            legend: figure.legend,
            width: figure.width,
            caption: figure.caption.clone(),
            ..Figure::default()
        }
    }

    fn trial_panel(&self, panel: &PanelSpec) -> Panel {
        let inset = |i: &InsetSpec| Inset { panel: self.trial_panel(&i.panel), place: i.place };
        let series = panel.series.iter().flat_map(|series| self.trial_layers(series, panel));
        Panel {
            title: panel.title.clone(),
            x: panel.x.clone(),
            y: panel.y.clone(),
            layers: series.chain(panel.layers.iter().cloned()).collect(),
            insets: panel.inset.iter().map(inset).collect(),
            annotations: panel.annotations.clone(),
            ..Panel::default()
        }
    }

    /// The first point of the grid of a scan.
    fn first_of_scan(&self, name: &str) -> Option<Point> {
        let scan = self.description.scan.iter().find(|s| s.name == name)?;
        let first =
            |(key, values): (&String, &Values)| Some((key.clone(), values.expand()?.into_iter().next()?));
        Some(Point { index: 0, values: scan.over.iter().filter_map(first).collect() })
    }

    /// Layers inside the ranges of the panel, with the words and the looks of a series: of a run, for every point of the sweep that it
    /// draws, up to a number that is enough for a trial.
    fn trial_layers(&self, series: &Series, panel: &PanelSpec) -> Vec<Layer> {
        let points: Vec<Point> = match (&series.scan, &series.run) {
            (Some(name), _) => {
                let mut point = self.first_of_scan(name);
                if let Some(point) = &mut point {
                    point.values.extend(series.at.clone());
                }
                point.into_iter().collect()
            }
            (None, run) if run.is_some() || series.style == SeriesStyle::Guides => {
                let here = self.points.iter().filter(|p| p.matches(&series.at));
                here.take(TRIAL_POINTS).cloned().collect()
            }
            _ => curves_of_measure(series, self.points).into_iter().take(TRIAL_POINTS).collect(),
        };
        if points.is_empty() {
            return trial_layer(series, panel, None);
        }
        points.iter().flat_map(|point| trial_layer(series, panel, Some(point))).collect()
    }
}

fn trial_layer(series: &Series, panel: &PanelSpec, point: Option<&Point>) -> Vec<Layer> {
    let inside = |axis: &didact_figure::Axis| match axis.range {
        Some([low, high]) if axis.scale == ScaleKind::Linear || low > 0.0 => [low, high],
        _ => TRIAL,
    };
    let legend =
        series.legend.as_ref().map(|text| point.map_or_else(|| text.clone(), |p| p.fill_label(text)));
    let mut group = series.group.as_ref().map(|text| point.map_or_else(|| text.clone(), |p| p.fill(text)));
    let (x, y) = (inside(&panel.x), inside(&panel.y));
    let colour: Option<Colour> = series.colour.clone();
    let banded = series.style == SeriesStyle::Band || series.band.is_some();
    if banded && group.is_none() {
        group = Some(format!("{:?} {:?} {:?}", series.run, series.y, point.map(|p| p.index)));
    }
    let line = Layer::Line(Line {
        x: x.to_vec().into(),
        y: y.to_vec().into(),
        legend: legend.clone(),
        group: group.clone(),
        colour: colour.clone(),
        stroke: series.stroke,
        ..Line::default()
    });
    match series.style {
        SeriesStyle::Markers => vec![Layer::Markers(Markers {
            x: x.to_vec().into(),
            y: y.to_vec().into(),
            marker: series.marker,
            legend,
            group,
            colour,
            ..Markers::default()
        })],
        SeriesStyle::Guides => {
            let vertical = series.x.is_some();
            vec![Layer::Guide(Guide {
                x: vertical.then_some(x[0]),
                y: (!vertical).then_some(y[0]),
                legend,
                group,
                colour,
                stroke: series.stroke,
            })]
        }
        _ if banded => {
            let edges = [vec![y[0]; 2], vec![y[1]; 2]];
            let [lower, upper] = edges.map(Into::into);
            vec![Layer::Band(Band { x: x.to_vec().into(), lower, upper, legend, group, colour }), line]
        }
        _ => vec![line],
    }
}

/// A name among known ones.
fn known<'a>(
    key: &'static str,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str>,
) -> Result<(), Wrong> {
    let known: Vec<&str> = known.collect();
    if known.contains(&name) {
        return Ok(());
    }
    let hint = match nearest(name, &known) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there is none".into(),
        None => format!("there are {}", known.join(", ")),
    };
    Err((key, Diagnostic::new(format!("no {what} `{name}`")).hint(hint)))
}

/// Axes of a scan are inputs that vary or entries of the answer.
fn entries(series: &Series, scan: &ScanSpec) -> Result<(), Wrong> {
    let Ok(quantity) = quantities::find(&scan.quantity) else { return Ok(()) };
    for (axis, given) in [("x", &series.x), ("y", &series.y), ("z", &series.z)] {
        if let Some(name) = given {
            let inputs = scan.over.keys().map(String::as_str);
            known(
                axis,
                "input that varies, or entry,",
                name,
                inputs.chain(quantity.outputs.iter().copied()),
            )?;
        }
    }
    Ok(())
}

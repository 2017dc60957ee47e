//! Three figures that show what the crate does, each as SVG, PNG, PDF and HTML in the folder given as argument.
//!
//! `cargo run -p didact-figure --example gallery -- target/gallery`

use std::error::Error;
use std::path::PathBuf;

use didact_figure::{
    Annotation, Axis, Band, Colour, ColourBar, ColourMap, Density, Figure, Guide, HeatMap, Histogram, Inset,
    Layer, Legend, Line, Markers, Panel, Slope, Stroke, Width,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "target/gallery".into()));
    std::fs::create_dir_all(&folder)?;
    for (name, figure) in
        [("four-panels", four_panels()), ("learning-curves", learning_curves()), ("difficult", difficult())]
    {
        let path = |extension: &str| folder.join(name).with_extension(extension);
        std::fs::write(path("json"), serde_json::to_string_pretty(&figure)?)?;
        std::fs::write(path("svg"), didact_figure::to_svg(&figure)?)?;
        #[cfg(feature = "png")]
        std::fs::write(path("png"), didact_figure::to_png(&figure, 300.0)?)?;
        #[cfg(feature = "pdf")]
        std::fs::write(path("pdf"), didact_figure::to_pdf(&figure)?)?;
        std::fs::write(path("html"), didact_figure::to_html(&figure)?)?;
    }
    Ok(())
}

/// `count` values from `low` to `high` at equal ratios.
fn log_spaced(low: f64, high: f64, count: usize) -> Vec<f64> {
    (0..count).map(|i| low * (high / low).powf(i as f64 / (count - 1) as f64)).collect()
}

/// `count` values from `low` to `high` at equal distances.
fn spaced(low: f64, high: f64, count: usize) -> Vec<f64> {
    (0..count).map(|i| low + (high - low) * i as f64 / (count - 1) as f64).collect()
}

fn map(x: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    x.iter().map(|&x| f(x)).collect()
}

/// Reproducible noise in [−1, 1].
fn noise(index: usize) -> f64 {
    let mixed = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn four_panels() -> Figure {
    Figure {
        panels: vec![theory_and_simulation(), divergence(), spectrum(), phase_diagram()],
        caption: Some(r"Theory (lines), simulation (points) and their ratio; $\alpha = P/N$.".into()),
        ..Figure::default()
    }
}

fn theory_and_simulation() -> Panel {
    let error = |alpha: f64, beta: f64| 0.8 * (1.0 + alpha).powf(-beta / (1.0 + beta));
    let (dense, sparse) = (log_spaced(0.1, 1e3, 200), log_spaced(0.1, 1e3, 13));
    let (mut layers, mut ratios) = (Vec::new(), Vec::new());
    for (number, beta) in [0.5, 1.0, 2.0, 4.0].into_iter().enumerate() {
        let group = Some(format!("beta {beta}"));
        layers.push(Layer::Line(Line {
            x: dense.clone().into(),
            y: map(&dense, |alpha| error(alpha, beta)).into(),
            legend: Some(format!(r"$\beta = {beta}$")),
            group: group.clone(),
            ..Line::default()
        }));
        layers.push(Layer::Band(Band {
            x: dense.clone().into(),
            lower: map(&dense, |alpha| 0.88 * error(alpha, beta)).into(),
            upper: map(&dense, |alpha| 1.12 * error(alpha, beta)).into(),
            group: group.clone(),
            ..Band::default()
        }));
        let ratio: Vec<f64> = (0..sparse.len()).map(|i| 1.0 + 0.08 * noise(20 * number + i)).collect();
        layers.push(Layer::Markers(Markers {
            x: sparse.clone().into(),
            y: sparse.iter().zip(&ratio).map(|(&alpha, ratio)| ratio * error(alpha, beta)).collect(),
            y_error: Some(map(&sparse, |alpha| 0.12 * error(alpha, beta)).into()),
            group: group.clone(),
            ..Markers::default()
        }));
        ratios.push(Layer::Line(Line {
            x: sparse.clone().into(),
            y: ratio.into(),
            group,
            ..Line::default()
        }));
    }
    layers.push(Layer::Slope(Slope {
        exponent: -2.0 / 3.0,
        from: [16.0, 0.03],
        to_x: 400.0,
        label: Some(r"$\propto \alpha^{-\beta/(1+\beta)}$".into()),
        legend: Some("slope guide".into()),
        ..Slope::default()
    }));
    let inset = Panel {
        x: Axis::log(""),
        y: Axis::linear(r"$\epsilon_g/\epsilon_g^{\mathrm{th}}$").range(0.6, 1.4),
        layers: ratios,
        ..Panel::default()
    };
    Panel {
        x: Axis::log(r"sample ratio $\alpha = P/N$").range(0.1, 1e3),
        y: Axis::log(r"generalisation error $\epsilon_g$").range(1e-3, 2.0),
        layers,
        insets: vec![Inset { panel: inset, place: None }],
        ..Panel::default()
    }
}

fn divergence() -> Panel {
    let alpha = log_spaced(1e-2, 1e2, 1201);
    let error = |alpha: f64| {
        if alpha == 1.0 {
            f64::INFINITY
        } else {
            ((1.0 - alpha).max(0.0).powi(2) + 0.3 * alpha.powf(2.0) / (1.0 + alpha * alpha))
                / (1.0 - alpha).abs()
        }
    };
    Panel {
        x: Axis::log(r"$\alpha$"),
        y: Axis::linear(r"$\epsilon_g(\alpha)$").range(0.0, 6.0),
        layers: vec![
            Layer::Line(Line { x: alpha.clone().into(), y: map(&alpha, error).into(), ..Line::default() }),
            Layer::Guide(Guide { x: Some(1.0), ..Guide::default() }),
        ],
        annotations: vec![Annotation {
            text: r"$\alpha_c = 1$".into(),
            at: [12.0, 4.6],
            arrow_to: Some([1.08, 4.2]),
            colour: None,
        }],
        ..Panel::default()
    }
}

fn spectrum() -> Panel {
    // Marchenko–Pastur at ratio 0.5, and a rough sample of it.
    let gamma: f64 = 0.5;
    let (low, high) = ((1.0 - gamma.sqrt()).powi(2), (1.0 + gamma.sqrt()).powi(2));
    let density = |x: f64| ((high - x) * (x - low)).max(0.0).sqrt() / (std::f64::consts::TAU * gamma * x);
    let edges = spaced(0.0, 3.0, 41);
    let counts = edges
        .windows(2)
        .enumerate()
        .map(|(i, edge)| 1000.0 * density(f64::midpoint(edge[0], edge[1])) * (1.0 + 0.15 * noise(i)));
    let counts = counts.collect();
    let x = spaced(0.05, 3.1, 400);
    Panel {
        x: Axis::linear(r"eigenvalue $\lambda$").range(0.0, 4.5),
        y: Axis::linear(r"$\rho(\lambda)$"),
        layers: vec![
            Layer::Histogram(Histogram {
                edges: edges.into(),
                heights: counts,
                normalise: true,
                legend: Some("sampled spectrum".into()),
                colour: Some(Colour::Palette(0)),
                ..Histogram::default()
            }),
            Layer::Density(Density {
                y: map(&x, density).into(),
                x: x.into(),
                legend: Some("Marchenko–Pastur".into()),
                colour: Some(Colour::Palette(1)),
                ..Density::default()
            }),
        ],
        annotations: vec![Annotation {
            text: r"outlier $\lambda_\star = \theta + \frac{\gamma}{\theta}$".into(),
            at: [3.2, 0.6],
            arrow_to: Some([4.1, 0.02]),
            colour: None,
        }],
        legend: Some(Legend::Inside),
        ..Panel::default()
    }
}

fn phase_diagram() -> Panel {
    let overlap = |alpha: f64, sigma: f64| (1.0 - sigma * sigma / alpha).max(0.0).powf(0.35);
    let rows = (0..60).map(|row| {
        (0..60)
            .map(|column| overlap((f64::from(column) + 0.5) / 15.0, (f64::from(row) + 0.5) / 30.0))
            .collect()
    });
    let edge = spaced(0.0, 4.0, 100);
    Panel {
        x: Axis::linear(r"$\alpha$"),
        y: Axis::linear(r"noise $\sigma$"),
        layers: vec![
            Layer::HeatMap(HeatMap {
                values: rows.collect(),
                x: [0.0, 4.0],
                y: [0.0, 2.0],
                map: ColourMap::Viridis,
                range: Some([0.0, 1.0]),
                bar: Some(ColourBar { label: "$q$".into() }),
            }),
            Layer::Line(Line {
                y: map(&edge, f64::sqrt).into(),
                x: edge.into(),
                colour: Some(Colour::Hex("#ffffff".into())),
                stroke: Some(Stroke::Dashed),
                ..Line::default()
            }),
        ],
        annotations: vec![Annotation {
            text: r"$\sigma_c = \sqrt{\alpha}$".into(),
            at: [1.1, 1.4],
            arrow_to: None,
            colour: Some(Colour::Hex("#ffffff".into())),
        }],
        ..Panel::default()
    }
}

fn learning_curves() -> Figure {
    let time = log_spaced(1e-3, 1e5, 400);
    let mut layers = Vec::new();
    for (number, k) in [1, 2, 4, 8, 16, 32].into_iter().enumerate() {
        let escape = 3.0 * 6f64.powi(number as i32);
        let loss = move |time: f64| {
            0.5 / (1.0 + 3.0 * time) + 0.08 / (1.0 + (time / escape).powi(2)) + 1e-8 * (1.0 + number as f64)
        };
        let group = Some(format!("K = {k}"));
        layers.push(Layer::Line(Line {
            x: time.clone().into(),
            y: map(&time, loss).into(),
            legend: Some(format!("$K = {k}$")),
            group: group.clone(),
            ..Line::default()
        }));
        let spread = move |time: f64| 1.15 + 0.5 * (-((time / escape).ln() / 1.2).powi(2)).exp();
        layers.push(Layer::Band(Band {
            x: time.clone().into(),
            lower: map(&time, |time| loss(time) / spread(time)).into(),
            upper: map(&time, |time| loss(time) * spread(time)).into(),
            group,
            ..Band::default()
        }));
    }
    let panel = Panel {
        x: Axis::log(r"training time $t$ (steps$/d$)"),
        y: Axis::log(r"population loss $\mathcal{L}(t)$"),
        layers,
        ..Panel::default()
    };
    Figure {
        panels: vec![panel],
        legend: Legend::Inside,
        width: Some(Width::ONE_COLUMN),
        aspect: Some(0.8),
        ..Figure::default()
    }
}

fn difficult() -> Figure {
    let x = spaced(0.0, 1.0, 60);
    let nine = (0..9).map(|i| {
        let group = Some(format!("series {i}"));
        let y = map(&x, |x| 1.0 / (1.0 + f64::from(i) + 4.0 * x));
        let line = Line {
            x: x.clone().into(),
            y: y.clone().into(),
            legend: Some(format!("series $n = {}$ of nine", i + 1)),
            group: group.clone(),
            ..Line::default()
        };
        let every = |values: &[f64]| values.iter().copied().skip(3 * i as usize % 7).step_by(9).collect();
        let points = Markers { x: every(&x), y: every(&y), group, ..Markers::default() };
        [Layer::Line(line), Layer::Markers(points)]
    });
    let tiny = map(&x, |x| 1.0001 + 1e-4 * (0.5 + 0.45 * (9.0 * x).sin()));
    let offset = map(&x, |x| 273.15 + 2e-8 * x * x);
    let signed = (0..30).map(|row| {
        (0..40).map(|column| 3e-5 * (f64::from(row) / 6.0).sin() * (f64::from(column) / 9.0).cos()).collect()
    });
    let decades = log_spaced(1e-14, 1e-1, 50);
    let short = log_spaced(2.2e-3, 7.4e-3, 50);
    let one = |x: &[f64], y: Vec<f64>| {
        vec![Layer::Line(Line { x: x.to_vec().into(), y: y.into(), ..Line::default() })]
    };
    let panels = vec![
        Panel {
            x: Axis::linear(
                "fraction of the training set seen by the student after pre-training on the upstream task $x$",
            ),
            y: Axis::linear(r"test error of the fine-tuned committee machine $\epsilon_g$"),
            layers: nine.flatten().collect(),
            ..Panel::default()
        },
        Panel {
            title: Some("a tiny range".into()),
            x: Axis::linear("$x$"),
            y: Axis::linear("ratio of norms"),
            layers: one(&x, tiny),
            ..Panel::default()
        },
        Panel {
            title: Some("eight digits alike".into()),
            x: Axis::linear("large $x$").range(0.0, 4e6),
            y: Axis::linear("$T$ [K]"),
            layers: one(&map(&x, |x| 4e6 * x), offset),
            ..Panel::default()
        },
        Panel {
            x: Axis::log(r"ridge $\lambda$"),
            y: Axis::log(r"$\Vert \hat{w} - w_\star\Vert^2$"),
            layers: one(&decades, map(&decades, |x| 1e-22 * x.powf(-1.7))),
            ..Panel::default()
        },
        Panel {
            x: Axis::log("less than a decade"),
            y: Axis::log("and a little more"),
            layers: one(&short, map(&short, |x| 4e3 * x)),
            ..Panel::default()
        },
        Panel {
            x: Axis::linear("column"),
            y: Axis::log("row"),
            layers: vec![Layer::HeatMap(HeatMap {
                values: signed.collect(),
                x: [-20.0, 20.0],
                y: [1e-3, 1e3],
                map: ColourMap::Diverging,
                bar: Some(ColourBar { label: r"deviation $\delta\epsilon_g$".into() }),
                ..HeatMap::default()
            })],
            ..Panel::default()
        },
    ];
    Figure {
        title: Some(r"Long labels, tiny ranges, many decades and nine series".into()),
        panels,
        columns: Some(3),
        ..Figure::default()
    }
}

//! Nodes for integrals over a plane of two Gaussian coordinates whose integrand changes its form across straight lines.
//!
//! A kink of a unit is such a line. Where the field of the unit is known in the plane the line is sharp, and panels of Gauss-Legendre
//! nodes end at it. Where only the mean of the field is, the kink is smoothed over a width that may be small, and panels are as short as
//! that requires near it and nowhere else.

use didact_math::gauss::quadrature::gauss_legendre;

/// A line `along`·(x, y) = `at`, smoothed by a normal variable of this deviation that is added to the left-hand side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) along: [f64; 2],
    pub(super) at: f64,
    pub(super) deviation: f64,
}

/// What an edge is on one axis: a place and a width.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feature {
    centre: f64,
    width: f64,
}

/// Smoothed edges reach so many widths to either side: φ(4.5) = 2e-5, and what is beyond is a straight line up to M(4.5) = 8e-7 widths.
const SIDES: f64 = 4.5;
/// The two ends of a smoothed edge, in widths.
const BOTH: [f64; 2] = [-SIDES, SIDES];
/// The place of a sharp one.
const CENTRE: [f64; 1] = [0.0];
/// Wider features are resolved by nodes that lie a little closer on the whole axis.
const THIN: f64 = 0.5;
/// Wider features make no difference.
const WIDE: f64 = 20.0;
/// Thinner features are sharp.
const SHARP: f64 = 1e-12;
/// Lines whose directions differ by less than this do not cross.
const PARALLEL: f64 = 1e-12;
/// Nodes of one panel.
const MOST_NODES: f64 = 100.0;

impl Edge {
    /// Where it is on the axis of y at this x.
    fn at_x(&self, x: f64) -> Option<Feature> {
        feature(self.at - self.along[0] * x, self.along[1], self.deviation)
    }
}

/// The feature of coefficient·t = at, smoothed.
fn feature(at: f64, coefficient: f64, deviation: f64) -> Option<Feature> {
    let width = deviation / coefficient.abs();
    (coefficient != 0.0 && width < WIDE).then_some(Feature { centre: at / coefficient, width })
}

/// The features of an integrand along y, at one x.
pub(super) fn along_y(edges: &[Edge], x: f64, out: &mut Vec<Feature>) {
    out.clear();
    out.extend(edges.iter().filter_map(|edge| edge.at_x(x)));
}

/// The features of an integrand on the axis of x that does not depend on y.
pub(super) fn along_x(edges: &[Edge], out: &mut Vec<Feature>) {
    out.clear();
    out.extend(edges.iter().filter_map(|edge| feature(edge.at, edge.along[0], edge.deviation)));
}

/// The features along x of an integral over y: edges are smoothed by y, except where two of them cross.
pub(super) fn after_integration(edges: &[Edge], reach: f64, out: &mut Vec<Feature>) {
    out.clear();
    out.extend(
        edges.iter().filter_map(|edge| feature(edge.at, edge.along[0], edge.deviation.hypot(edge.along[1]))),
    );
    for (k, one) in edges.iter().enumerate() {
        for other in &edges[..k] {
            let ([a, b], [c, d]) = (one.along, other.along);
            let determinant = a * d - b * c;
            let size = (a.abs() + b.abs()) * (c.abs() + d.abs());
            if determinant.abs() <= PARALLEL * size {
                continue;
            }
            let y = (a * other.at - c * one.at) / determinant;
            let crossing = feature(
                d * one.at - b * other.at,
                determinant,
                (d * one.deviation).hypot(b * other.deviation),
            );
            out.extend(crossing.filter(|crossing| crossing.width > THIN || y.abs() <= reach));
        }
    }
}

/// Nodes along one axis and their weights, without the normal density.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) at: Vec<f64>,
    pub(super) weights: Vec<f64>,
    borders: Vec<Border>,
}

/// The end of a panel.
#[derive(Debug, Clone, Copy)]
struct Border {
    at: f64,
    /// Whether the integrand changes its form there; other borders only part regions of different width.
    sharp: bool,
}

/// A panel and how many nodes it takes.
#[derive(Debug, Clone, Copy)]
struct Panel {
    low: f64,
    high: Border,
    nodes: f64,
}

impl Nodes {
    /// Panels from one end to the other. A panel whose length is λ of the smallest width on it has as many nodes as `count(λ)` says.
    pub(super) fn fill(&mut self, features: &[Feature], ends: [f64; 2], count: impl Fn(f64) -> f64) {
        self.at.clear();
        self.weights.clear();
        self.borders.clear();
        self.borders.extend(ends.map(|at| Border { at, sharp: true }));
        let [first, last] = ends;
        for feature in features.iter().filter(|feature| feature.width < THIN) {
            let sharp = feature.width < SHARP;
            let sides: &[f64] = if sharp { &CENTRE } else { &BOTH };
            let borders =
                sides.iter().map(|side| Border { at: feature.centre + side * feature.width, sharp });
            self.borders.extend(borders.filter(|border| first < border.at && border.at < last));
        }
        self.borders.sort_by(|a, b| a.at.total_cmp(&b.at));
        let nodes =
            |low: f64, high: f64| count((high - low) * steepness(features, low, high)).clamp(2.0, MOST_NODES);
        let mut open: Option<Panel> = None;
        for k in 1..self.borders.len() {
            let (low, high) = (self.borders[k - 1].at, self.borders[k]);
            if high.at - low <= SHARP * (last - first) {
                // Borders at one place count as one.
                if let Some(panel) = &mut open {
                    panel.high.sharp |= high.sharp;
                }
                continue;
            }
            let next = Panel { low, high, nodes: nodes(low, high.at) };
            open = Some(match open {
                None => next,
                Some(before) => {
                    let both = nodes(before.low, high.at);
                    if !before.high.sharp && both < MOST_NODES && both <= before.nodes + next.nodes {
                        Panel { low: before.low, high, nodes: both }
                    } else {
                        self.add(before);
                        next
                    }
                }
            });
        }
        if let Some(panel) = open {
            self.add(panel);
        }
    }

    fn add(&mut self, panel: Panel) {
        let rule = gauss_legendre(panel.nodes as usize);
        let (centre, half) = (f64::midpoint(panel.low, panel.high.at), 0.5 * (panel.high.at - panel.low));
        for (x, w) in rule.nodes.iter().zip(&rule.weights) {
            let z = centre + half * x;
            self.at.push(z);
            self.weights.push(half * w);
        }
    }
}

/// 1/width of the integrand on a panel. It is made of factors e^{−(z−c)²/2w²}, of the normal density (w = 1) and of not more than two
/// smoothed edges at a time, and 1/w² of a product is a sum.
fn steepness(features: &[Feature], low: f64, high: f64) -> f64 {
    let mut steepest = [0.0f64; 2];
    for feature in features.iter().filter(|feature| feature.width >= SHARP) {
        let reach = SIDES * feature.width;
        let overlap = (feature.centre + reach).min(high) - (feature.centre - reach).max(low);
        if overlap > 1e-6 * reach {
            let square = feature.width.powi(-2);
            if square > steepest[0] {
                steepest = [square, steepest[0]];
            } else if square > steepest[1] {
                steepest[1] = square;
            }
        }
    }
    (1.0 + steepest[0] + steepest[1]).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::gauss::normal::{cdf, density};

    /// E over the plane of products of smoothed steps, whose average is known: P(u < a, v < b) for independent u and v.
    #[test]
    fn smoothed_and_sharp_edges_are_integrated() {
        let count = |length: f64| (5.0 + 1.8 * length).ceil();
        for (turn, deviations) in
            [(0.3f64, [0.0, 0.0]), (1.0, [0.05, 0.3]), (2.0, [1e-4, 0.0]), (0.05, [1.0, 0.01])]
        {
            let (cosine, sine) = (turn.cos(), turn.sin());
            let edges = [
                Edge { along: [cosine, sine], at: 0.4, deviation: deviations[0] },
                Edge { along: [-sine, cosine], at: -0.7, deviation: deviations[1] },
            ];
            let (mut outer, mut inner) = (Nodes::default(), Nodes::default());
            let mut features = Vec::new();
            after_integration(&edges, 7.0, &mut features);
            outer.fill(&features, [-7.0, 7.0], count);
            let step = |edge: &Edge, x: f64, y: f64| {
                let away = edge.at - edge.along[0] * x - edge.along[1] * y;
                if edge.deviation > 0.0 { cdf(away / edge.deviation) } else { f64::from(away > 0.0) }
            };
            let mut sum = 0.0;
            for (&x, &w) in outer.at.iter().zip(&outer.weights) {
                along_y(&edges, x, &mut features);
                inner.fill(&features, [-7.0, 7.0], count);
                for (&y, &v) in inner.at.iter().zip(&inner.weights) {
                    let both = density(x) * density(y);
                    sum += w * v * both * step(&edges[0], x, y) * step(&edges[1], x, y);
                }
            }
            let exact: f64 = edges.iter().map(|edge| cdf(edge.at / 1f64.hypot(edge.deviation))).product();
            assert!((sum - exact).abs() < 1e-8, "{turn}, {deviations:?}: {sum} {exact}");
        }
    }
}

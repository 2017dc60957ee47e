//! Links of one variable: z itself, or |z| when the link is invariant under rotations. Given y, z is one of finitely many preimages.

use super::{Link, close, probes, tanh_sinh};
use didact_math::linalg::{Mat, dot};
use didact_math::roots::brent;

/// Cells of the scan for monotone pieces.
const CELLS: usize = 4000;

/// E[K ⊗ K] if the link is of this kind and has no flat pieces. K = κ(y) 1 with κ(y) = E[|z|²/k | y] − 1.
pub(super) fn kernel(k: usize, link: Link) -> Option<Mat> {
    let radial = probes(k, 40).iter().all(|z| {
        let mut along = vec![0.0; k];
        along[0] = dot(z, z).sqrt();
        close(link(z, 0.0), link(&along, 0.0))
    });
    if !radial && k > 1 {
        return None;
    }
    let end = (k as f64).sqrt() + 9.0;
    let profile = |x: f64| {
        let mut z = vec![0.0; k];
        z[0] = x;
        link(&z, 0.0)
    };
    let line = Line {
        profile: &profile,
        start: if radial { 0.0 } else { -end },
        end,
        dimension: if radial { k } else { 1 },
    };
    // Both signs of one variable are one point of the radial line, so k = 1 is covered by either.
    let information = line.information()?;
    Some(Mat::identity(k * k).scaled(information))
}

/// κ(y) of a link of one variable; `None` when it has flat pieces. A label out of reach comes from |z| > 10: as good
/// as infinity.
pub(super) fn excess<'a>(link: Link<'a>) -> Option<Box<dyn Fn(f64) -> f64 + 'a>> {
    let profile = move |x: f64| link(&[x], 0.0);
    let even = probes(1, 40).iter().all(|z| close(link(z, 0.0), link(&[-z[0]], 0.0)));
    let end = 10.0;
    let start = if even { 0.0 } else { -end };
    let ends = Line { profile: &profile, start, end, dimension: 1 }.pieces()?;
    Some(Box::new(move |y| {
        let line = Line { profile: &profile, start, end, dimension: 1 };
        let kappa = line.excess(y, &ends);
        if kappa.is_nan() { f64::INFINITY } else { kappa }
    }))
}

struct Line<'a> {
    profile: &'a dyn Fn(f64) -> f64,
    start: f64,
    end: f64,
    /// The density is that of |z| in this dimension, up to a factor.
    dimension: usize,
}

impl Line<'_> {
    fn weight(&self, x: f64) -> f64 {
        x.abs().powi(self.dimension as i32 - 1) * (-0.5 * x * x).exp()
    }

    /// g′ by central differences of fourth order: exact for quartics.
    fn slope(&self, x: f64) -> f64 {
        let h = 1e-3;
        let g = |x: f64| (self.profile)(x);
        (8.0 * (g(x + h) - g(x - h)) - (g(x + 2.0 * h) - g(x - 2.0 * h))) / (12.0 * h)
    }

    /// Ends of the monotone pieces; `None` when a piece is flat.
    fn pieces(&self) -> Option<Vec<f64>> {
        let at = |i: usize| self.start + (self.end - self.start) * i as f64 / CELLS as f64;
        let values: Vec<f64> = (0..=CELLS).map(|i| (self.profile)(at(i))).collect();
        let rises: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
        if values.iter().any(|y| !y.is_finite()) || rises.contains(&0.0) {
            return None;
        }
        let mut ends = vec![self.start];
        for i in 1..CELLS {
            if (rises[i - 1] > 0.0) != (rises[i] > 0.0) {
                ends.push(brent(|x| self.slope(x), at(i - 1), at(i + 1), 0.0).ok()?);
            }
        }
        ends.push(self.end);
        Some(ends)
    }

    /// E[κ(y)²].
    fn information(&self) -> Option<f64> {
        let ends = self.pieces()?;
        let levels: Vec<f64> = ends.iter().map(|x| (self.profile)(*x)).collect();
        let rule = tanh_sinh::nodes();
        let (mut mass, mut sum) = (0.0, 0.0);
        for piece in ends.windows(2) {
            // Other branches begin and end at the levels of the ends: split there.
            let mut borders = vec![piece[0], piece[1]];
            borders.extend(levels.iter().filter_map(|level| self.preimage(*level, piece)));
            borders.sort_by(f64::total_cmp);
            for part in borders.windows(2).filter(|part| part[1] - part[0] > 1e-12) {
                // The bulk of the law must not hide in one cell of the rule: pieces of unit length.
                let count = (part[1] - part[0]).ceil();
                let width = (part[1] - part[0]) / count;
                for n in 0..count as usize {
                    let from = part[0] + width * n as f64;
                    for (share, _, w) in &rule {
                        let x = from + width * share;
                        let p = width * w * self.weight(x);
                        if p > 1e-18 {
                            mass += p;
                            sum += p * self.excess((self.profile)(x), &ends).powi(2);
                        }
                    }
                }
            }
        }
        Some(sum / mass)
    }

    /// κ(y): preimages weighed with density over |g′|.
    fn excess(&self, y: f64, ends: &[f64]) -> f64 {
        let (mut mass, mut square) = (0.0, 0.0);
        let mut only = None;
        for piece in ends.windows(2) {
            if let Some(x) = self.preimage(y, piece) {
                let p = self.weight(x) / self.slope(x).abs().max(f64::MIN_POSITIVE);
                (mass, square) = (mass + p, square + p * x * x);
                only = if only.is_none() { Some(x * x) } else { Some(f64::NAN) };
            }
        }
        let mean = match only {
            // One preimage: no weights needed, whatever the slope.
            Some(square) if !square.is_nan() => square,
            _ => square / mass,
        };
        mean / self.dimension as f64 - 1.0
    }

    fn preimage(&self, y: f64, piece: &[f64]) -> Option<f64> {
        brent(|x| (self.profile)(x) - y, piece[0], piece[1], 0.0).ok()
    }
}

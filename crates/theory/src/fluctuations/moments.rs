//! Second moments of the products of one sample, by the quadrature that suits the rule.

use super::points::{self, Block};
use super::products::ProductIndex;
use crate::order_parameters::row_flow::products as dots;
use didact_math::gauss::ball::WeightedPoints;
use didact_math::gauss::expectation::point_by_point;
use didact_math::gauss::{BestRule, Integrand, expectation_within};
use didact_math::linalg::{Mat, cholesky_psd, symmetric_eigen};
use didact_model::rule::{Batch, Kick, Law, LocalRule, Sample};

/// E[u] and E[u uᵀ] of the products u of one sample.
#[derive(Debug, Clone)]
pub(super) struct Moments {
    pub(super) index: ProductIndex,
    pub(super) mean: Vec<f64>,
    pub(super) second: Mat,
    /// Estimated error of the worst second moment, in units of the root of the product of its two squares.
    pub(super) error: f64,
}

/// How averages over samples are taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scheme {
    /// Gauss-Hermite with so many nodes per independent field: smooth kicks.
    Product { nodes: usize },
    /// Orthant by orthant with so many nodes per angle: kicks with kinks where a field vanishes, of degree one in the fields.
    Orthants { nodes: usize },
    /// Lattices, in a ball or over all of space: everything else.
    Lattice { best: BestRule },
}

/// Nodes per axis that are tried in turn.
const PRODUCT_LADDER: [usize; 14] = [3, 4, 6, 8, 12, 16, 20, 26, 32, 40, 50, 64, 80, 100];
const ORTHANT_LADDER: [usize; 9] = [4, 6, 8, 12, 16, 22, 28, 36, 48];
/// Two rules that agree this well have both converged, and the smaller serves.
const CONVERGED: f64 = 1e-11;

/// Chooses how to average, and averages.
#[derive(Debug, Clone)]
pub(super) struct Averager {
    /// Relative error that is asked for.
    accuracy: f64,
    /// Samples per average at most.
    budget: usize,
    scheme: Option<(Scheme, f64)>,
}

impl Averager {
    pub(super) fn new(accuracy: f64) -> Self {
        let budget = if accuracy < 1e-5 { 1 << 20 } else { 1 << 17 };
        Self { accuracy, budget, scheme: None }
    }

    /// The second moments, with the rule for averages that was chosen last; [`choose`](Self::choose) chooses one.
    pub(super) fn average(&self, rule: &dyn LocalRule, law: &Law, index: ProductIndex) -> Moments {
        let (scheme, error) = self.scheme.expect("a rule for averages was chosen");
        match by_scheme(rule, law, index, scheme, self.accuracy, self.budget) {
            Some(moments) => Moments { error: moments.error.max(error), ..moments },
            // A covariance that has become singular has no orthants.
            None => self.by_lattice(rule, law, index, None),
        }
    }

    /// Looks for the cheapest rule that is accurate enough here, or the best that the budget allows.
    pub(super) fn choose(&mut self, rule: &dyn LocalRule, law: &Law, index: ProductIndex) -> Moments {
        let from = |ladder: &'static [usize], last: Option<usize>| {
            // Begins two steps below what served last.
            let at = last.and_then(|n| ladder.iter().position(|m| *m == n)).unwrap_or(0);
            &ladder[at.saturating_sub(2)..]
        };
        let last = self.scheme.map(|(scheme, _)| scheme);
        let (product, orthant) = match last {
            Some(Scheme::Product { nodes }) => (Some(nodes), None),
            Some(Scheme::Orthants { nodes }) => (None, Some(nodes)),
            _ => (None, None),
        };
        let mut found: Option<(Moments, Scheme)> = None;
        if !matches!(last, Some(Scheme::Orthants { .. } | Scheme::Lattice { .. })) {
            let ladder = from(&PRODUCT_LADDER, product);
            found = self.climb(rule, law, index, ladder, |nodes| Scheme::Product { nodes });
        }
        let enough = |found: &Option<(Moments, Scheme)>| {
            found.as_ref().is_some_and(|(moments, _)| moments.error <= self.accuracy)
        };
        if !enough(&found) && points::is_homogeneous(rule, law) {
            let ladder = from(&ORTHANT_LADDER, orthant);
            let by_orthants = self.climb(rule, law, index, ladder, |nodes| Scheme::Orthants { nodes });
            found = better(found, by_orthants);
        }
        if !enough(&found) {
            let best = match last {
                Some(Scheme::Lattice { best }) => Some(best),
                _ => None,
            };
            let mut known = best;
            let moments = self.by_lattice_with(rule, law, index, &mut known);
            let scheme = Scheme::Lattice { best: known.unwrap_or(BestRule::Lattice) };
            found = better(found, Some((moments, scheme)));
        }
        let (moments, scheme) = found.expect("lattices always give an answer");
        self.scheme = Some((scheme, moments.error));
        moments
    }

    /// Rules of increasing size until two agree, or the budget ends.
    fn climb(
        &self,
        rule: &dyn LocalRule,
        law: &Law,
        index: ProductIndex,
        ladder: &[usize],
        scheme: impl Fn(usize) -> Scheme,
    ) -> Option<(Moments, Scheme)> {
        let mut before: Option<(Moments, Scheme)> = None;
        let mut found: Option<(Moments, Scheme)> = None;
        for &nodes in ladder {
            let scheme = scheme(nodes);
            let Some(mut moments) = by_scheme(rule, law, index, scheme, self.accuracy, self.budget) else {
                break;
            };
            if let Some((coarse, coarse_scheme)) = before {
                moments.error = distance(&coarse, &moments);
                if moments.error <= CONVERGED {
                    return Some((Moments { error: moments.error, ..coarse }, coarse_scheme));
                }
                if moments.error <= self.accuracy {
                    return Some((moments, scheme));
                }
                found = Some((moments.clone(), scheme));
            }
            before = Some((moments, scheme));
        }
        found
    }

    fn by_lattice(
        &self,
        rule: &dyn LocalRule,
        law: &Law,
        index: ProductIndex,
        best: Option<BestRule>,
    ) -> Moments {
        let mut known = best;
        self.by_lattice_with(rule, law, index, &mut known)
    }

    fn by_lattice_with(
        &self,
        rule: &dyn LocalRule,
        law: &Law,
        index: ProductIndex,
        known: &mut Option<BestRule>,
    ) -> Moments {
        let mut integrand = ProductsOfSamples::new(rule, law, index);
        if integrand.dimension() == 0 {
            *known = Some(BestRule::Product);
        }
        let average = expectation_within(&mut integrand, self.accuracy.max(1e-6), self.budget / 2, known);
        let mut sums = Sums::new(index.len());
        sums.flat.copy_from_slice(&average.mean);
        let mut moments = sums.moments(index);
        let size = |a: usize| moments.second[(a, a)].max(f64::MIN_POSITIVE).sqrt();
        let m = index.len();
        for a in 0..m {
            for b in 0..=a {
                let error = average.error[m + super::products::triangle(a, b)] / (size(a) * size(b));
                if error.is_finite() && moments.second[(a, a)] > 0.0 && moments.second[(b, b)] > 0.0 {
                    moments.error = moments.error.max(error);
                }
            }
        }
        moments
    }
}

fn better(a: Option<(Moments, Scheme)>, b: Option<(Moments, Scheme)>) -> Option<(Moments, Scheme)> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b.0.error < a.0.error { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// The largest difference of second moments, in units of the root of the product of the two squares.
fn distance(coarse: &Moments, fine: &Moments) -> f64 {
    let m = fine.second.rows();
    let mut worst: f64 = 0.0;
    for a in 0..m {
        for b in 0..=a {
            let size = (fine.second[(a, a)] * fine.second[(b, b)]).sqrt();
            let apart = (fine.second[(a, b)] - coarse.second[(a, b)]).abs();
            if size > 0.0 {
                worst = worst.max(apart / size);
            } else if apart > 0.0 {
                worst = f64::INFINITY;
            }
        }
    }
    worst
}

/// `None` where the scheme needs more than the budget, or does not exist for this covariance.
fn by_scheme(
    rule: &dyn LocalRule,
    law: &Law,
    index: ProductIndex,
    scheme: Scheme,
    accuracy: f64,
    budget: usize,
) -> Option<Moments> {
    let mut summed = Summed::new(rule, law, index);
    let done = match scheme {
        Scheme::Product { nodes } => {
            points::product(rule, law, &factor(law.covariance), nodes, budget, &mut |b| summed.add(b))
        }
        Scheme::Orthants { nodes } => points::orthants(rule, law, nodes, budget, &mut |b| summed.add(b)),
        Scheme::Lattice { best } => {
            let averager = Averager { accuracy, budget, scheme: None };
            return Some(averager.by_lattice(rule, law, index, Some(best)));
        }
    };
    done.then(|| summed.sums.moments(index))
}

/// A factor F of C = F Fᵀ with as many columns as C has rank.
pub(super) fn factor(covariance: &Mat) -> Mat {
    let n = covariance.rows();
    if let Ok(lower) = cholesky_psd(covariance) {
        let used: Vec<usize> = (0..n).filter(|&j| lower[(j, j)] > 0.0).collect();
        return Mat::from_fn(n, used.len(), |i, j| lower[(i, used[j])]);
    }
    // Rounding may have left the covariance slightly outside the cone of Gram matrices.
    let eigen = symmetric_eigen(covariance);
    let used: Vec<usize> = (0..n).filter(|&j| eigen.values[j] > 0.0).collect();
    Mat::from_fn(n, used.len(), |i, j| eigen.vectors[(i, used[j])] * eigen.values[used[j]].sqrt())
}

/// Means, then the lower triangle of second moments.
struct Sums {
    flat: Vec<f64>,
}

impl Sums {
    fn new(products: usize) -> Self {
        Self { flat: vec![0.0; products + products * (products + 1) / 2] }
    }

    fn moments(&self, index: ProductIndex) -> Moments {
        let m = index.len();
        let (mean, triangle) = self.flat.split_at(m);
        let second = Mat::from_fn(m, m, |a, b| triangle[super::products::triangle(a, b)]);
        Moments { index, mean: mean.to_vec(), second, error: 0.0 }
    }
}

/// Adds Σ weight u and Σ weight u uᵀ of blocks of samples.
struct Summed<'a> {
    rule: &'a dyn LocalRule,
    law: &'a Law<'a>,
    index: ProductIndex,
    sums: Sums,
    kick: Kick,
    fields: Vec<f64>,
    kicks: Vec<f64>,
    gradients: Vec<f64>,
    products: Vec<f64>,
    weighted: Vec<f64>,
    row: Vec<f64>,
}

impl<'a> Summed<'a> {
    fn new(rule: &'a dyn LocalRule, law: &'a Law, index: ProductIndex) -> Self {
        Self {
            rule,
            law,
            index,
            sums: Sums::new(index.len()),
            kick: Kick::new(rule.shape()),
            fields: vec![0.0; rule.shape().rows()],
            kicks: Vec::new(),
            gradients: Vec::new(),
            products: Vec::new(),
            weighted: Vec::new(),
            row: vec![0.0; index.len()],
        }
    }

    fn add(&mut self, block: &Block) {
        let shape = self.rule.shape();
        let n = block.weights.len();
        let batch = Batch::new(block.fields, n, self.law.scalars, block.noise);
        self.kicks.resize(shape.trained * n, 0.0);
        self.gradients.resize(shape.scalars * n, 0.0);
        if shape.scalars == 0 {
            self.rule.kick_batch(&batch, &mut self.kicks, &mut []);
        } else {
            // Scalar gradients of a batch come summed; here each sample has its own.
            for j in 0..n {
                let sample = batch.sample(j, &mut self.fields);
                self.rule.kick(&sample, &mut self.kick);
                for (i, c) in self.kick.rows.iter().enumerate() {
                    self.kicks[i * n + j] = *c;
                }
                for (s, q) in self.kick.scalars.iter().enumerate() {
                    self.gradients[s * n + j] = *q;
                }
            }
        }
        let m = self.index.len();
        self.products.resize(m * n, 0.0);
        self.index.write(block.fields, &self.kicks, &self.gradients, n, &mut self.products);
        let (mean, triangle) = self.sums.flat.split_at_mut(m);
        let mut at = 0;
        for a in 0..m {
            self.weighted.clear();
            self.weighted
                .extend(self.products[a * n..(a + 1) * n].iter().zip(block.weights).map(|(x, w)| x * w));
            mean[a] += self.weighted.iter().sum::<f64>();
            dots(&self.weighted, &self.products[..(a + 1) * n], &mut self.row[..=a]);
            for (sum, value) in triangle[at..=at + a].iter_mut().zip(&self.row) {
                *sum += value;
            }
            at += a + 1;
        }
    }
}

/// The same products as an integrand over independent coordinates, the label noise being the last of them.
struct ProductsOfSamples<'a> {
    summed: Summed<'a>,
    factor: Mat,
    fields: Vec<f64>,
    noise: Vec<f64>,
    kick: Kick,
    values: Vec<f64>,
}

impl<'a> ProductsOfSamples<'a> {
    fn new(rule: &'a dyn LocalRule, law: &'a Law, index: ProductIndex) -> Self {
        Self {
            summed: Summed::new(rule, law, index),
            factor: factor(law.covariance),
            fields: Vec::new(),
            noise: Vec::new(),
            kick: Kick::new(rule.shape()),
            values: Vec::new(),
        }
    }
}

impl Integrand for ProductsOfSamples<'_> {
    fn dimension(&self) -> usize {
        self.factor.cols() + usize::from(self.summed.law.label_noise > 0.0)
    }

    fn outputs(&self) -> usize {
        self.summed.sums.flat.len()
    }

    fn at(&mut self, z: &[f64], out: &mut [f64]) {
        let (p, r) = (self.factor.rows(), self.factor.cols());
        self.fields.resize(p, 0.0);
        for (i, h) in self.fields.iter_mut().enumerate() {
            *h = (0..r).map(|j| self.factor[(i, j)] * z[j]).sum();
        }
        let law = self.summed.law;
        let noise = if law.label_noise > 0.0 { law.label_noise * z[r] } else { 0.0 };
        let sample = Sample { fields: &self.fields, scalars: law.scalars, noise };
        self.summed.rule.kick(&sample, &mut self.kick);
        let m = self.summed.index.len();
        self.values.resize(m, 0.0);
        self.summed.index.write(&self.fields, &self.kick.rows, &self.kick.scalars, 1, &mut self.values);
        let (mean, triangle) = out.split_at_mut(m);
        mean.copy_from_slice(&self.values);
        let mut at = 0;
        for a in 0..m {
            for b in 0..=a {
                triangle[at] = self.values[a] * self.values[b];
                at += 1;
            }
        }
    }

    fn add(&mut self, points: &WeightedPoints, sums: &mut [f64]) {
        let (p, r, n) = (self.factor.rows(), self.factor.cols(), points.size());
        if n < 8 {
            return point_by_point(self, points, sums);
        }
        self.fields.clear();
        self.fields.resize(p * n, 0.0);
        for (i, row) in self.fields.chunks_exact_mut(n).enumerate() {
            for (j, z) in points.coordinates.chunks_exact(n).take(r).enumerate() {
                didact_math::simd::add_scaled(row, self.factor[(i, j)], z);
            }
        }
        self.noise.clear();
        self.noise.resize(n, 0.0);
        let deviation = self.summed.law.label_noise;
        if deviation > 0.0 {
            didact_math::simd::add_scaled(
                &mut self.noise,
                deviation,
                &points.coordinates[r * n..(r + 1) * n],
            );
        }
        self.summed.sums.flat.copy_from_slice(sums);
        let block = Block { fields: &self.fields, noise: &self.noise, weights: points.weights };
        self.summed.add(&block);
        sums.copy_from_slice(&self.summed.sums.flat);
    }
}

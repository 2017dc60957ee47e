//! The population landscape of any family: differences, closed forms and the kinds of stationary points.

use crate::common::distance;
use didact_families::Family;
use didact_families::committee::Committee;
use didact_families::quadratic::{QuadraticNetworks, Stationary, manifold_dimension};
use didact_math::linalg::{Mat, svd, symmetric_eigen};
use didact_math::random::{RngAddress, Stream, orthonormal_rows};
use didact_model::LocalRule;
use didact_theory::landscape::population::stationary::{PointKind, classify};
use didact_theory::landscape::population::{self, HessianError, SIZE_LIMIT};

fn random(rows: usize, n: usize, size: f64, seed: u64) -> Mat {
    let mut stream = Stream::at(RngAddress { seed, replica: 0, step: 0, lane: 0 });
    Mat::from_fn(rows, n, |_, _| size * stream.normal())
}

/// Trained rows, then teachers on the first axes.
fn with_teachers(w: &Mat, teachers: usize) -> Mat {
    let (k, n) = (w.rows(), w.cols());
    Mat::from_fn(k + teachers, n, |i, j| if i < k { w[(i, j)] } else { f64::from(i - k == j) })
}

/// The weights of a stationary point: L [√g_T a; √g_O b], L with random orthonormal columns.
fn weights(point: &Stationary, n: usize, seed: u64) -> Mat {
    let Stationary { students, teachers, outside, inside } = *point;
    let mut stream = Stream::at(RngAddress { seed, replica: 0, step: 0, lane: 0 });
    let l = orthonormal_rows(&mut stream, outside + inside, students);
    let (a, b) = (
        orthonormal_rows(&mut stream, inside, teachers),
        orthonormal_rows(&mut stream, outside, n - teachers),
    );
    let frame = Mat::from_fn(outside + inside, n, |d, j| {
        if d < inside {
            if j < teachers { point.inside_norm().sqrt() * a[d * teachers + j] } else { 0.0 }
        } else if j >= teachers {
            point.outside_norm().sqrt() * b[(d - inside) * (n - teachers) + j - teachers]
        } else {
            0.0
        }
    });
    Mat::from_fn(students, outside + inside, |i, d| l[d * students + i]).times(&frame)
}

fn rule(p: usize, teachers: usize) -> std::sync::Arc<dyn LocalRule> {
    QuadraticNetworks::new(p, teachers).rule().unwrap()
}

#[test]
fn gradient_and_hessian_are_those_of_the_risk() {
    // Quadratic units in closed form; erf and cubic committees through quadrature of the curvature.
    let committee = |g: &str| Committee::soft(2, 1, g).rule().unwrap();
    for (name, rule, tolerance) in [
        ("quadratic", rule(2, 1), 1e-9),
        ("erf", committee("erf(z/sqrt2)"), 1e-7),
        ("cubic", committee("He3"), 1e-6),
    ] {
        let rows = with_teachers(&random(2, 4, 0.4, 3), 1);
        let risk = |at: &Mat| population::risk(&*rule, at, &[]);
        let (gradient, hessian) = (
            population::gradient(&*rule, &rows, &[]),
            population::hessian(&*rule, &rows, &[], SIZE_LIMIT).unwrap(),
        );
        let moved = |at: &Mat, index: usize, by: f64| {
            let mut there = at.clone();
            there.as_mut_slice()[index] += by;
            there
        };
        let h = 1e-4;
        for i in 0..8 {
            let slope = (risk(&moved(&rows, i, h)) - risk(&moved(&rows, i, -h))) / (2.0 * h);
            // Truncation h² R‴/6.
            assert!((slope - gradient.as_slice()[i]).abs() < 1e-6 * (1.0 + slope.abs()), "{name}: slope {i}");
            let (up, down) = (
                population::gradient(&*rule, &moved(&rows, i, h), &[]),
                population::gradient(&*rule, &moved(&rows, i, -h), &[]),
            );
            for j in 0..8 {
                let entry = (up.as_slice()[j] - down.as_slice()[j]) / (2.0 * h);
                let allowed = (tolerance + 1e-7) * (1.0 + entry.abs());
                assert!(
                    (entry - hessian[(i, j)]).abs() < allowed,
                    "{name}: {i} {j}: {entry} {}",
                    hessian[(i, j)]
                );
            }
        }
        assert!(hessian.asymmetry() < 1e-9);
    }
}

#[test]
fn the_spectrum_from_overlaps_is_that_of_the_dense_hessian() {
    for (p, teachers, n) in [(2, 1, 5), (3, 2, 9), (1, 3, 6)] {
        let rows = with_teachers(&random(p, n, 0.5, 7), teachers);
        let dense =
            symmetric_eigen(&population::hessian(&*rule(p, teachers), &rows, &[], SIZE_LIMIT).unwrap())
                .values;
        let levels = population::spectrum(&*rule(p, teachers), &rows.gram(), n, &[]).unwrap();
        let listed: Vec<f64> = levels.iter().flat_map(|l| vec![l.value; l.count]).collect();
        assert_eq!(listed.len(), dense.len());
        assert!(listed.iter().zip(&dense).all(|(a, b)| (a - b).abs() < 1e-9), "{p} {teachers}");
    }
}

#[test]
fn every_stationary_point_has_its_closed_form_spectrum() {
    for (n, p, teachers) in [(10, 4, 2), (9, 3, 2), (8, 2, 3), (8, 1, 1), (9, 3, 3)] {
        for outside in 0..=p {
            for inside in 0..=teachers {
                let point = Stationary { students: p, teachers, outside, inside };
                if point.check(n).is_err() {
                    continue;
                }
                let rows = with_teachers(&weights(&point, n, 5), teachers);
                let rule = rule(p, teachers);
                assert!(population::gradient(&*rule, &rows, &[]).max_abs() < 1e-13);
                assert!((population::risk(&*rule, &rows, &[]) - point.risk()).abs() < 1e-13);
                let dense =
                    symmetric_eigen(&population::hessian(&*rule, &rows, &[], SIZE_LIMIT).unwrap()).values;
                let closed: Vec<f64> =
                    point.hessian_spectrum(n).unwrap().iter().flat_map(|l| vec![l.0; l.1]).collect();
                let worst = dense.iter().zip(&closed).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(dense.len() == closed.len() && worst < 1e-10, "{point:?}: {worst}");
            }
        }
    }
}

#[test]
fn stationary_points_are_classified_and_their_null_directions_told_apart() {
    let (n, p, teachers) = (8, 3, 2);
    for (outside, inside, kind) in [
        (0, 0, PointKind::Maximum),
        (3, 0, PointKind::StrictSaddle),
        (2, 1, PointKind::StrictSaddle),
        (0, 1, PointKind::StrictSaddle),
        (0, 2, PointKind::Minimum),
    ] {
        let point = Stationary { students: p, teachers, outside, inside };
        let found =
            classify(&*rule(p, teachers), &with_teachers(&weights(&point, n, 9), teachers), &[], SIZE_LIMIT)
                .unwrap();
        assert_eq!(found.kind, kind, "{point:?}");
        assert_eq!(found.tangent, point.tangent_directions(n).unwrap(), "{point:?}");
        // Only perfect students with surplus rows have flat directions: (N − p*)(p − p*).
        assert_eq!(
            found.flat,
            if inside == teachers { (n - teachers) * (p - teachers) } else { 0 },
            "{point:?}"
        );
        assert_eq!(found.negative + found.null + found.positive, p * n);
    }
    let somewhere = with_teachers(&random(p, n, 0.5, 2), teachers);
    let found = classify(&*rule(p, teachers), &somewhere, &[], SIZE_LIMIT).unwrap();
    assert_eq!(found.kind, PointKind::NotStationary);
    // p* = 1: the manifold has p − 1 dimensions; p = p*: p(p−1)/2.
    assert_eq!(manifold_dimension(50, 1, 6), Some(5));
    assert_eq!(manifold_dimension(50, 4, 4), Some(6));
}

#[test]
fn the_second_variation_is_the_hessian() {
    // R(W + D) to second order: (tr D1)² + 2 tr D1² + 2 tr M tr D2 + 4 tr(M D2), M = WᵀW/p − P*/p*.
    let (p, teachers, n) = (3, 2, 6);
    let (w, d) = (random(p, n, 0.5, 4), random(p, n, 1.0, 6));
    let over = |a: &Mat, b: &Mat| a.transpose().times(b).scaled(1.0 / p as f64);
    let mut m = over(&w, &w);
    (0..teachers).for_each(|l| m[(l, l)] -= 1.0 / teachers as f64);
    let mut first = over(&d, &w);
    first.add_scaled(1.0, &over(&w, &d));
    let second = over(&d, &d);
    let expected = first.trace().powi(2)
        + 2.0 * first.times(&first).trace()
        + 2.0 * m.trace() * second.trace()
        + 4.0 * m.times(&second).trace();
    let hessian =
        population::hessian(&*rule(p, teachers), &with_teachers(&w, teachers), &[], SIZE_LIMIT).unwrap();
    let flat = Mat::from_fn(1, p * n, |_, i| d.as_slice()[i]);
    let got = 0.5 * flat.times(&hessian).times(&flat.transpose())[(0, 0)];
    assert!((got - expected).abs() < 1e-11 * (1.0 + expected.abs()), "{got} {expected}");
}

#[test]
fn a_hessian_that_does_not_fit_is_refused_with_the_way_around() {
    let rows = with_teachers(&random(6, 1000, 0.1, 1), 3);
    let refused = population::hessian(&*rule(6, 3), &rows, &[], SIZE_LIMIT).unwrap_err();
    assert_eq!(refused, HessianError::TooLarge { size: 6000, limit: 4000 });
    let levels = population::spectrum(&*rule(6, 3), &rows.gram(), 1000, &[]).unwrap();
    assert_eq!(levels.iter().map(|l| l.count).sum::<usize>(), 6000);
    assert!(distance(&rows.gram(), &svd_gram(&rows)) < 1e-10);
}

/// The Gram matrix through singular values: what the Hessian is built from.
fn svd_gram(rows: &Mat) -> Mat {
    let svd = svd(rows);
    svd.left.times(&Mat::diagonal(&svd.values)).gram()
}

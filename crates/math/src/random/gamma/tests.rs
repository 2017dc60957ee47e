use super::*;
use crate::random::statistics::{Moments, one_sample};
use crate::random::stream::RngAddress;

fn stream(step: u64) -> Stream {
    Stream::at(RngAddress { seed: 99, replica: 1, step, lane: 0 })
}

/// Regularised incomplete gamma function P(a, x) by its series, x^a e^{−x} Σ xⁿ/Γ(a+n+1).
fn gamma_distribution(a: f64, x: f64) -> f64 {
    let mut term = libm::exp(a * libm::log(x) - x - libm::lgamma(a + 1.0));
    let mut sum = 0.0;
    let mut n = 0.0;
    while term > 1e-17 * sum {
        sum += term;
        n += 1.0;
        term *= x / (a + n);
    }
    sum
}

#[test]
fn gamma_variables_follow_their_distribution_at_small_and_moderate_shapes() {
    for (step, shape) in [0.1, 0.5, 1.0, 1.5, 4.0, 50.0].into_iter().enumerate() {
        let mut stream = stream(step as u64);
        let mut values: Vec<f64> = (0..100_000).map(|_| stream.gamma(shape)).collect();
        let p = one_sample(&mut values, |x| gamma_distribution(shape, x)).p_value;
        assert!(p > 1e-5, "shape {shape}: p = {p}");
    }
}

#[test]
fn batched_chi_squares_follow_their_distribution() {
    for (step, dof) in [1.0, 2.0, 3.0, 10.0, 99.5].into_iter().enumerate() {
        let mut values = vec![0.0; 100_000];
        stream(100 + step as u64).fill_chi_square(dof, &mut values);
        let p = one_sample(&mut values, |x| gamma_distribution(0.5 * dof, 0.5 * x)).p_value;
        assert!(p > 1e-5, "dof {dof}: p = {p}");
    }
}

/// Mean n, variance 2n, third central moment 8n; the fourth is 3 (2n)² + 48 n.
#[test]
fn chi_square_moments_hold_up_to_a_million_million_degrees() {
    for (step, dof) in [5.0, 1e3, 1e6, 1e9, 1e12].into_iter().enumerate() {
        let mut values = vec![0.0; 400_000];
        stream(200 + step as u64).fill_chi_square(dof, &mut values);
        let standard = |x: f64| (x - dof) / (2.0 * dof).sqrt();
        let expected = [0.0, 1.0, (8.0 / dof).sqrt(), 3.0 + 12.0 / dof];
        for order in 1..=4 {
            let m: Moments = values.iter().map(|&x| standard(x).powi(order)).collect();
            let z = (m.mean() - expected[order as usize - 1]) / m.standard_error();
            assert!(z.abs() < 5.0, "dof {dof}, moment {order}: {} ({z} standard errors)", m.mean());
        }
    }
}

#[test]
fn a_shorter_batch_of_chi_squares_is_the_beginning_of_a_longer_one() {
    let mut long = vec![0.0; 500];
    stream(3).fill_chi_square(2.5, &mut long);
    for length in [0, 1, 31, 64, 65, 300] {
        let mut short = vec![0.0; length];
        stream(3).fill_chi_square(2.5, &mut short);
        assert_eq!(short, long[..length]);
    }
}

#[test]
fn no_degrees_of_freedom_give_zero() {
    assert_eq!(stream(0).chi_square(0.0), 0.0);
    let mut out = [1.0; 3];
    stream(0).fill_chi_square(0.0, &mut out);
    assert_eq!(out, [0.0; 3]);
}

#[test]
#[should_panic(expected = "degrees of freedom ≥ 0, not -1")]
fn negative_degrees_of_freedom_are_refused() {
    stream(0).chi_square(-1.0);
}

/// The logarithm of the acceptance probability equals that of the original paper, to the rounding of the latter.
#[test]
fn acceptance_agrees_with_the_original_form_and_the_quick_test_accepts_less() {
    for d in [2.0 / 3.0, 1.0, 5.0, 40.0] {
        for i in -700..=700 {
            let x = f64::from(i) * 0.01;
            let y = x / (9.0_f64 * d).sqrt();
            if y <= -0.99 {
                continue;
            }
            let exact = 3.0 * d * log_remainder(y);
            let v = (1.0 + y).powi(3);
            let textbook = 0.5 * x * x + d - d * v + d * v.ln();
            assert!(
                (exact - textbook).abs() < 1e-14 * (1.0 + d * v + x * x),
                "d {d}, x {x}: {exact} {textbook}"
            );
            if y >= -0.5 {
                assert!((1.0 - x.powi(4) / (54.0 * d)) <= exact.exp() + 1e-15, "d {d}, x {x}");
            }
        }
    }
}

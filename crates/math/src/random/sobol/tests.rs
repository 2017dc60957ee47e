use super::*;
use crate::random::statistics::Moments;

#[test]
fn the_number_of_primitive_polynomials_is_the_known_one() {
    // There are φ(2^s − 1)/s of degree s, with Euler's φ.
    let counts: Vec<usize> = (1..=DEGREE).map(|s| primitive_polynomials(s).len()).collect();
    assert_eq!(counts, [1, 1, 2, 2, 6, 6, 18, 16, 48, 60]);
    assert_eq!(sobol_axes(), 161);
}

#[test]
fn every_axis_visits_every_cell_once_whatever_the_scramble() {
    for axis in [0, 1, 7, 40, 160, 161, 500] {
        let mut u = vec![0.0; 256];
        sobol_column(5, 2, axis, &mut u);
        let mut cells: Vec<usize> = u.iter().map(|u| (u * 256.0) as usize).collect();
        cells.sort_unstable();
        assert_eq!(cells, (0..256).collect::<Vec<_>>(), "axis {axis}");
    }
}

#[test]
fn the_first_two_axes_are_a_net_of_best_quality() {
    // A (0, 8, 2)-net: every box 2^-a x 2^-b with a + b = 8 holds one point.
    let (mut x, mut y) = (vec![0.0; 256], vec![0.0; 256]);
    sobol_column(1, 0, 0, &mut x);
    sobol_column(1, 0, 1, &mut y);
    for a in 0..=8 {
        let (columns, rows) = (f64::from(1 << a), f64::from(1 << (8 - a)));
        let mut boxes: Vec<usize> = x
            .iter()
            .zip(&y)
            .map(|(x, y)| (x * columns) as usize * rows as usize + (y * rows) as usize)
            .collect();
        boxes.sort_unstable();
        boxes.dedup();
        assert_eq!(boxes.len(), 256, "2^-{a} wide");
    }
}

#[test]
fn a_column_depends_on_its_own_address_alone_and_scrambles_differ() {
    let column = |scramble, axis| {
        let mut u = vec![0.0; 64];
        sobol_column(9, scramble, axis, &mut u);
        u
    };
    assert_eq!(column(3, 12), column(3, 12));
    assert_ne!(column(3, 12), column(4, 12));
    assert_ne!(column(3, 12), column(3, 13));
}

#[test]
fn averages_of_smooth_functions_are_more_accurate_than_with_independent_points() {
    // E ∏_j (1 + (u_j − 1/2)) = 1 in six dimensions; its standard deviation is √((13/12)^6 − 1) = 0.785.
    let (n, axes) = (4096, 6);
    let mut means = Moments::default();
    for scramble in 0..24 {
        let mut product = vec![1.0; n];
        let mut u = vec![0.0; n];
        for axis in 0..axes {
            sobol_column(77, scramble, axis, &mut u);
            product.iter_mut().zip(&u).for_each(|(p, u)| *p *= 0.5 + u);
        }
        means.push(product.iter().sum::<f64>() / n as f64);
    }
    let independent = 0.785 / (n as f64).sqrt();
    assert!((means.mean() - 1.0).abs() < 5.0 * means.standard_error());
    assert!(means.variance().sqrt() < independent / 20.0, "{} {independent}", means.variance().sqrt());
}

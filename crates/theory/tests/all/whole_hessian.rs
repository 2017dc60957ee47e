//! The Hessian of the empirical risk in all trained rows together, m d x m d.

use didact_families::Family;
use didact_families::multi_index::MultiIndex;
use didact_math::spectra::SpectrumEnd;
use didact_model::loss::Loss;
use didact_theory::landscape::EmpiricalDescent;

const HUBER: Loss = Loss::PseudoHuber { kappa: 1.0 };

/// m units on z1 + z2 + z1 z2 with weights of both signs.
fn network(m: usize) -> MultiIndex {
    MultiIndex {
        students: m,
        directions: 2,
        weights: Some((0..m).map(|j| if j % 3 == 1 { -1.0 } else { 1.5 - 0.1 * (j % 5) as f64 }).collect()),
        biases: Some((0..m).map(|j| 0.2 * (j % 4) as f64 - 0.3).collect()),
        ..MultiIndex::single("gelu", "z1+z2+z1*z2", HUBER)
    }
}

#[test]
fn it_is_the_derivative_of_the_gradient_in_all_rows() {
    let rule = network(2).rule().unwrap();
    let (m, d) = (2, 10);
    let mut run = EmpiricalDescent::new(rule.as_ref(), d, 4.0, 1.0, 0.1, 3).unwrap();
    let direction: Vec<f64> = (0..m * d).map(|i| (1.7 * i as f64).cos()).collect();
    let here = run.rows.clone();
    let mut gradient = |shift: f64| {
        run.rows = here.clone();
        for i in 0..m {
            let along = &direction[i * d..(i + 1) * d];
            run.rows.row_mut(i).iter_mut().zip(along).for_each(|(w, v)| *w += shift * v);
        }
        let before: Vec<f64> = (0..m).flat_map(|i| run.rows.row(i).to_vec()).collect();
        run.descend(1.0, 1);
        let after = (0..m).flat_map(|i| run.rows.row(i).to_vec());
        before.iter().zip(after).map(|(a, b)| a - b).collect::<Vec<f64>>()
    };
    let (above, below) = (gradient(1e-5), gradient(-1e-5));
    run.rows = here;
    let hessian = run.whole_hessian();
    assert_eq!(hessian.size(), m * d);
    let mut product = vec![0.0; m * d];
    hessian.apply(&direction, &mut product);
    for ((a, b), h) in above.iter().zip(&below).zip(&product) {
        assert!(((a - b) / 2e-5 - h).abs() < 1e-8, "{} {h}", (a - b) / 2e-5);
    }
}

#[test]
fn the_dense_solver_and_lanczos_see_the_same_matrix() {
    let rule = network(3).rule().unwrap();
    let mut run = EmpiricalDescent::new(rule.as_ref(), 40, 6.0, 1.0, 0.0, 1).unwrap();
    run.descend(1.5, 2);
    let hessian = run.whole_hessian();
    let (dense, lowest) = (hessian.eigen(), hessian.extreme(SpectrumEnd::Lowest, 2, 5));
    for (k, pair) in lowest.iter().enumerate() {
        assert!((dense.values[k] - pair.value).abs() < 1e-9, "{} {}", dense.values[k], pair.value);
    }
    let hard = [vec![0.5f64.sqrt(), -(0.5f64.sqrt())]];
    let vector: Vec<f64> = (0..120).map(|i| dense.vectors[(i, 0)]).collect();
    let (a, b) = (run.overlap(&vector, &hard), run.overlap(&lowest[0].vector, &hard));
    assert!((a - b).abs() < 1e-6 && (0.0..=1.0).contains(&a), "{a} {b}");
}

#[test]
fn for_one_row_it_is_the_block_of_that_row() {
    let rule = MultiIndex::single("gelu", "z^2", HUBER).rule().unwrap();
    let run = EmpiricalDescent::new(rule.as_ref(), 30, 5.0, 1.0, 0.0, 2).unwrap();
    let (whole, block) = (run.whole_hessian().eigen().values, run.hessian(0).eigen().values);
    assert!(whole.iter().zip(&block).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn for_many_rows_m_times_it_tends_to_the_blocks_on_its_diagonal() {
    // What is left out is a matrix of size 1/m: its largest eigenvalue is positive and O(1), but directions of descent move by O(1/m).
    let lowest = |m: usize| {
        let rule = network(m).rule().unwrap();
        let run = EmpiricalDescent::new(rule.as_ref(), 40, 8.0, 1.0, 0.0, 7).unwrap();
        let whole = m as f64 * run.whole_hessian().extreme(SpectrumEnd::Lowest, 1, 1)[0].value;
        let blocks = (0..m).map(|row| run.hessian(row).extreme(SpectrumEnd::Lowest, 1, 1)[0].value);
        (whole, blocks.fold(f64::INFINITY, f64::min))
    };
    let gaps = [4, 12, 36].map(|m| {
        let (whole, block) = lowest(m);
        // The rest is positive semi-definite: it lifts the lowest eigenvalue.
        assert!(whole >= block - 1e-9, "{m}: {whole} {block}");
        (whole - block) / block.abs()
    });
    assert!(gaps[2] < 0.5 * gaps[0] && gaps[2] < 0.1, "{gaps:?}");
}

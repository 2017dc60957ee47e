use super::super::planes::nearly_learned;
use super::*;
use didact_math::activation::parse;
use didact_math::gauss::GaussianRule;
use didact_math::gauss::relu::i4;
use didact_math::linalg::cholesky_psd;
use didact_math::random::{RngAddress, Stream};

/// The slow way for three fields: panels along z, then y, then x, with breaks at the kinks of the field that each of them completes.
/// Kinks of later fields are smoothed by the inner sums, so that the outer ones converge with the length of their panels.
fn on_a_cube(units: &[&LinearPieces; 3], residual: &[f64; 3], c: &Mat) -> Mat {
    let lower = cholesky_psd(c).unwrap();
    let breaks = |f: usize, mean: f64| -> Vec<f64> {
        units[f].kinks.iter().map(|kink| (kink.at - mean) / lower[(f, f)]).collect()
    };
    let mut sum = Mat::zeros(2, 2);
    let outer = GaussianRule::panels(&breaks(0, 0.0), 0.5, 8.5);
    for (&x, &u) in outer.nodes.iter().zip(&outer.weights) {
        let first = lower[(0, 0)] * x;
        let middle = GaussianRule::panels(&breaks(1, lower[(1, 0)] * x), 0.8, 8.5);
        for (&y, &v) in middle.nodes.iter().zip(&middle.weights) {
            let second = lower[(1, 0)] * x + lower[(1, 1)] * y;
            let mean = lower[(2, 0)] * x + lower[(2, 1)] * y;
            let inner = GaussianRule::panels(&breaks(2, mean), 5.0, 8.5);
            let known = residual[0] * units[0].value(first) + residual[1] * units[1].value(second);
            let square =
                inner.average(|z| (known + residual[2] * units[2].value(mean + lower[(2, 2)] * z)).powi(2));
            let slopes = [units[0].slope(first), units[1].slope(second)];
            for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                sum[(i, j)] += u * v * slopes[i] * slopes[j] * square;
            }
        }
    }
    sum
}

#[test]
fn squared_errors_match_panels_over_all_fields() {
    let covariances = [
        vec![vec![0.5, 0.1, 0.3], vec![0.1, 0.4, -0.2], vec![0.3, -0.2, 1.0]],
        vec![vec![1.0, 0.2, 0.9], vec![0.2, 0.8, 0.2], vec![0.9, 0.2, 1.0]],
        vec![vec![1.0, -0.6, 0.8], vec![-0.6, 1.5, -0.9], vec![0.8, -0.9, 1.0]],
    ];
    let mut work = Work::default();
    for [own, teacher] in [
        ["0.2+max(x-0.2,0.1*(x-0.2))", "0.2+max(x-0.2,0.1*(x-0.2))"],
        ["min(max(x,-1),1)", "relu"],
        ["abs(x - 0.5) + 0.3*x", "min(max(x,-0.3),0.4)"],
    ] {
        let (own, teacher) = (parse(own).unwrap(), parse(teacher).unwrap());
        let (own, teacher) = (own.linear_pieces().unwrap(), teacher.linear_pieces().unwrap());
        let units: [&LinearPieces; 3] = [&own, &own, &teacher];
        let residual = [-1.0, -0.7, 1.2];
        for c in &covariances {
            let c = Mat::from_rows(c).unwrap();
            let slow = on_a_cube(&units, &residual, &c);
            let fast = KinkedIntegral { units: &units, residual: &residual, covariance: &c };
            for (fineness, tolerance) in [(Fineness::FIRST, 1e-4), (Fineness::FINEST, 1e-9)] {
                let mut got = fast.squared_errors(2, fineness, &mut work);
                got.add_scaled(-1.0, &slow);
                let error = got.max_abs() / slow.max_abs();
                assert!(error < tolerance, "{own:?}, {teacher:?}, {fineness:?}, {c:?}: off by {error:e}");
            }
        }
    }
}

/// Sums of every fineness approach the finest at every stage of learning, also where e vanishes and fields become parallel.
#[test]
fn sums_converge_at_every_stage_of_learning() {
    let mut stream = Stream::at(RngAddress { seed: 3, replica: 0, step: 0, lane: 0 });
    let mut random = |rows: usize| Mat::from_fn(rows, rows + 1, |_, _| 0.45 * stream.normal()).gram();
    let covariances = [random(4), random(4), nearly_learned(0.3), nearly_learned(1e-2), nearly_learned(1e-4)];
    let mut work = Work::default();
    for name in ["0.2+max(x-0.2,0.1*(x-0.2))", "min(max(x,-1),1)"] {
        let unit = parse(name).unwrap();
        let pieces = unit.linear_pieces().unwrap();
        let (units, residual) = ([&*pieces; 4], [-1.0, -1.0, 1.0, 1.0]);
        for c in &covariances {
            let integral = KinkedIntegral { units: &units, residual: &residual, covariance: c };
            let best = integral.squared_errors(2, Fineness::FINEST, &mut work);
            for (level, tolerance) in [(0, 1e-3), (2, 5e-5), (4, 2e-6), (6, 5e-8)] {
                let mut got = integral.squared_errors(2, Fineness(level), &mut work);
                got.add_scaled(-1.0, &best);
                let error = got.max_abs() / best.max_abs();
                assert!(error <= tolerance, "{name}, {level}, {c:?}: off by {error:e}");
            }
        }
    }
}

/// The limit of learning: e vanishes on every field.
#[test]
fn a_perfect_student_makes_no_error() {
    let unit = parse("min(max(x,-1),1)").unwrap();
    let pieces = unit.linear_pieces().unwrap();
    let c = Mat::from_fn(4, 4, |i, j| if i % 2 == j % 2 { 2.0 } else { 0.6 });
    let integral =
        KinkedIntegral { units: &[&*pieces; 4], residual: &[-1.0, -1.0, 1.0, 1.0], covariance: &c };
    let got = integral.squared_errors(2, Fineness::FIRST, &mut Work::default());
    assert!(got.max_abs() < 1e-14, "{got:?}");
}

/// Σ_kl v_k v_l E[θ(h_i) θ(h_j) h_k₊ h_l₊] of five fields, from the closed forms of ReLU units.
#[test]
fn squared_errors_of_relu_units_are_the_closed_forms() {
    let mut stream = Stream::at(RngAddress { seed: 5, replica: 0, step: 0, lane: 0 });
    let unit = parse("relu").unwrap();
    let pieces = unit.linear_pieces().unwrap();
    let (units, residual) = ([&*pieces; 5], [-1.0, -0.8, -1.1, 1.0, 0.9]);
    let mut work = Work::default();
    for independent in [5, 10, 4] {
        let c = Mat::from_fn(5, independent, |_, _| 0.4 * stream.normal()).gram();
        let closed = |i: usize, j: usize| {
            let mut sum = 0.0;
            for k in 0..5 {
                for l in 0..5 {
                    let fields = [i, j, k, l];
                    sum += residual[k] * residual[l] * i4(&fields.map(|a| fields.map(|b| c[(a, b)])));
                }
            }
            sum
        };
        let slow = Mat::from_fn(3, 3, closed);
        let integral = KinkedIntegral { units: &units, residual: &residual, covariance: &c };
        for (fineness, tolerance) in [(Fineness::FIRST, 1e-4), (Fineness::FINEST, 1e-9)] {
            let mut got = integral.squared_errors(3, fineness, &mut work);
            got.add_scaled(-1.0, &slow);
            let error = got.max_abs() / slow.max_abs();
            assert!(error < tolerance, "{fineness:?}, {c:?}: off by {error:e}");
        }
    }
}

/// E[e² g'_0 g'_1] of four fields by panels along one axis after the other, each ending at the kinks of the field that it completes.
fn on_four_axes(units: &[&LinearPieces; 4], residual: &[f64; 4], c: &Mat) -> f64 {
    fn along(
        axis: usize,
        z: &mut [f64; 4],
        integrand: &impl Fn(&[f64; 4]) -> f64,
        breaks: &impl Fn(usize, &[f64; 4]) -> Vec<f64>,
    ) -> f64 {
        // Outer sums see the kinks of later fields smoothed, the last sum sees straight lines.
        let width = [2.0, 2.0, 3.5, 6.0][axis];
        let rule = GaussianRule::panels(&breaks(axis, z), width, 6.5);
        rule.average(|t| {
            z[axis] = t;
            if axis == 3 { integrand(z) } else { along(axis + 1, z, integrand, breaks) }
        })
    }
    let lower = cholesky_psd(c).unwrap();
    let field = |f: usize, z: &[f64; 4]| -> f64 { (0..=f).map(|k| lower[(f, k)] * z[k]).sum() };
    let breaks = |f: usize, z: &[f64; 4]| -> Vec<f64> {
        let mean: f64 = (0..f).map(|k| lower[(f, k)] * z[k]).sum();
        units[f].kinks.iter().map(|kink| (kink.at - mean) / lower[(f, f)]).collect()
    };
    let integrand = |z: &[f64; 4]| {
        let e: f64 = (0..4).map(|f| residual[f] * units[f].value(field(f, z))).sum();
        e * e * units[0].slope(field(0, z)) * units[1].slope(field(1, z))
    };
    along(0, &mut [0.0; 4], &integrand, &breaks)
}

#[test]
fn two_correlated_fields_beside_the_plane_match_panels_over_all_four() {
    let residual = [-1.0, -0.8, 1.1, 0.9];
    let rows = [[0.9, 0.0, 0.0, 0.0], [0.2, 0.8, 0.0, 0.0], [0.4, -0.3, 0.8, 0.0], [-0.2, 0.3, 0.6, 0.5]];
    let c = Mat::from_fn(4, 4, |i, j| rows[i][j]).gram();
    for [own, teacher] in
        [["max(x-0.3,0)", "abs(x+0.2)"], ["min(max(x,-0.7),0.9)", "max(x-0.3,0)"], ["min(max(x,-1),1)"; 2]]
    {
        let (own, teacher) = (parse(own).unwrap(), parse(teacher).unwrap());
        let (own, teacher) = (own.linear_pieces().unwrap(), teacher.linear_pieces().unwrap());
        let units: [&LinearPieces; 4] = [&own, &own, &teacher, &teacher];
        let slow = on_four_axes(&units, &residual, &c);
        let fast = KinkedIntegral { units: &units, residual: &residual, covariance: &c };
        let got = fast.squared_errors(2, Fineness::FINEST, &mut Work::default())[(0, 1)];
        assert!((got - slow).abs() < 1e-7 * slow.abs(), "{own:?}, {teacher:?}: {got} {slow}");
    }
}

//! The loops over the data matrix: every row is projected and added to the gradient while it is in cache.
//!
//! Products and sums are rounded separately and in a fixed order, so that the numbers are the same on every processor. A
//! sweep projects four rows and, in the same loop, adds four rows that were projected a block earlier: memory is read
//! without a pause, once per step.

/// Rows that a sweep handles together.
pub(super) const TOGETHER: usize = 4;

macro_rules! kernels {
    ($number:ty, $lanes:literal, $module:ident) => {
        pub(super) mod $module {
            use super::TOGETHER;
            use didact_math::dispatch;

            /// Partial sums of one product: two vector registers.
            const LANES: usize = $lanes;

            #[inline(always)]
            fn fold(sums: &[$number; LANES]) -> $number {
                let (mut sums, mut width) = (*sums, LANES);
                while width > 1 {
                    width /= 2;
                    for lane in 0..width {
                        sums[lane] += sums[lane + width];
                    }
                }
                sums[0]
            }

            /// Four rows of a matrix.
            #[inline(always)]
            fn rows(x: &[$number], d: usize) -> [&[$number]; TOGETHER] {
                [&x[..d], &x[d..2 * d], &x[2 * d..3 * d], &x[3 * d..4 * d]]
            }

            dispatch! {
                /// Products of four rows of x with one vector of weights.
                pub(in super::super) fn project(x: &[$number], weights: &[$number], out: &mut [$number; TOGETHER]) {
                    let d = weights.len();
                    let x = rows(x, d);
                    let mut sums = [[0.0; LANES]; TOGETHER];
                    let whole = d / LANES * LANES;
                    for at in (0..whole).step_by(LANES) {
                        let w: &[$number; LANES] = weights[at..at + LANES].try_into().expect("a vector");
                        for (x, sums) in x.iter().zip(&mut sums) {
                            let x: &[$number; LANES] = x[at..at + LANES].try_into().expect("a vector");
                            for lane in 0..LANES {
                                sums[lane] += w[lane] * x[lane];
                            }
                        }
                    }
                    for ((out, sums), x) in out.iter_mut().zip(&sums).zip(&x) {
                        *out = fold(sums);
                        for at in whole..d {
                            *out += weights[at] * x[at];
                        }
                    }
                }
            }

            dispatch! {
                /// gradient += Σ kick x over four rows.
                pub(in super::super) fn add(x: &[$number], kicks: &[$number; TOGETHER], gradient: &mut [$number]) {
                    let d = gradient.len();
                    let [a, b, c, e] = rows(x, d);
                    for at in 0..d {
                        gradient[at] += (kicks[0] * a[at] + kicks[1] * b[at]) + (kicks[2] * c[at] + kicks[3] * e[at]);
                    }
                }
            }

            dispatch! {
                /// [`project`] of four rows and [`add`] of four earlier ones in one loop.
                pub(in super::super) fn sweep(
                    x: &[$number],
                    weights: &[$number],
                    out: &mut [$number; TOGETHER],
                    before: &[$number],
                    kicks: &[$number; TOGETHER],
                    gradient: &mut [$number],
                ) {
                    let d = weights.len();
                    let gradient = &mut gradient[..d];
                    let x = rows(x, d);
                    let [a, b, c, e] = rows(before, d);
                    let mut sums = [[0.0; LANES]; TOGETHER];
                    let whole = d / LANES * LANES;
                    for at in (0..whole).step_by(LANES) {
                        let w: &[$number; LANES] = weights[at..at + LANES].try_into().expect("a vector");
                        for (x, sums) in x.iter().zip(&mut sums) {
                            let x: &[$number; LANES] = x[at..at + LANES].try_into().expect("a vector");
                            for lane in 0..LANES {
                                sums[lane] += w[lane] * x[lane];
                            }
                        }
                        let g: &mut [$number; LANES] = (&mut gradient[at..at + LANES]).try_into().expect("a vector");
                        let part = |row: &[$number]| -> [$number; LANES] { row[at..at + LANES].try_into().expect("a vector") };
                        let (a, b, c, e) = (part(a), part(b), part(c), part(e));
                        for lane in 0..LANES {
                            g[lane] += (kicks[0] * a[lane] + kicks[1] * b[lane])
                                + (kicks[2] * c[lane] + kicks[3] * e[lane]);
                        }
                    }
                    for at in whole..d {
                        gradient[at] += (kicks[0] * a[at] + kicks[1] * b[at]) + (kicks[2] * c[at] + kicks[3] * e[at]);
                    }
                    for ((out, sums), x) in out.iter_mut().zip(&sums).zip(&x) {
                        *out = fold(sums);
                        for at in whole..d {
                            *out += weights[at] * x[at];
                        }
                    }
                }
            }
        }
    };
}

kernels!(f64, 8, double);
kernels!(f32, 16, single);

/// A precision in which data are kept.
pub(super) trait Number: Copy + Send + Sync + Default + std::fmt::Debug + 'static {
    /// Rounded from a double.
    fn from_double(value: f64) -> Self;
    /// As a double.
    fn to_double(self) -> f64;
    /// Products of four rows with weights.
    fn project(x: &[Self], weights: &[Self], out: &mut [Self; TOGETHER]);
    /// gradient += Σ kick x.
    fn add(x: &[Self], kicks: &[Self; TOGETHER], gradient: &mut [Self]);
    /// Both at once, on different rows.
    fn sweep(
        x: &[Self],
        weights: &[Self],
        out: &mut [Self; TOGETHER],
        before: &[Self],
        kicks: &[Self; TOGETHER],
        gradient: &mut [Self],
    );
}

macro_rules! number {
    ($number:ty, $module:ident) => {
        impl Number for $number {
            fn from_double(value: f64) -> Self {
                value as Self
            }
            fn to_double(self) -> f64 {
                f64::from(self)
            }
            fn project(x: &[Self], weights: &[Self], out: &mut [Self; TOGETHER]) {
                $module::project(x, weights, out);
            }
            fn add(x: &[Self], kicks: &[Self; TOGETHER], gradient: &mut [Self]) {
                $module::add(x, kicks, gradient);
            }
            fn sweep(
                x: &[Self],
                weights: &[Self],
                out: &mut [Self; TOGETHER],
                before: &[Self],
                kicks: &[Self; TOGETHER],
                gradient: &mut [Self],
            ) {
                $module::sweep(x, weights, out, before, kicks, gradient);
            }
        }
    };
}

number!(f64, double);
number!(f32, single);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_a_projection_and_an_addition() {
        for d in [5, 16, 37] {
            let x: Vec<f64> = (0..8 * d).map(|i| (i as f64 * 0.37).sin()).collect();
            let (new, old) = x.split_at(4 * d);
            let weights: Vec<f64> = (0..d).map(|i| (i as f64 * 0.11).cos()).collect();
            let kicks = [0.3, -1.2, 0.7, 2.0];
            let (mut apart, mut together) = ([0.0; 4], [0.0; 4]);
            let (mut slow, mut fast) = (vec![0.5; d], vec![0.5; d]);
            f64::project(new, &weights, &mut apart);
            f64::add(old, &kicks, &mut slow);
            f64::sweep(new, &weights, &mut together, old, &kicks, &mut fast);
            assert_eq!((apart, &slow), (together, &fast), "bit by bit");
            for (row, product) in apart.iter().enumerate() {
                let plain: f64 = (0..d).map(|j| new[row * d + j] * weights[j]).sum();
                assert!((product - plain).abs() < 1e-13);
            }
            for j in 0..d {
                let plain = 0.5 + (0..4).map(|row| kicks[row] * old[row * d + j]).sum::<f64>();
                assert!((slow[j] - plain).abs() < 1e-13);
            }
        }
    }
}

//! The loops over the data matrix: every row is projected and added to the gradient while it is in cache.
//!
//! Products are fused with sums, in a fixed order, so that the numbers are the same on every processor. A
//! sweep projects four rows and, in the same loop, adds four rows that were projected a block earlier: memory is read
//! without a pause, once per step.

/// Number of rows of the data matrix that one pass handles.
pub(super) const ROWS_PER_PASS: usize = 4;

macro_rules! kernels {
    ($number:ty, $lanes:literal, $module:ident) => {
        pub(super) mod $module {
            use super::ROWS_PER_PASS;
            use didact_math::dispatch;
            use didact_math::simd::prefetch;

            /// Partial sums of one product: two vector registers.
            const LANES: usize = $lanes;

            /// One of them, for the end of a row.
            const HALF: usize = LANES / 2;

            /// How far ahead of the loads memory is asked for, in numbers: a kilobyte.
            const AHEAD: usize = 1024 / size_of::<$number>();

            /// The four sums. Never inlined: next to the loops it would tempt the compiler to vectorise across rows.
            #[inline(never)]
            fn fold(sums: &[[$number; LANES]; ROWS_PER_PASS], out: &mut [$number; ROWS_PER_PASS]) {
                for (out, sums) in out.iter_mut().zip(sums) {
                    let (mut sums, mut width) = (*sums, LANES);
                    while width > 1 {
                        width /= 2;
                        for lane in 0..width {
                            sums[lane] += sums[lane + width];
                        }
                    }
                    *out = sums[0];
                }
            }

            /// A vector of a row.
            #[inline(always)]
            fn part<const N: usize>(row: &[$number], at: usize) -> &[$number; N] {
                row[at..at + N].try_into().expect("a vector")
            }

            #[inline(always)]
            fn accumulate<const N: usize>(w: &[$number; N], x: &[$number; N], sums: &mut [$number; LANES]) {
                for lane in 0..N {
                    sums[lane] = w[lane].mul_add(x[lane], sums[lane]);
                }
            }

            /// kick_0 a + kick_1 b + kick_2 c + kick_3 e + g.
            #[inline(always)]
            fn added(kicks: &[$number; ROWS_PER_PASS], row: [$number; ROWS_PER_PASS], g: $number) -> $number {
                let [a, b, c, e] = row;
                kicks[0].mul_add(a, kicks[1].mul_add(b, kicks[2].mul_add(c, kicks[3].mul_add(e, g))))
            }

            /// Four rows of a matrix.
            #[inline(always)]
            fn rows(x: &[$number], d: usize) -> [&[$number]; ROWS_PER_PASS] {
                [&x[..d], &x[d..2 * d], &x[2 * d..3 * d], &x[3 * d..4 * d]]
            }

            dispatch! {
                /// Products of four rows of x with one vector of weights.
                pub(in super::super) fn project(x: &[$number], weights: &[$number], out: &mut [$number; ROWS_PER_PASS]) {
                    let d = weights.len();
                    let x = rows(x, d);
                    let [mut s0, mut s1, mut s2, mut s3] = [[0.0; LANES]; ROWS_PER_PASS];
                    let whole = d / LANES * LANES;
                    for at in (0..whole).step_by(LANES) {
                        let w = part::<LANES>(weights, at);
                        accumulate(w, part(x[0], at), &mut s0);
                        accumulate(w, part(x[1], at), &mut s1);
                        accumulate(w, part(x[2], at), &mut s2);
                        accumulate(w, part(x[3], at), &mut s3);
                    }
                    let end = if d - whole < HALF { whole } else { whole + HALF };
                    if end > whole {
                        let w = part::<HALF>(weights, whole);
                        accumulate(w, part(x[0], whole), &mut s0);
                        accumulate(w, part(x[1], whole), &mut s1);
                        accumulate(w, part(x[2], whole), &mut s2);
                        accumulate(w, part(x[3], whole), &mut s3);
                    }
                    fold(&[s0, s1, s2, s3], out);
                    for (out, x) in out.iter_mut().zip(&x) {
                        for at in end..d {
                            *out += weights[at] * x[at];
                        }
                    }
                }
            }

            dispatch! {
                /// gradient += Σ kick x over four rows.
                pub(in super::super) fn add(x: &[$number], kicks: &[$number; ROWS_PER_PASS], gradient: &mut [$number]) {
                    let d = gradient.len();
                    let [a, b, c, e] = rows(x, d);
                    for at in 0..d {
                        gradient[at] = added(kicks, [a[at], b[at], c[at], e[at]], gradient[at]);
                    }
                }
            }

            dispatch! {
                /// [`project`] of four rows and [`add`] of four earlier ones in one loop.
                pub(in super::super) fn sweep(
                    x: &[$number],
                    weights: &[$number],
                    out: &mut [$number; ROWS_PER_PASS],
                    before: &[$number],
                    kicks: &[$number; ROWS_PER_PASS],
                    gradient: &mut [$number],
                ) {
                    let d = weights.len();
                    let gradient = &mut gradient[..d];
                    let start: *const $number = x.as_ptr();
                    let x = rows(x, d);
                    let [a, b, c, e] = rows(before, d);
                    let [mut s0, mut s1, mut s2, mut s3] = [[0.0; LANES]; ROWS_PER_PASS];
                    let whole = d / LANES * LANES;
                    for at in (0..whole).step_by(LANES) {
                        let w = part::<LANES>(weights, at);
                        accumulate(w, part(x[0], at), &mut s0);
                        accumulate(w, part(x[1], at), &mut s1);
                        accumulate(w, part(x[2], at), &mut s2);
                        accumulate(w, part(x[3], at), &mut s3);
                        // Rows follow each other in memory, four by four: past the end of a row lies, three rows on, the
                        // beginning of the one that is read next.
                        let ahead = at + AHEAD + if at + AHEAD < d { 0 } else { 3 * d };
                        for row in 0..ROWS_PER_PASS {
                            prefetch(start.wrapping_add(row * d + ahead).cast());
                        }
                        let g: &mut [$number; LANES] = (&mut gradient[at..at + LANES]).try_into().expect("a vector");
                        let (a, b, c, e) = (part::<LANES>(a, at), part::<LANES>(b, at), part::<LANES>(c, at), part::<LANES>(e, at));
                        for lane in 0..LANES {
                            g[lane] = added(kicks, [a[lane], b[lane], c[lane], e[lane]], g[lane]);
                        }
                    }
                    let end = if d - whole < HALF { whole } else { whole + HALF };
                    if end > whole {
                        let w = part::<HALF>(weights, whole);
                        accumulate(w, part(x[0], whole), &mut s0);
                        accumulate(w, part(x[1], whole), &mut s1);
                        accumulate(w, part(x[2], whole), &mut s2);
                        accumulate(w, part(x[3], whole), &mut s3);
                        let g: &mut [$number; HALF] = (&mut gradient[whole..end]).try_into().expect("a vector");
                        let (a, b, c, e) =
                            (part::<HALF>(a, whole), part::<HALF>(b, whole), part::<HALF>(c, whole), part::<HALF>(e, whole));
                        for lane in 0..HALF {
                            g[lane] = added(kicks, [a[lane], b[lane], c[lane], e[lane]], g[lane]);
                        }
                    }
                    for at in end..d {
                        gradient[at] = added(kicks, [a[at], b[at], c[at], e[at]], gradient[at]);
                    }
                    fold(&[s0, s1, s2, s3], out);
                    for (out, x) in out.iter_mut().zip(&x) {
                        for at in end..d {
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
    fn project(x: &[Self], weights: &[Self], out: &mut [Self; ROWS_PER_PASS]);
    /// gradient += Σ kick x.
    fn add(x: &[Self], kicks: &[Self; ROWS_PER_PASS], gradient: &mut [Self]);
    /// Both at once, on different rows.
    fn sweep(
        x: &[Self],
        weights: &[Self],
        out: &mut [Self; ROWS_PER_PASS],
        before: &[Self],
        kicks: &[Self; ROWS_PER_PASS],
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
            fn project(x: &[Self], weights: &[Self], out: &mut [Self; ROWS_PER_PASS]) {
                $module::project(x, weights, out);
            }
            fn add(x: &[Self], kicks: &[Self; ROWS_PER_PASS], gradient: &mut [Self]) {
                $module::add(x, kicks, gradient);
            }
            fn sweep(
                x: &[Self],
                weights: &[Self],
                out: &mut [Self; ROWS_PER_PASS],
                before: &[Self],
                kicks: &[Self; ROWS_PER_PASS],
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
        for d in [5, 12, 16, 37] {
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

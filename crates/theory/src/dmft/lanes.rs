//! The loops over samples: strips of [`LANES`] samples, whose numbers at all times lie side by side in memory. Written to be part of
//! functions that are compiled by `dispatch!`.

use super::LANES;
use didact_math::simd::prefetch;

/// One number per sample.
pub(super) type Strip = [f64; LANES];

/// A sum over samples in four parts, one per lane of a register.
pub(super) type Four = [f64; 4];

/// The list as strips.
#[inline(always)]
pub(super) fn strips(numbers: &[f64]) -> &[Strip] {
    numbers.as_chunks().0
}

/// The list as strips.
#[inline(always)]
pub(super) fn strips_mut(numbers: &mut [f64]) -> &mut [Strip] {
    numbers.as_chunks_mut().0
}

/// Adds the samples of a strip to a sum, pairs first: a short chain of additions.
#[inline(always)]
fn add(sum: &mut Four, strip: &Strip) {
    let fours = strip.as_chunks::<4>().0;
    let plus = |a: Four, b: Four| [a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]];
    let pair = |k: usize| plus(fours[k], fours[k + 4]);
    *sum = plus(*sum, plus(plus(pair(0), pair(1)), plus(pair(2), pair(3))));
}

/// The whole sum.
pub(super) fn fold(sum: &Four) -> f64 {
    (sum[0] + sum[2]) + (sum[1] + sum[3])
}

/// Asks for the strip that lies so many numbers behind this one: samples that come next do the same work on other
/// memory, and the pauses for computing are too long for the processor to see a stream.
#[inline(always)]
pub(super) fn ask_for_next(strip: &Strip, ahead: usize) {
    for line in (0..LANES).step_by(8) {
        prefetch(strip.as_ptr().wrapping_add(ahead + line));
    }
}

/// One part of a linear combination of strips.
#[derive(Clone, Copy)]
pub(super) struct List<'a> {
    pub(super) coefficients: &'a [f64],
    pub(super) strips: &'a [Strip],
    /// Numbers from these strips to those of the next samples, to be asked for; none if they are asked for elsewhere.
    pub(super) ahead: Option<usize>,
}

impl<'a> List<'a> {
    pub(super) fn new(coefficients: &'a [f64], strips: &'a [Strip], ahead: Option<usize>) -> Self {
        Self { coefficients, strips, ahead }
    }
}

/// out = Σ_k coefficients[k] strips[k] over several lists of both.
#[inline(always)]
pub(super) fn combine<const N: usize>(lists: [List; N], out: &mut Strip) {
    let mut sum = [0.0; LANES];
    for list in lists {
        for (c, strip) in list.coefficients.iter().zip(list.strips) {
            if let Some(ahead) = list.ahead {
                ask_for_next(strip, ahead);
            }
            for lane in 0..LANES {
                sum[lane] = c.mul_add(strip[lane], sum[lane]);
            }
        }
    }
    *out = sum;
}

/// sums[k] += Σ a weights strips[k]; the strips of the next samples lie `ahead` numbers behind.
#[inline(always)]
pub(super) fn add_products(a: &Strip, weights: &Strip, strips: &[Strip], ahead: usize, sums: &mut [Four]) {
    let mut own = [0.0; LANES];
    for lane in 0..LANES {
        own[lane] = a[lane] * weights[lane];
    }
    for (strip, sum) in strips.iter().zip(sums) {
        ask_for_next(strip, ahead);
        let (mut even, mut odd) = (*sum, [0.0; 4]);
        for place in (0..LANES).step_by(8) {
            for lane in 0..4 {
                even[lane] = own[place + lane].mul_add(strip[place + lane], even[lane]);
                odd[lane] = own[place + 4 + lane].mul_add(strip[place + 4 + lane], odd[lane]);
            }
        }
        for lane in 0..4 {
            sum[lane] = even[lane] + odd[lane];
        }
    }
}

/// What [`backward`] reads and writes.
pub(super) struct Backward<'a> {
    /// m.
    pub(super) trained: usize,
    /// Fields whose derivatives are kept, at least m.
    pub(super) columns: usize,
    /// i.
    pub(super) row: usize,
    /// D(s), (s, j, k) for s = 0..=t, k over the columns.
    pub(super) curvature: &'a [Strip],
    /// Numbers from D of these samples to D of the next.
    pub(super) ahead: usize,
    /// Importance weights.
    pub(super) weights: &'a Strip,
    /// −(η/δ) R_θ(r,s)_kj, (s, j) x (r, k).
    pub(super) back: &'a [f64],
    /// Room for X_r, (r, k).
    pub(super) chain: &'a mut [Strip],
    /// Room for g, m.
    pub(super) through: &'a mut [Strip],
    /// X_s is added here, (s, k).
    pub(super) response: &'a mut [Four],
    /// dφ_i(t)/dv_n is added here, n.
    pub(super) frozen: &'a mut [Four],
}

/// Total derivatives of φ_i(t), backwards in time, times the weights of the samples:
///
///   X_t = D(t),   g_s = −(η/δ) Σ_{r=s+1..t} X_r R_θ(r,s),   X_s = g_s D(s),
///   dφ_i(t)/dW(s) = X_s,   dφ_i(t)/dv = Dv(t) + Σ_s g_s Dv(s).
///
/// Memory grows as t, where propagating all derivatives forward would need t².
#[inline(always)]
pub(super) fn backward(work: &mut Backward) {
    if work.columns == 1 {
        one_unit(work);
    } else {
        several_units(work);
    }
}

/// [`backward`] with one unit and nothing but its own derivative: sums stay in registers.
#[inline(always)]
fn one_unit(work: &mut Backward) {
    let all = work.chain.len();
    let mut through = *work.weights;
    for s in (0..all).rev() {
        let (earlier, later) = work.chain.split_at_mut(s + 1);
        if s + 1 < all {
            through = [0.0; LANES];
            // The newest last: sums over the others need not wait for it.
            for (c, x) in work.back[s * all..][s + 1..all].iter().zip(&*later).rev() {
                for lane in 0..LANES {
                    through[lane] = c.mul_add(x[lane], through[lane]);
                }
            }
        }
        let own = &work.curvature[s];
        ask_for_next(own, work.ahead);
        for lane in 0..LANES {
            through[lane] *= own[lane];
        }
        add(&mut work.response[s], &through);
        earlier[s] = through;
    }
}

#[inline(always)]
fn several_units(work: &mut Backward) {
    let Backward {
        trained: m,
        columns,
        row,
        curvature,
        ahead,
        weights,
        back,
        chain,
        through,
        response,
        frozen,
    } = work;
    let (m, columns, row, ahead) = (*m, *columns, *row, *ahead);
    let all = chain.len();
    let t = all / m - 1;
    for k in 0..columns {
        let own = &curvature[(t * m + row) * columns + k];
        let mut now = [0.0; LANES];
        for lane in 0..LANES {
            now[lane] = own[lane] * weights[lane];
        }
        if k < m {
            add(&mut response[t * m + k], &now);
            chain[t * m + k] = now;
        } else {
            add(&mut frozen[k - m], &now);
        }
    }
    for s in (0..t).rev() {
        let later = (s + 1) * m;
        for j in 0..m {
            let coefficients = &back[(s * m + j) * all..][later..all];
            let mut sum = [0.0; LANES];
            for (c, x) in coefficients.iter().zip(&chain[later..]).rev() {
                for lane in 0..LANES {
                    sum[lane] = c.mul_add(x[lane], sum[lane]);
                }
            }
            through[j] = sum;
        }
        for k in 0..columns {
            let mut now = [0.0; LANES];
            for (j, through) in through.iter().enumerate() {
                let own = &curvature[(s * m + j) * columns + k];
                ask_for_next(own, ahead);
                for lane in 0..LANES {
                    now[lane] = through[lane].mul_add(own[lane], now[lane]);
                }
            }
            if k < m {
                add(&mut response[s * m + k], &now);
                chain[s * m + k] = now;
            } else {
                add(&mut frozen[k - m], &now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(seed: usize) -> Strip {
        std::array::from_fn(|lane| ((seed * 37 + lane * 11) as f64 * 0.7).sin())
    }

    /// The recursion written out for one sample at a time.
    #[test]
    fn backward_is_the_recursion_of_every_sample() {
        for (m, columns) in [(1, 1), (1, 2), (2, 2), (2, 3)] {
            check_backward(m, columns, 3);
        }
    }

    fn check_backward(m: usize, columns: usize, t: usize) {
        let all = (t + 1) * m;
        let curvature: Vec<Strip> = (0..all * columns).map(numbers).collect();
        let (weights, back) = (numbers(99), (0..t * m * all).map(|i| (i as f64).cos()).collect::<Vec<_>>());
        for row in 0..m {
            let (mut chain, mut through) = (vec![[0.0; LANES]; all], vec![[0.0; LANES]; m]);
            let (mut response, mut frozen) = (vec![[0.0; 4]; all], vec![[0.0; 4]; columns - m]);
            backward(&mut Backward {
                trained: m,
                columns,
                row,
                curvature: &curvature,
                ahead: 0,
                weights: &weights,
                back: &back,
                chain: &mut chain,
                through: &mut through,
                response: &mut response,
                frozen: &mut frozen,
            });
            let (mut slow, mut slow_frozen) = (vec![0.0; all], vec![0.0; columns - m]);
            for lane in 0..LANES {
                let of = |strip: &Strip| strip[lane];
                let d = |s: usize, j: usize, k: usize| of(&curvature[(s * m + j) * columns + k]);
                let mut x = vec![0.0; all];
                (0..m).for_each(|k| x[t * m + k] = of(&weights) * d(t, row, k));
                (m..columns).for_each(|k| slow_frozen[k - m] += of(&weights) * d(t, row, k));
                for s in (0..t).rev() {
                    let g = |j: usize| -> f64 {
                        ((s + 1) * m..all).map(|c| back[(s * m + j) * all + c] * x[c]).sum()
                    };
                    let g: Vec<f64> = (0..m).map(g).collect();
                    (0..m).for_each(|k| x[s * m + k] = (0..m).map(|j| g[j] * d(s, j, k)).sum());
                    (m..columns).for_each(|k| {
                        slow_frozen[k - m] += (0..m).map(|j| g[j] * d(s, j, k)).sum::<f64>();
                    });
                }
                slow.iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
            }
            for (fast, slow) in
                response.iter().chain(&frozen).map(fold).zip(slow.into_iter().chain(slow_frozen))
            {
                assert!((fast - slow).abs() < 1e-12 * (1.0 + slow.abs()), "{fast} {slow}");
            }
        }
    }

    #[test]
    fn combinations_and_products_are_plain_sums() {
        let strips: Vec<Strip> = (0..5).map(numbers).collect();
        let coefficients = [0.3, -1.0, 2.0, 0.7, 0.1];
        let mut sum = [7.0; LANES];
        let list = |range: std::ops::Range<usize>, ahead| List {
            coefficients: &coefficients[range.clone()],
            strips: &strips[range],
            ahead,
        };
        combine([list(0..2, None), list(2..2, Some(0)), list(2..5, Some(0))], &mut sum);
        for lane in 0..LANES {
            let slow: f64 = coefficients.iter().zip(&strips).map(|(c, s)| c * s[lane]).sum();
            assert!((sum[lane] - slow).abs() < 1e-14);
        }
        let mut products = vec![[0.0; 4]; 5];
        add_products(&sum, &strips[0], &strips, 0, &mut products);
        for (product, strip) in products.iter().zip(&strips) {
            let slow: f64 = (0..LANES).map(|l| sum[l] * strips[0][l] * strip[l]).sum();
            assert!((fold(product) - slow).abs() < 1e-13);
        }
    }
}

//! One unit whose own derivative is all that is kept: what the loops for several units do, without their indices. Those take a
//! fifth longer to do it.

use super::LANES;
use super::lanes::{
    Four, HALF, PerSample, add, add_half, add_product, ask_for_next, half, half_mut, per_sample, sums,
};

/// What a chunk of samples remembers, and where the next ones have the same.
#[derive(Clone, Copy)]
pub(super) struct OneUnit<'a> {
    /// Innovation, φ(s) and D(s) = ∂φ(s)/∂h at all times up to now.
    pub(super) past: &'a [[PerSample; 3]],
    /// Numbers from these samples to the next.
    pub(super) ahead: usize,
}

impl<'a> OneUnit<'a> {
    /// The chunk up to step t.
    #[inline(always)]
    pub(super) fn new(blocks: &'a [f64], t: usize) -> Self {
        Self { past: &per_sample(blocks).as_chunks().0[..=t], ahead: blocks.len() }
    }

    /// out += Σ_s coefficients[s] z(s).
    #[inline(always)]
    pub(super) fn add_innovations(&self, coefficients: &[f64], out: &mut PerSample) {
        let mut sum = *out;
        for (c, [innovation, _, _]) in coefficients.iter().zip(self.past) {
            ask_for_next(innovation, self.ahead);
            for lane in 0..LANES {
                sum[lane] = c.mul_add(innovation[lane], sum[lane]);
            }
        }
        *out = sum;
    }

    /// out += Σ_s coefficients[s] φ(s).
    #[inline(always)]
    pub(super) fn add_kicks(&self, coefficients: &[f64], out: &mut PerSample) {
        let mut sum = *out;
        for (c, [_, kick, _]) in coefficients.iter().zip(self.past) {
            for lane in 0..LANES {
                sum[lane] = c.mul_add(kick[lane], sum[lane]);
            }
        }
        *out = sum;
    }

    /// out += Σ_s innovations[s] z(s) + Σ_s memory[s] φ(s), which lie side by side.
    #[inline(always)]
    pub(super) fn add_both(&self, innovations: &[f64], memory: &[f64], out: &mut PerSample) {
        let (before, now) = innovations.split_at(memory.len());
        let mut sum = *out;
        for ((w, r), [innovation, kick, _]) in before.iter().zip(memory).zip(self.past) {
            ask_for_next(innovation, self.ahead);
            for lane in 0..LANES {
                sum[lane] = w.mul_add(innovation[lane], sum[lane]);
            }
            for lane in 0..LANES {
                sum[lane] = r.mul_add(kick[lane], sum[lane]);
            }
        }
        *out = sum;
        let now_alone = Self { past: &self.past[memory.len()..], ..*self };
        now_alone.add_innovations(now, out);
    }

    /// sums[s] += Σ weights φ(t) φ(s).
    #[inline(always)]
    pub(super) fn add_products(&self, weights: &PerSample, sums: &mut [Four]) {
        let mut own = self.past[self.past.len() - 1][1];
        for lane in 0..LANES {
            own[lane] *= weights[lane];
        }
        for ([_, kick, _], sum) in self.past.iter().zip(sums) {
            ask_for_next(kick, self.ahead);
            add_product(sum, &own, kick);
        }
    }

    /// response[s] += X_s, the derivatives of [`backward`](super::backward::backward), two times at once.
    #[inline(always)]
    pub(super) fn add_derivatives(
        &self,
        weights: &PerSample,
        back: &[f64],
        chain: &mut [PerSample],
        response: &mut [Four],
    ) {
        let t = chain.len() - 1;
        let own = &self.past[t][2];
        ask_for_next(own, self.ahead);
        let mut now = *weights;
        for lane in 0..LANES {
            now[lane] *= own[lane];
        }
        add(&mut response[t], &now);
        chain[t] = now;
        let mut back = &back[..t * (t + 1)];
        let mut s = t;
        while s >= 2 {
            self.before::<2>(s, &mut back, chain, response);
            s -= 2;
        }
        if s == 1 {
            self.before::<1>(s, &mut back, chain, response);
        }
    }

    /// X at the N times before s, from X_s and all later ones. The last rows of `back` belong to them, and are taken off.
    #[inline(always)]
    fn before<const N: usize>(
        &self,
        s: usize,
        back: &mut &[f64],
        chain: &mut [PerSample],
        response: &mut [Four],
    ) {
        let (chain, later) = chain.split_at_mut(s);
        let (chain, response) = (last::<_, N>(chain), last::<_, N>(&mut response[..s]));
        let past = self.past[..s].last_chunk::<N>().expect("as many times");
        let rows: [&[f64]; N] = std::array::from_fn(|_| {
            let (rest, row) = back.split_at(back.len() - s - later.len());
            *back = rest;
            row
        });
        let coefficients = rows.map(|row| &row[s..]);
        // Halves take turns: neither waits for its own last number.
        for from in [0, HALF] {
            let mut through = sums(coefficients, later, from);
            for n in 0..N {
                let at = N - 1 - n;
                let own = half(&past[at][2], from);
                ask_for_next(own, self.ahead);
                let mut now = through[n];
                for lane in 0..HALF {
                    now[lane] *= own[lane];
                }
                add_half(&mut response[at], &now);
                *half_mut(&mut chain[at], from) = now;
                for earlier in n + 1..N {
                    let c = rows[earlier][s - 1 - n];
                    for lane in 0..HALF {
                        through[earlier][lane] = c.mul_add(now[lane], through[earlier][lane]);
                    }
                }
            }
        }
    }
}

/// The last N of a list.
#[inline(always)]
fn last<T, const N: usize>(list: &mut [T]) -> &mut [T; N] {
    list.last_chunk_mut().expect("as many times")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dmft::lanes::{Rows, add_combination, add_products, fold, tests::numbers};

    /// Derivatives are compared where those of several units are.
    #[test]
    fn moves_and_products_are_those_of_several_units() {
        for t in 0..6 {
            let past: Vec<PerSample> = (0..3 * (t + 1)).map(numbers).collect();
            let (blocks, weights) = (past.as_flattened(), numbers(99));
            let unit = OneUnit::new(blocks, t);
            let rows = |first, width| Rows { values: &past, first, width, block: 3 };
            let coefficients: Vec<f64> = (0..=2 * t).map(|k| (k as f64).cos()).collect();
            let every_other = |from: usize| coefficients.iter().copied().skip(from).step_by(2).collect();
            let (innovations, memory): (Vec<f64>, Vec<f64>) = (every_other(0), every_other(1));
            let start = numbers(5);
            let (mut fast, mut slow) = (start, start);
            unit.add_both(&innovations, &memory, &mut fast);
            add_combination(&coefficients, rows(0, 2), 0, 0, &mut slow);
            assert_eq!(fast, slow, "t = {t}");
            (fast, slow) = (start, start);
            unit.add_innovations(&innovations, &mut fast);
            add_combination(&innovations, rows(0, 1), 0, 0, &mut slow);
            assert_eq!(fast, slow, "t = {t}");
            unit.add_kicks(&memory, &mut fast);
            add_combination(&memory, rows(1, 1), 0, 0, &mut slow);
            assert_eq!(fast, slow, "t = {t}");
            let (mut fast, mut slow) = (vec![[0.5; 4]; t + 1], vec![[0.5; 4]; t + 1]);
            unit.add_products(&weights, &mut fast);
            add_products(&past[3 * t + 1], &weights, rows(1, 1), 0, &mut slow);
            for (fast, slow) in fast.iter().zip(&slow) {
                assert!((fold(fast) - fold(slow)).abs() < 1e-13, "t = {t}");
            }
        }
    }
}

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

/// Part by part.
#[inline(always)]
pub(super) fn plus(a: Four, b: Four) -> Four {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]]
}

/// Adds the samples of a strip to a sum, pairs first: a short chain of additions.
#[inline(always)]
pub(super) fn add(sum: &mut Four, strip: &Strip) {
    let fours = strip.as_chunks::<4>().0;
    let pair = |k: usize| plus(fours[k], fours[k + 4]);
    *sum = plus(*sum, plus(plus(pair(0), pair(1)), plus(pair(2), pair(3))));
}

/// The whole sum.
pub(super) fn fold(sum: &Four) -> f64 {
    (sum[0] + sum[2]) + (sum[1] + sum[3])
}

/// Samples of a strip whose sums at two times fit into the registers, with the numbers that they are made of.
pub(super) const HALF: usize = LANES / 2;

pub(super) type Half = [f64; HALF];

/// One half of a strip.
#[inline(always)]
pub(super) fn half(strip: &Strip, from: usize) -> &Half {
    strip[from..].first_chunk().expect("a strip has two halves")
}

#[inline(always)]
pub(super) fn half_mut(strip: &mut Strip, from: usize) -> &mut Half {
    strip[from..].first_chunk_mut().expect("a strip has two halves")
}

/// Adds half a strip to a sum.
#[inline(always)]
pub(super) fn add_half(sum: &mut Four, numbers: &Half) {
    let fours = numbers.as_chunks::<4>().0;
    *sum = plus(*sum, plus(plus(fours[0], fours[1]), plus(fours[2], fours[3])));
}

/// Σ_k coefficients[k] strips[k] for several lists of coefficients: a number that has been loaded serves all of them, and loading
/// takes as long as computing.
#[inline(always)]
pub(super) fn sums<const N: usize>(coefficients: [&[f64]; N], strips: &[Strip], from: usize) -> [Half; N] {
    let coefficients = coefficients.map(|list| &list[..strips.len()]);
    let mut sums = [[0.0; HALF]; N];
    // The newest is the first strip, and comes last: sums over the others need not wait for it.
    for k in (0..strips.len()).rev() {
        let x = half(&strips[k], from);
        for n in 0..N {
            let c = coefficients[n][k];
            for lane in 0..HALF {
                sums[n][lane] = c.mul_add(x[lane], sums[n][lane]);
            }
        }
    }
    sums
}

/// Asks for what lies so many numbers behind this: samples that come next do the same work on other memory, and the pauses for
/// computing are too long for the processor to see a stream.
#[inline(always)]
pub(super) fn ask_for_next(numbers: &[f64], ahead: usize) {
    let next = numbers.as_ptr().wrapping_add(ahead);
    for line in (0..numbers.len()).step_by(8) {
        prefetch(next.wrapping_add(line));
    }
}

/// Strips of one kind at all times, `width` of them, at least one, in each block of so many.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) strips: &'a [Strip],
    pub(super) first: usize,
    pub(super) width: usize,
    pub(super) block: usize,
}

impl<'a> Rows<'a> {
    /// Those of time s.
    #[inline(always)]
    pub(super) fn at(&self, s: usize) -> &'a [Strip] {
        &self.strips[s * self.block + self.first..][..self.width]
    }

    /// Those of one time after the other.
    #[inline(always)]
    fn times(&self) -> Times<'a> {
        Times {
            ahead: self.strips.get(self.first..).unwrap_or_default(),
            width: self.width,
            block: self.block,
        }
    }
}

/// The strips of [`Rows`] at one time after the other. Adapters of slices that do the same divide when they begin.
struct Times<'a> {
    /// From the next time on.
    ahead: &'a [Strip],
    width: usize,
    block: usize,
}

impl<'a> Iterator for Times<'a> {
    type Item = &'a [Strip];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [Strip]> {
        let now = self.ahead.get(..self.width)?;
        self.ahead = self.ahead.get(self.block..).unwrap_or_default();
        Some(now)
    }
}

/// out += Σ_k coefficients[k] strips[k]. The strips of the next samples lie `ahead` numbers behind; the first `asked` of every time
/// are asked for.
#[inline(always)]
pub(super) fn add_combination(
    coefficients: &[f64],
    strips: Rows,
    asked: usize,
    ahead: usize,
    out: &mut Strip,
) {
    let mut sum = *out;
    for (coefficients, strips) in coefficients.chunks(strips.width).zip(strips.times()) {
        for (k, (c, strip)) in coefficients.iter().zip(strips).enumerate() {
            if k < asked {
                ask_for_next(strip, ahead);
            }
            for lane in 0..LANES {
                sum[lane] = c.mul_add(strip[lane], sum[lane]);
            }
        }
    }
    *out = sum;
}

/// sum += Σ a b.
#[inline(always)]
pub(super) fn add_product(sum: &mut Four, a: &Strip, b: &Strip) {
    let (mut even, mut odd) = (*sum, [0.0; 4]);
    for place in (0..LANES).step_by(8) {
        for lane in 0..4 {
            even[lane] = a[place + lane].mul_add(b[place + lane], even[lane]);
            odd[lane] = a[place + 4 + lane].mul_add(b[place + 4 + lane], odd[lane]);
        }
    }
    *sum = plus(even, odd);
}

/// sums[k] += Σ a weights strips[k]; the strips of the next samples lie `ahead` numbers behind.
#[inline(always)]
pub(super) fn add_products(a: &Strip, weights: &Strip, strips: Rows, ahead: usize, sums: &mut [Four]) {
    let mut own = [0.0; LANES];
    for lane in 0..LANES {
        own[lane] = a[lane] * weights[lane];
    }
    for (sums, strips) in sums.chunks_mut(strips.width).zip(strips.times()) {
        for (sum, strip) in sums.iter_mut().zip(strips) {
            ask_for_next(strip, ahead);
            add_product(sum, &own, strip);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::dmft) fn numbers(seed: usize) -> Strip {
        std::array::from_fn(|lane| ((seed * 37 + lane * 11) as f64 * 0.7).sin())
    }

    #[test]
    fn combinations_and_products_are_plain_sums() {
        let strips: Vec<Strip> = (0..6).map(numbers).collect();
        let mut sum = [7.0; LANES];
        // Blocks of three: places 1 and 2 in the first of them, 1 in the second.
        let rows = Rows { strips: &strips, first: 1, width: 2, block: 3 };
        add_combination(&[2.0, 0.7, 0.1], rows, 1, 0, &mut sum);
        for lane in 0..LANES {
            let at = |k: usize| strips[k][lane];
            let slow = 7.0 + 2.0 * at(1) + 0.7 * at(2) + 0.1 * at(4);
            assert!((sum[lane] - slow).abs() < 1e-14);
        }
        let mut products = vec![[0.0; 4]; 3];
        add_products(&sum, &strips[0], rows, 0, &mut products);
        for (product, place) in products.iter().zip([1, 2, 4]) {
            let slow: f64 = (0..LANES).map(|l| sum[l] * strips[0][l] * strips[place][l]).sum();
            assert!((fold(product) - slow).abs() < 1e-13);
        }
    }
}

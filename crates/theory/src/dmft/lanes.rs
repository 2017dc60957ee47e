//! The loops over samples. A chunk is [`LANES`] samples that are moved at once; their numbers at all times lie side by side in memory. Written to be part of
//! functions that are compiled by `dispatch!`.

use super::LANES;
use didact_math::simd::prefetch;

/// One number per sample of a chunk.
pub(super) type PerSample = [f64; LANES];

/// A sum over samples in four parts, one per lane of a register.
pub(super) type Four = [f64; 4];

/// A list of numbers, chunk by chunk.
#[inline(always)]
pub(super) fn per_sample(numbers: &[f64]) -> &[PerSample] {
    numbers.as_chunks().0
}

/// A list of numbers, chunk by chunk.
#[inline(always)]
pub(super) fn per_sample_mut(numbers: &mut [f64]) -> &mut [PerSample] {
    numbers.as_chunks_mut().0
}

/// Part by part.
#[inline(always)]
pub(super) fn plus(a: Four, b: Four) -> Four {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]]
}

/// Adds the samples of a chunk to a sum, pairs first: a short chain of additions.
#[inline(always)]
pub(super) fn add(sum: &mut Four, chunk: &PerSample) {
    let fours = chunk.as_chunks::<4>().0;
    let pair = |k: usize| plus(fours[k], fours[k + 4]);
    *sum = plus(*sum, plus(plus(pair(0), pair(1)), plus(pair(2), pair(3))));
}

/// The whole sum.
pub(super) fn fold(sum: &Four) -> f64 {
    (sum[0] + sum[2]) + (sum[1] + sum[3])
}

/// Samples of a chunk whose sums at two times fit into the registers, with the numbers that they are made of.
pub(super) const HALF: usize = LANES / 2;

pub(super) type Half = [f64; HALF];

/// One half of a chunk.
#[inline(always)]
pub(super) fn half(chunk: &PerSample, from: usize) -> &Half {
    chunk[from..].first_chunk().expect("a chunk has two halves")
}

#[inline(always)]
pub(super) fn half_mut(chunk: &mut PerSample, from: usize) -> &mut Half {
    chunk[from..].first_chunk_mut().expect("a chunk has two halves")
}

/// Adds half a chunk to a sum.
#[inline(always)]
pub(super) fn add_half(sum: &mut Four, numbers: &Half) {
    let fours = numbers.as_chunks::<4>().0;
    *sum = plus(*sum, plus(plus(fours[0], fours[1]), plus(fours[2], fours[3])));
}

/// Σ_k coefficients[k] values[k] for several lists of coefficients: a number that has been loaded serves all of them, and loading
/// takes as long as computing.
#[inline(always)]
pub(super) fn sums<const N: usize>(
    coefficients: [&[f64]; N],
    values: &[PerSample],
    from: usize,
) -> [Half; N] {
    let coefficients = coefficients.map(|list| &list[..values.len()]);
    let mut sums = [[0.0; HALF]; N];
    // The newest is the first chunk, and comes last: sums over the others need not wait for it.
    for k in (0..values.len()).rev() {
        let x = half(&values[k], from);
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

/// Chunks of one kind at all times, `width` of them, at least one, in each block of so many.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) values: &'a [PerSample],
    pub(super) first: usize,
    pub(super) width: usize,
    pub(super) block: usize,
}

impl<'a> Rows<'a> {
    /// Those of time s.
    #[inline(always)]
    pub(super) fn at(&self, s: usize) -> &'a [PerSample] {
        &self.values[s * self.block + self.first..][..self.width]
    }

    /// Those of one time after the other.
    #[inline(always)]
    fn times(&self) -> Times<'a> {
        Times {
            ahead: self.values.get(self.first..).unwrap_or_default(),
            width: self.width,
            block: self.block,
        }
    }
}

/// The chunks of [`Rows`] at one time after the other. Adapters of slices that do the same divide when they begin.
struct Times<'a> {
    /// From the next time on.
    ahead: &'a [PerSample],
    width: usize,
    block: usize,
}

impl<'a> Iterator for Times<'a> {
    type Item = &'a [PerSample];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [PerSample]> {
        let now = self.ahead.get(..self.width)?;
        self.ahead = self.ahead.get(self.block..).unwrap_or_default();
        Some(now)
    }
}

/// out += Σ_k coefficients[k] values[k]. The chunks of the next samples lie `ahead` numbers behind; the first `asked` of every time
/// are asked for.
#[inline(always)]
pub(super) fn add_combination(
    coefficients: &[f64],
    values: Rows,
    asked: usize,
    ahead: usize,
    out: &mut PerSample,
) {
    let mut sum = *out;
    for (coefficients, values) in coefficients.chunks(values.width).zip(values.times()) {
        for (k, (c, chunk)) in coefficients.iter().zip(values).enumerate() {
            if k < asked {
                ask_for_next(chunk, ahead);
            }
            for lane in 0..LANES {
                sum[lane] = c.mul_add(chunk[lane], sum[lane]);
            }
        }
    }
    *out = sum;
}

/// sum += Σ a b.
#[inline(always)]
pub(super) fn add_product(sum: &mut Four, a: &PerSample, b: &PerSample) {
    let (mut even, mut odd) = (*sum, [0.0; 4]);
    for place in (0..LANES).step_by(8) {
        for lane in 0..4 {
            even[lane] = a[place + lane].mul_add(b[place + lane], even[lane]);
            odd[lane] = a[place + 4 + lane].mul_add(b[place + 4 + lane], odd[lane]);
        }
    }
    *sum = plus(even, odd);
}

/// sums[k] += Σ a weights values[k]; the chunks of the next samples lie `ahead` numbers behind.
#[inline(always)]
pub(super) fn add_products(
    a: &PerSample,
    weights: &PerSample,
    values: Rows,
    ahead: usize,
    sums: &mut [Four],
) {
    let mut own = [0.0; LANES];
    for lane in 0..LANES {
        own[lane] = a[lane] * weights[lane];
    }
    for (sums, values) in sums.chunks_mut(values.width).zip(values.times()) {
        for (sum, chunk) in sums.iter_mut().zip(values) {
            ask_for_next(chunk, ahead);
            add_product(sum, &own, chunk);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::dmft) fn numbers(seed: usize) -> PerSample {
        std::array::from_fn(|lane| ((seed * 37 + lane * 11) as f64 * 0.7).sin())
    }

    #[test]
    fn combinations_and_products_are_plain_sums() {
        let values: Vec<PerSample> = (0..6).map(numbers).collect();
        let mut sum = [7.0; LANES];
        // Blocks of three: places 1 and 2 in the first of them, 1 in the second.
        let rows = Rows { values: &values, first: 1, width: 2, block: 3 };
        add_combination(&[2.0, 0.7, 0.1], rows, 1, 0, &mut sum);
        for lane in 0..LANES {
            let at = |k: usize| values[k][lane];
            let slow = 7.0 + 2.0 * at(1) + 0.7 * at(2) + 0.1 * at(4);
            assert!((sum[lane] - slow).abs() < 1e-14);
        }
        let mut products = vec![[0.0; 4]; 3];
        add_products(&sum, &values[0], rows, 0, &mut products);
        for (product, place) in products.iter().zip([1, 2, 4]) {
            let slow: f64 = (0..LANES).map(|l| sum[l] * values[0][l] * values[place][l]).sum();
            assert!((fold(product) - slow).abs() < 1e-13);
        }
    }
}

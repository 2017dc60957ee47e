//! The products of a sample that the covariance of a step is made of, and where they stand in a vector.

use didact_model::Shape;

/// u = (c_i h_j, c_i c_j, q_s, h_a h_b): products of kicks c, fields h and scalar gradients q of one sample. Mean and second moments of u
/// hold every average of docs/derivations/fluctuations.md#s6. An unordered pair counts once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProductIndex {
    trained: usize,
    rows: usize,
    scalars: usize,
    /// Whether h_a h_b are among them: they are needed for derivatives of averages that have no closed form.
    with_pairs: bool,
}

/// Where the pair (i, j) of a symmetric matrix stands in its lower triangle, row by row.
pub(super) fn triangle(i: usize, j: usize) -> usize {
    let (i, j) = if i >= j { (i, j) } else { (j, i) };
    i * (i + 1) / 2 + j
}

impl ProductIndex {
    pub(super) fn new(shape: Shape, with_pairs: bool) -> Self {
        Self { trained: shape.trained, rows: shape.rows(), scalars: shape.scalars, with_pairs }
    }

    /// c_i h_j.
    pub(super) fn kick_field(&self, i: usize, j: usize) -> usize {
        i * self.rows + j
    }

    /// c_i c_j.
    pub(super) fn kick_kick(&self, i: usize, j: usize) -> usize {
        self.trained * self.rows + triangle(i, j)
    }

    /// q_s.
    pub(super) fn scalar(&self, s: usize) -> usize {
        self.trained * self.rows + self.trained * (self.trained + 1) / 2 + s
    }

    /// h_a h_b.
    pub(super) fn field_field(&self, a: usize, b: usize) -> usize {
        debug_assert!(self.with_pairs, "pairs of fields were asked for");
        self.scalar(self.scalars) + triangle(a, b)
    }

    pub(super) fn len(&self) -> usize {
        let pairs = if self.with_pairs { self.rows * (self.rows + 1) / 2 } else { 0 };
        self.scalar(self.scalars) + pairs
    }

    /// Writes u of every sample of a block: row a of `out` has product a of all samples.
    ///
    /// `fields` is rows x size, `kicks` trained x size, `gradients` scalars x size.
    pub(super) fn write(
        &self,
        fields: &[f64],
        kicks: &[f64],
        gradients: &[f64],
        size: usize,
        out: &mut [f64],
    ) {
        let mut rows = out.chunks_exact_mut(size);
        let mut product = |a: &[f64], b: &[f64]| {
            let out = rows.next().expect("room for every product");
            for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
                *o = x * y;
            }
        };
        let field = |j: usize| &fields[j * size..(j + 1) * size];
        let kick = |i: usize| &kicks[i * size..(i + 1) * size];
        for i in 0..self.trained {
            (0..self.rows).for_each(|j| product(kick(i), field(j)));
        }
        for i in 0..self.trained {
            (0..=i).for_each(|j| product(kick(i), kick(j)));
        }
        for s in 0..self.scalars {
            let out = rows.next().expect("room for every product");
            out.copy_from_slice(&gradients[s * size..(s + 1) * size]);
        }
        if self.with_pairs {
            let mut product = |a: &[f64], b: &[f64]| {
                let out = rows.next().expect("room for every product");
                for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
                    *o = x * y;
                }
            };
            for a in 0..self.rows {
                (0..=a).for_each(|b| product(field(a), field(b)));
            }
        }
    }
}

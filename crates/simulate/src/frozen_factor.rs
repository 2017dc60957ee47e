//! The frozen part of a Gram factor, which never moves: cheap where there are many frozen rows and few trained ones.
//!
//! The factor of the frozen rows is lower triangular, and diagonal for orthogonal rows. Their fields are then a short
//! product or a rescaling of the normals. Motion along the first n rows is motion in the coordinates that these rows
//! span, so that forbidding it costs nothing. Against P x P products at every step this is P.

/// Shape of the frozen factor (rows x shared), and the coordinates in which trained rows do not move.
#[derive(Debug, Clone)]
pub(crate) struct FrozenFactor {
    shared: usize,
    /// Entries of row n that may differ from zero: the first `reach[n]`.
    reach: Vec<usize>,
    /// Diagonal, when nothing else differs from zero.
    diagonal: Option<Vec<f64>>,
    /// Per coordinate: whether trained rows move there. Empty when they move everywhere.
    moves: Vec<bool>,
}

impl FrozenFactor {
    /// Looks at the factor once.
    pub(crate) fn of(frozen: &[f64], shared: usize) -> Self {
        let rows = || frozen.chunks_exact(shared.max(1));
        let reach =
            rows().map(|row| row.iter().rposition(|&x| x != 0.0).map_or(0, |last| last + 1)).collect();
        let straight =
            rows().enumerate().all(|(n, row)| row.iter().enumerate().all(|(j, &x)| x == 0.0 || j == n));
        let diagonal =
            straight.then(|| rows().enumerate().map(|(n, row)| row.get(n).copied().unwrap_or(0.0)).collect());
        Self { shared, reach, diagonal, moves: Vec::new() }
    }

    /// Forbids motion along the first `count` rows: in the coordinates that carry a pivot of theirs.
    ///
    /// A row that depends on those before it has a zero pivot and spans nothing new; its coordinate is free.
    pub(crate) fn bar(&mut self, frozen: &[f64], count: usize) {
        if count == 0 {
            return;
        }
        self.moves = vec![true; self.shared];
        for n in 0..count {
            let row = &frozen[n * self.shared..(n + 1) * self.shared];
            // Lower triangular with zero columns for dependent rows: row n spans a new coordinate if it owns one.
            if let Some(last) = row.iter().rposition(|&x| x != 0.0) {
                let new = (0..n).all(|m| frozen[m * self.shared + last] == 0.0);
                if new {
                    self.moves[last] = false;
                }
            }
        }
    }

    /// Whether the same operations serve both.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.reach == other.reach
            && self.moves == other.moves
            && self.diagonal.is_some() == other.diagonal.is_some()
    }

    /// Entries of every frozen row that may differ from zero.
    pub(crate) fn reach(&self) -> &[usize] {
        &self.reach
    }

    /// Whether the frozen factor is diagonal.
    pub(crate) fn is_diagonal(&self) -> bool {
        self.diagonal.is_some()
    }

    /// Per coordinate, whether trained rows move there; empty when they move everywhere.
    pub(crate) fn moves(&self) -> &[bool] {
        &self.moves
    }

    /// Adds root · (frozen z) to the fields of the frozen rows.
    #[inline]
    pub(crate) fn project(&self, frozen: &[f64], root: f64, z: &[f64], fields: &mut [f64]) {
        if let Some(diagonal) = &self.diagonal {
            for ((h, d), z) in fields.iter_mut().zip(diagonal).zip(z) {
                *h += root * d * z;
            }
            return;
        }
        for ((h, row), &reach) in fields.iter_mut().zip(frozen.chunks_exact(self.shared)).zip(&self.reach) {
            *h += root * dot(&row[..reach], &z[..reach]);
        }
    }

    /// along ← along + factor z where motion is allowed.
    #[inline]
    pub(crate) fn shift(&self, along: &mut [f64], factor: f64, z: &[f64]) {
        if self.moves.is_empty() {
            along.iter_mut().zip(z).for_each(|(a, z)| *a += factor * z);
            return;
        }
        for ((a, z), moves) in along.iter_mut().zip(z).zip(&self.moves) {
            *a += if *moves { factor * z } else { 0.0 };
        }
    }
}

/// The scalar product in four sums, which the compiler vectorises.
#[inline]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (mut a4, mut b4) = (a.chunks_exact(4), b.chunks_exact(4));
    for (x, y) in a4.by_ref().zip(b4.by_ref()) {
        for i in 0..4 {
            sums[i] += x[i] * y[i];
        }
    }
    let tail: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(x, y)| x * y).sum();
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + tail
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(frozen: &[f64], shared: usize, z: &[f64]) -> Vec<f64> {
        frozen.chunks_exact(shared).map(|row| row.iter().zip(z).map(|(a, b)| 0.7 * a * b).sum()).collect()
    }

    #[test]
    fn fields_are_those_of_the_plain_product() {
        let z: Vec<f64> = (0..7).map(|i| (1.3 * f64::from(i)).sin()).collect();
        let diagonal: Vec<f64> =
            (0..49).map(|at| if at / 7 == at % 7 { 1.0 + f64::from(at) } else { 0.0 }).collect();
        let lower: Vec<f64> =
            (0..49).map(|at| if at % 7 <= at / 7 { (0.7 * f64::from(at)).cos() } else { 0.0 }).collect();
        let full: Vec<f64> = (0..49).map(|at| (0.3 * f64::from(at)).cos()).collect();
        for frozen in [diagonal, lower, full] {
            let mut fields = vec![0.0; 7];
            FrozenFactor::of(&frozen, 7).project(&frozen, 0.7, &z, &mut fields);
            for (got, exact) in fields.iter().zip(plain(&frozen, 7, &z)) {
                // Another order of seven additions.
                assert!((got - exact).abs() < 1e-14 * 50.0);
            }
        }
    }

    #[test]
    fn barred_rows_keep_their_coordinates_and_dependent_rows_bar_nothing() {
        // Row 1 repeats row 0: its own coordinate carries nothing and stays free.
        let frozen = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.3, 0.0, 0.8];
        let mut factor = FrozenFactor::of(&frozen, 3);
        factor.bar(&frozen, 3);
        let mut along = [0.0; 3];
        factor.shift(&mut along, 2.0, &[1.0, 1.0, 1.0]);
        assert_eq!(along, [0.0, 2.0, 0.0]);
        let mut first = FrozenFactor::of(&frozen, 3);
        first.bar(&frozen, 2);
        let mut along = [0.0; 3];
        first.shift(&mut along, 2.0, &[1.0, 1.0, 1.0]);
        assert_eq!(along, [0.0, 2.0, 2.0]);
    }
}

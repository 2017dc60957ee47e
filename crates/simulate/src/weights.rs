//! Weights in d dimensions that have given overlaps.

use didact_math::linalg::{Mat, cholesky_psd};
use didact_model::overlaps::OverlapsError;
use didact_model::{EngineError, Overlaps};

/// Rows x d: the factor of every G_b fills the first coordinates of its eigenspace, of so many dimensions.
///
/// Any other weights with these overlaps are a rotation of them within the eigenspaces, and Gaussian inputs do not see
/// rotations: the overlaps have the same law.
pub(crate) fn with_overlaps(overlaps: &Overlaps, sizes: &[u64]) -> Result<Mat, EngineError> {
    let p = overlaps.shape().rows();
    let mut weights = Mat::zeros(p, sizes.iter().sum::<u64>() as usize);
    let mut first = 0;
    for (block, (gram, &size)) in overlaps.blocks.iter().zip(sizes).enumerate() {
        let lower =
            cholesky_psd(gram).map_err(|_| EngineError::Overlaps(OverlapsError::NotPositive { block }))?;
        let used: Vec<usize> = (0..p).filter(|&j| lower[(j, j)] > 0.0).collect();
        if used.len() as u64 > size {
            return Err(EngineError::Overlaps(OverlapsError::Rank { block, rank: used.len(), size }));
        }
        for i in 0..p {
            for (at, &j) in used.iter().enumerate() {
                weights[(i, first + at)] = lower[(i, j)];
            }
        }
        first += size as usize;
    }
    Ok(weights)
}

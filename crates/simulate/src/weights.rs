//! Weights in d dimensions that have given overlaps.

use crate::chain::ReplicaAddress;
use didact_math::linalg::{Mat, cholesky_psd};
use didact_math::random::{RngAddress, Stream, orthonormal_rows};
use didact_model::overlaps::OverlapsError;
use didact_model::training::InputLaw;
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

/// The lane of the random frames that rows are spread over.
const FRAME_LANE: u16 = 0x5aff;

/// The same rows, turned at random within every eigenspace: for inputs that see rotations.
pub(crate) fn spread_with_overlaps(
    overlaps: &Overlaps,
    sizes: &[u64],
    address: ReplicaAddress,
) -> Result<Mat, EngineError> {
    let compact = with_overlaps(overlaps, sizes)?;
    let ReplicaAddress { seed, replica, .. } = address;
    let mut stream = Stream::at(RngAddress { seed, replica, step: 0, lane: FRAME_LANE });
    let mut spread = Mat::zeros(compact.rows(), compact.cols());
    let mut first = 0;
    for &size in sizes {
        let size = size as usize;
        let used = compact.rows().min(size);
        let frame = orthonormal_rows(&mut stream, used, size);
        for i in 0..compact.rows() {
            for (at, axis) in frame.chunks_exact(size).enumerate() {
                let along = compact[(i, first + at)];
                spread.row_mut(i)[first..first + size]
                    .iter_mut()
                    .zip(axis)
                    .for_each(|(w, e)| *w += along * e);
            }
        }
        first += size;
    }
    Ok(spread)
}

/// Independent coordinates of unit variance; rows of a table are none.
pub(crate) fn fill_coordinates(law: &InputLaw, stream: &mut Stream, x: &mut [f64]) {
    match law {
        InputLaw::Rademacher => x.iter_mut().for_each(|x| *x = stream.sign()),
        // The two-sided exponential of unit rate has variance 2.
        InputLaw::Laplace => x
            .iter_mut()
            .for_each(|x| *x = stream.sign() * stream.exponential() * std::f64::consts::FRAC_1_SQRT_2),
        InputLaw::Gaussian | InputLaw::Rows(_) => stream.fill_normal(x),
    }
}

//! The four-field integral of units without kinks along a run: how fine its sums are, and what error is stated.

use super::averages::TABLE_ACCURACY;
use super::conditional::SquaredErrors;
use super::continued::KeptSums;
use super::planes::{Fineness, FourFieldIntegral, Work};
use didact_math::linalg::Mat;

/// How fine the sums over tables are.
#[derive(Debug)]
pub(super) struct KeptTables {
    fineness: Fineness,
    calls: u32,
    /// The largest relative difference to finer sums that was seen and accepted.
    difference: f64,
    work: Work,
}

impl Default for KeptTables {
    fn default() -> Self {
        Self { fineness: Fineness::FIRST, calls: 0, difference: 0.0, work: Work::default() }
    }
}

/// The sums are compared with finer ones at the first call, and then once in so many.
pub(super) const CALLS_PER_CHECK: u32 = 64;
/// What a step makes up for in the error, about.
const PER_STEP: f64 = 5.0;
/// The error of the finest sums in units of their difference to those two steps coarser: a step makes up a factor of about five.
const FINEST_SHARE: f64 = 0.1;
/// Sums that are better than asked for by this factor are made coarser: one step makes up a factor of about five.
const COARSEN: f64 = 0.05;

/// E[e² g'_i g'_j] from tables, as fine as the accuracy that is asked for needs. `None` where a field is too wide for its table.
pub(super) fn by_tables(
    integral: &FourFieldIntegral,
    trained: usize,
    accuracy: f64,
    sums: &mut KeptSums,
) -> Option<SquaredErrors> {
    let KeptSums { tables: kept, changed, .. } = sums;
    let value = integral.squared_errors(trained, kept.fineness, &mut kept.work)?;
    let check = kept.calls.is_multiple_of(CALLS_PER_CHECK);
    kept.calls = kept.calls.wrapping_add(1);
    let value = if check { checked(integral, value, accuracy, kept, changed)? } else { value };
    let error = (kept.difference + TABLE_ACCURACY) * value.max_abs();
    Some(SquaredErrors { value, error })
}

/// Sums that are as fine as they have to be, from those of the present fineness. Where these are good enough in all respects at once, one
/// finer sum shows it.
fn checked(
    integral: &FourFieldIntegral,
    value: Mat,
    accuracy: f64,
    kept: &mut KeptTables,
    changed: &mut bool,
) -> Option<Mat> {
    if kept.calls > 1 {
        let finer = integral.squared_errors(value.rows(), kept.fineness.finer(), &mut kept.work)?;
        let difference = apart(&value, finer);
        if difference <= accuracy {
            kept.difference = kept.difference.max(difference);
            return Some(value);
        }
    }
    let before = kept.fineness;
    let known = vec![(before, value)];
    let mut sums = Sums { integral, known };
    let difference = choose_fineness(&mut sums, accuracy, kept)?;
    kept.difference = kept.difference.max(difference);
    *changed |= kept.fineness != before;
    sums.at(kept.fineness, &mut kept.work)
}

/// One way to make sums finer.
type Respect = fn(&mut Fineness) -> &mut u32;

/// Makes the sums as fine as they have to be, in one respect after the other, and returns by how much finer ones differ.
///
/// The radius comes first: sums that are cut off too early change with the place of their last nodes. Each of the three errors may
/// be a third of what is asked for. Sums that are finer in one respect by two steps show an error that is a few per cent of their
/// own.
fn choose_fineness(sums: &mut Sums, accuracy: f64, kept: &mut KeptTables) -> Option<f64> {
    let respects: [Respect; 3] = [|f| &mut f.reach, |f| &mut f.nodes, |f| &mut f.series];
    let mut errors = [0.0; 3];
    // What was fine enough beside coarse sums in another respect may not be beside fine ones, so there is a second round.
    for index in (0..respects.len()).chain(0..respects.len()) {
        let respect = respects[index];
        let mut finest = Fineness::FINEST;
        let finest = *respect(&mut finest);
        loop {
            let now = *respect(&mut kept.fineness);
            errors[index] = sums.difference_to_finer(respect, kept.fineness, &mut kept.work)?;
            if errors[index] <= accuracy / 3.0 {
                break;
            }
            if now + 2 >= finest {
                *respect(&mut kept.fineness) = finest;
                errors[index] *= FINEST_SHARE;
                break;
            }
            // Not quite as many steps as the error seems to need, and no more than lead to the finest.
            let steps = (errors[index] / (accuracy / 3.0)).log(PER_STEP).min(f64::from(finest - 2 - now));
            *respect(&mut kept.fineness) = now + (steps as u32).max(1);
        }
    }
    // Sums that are much better than they have to be are made coarser, if that is seen to be good enough: errors of smooth
    // functions may grow by orders of magnitude in one step.
    for (respect, error) in respects.iter().zip(&mut errors) {
        let mut coarser = kept.fineness;
        let step = respect(&mut coarser);
        if *error >= COARSEN * accuracy / 3.0 || *step == 0 {
            continue;
        }
        *step -= 1;
        let found = sums.difference_to_finer(*respect, coarser, &mut kept.work)?;
        if found <= accuracy / 3.0 {
            (kept.fineness, *error) = (coarser, found);
        }
    }
    Some(errors.iter().sum())
}

/// Sums of one covariance, each computed once.
struct Sums<'a> {
    integral: &'a FourFieldIntegral<'a>,
    known: Vec<(Fineness, Mat)>,
}

impl Sums<'_> {
    fn at(&mut self, fineness: Fineness, work: &mut Work) -> Option<Mat> {
        if let Some((_, value)) = self.known.iter().find(|known| known.0 == fineness) {
            return Some(value.clone());
        }
        let trained = self.known[0].1.rows();
        let value = self.integral.squared_errors(trained, fineness, work)?;
        self.known.push((fineness, value.clone()));
        Some(value)
    }

    /// By how much sums differ from those that are finer in one respect by two steps, relative to their size.
    fn difference_to_finer(&mut self, respect: Respect, fineness: Fineness, work: &mut Work) -> Option<f64> {
        let (mut finer, mut finest) = (fineness, Fineness::FINEST);
        let step = respect(&mut finer);
        *step = (*step + 2).min(*respect(&mut finest));
        let value = self.at(fineness, work)?;
        Some(apart(&value, self.at(finer, work)?))
    }
}

/// The largest difference of an entry to that of finer sums, relative to the largest of these.
fn apart(value: &Mat, mut finer: Mat) -> f64 {
    let size = finer.max_abs();
    finer.add_scaled(-1.0, value);
    if size > 0.0 { finer.max_abs() / size } else { 0.0 }
}

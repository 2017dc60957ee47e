//! Parts of a run: some of its replicas, kept under the key of the run and their numbers.
//!
//! Replicas have random numbers of their own, so that a run may be computed in any parts, by any number of processes. Parts of
//! different divisions may overlap; [`Tiling`] chooses those that make up the run one after the other, and says what is missing
//! between them.

use std::ops::Range;

/// Parts of a run that lie one after the other, and the replicas between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tiling {
    /// Parts that are there, in their order; no two overlap.
    pub kept: Vec<Range<u32>>,
    /// Replicas that are in none of them.
    pub missing: Vec<Range<u32>>,
}

impl Tiling {
    /// Of the parts that are there of a run of so many replicas: from the front, always the part that begins first, and of those
    /// the longest.
    pub fn of(mut parts: Vec<Range<u32>>, replicas: u32) -> Self {
        parts.retain(|part| part.start < part.end && part.end <= replicas);
        parts.sort_by_key(|part| (part.start, u32::MAX - part.end));
        let mut tiling = Self::default();
        let mut reached = 0;
        for part in parts.into_iter().filter(|part| part.start < replicas) {
            if part.start < reached {
                continue;
            }
            if part.start > reached {
                tiling.missing.push(reached..part.start);
            }
            reached = part.end;
            tiling.kept.push(part);
        }
        if reached < replicas {
            tiling.missing.push(reached..replicas);
        }
        tiling
    }

    /// What is missing of these replicas.
    pub fn missing_in(&self, replicas: &Range<u32>) -> Vec<Range<u32>> {
        let common = |gap: &Range<u32>| gap.start.max(replicas.start)..gap.end.min(replicas.end);
        self.missing.iter().map(common).filter(|gap| gap.start < gap.end).collect()
    }
}

/// The key under which some replicas of a run are kept.
pub(crate) fn part_key(run: &str, replicas: &Range<u32>) -> String {
    format!("{}{}-{}", beginning(run), replicas.start, replicas.end)
}

/// What the keys of all parts of a run begin with.
pub(crate) fn beginning(run: &str) -> String {
    format!("{run}.")
}

/// The replicas of a part, by its key.
pub(crate) fn replicas_of(key: &str) -> Option<Range<u32>> {
    let (start, end) = key.rsplit_once('.')?.1.split_once('-')?;
    Some(start.parse().ok()?..end.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_of_parts_say_which_replicas() {
        let key = part_key("abc", &(3..17));
        assert_eq!((key.as_str(), replicas_of(&key)), ("abc.3-17", Some(3..17)));
        assert_eq!(replicas_of("abc"), None);
    }

    #[test]
    fn parts_that_overlap_what_was_chosen_are_left_out() {
        let tiling = Tiling::of(vec![4..8, 0..3, 2..6, 0..2, 9..12], 12);
        assert_eq!(tiling, Tiling { kept: vec![0..3, 4..8, 9..12], missing: vec![3..4, 8..9] });
        assert_eq!(tiling.missing_in(&(0..9)), [3..4, 8..9]);
        assert_eq!(tiling.missing_in(&(4..8)), []);
    }

    proptest! {
        #[test]
        fn every_replica_is_kept_or_missing_exactly_once(
            ends in prop::collection::vec((0u32..40, 0u32..40), 0..12),
            replicas in 1u32..40,
        ) {
            let parts: Vec<Range<u32>> = ends.into_iter().map(|(a, b)| a..b).collect();
            let tiling = Tiling::of(parts.clone(), replicas);
            let mut all: Vec<Range<u32>> = tiling.kept.iter().chain(&tiling.missing).cloned().collect();
            all.sort_by_key(|part| part.start);
            let covered: Vec<u32> = all.into_iter().flatten().collect();
            prop_assert_eq!(covered, (0..replicas).collect::<Vec<_>>());
            prop_assert!(tiling.kept.iter().all(|part| parts.contains(part)));
        }
    }
}

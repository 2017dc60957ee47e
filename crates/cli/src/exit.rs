//! How the program ends, for scripts.

use std::process::ExitCode;

/// The error of a command, the fourth way to end, has the code 2.
pub(crate) const ERROR: u8 = 2;

/// How a command that did its work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was done and no claim fails: 0.
    Done,
    /// A claim fails, whatever else: 1.
    ClaimFails,
    /// A job failed, all replicas of a run diverged, or a scan has no answer at any point: 3.
    FailedJobs,
}

impl Ending {
    /// Of two pieces of work together.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::ClaimFails, _) | (_, Self::ClaimFails) => Self::ClaimFails,
            (Self::FailedJobs, _) | (_, Self::FailedJobs) => Self::FailedJobs,
            _ => Self::Done,
        }
    }
}

impl From<Ending> for ExitCode {
    fn from(outcome: Ending) -> Self {
        Self::from(match outcome {
            Ending::Done => 0,
            Ending::ClaimFails => 1,
            Ending::FailedJobs => 3,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Ending::{self, ClaimFails, Done, FailedJobs};

    #[test]
    fn a_failing_claim_outweighs_a_failed_job() {
        let all = |outcomes: &[Ending]| outcomes.iter().fold(Done, |sum, o| sum.and(*o));
        assert_eq!(all(&[Done, Done]), Done);
        assert_eq!(all(&[Done, FailedJobs, Done]), FailedJobs);
        assert_eq!(all(&[FailedJobs, ClaimFails, Done]), ClaimFails);
    }
}

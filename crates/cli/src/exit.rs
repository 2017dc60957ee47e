//! How the program ends, for scripts.

/// The error of a command, the fourth way to end, has the code 2.
pub(crate) const ERROR: u8 = 2;

/// The work was stopped in good order before it was done, and can go on: EX_TEMPFAIL of sysexits.h.
pub(crate) const TRY_AGAIN: u8 = 75;

/// How a command that did its work ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was done and no claim fails: 0.
    Done,
    /// A claim fails, whatever else: 1.
    ClaimFails,
    /// A job failed, all replicas of a run diverged, or a scan has no answer at any point: 3.
    FailedJobs,
    /// Stopped before everything was done: 75.
    TryAgain,
    /// An error that was told already: 2.
    Told,
}

impl Ending {
    /// The exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::ClaimFails => 1,
            Self::FailedJobs => 3,
            Self::TryAgain => TRY_AGAIN,
            Self::Told => ERROR,
        }
    }

    /// Of two pieces of work together.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Told, _) | (_, Self::Told) => Self::Told,
            (Self::TryAgain, _) | (_, Self::TryAgain) => Self::TryAgain,
            (Self::ClaimFails, _) | (_, Self::ClaimFails) => Self::ClaimFails,
            (Self::FailedJobs, _) | (_, Self::FailedJobs) => Self::FailedJobs,
            _ => Self::Done,
        }
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

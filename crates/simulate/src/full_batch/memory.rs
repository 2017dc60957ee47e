//! How much memory a training set needs, how much there is, and what to do about it.

use didact_model::EngineError;
pub(super) use didact_model::engine::available_gigabytes;

/// A share of the memory is left to everything else.
const SHARE: f64 = 0.8;

/// Whether the inputs of the replicas that run at a time are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plan {
    pub(super) keep: bool,
    pub(super) gigabytes: f64,
}

/// What a training set takes, per replica.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs {
    /// The inputs.
    pub(super) inputs: f64,
    /// Fields, labels, weights and partial gradients.
    pub(super) rest: f64,
}

/// Keeps the inputs if they fit; refuses what does not fit even without them, and inputs that must be kept and do not fit.
pub(super) fn plan(
    needs: Needs,
    at_a_time: f64,
    must_keep: bool,
    available: f64,
    what: String,
) -> Result<Plan, EngineError> {
    let (whole, rest) = (at_a_time * (needs.inputs + needs.rest), at_a_time * needs.rest);
    let room = SHARE * available;
    let refuse = |gigabytes: f64, hint: &str| {
        Err(EngineError::TooLarge {
            engine: super::NAME,
            what: what.clone(),
            gigabytes,
            available,
            hint: hint.into(),
        })
    };
    if whole <= room {
        return Ok(Plan { keep: true, gigabytes: whole });
    }
    if must_keep {
        return refuse(
            whole,
            "use `precision = \"single\"`, or leave out `inputs` to draw them anew at every step",
        );
    }
    if rest > room {
        return refuse(rest, "use a smaller dimension or fewer samples");
    }
    Ok(Plan { keep: false, gigabytes: rest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_kept_drawn_or_refused_by_the_room_there_is() {
        let needs = Needs { inputs: 3.5, rest: 0.1 };
        let ask = |available: f64, must_keep: bool| plan(needs, 1.0, must_keep, available, "X".into());
        assert!(ask(8.0, true).unwrap().keep);
        assert!(!ask(4.0, false).unwrap().keep);
        let error = ask(4.0, true).unwrap_err();
        assert!(error.to_string().contains("would need 3.6 GB for X; 4.0 GB are there"), "{error}");
        assert!(ask(0.1, false).is_err());
        assert!(available_gigabytes() > 0.0);
    }
}

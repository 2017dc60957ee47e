//! The boundary at which a panic becomes an error: a job that fails so must not take the others with it.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What is shown of the inputs of a job at most, in characters.
const LONGEST: usize = 600;

/// Does some work. A panic is a fault of the program; it becomes a text that says so, with what the panic said and what `with`
/// says of the inputs. The panic has then been printed to stderr with its place in the code.
///
/// The work may leave what it was changing half-changed; callers give it only what nobody looks at after a panic.
pub(crate) fn caught<T>(with: impl Fn() -> String, work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let said = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_string())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".into());
        let inputs = with();
        let cut = match inputs.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &inputs[..end]),
            None => inputs,
        };
        format!("internal error, please report: {said} ({cut})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_text_with_its_words_and_the_inputs() {
        assert_eq!(caught(String::new, || 3), Ok(3));
        let text = caught(|| "inputs a = 1".into(), || -> u8 { panic!("index {} of {}", 3, 2) }).unwrap_err();
        assert_eq!(text, "internal error, please report: index 3 of 2 (inputs a = 1)");
        let long = caught(|| "x".repeat(10_000), || panic!("plain")).unwrap_err();
        assert!(long.starts_with("internal error, please report: plain (xxx") && long.len() < 1000);
    }
}

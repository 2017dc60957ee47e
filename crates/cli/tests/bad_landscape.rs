//! Questions about landscapes and baselines that have no answer: exit code 2 and a message that says why and what to do.

mod common;

use common::didact;

const GELU: &str = r#"model={"family":"multi-index","activation":"gelu","link":"z^2","loss":{"kind":"pseudo-huber","kappa":1.0}}"#;

/// The arguments of `didact compute`, and what the message must say.
const CASES: &[(&[&str], &[&str])] = &[
    (
        &[
            "landscape/threshold",
            r#"model={"family":"multi-index","activation":"gelu","link":"z^2","loss":{"kind":"square"}}"#,
        ],
        &["the Hessian weights have no lower bound", "hint: use a loss of bounded slope"],
    ),
    (
        &[
            "landscape/threshold",
            r#"model={"family":"multi-index","activation":"relu","link":"z^2","loss":{"kind":"huber","kappa":1.0}}"#,
        ],
        &["the units have kinks", "hint: use a smooth activation"],
    ),
    (
        &[
            "landscape/threshold",
            r#"model={"family":"multi-index","activation":"gelu","link":"z^3-3z","loss":{"kind":"log-cosh"}}"#,
        ],
        &["this link has no hard direction", "hint: nothing to detect"],
    ),
    (
        &[
            "landscape/threshold",
            r#"model={"family":"multi-index","activation":"gelu","link":"z^2","loss":{"kind":"pseudo-huber","kappa":-1.0}}"#,
        ],
        &["input `model`", "kappa is -1"],
    ),
    (
        &["landscape/threshold", r#"model={"family":"nonsense"}"#],
        &["input `model`", "hint: write it as the table [model]"],
    ),
    (&["landscape/threshold", GELU, "eta=-1"], &["the learning rate is -1; it must be a positive number"]),
    (&["landscape/threshold", GELU, "eta=1", "t=-1"], &["input `t` is -1"]),
    (
        &["landscape/threshold", GELU, "t=2", "samples=1000"],
        &["input `samples` is 1000; expected a power of two"],
    ),
    (
        &["landscape/threshold", GELU, "scrambles=0"],
        &["input `scrambles` is 0; expected a whole number, at least 1"],
    ),
    (&["landscape/hessian", GELU, "delta=0"], &["input `delta` is 0; n/d must be positive"]),
    (&["landscape/hessian", GELU, "delta=4", "row=1"], &["the model has 1 trained rows"]),
    (&["landscape/hessian", GELU, "delta=4", "start-length=0"], &["the length of the start is 0"]),
    (
        &["landscape/hessian", GELU, "delta=0.5", "eta=1000", "t=6"],
        &["gradient descent diverges at step", "smaller learning rate"],
    ),
    (
        &["landscape/empirical-hessian", GELU, "delta=2", "d=5000"],
        &["all eigenvalues need d up to 2000", "hint: set lanczos = true"],
    ),
    (&["landscape/empirical-hessian", GELU, "delta=2", "d=1"], &["at least as many dimensions as rows"]),
    (
        &["landscape/long-time", GELU, "times=[10]"],
        &["input `times` needs at least two ascending whole numbers"],
    ),
    (&["landscape/easy-hard", "link=log(z)"], &["the link is NaN", "it must be finite for Gaussian z"]),
    (&["landscape/easy-hard", "link=z1*z2"], &["input `link`", "z2"]),
    (&["recovery/threshold", "link=1{z>0}"], &["no second-order information"]),
    (&["recovery/threshold", "link=z^2", "label-noise=-1"], &["a standard deviation is not negative"]),
    (
        &["recovery/spectral-method", "link=z^2", "delta=2", "preprocessing=y"],
        &["the preprocessing reaches", "bounded function of y"],
    ),
    (
        &["recovery/spectral-method", "link=z^2", "delta=0.4", "preprocessing=mondelli-montanari"],
        &["needs delta above delta_alg"],
    ),
    (
        &["recovery/spectral-method", "link=z1*z2", "directions=2", "delta=2"],
        &["optimal preprocessing is for links of one direction"],
    ),
];

#[test]
fn questions_without_an_answer_say_why() {
    for (arguments, expected) in CASES {
        let run = didact().arg("compute").args(*arguments).output().unwrap();
        let message = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(run.stdout.is_empty(), "{arguments:?} printed something");
        for part in *expected {
            assert!(message.contains(part), "{arguments:?}: `{part}` is not in\n{message}");
        }
    }
}

//! Experiments without runs: quantities over grids, what is measured on them, and how they are drawn.

use didact_experiment::plan::{Experiment, Size};
use didact_experiment::source::Source;
use didact_model::engine::Unwatched;
use std::path::Path;

const SCANS: &str = r#"
title = "Plateaus of committees"

[[scan]]
name = "width"
quantity = "committee/plateau"
# In any order: fits sort it.
over = { M = [64, 32, 2, 4, 8, 16] }

[[scan]]
name = "plane"
quantity = "committee/escape"
over = { M = [2, 3, 4], eta = [0.1, 0.2] }

[sweep]
"data.dimension" = [10, 20]

[[measure]]
name = "height"
kind = "quantity"
quantity = "committee/plateau"
inputs = { M = "{data.dimension}" }
entry = "loss"

[[measure]]
name = "exponent of Q"
kind = "scan-exponent"
scan = "width"
entry = "Q"
over = "M"
window = [8, 64]

[[measure]]
name = "widest"
kind = "scan-extremum"
scan = "width"
entry = "Q"
extremum = "minimum"
of = "M"

[[claim]]
says = "Q = 1/(2M - 1) falls as 1/M"
measure = "exponent of Q"
check = { equals = -1, absolute = 0.06 }

[[claim]]
says = "The smallest Q belongs to the widest committee"
measure = "widest"
check = { equals = 64 }

[[claim]]
says = "The plateau is higher for more units"
measure = "height"
check = { increases-with = "data.dimension" }

[[figure]]
name = "width"

[[figure.panel]]
x = { scale = "log" }
y = { scale = "log" }

[[figure.panel.series]]
scan = "width"
x = "M"
y = "Q"

[[figure.panel]]

[[figure.panel.series]]
scan = "plane"
x = "M"
y = "tau"
legend = '$\eta = {eta}$'

[[figure.panel]]

[[figure.panel.series]]
scan = "plane"
x = "M"
y = "eta"
z = "tau"
style = "map"
legend = "escape time"
"#;

#[test]
fn an_experiment_may_have_scans_only_and_measure_them() {
    let experiment =
        Experiment::new(Source { name: "scans.toml".into(), text: SCANS.into() }, Size::Normal, None)
            .unwrap();
    assert!(experiment.jobs.is_empty());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scans");
    let _ = std::fs::remove_dir_all(&folder);
    let finished = experiment.execute(&folder, &Unwatched).unwrap();
    for claim in &finished.claims {
        assert_eq!(claim.verdict.words(), "holds", "{}: {}", claim.says, claim.evidence);
    }
    assert!(finished.folder.join("width.svg").exists() && finished.folder.join("scan-width.csv").exists());
}

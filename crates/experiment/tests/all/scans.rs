//! Experiments without runs: quantities over grids, what is measured on them, and how they are drawn.

use crate::common::{checked, empty_folder};
use didact_experiment::execute::Failure;
use didact_experiment::store::Journals;
use didact_model::engine::{Monitor, NoMonitor};
use std::sync::Mutex;

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

/// Stops the work after so many pieces, and knows how much of it was done.
struct Impatient {
    pieces: usize,
    done: Mutex<(usize, f64)>,
}

impl Monitor for Impatient {
    fn advance(&self, fraction: f64) {
        let mut done = self.done.lock().unwrap();
        *done = (done.0 + 1, done.1 + fraction);
    }
    fn cancelled(&self) -> bool {
        self.done.lock().unwrap().0 >= self.pieces
    }
}

#[test]
fn scans_show_progress_stop_when_asked_and_go_on() {
    let (folder, experiment) = (empty_folder("impatient"), checked(SCANS).unwrap());
    let of = |pieces| Impatient { pieces, done: Mutex::default() };
    // Six points of the first scan are done, and one or some of the six of the second.
    let first = of(7);
    let Err(Failure::Interrupted(partial)) = experiment.execute(&folder, &first) else {
        panic!("it goes on")
    };
    let (kept, damaged) = Journals::in_folder(&partial).count();
    assert!((7..12).contains(&kept) && damaged == 0, "{kept} {damaged}: scans are kept point by point");
    let second = of(usize::MAX);
    let finished = experiment.execute(&folder, &second).unwrap();
    let (pieces, fraction) = *second.done.lock().unwrap();
    assert!(pieces == 12 && (fraction - 1.0).abs() < 1e-12, "{pieces} {fraction}");
    assert!(!partial.exists());
    assert_eq!((finished.reused, finished.taken_over), (false, 0));
    // Another legend: nothing is computed.
    let third = of(0);
    let relabelled = checked(&SCANS.replace("escape time", "time of escape")).unwrap();
    let relabelled = relabelled.execute(&folder, &third).unwrap();
    assert_eq!((relabelled.taken_over, relabelled.measured), (2, finished.measured));
}

#[test]
fn an_experiment_may_have_scans_only_and_measure_them() {
    let experiment = checked(SCANS).unwrap();
    assert!(experiment.runs.is_empty());
    let folder = empty_folder("scans");
    let finished = experiment.execute(&folder, &NoMonitor).unwrap();
    for claim in &finished.claims {
        assert_eq!(claim.verdict.words(), "holds", "{}: {}", claim.says, claim.evidence);
    }
    assert!(finished.folder.join("width.svg").exists() && finished.folder.join("scan-width.csv").exists());
}

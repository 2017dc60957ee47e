//! Editing a description: runs that do not depend on what has changed are not computed again.

use crate::common::{ERF_UNIT, checked, empty_folder};
use didact_experiment::execute::Finished;
use didact_model::engine::NoMonitor;
use std::path::Path;

const REST: &str = r#"
[sweep]
"data.dimension" = [20, 40]

[[run]]
name = "theory"
engine = "ode"

[[run]]
name = "sgd"
engine = "reduced"

[[figure]]
name = "loss"
panel = [{ y = { label = "loss" }, series = [{ run = "theory" }, { run = "sgd" }] }]
"#;

fn execute(text: &str, root: &Path) -> Finished {
    checked(text).unwrap().execute(root, &NoMonitor).unwrap()
}

#[test]
fn runs_are_taken_over_when_nothing_they_depend_on_has_changed() {
    let root = empty_folder("taken-over");
    let description = format!("title = \"A description that is edited\"\n{ERF_UNIT}{REST}");
    let first = execute(&description, &root);
    assert_eq!((first.reused, first.taken_over), (false, 0));
    let label = description.replace("label = \"loss\"", "label = \"test loss\"");
    let relabelled = execute(&label, &root);
    assert_eq!((relabelled.reused, relabelled.taken_over), (false, 4));
    for place in ["point-0000/theory", "point-0001/sgd"] {
        for kind in ["npz", "csv", "json"] {
            let read = |run: &Finished| std::fs::read(run.folder.join(format!("{place}.{kind}"))).unwrap();
            assert_eq!(read(&first), read(&relabelled), "{place}.{kind}");
        }
    }
    // Another name, and a longer sweep: what is new is computed.
    let longer = label.replace("[20, 40]", "[10, 20, 40]").replace("\"sgd\"", "\"descent\"");
    assert_eq!(execute(&longer, &root).taken_over, 4);
    // Another rate for one of the two.
    let rate =
        label.replace("engine = \"ode\"", "engine = \"ode\"\nset = { \"training.learning-rate\" = 0.2 }");
    assert_eq!(execute(&rate, &root).taken_over, 2);
    // The seed is among what every run depends on, so that everything is computed again.
    assert_eq!(execute(&label.replace("observe =", "seed = 5\nobserve ="), &root).taken_over, 0);
}

#[test]
fn a_changed_title_or_claim_computes_nothing_again() {
    let root = empty_folder("retitled");
    let description = format!("title = \"First title\"\n{ERF_UNIT}{REST}");
    assert_eq!(execute(&description, &root).taken_over, 0);
    let second = execute(&description.replace("First title", "Quite another name"), &root);
    assert_eq!(second.taken_over, 4);
    assert!(second.folder.ends_with(
        checked(&description.replace("First title", "Quite another name")).unwrap().folder_name()
    ));
    assert!(checked(&description).unwrap().missing_runs(&root).is_empty());
    let longer = checked(&description.replace("[20, 40]", "[20, 30, 40]")).unwrap();
    let missing: Vec<String> =
        longer.missing_runs(&root).iter().map(|run| format!("{} {}", run.name, run.point.label())).collect();
    // Theory does not know the dimension, but its key does: it may matter.
    assert_eq!(missing, ["theory data.dimension = 30", "sgd data.dimension = 30"]);
}

#[test]
fn a_fresh_run_computes_what_is_found_and_replaces_it() {
    let root = empty_folder("fresh");
    let description = format!("title = \"Computed twice\"\n{ERF_UNIT}{REST}");
    let first = execute(&description, &root);
    let table = first.folder.join("point-0000/sgd.csv");
    let known = std::fs::read(&table).unwrap();
    assert!(execute(&description, &root).reused);
    let fresh = checked(&description).unwrap().execute_fresh(&root, &NoMonitor).unwrap();
    assert_eq!((fresh.reused, fresh.taken_over, &fresh.folder), (false, 0, &first.folder));
    assert_eq!(std::fs::read(&table).unwrap(), known);
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 1, "nothing else is left");
    let provenance = std::fs::read_to_string(fresh.folder.join("provenance.json")).unwrap();
    let provenance: serde_json::Value = serde_json::from_str(&provenance).unwrap();
    assert_eq!(provenance["build"], didact_experiment::experiment::BUILD);
}

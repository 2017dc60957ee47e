//! What is kept: damage is found and healed, failures are tried again, healthy work survives that of others.

use crate::common::{checked, empty_folder};
use didact_experiment::execute::{NotFinished, finished};
use didact_experiment::frontend::TableReader;
use didact_experiment::store::FolderState;
use didact_experiment::{Failure, Finished};
use didact_model::NoMonitor;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const WHOLE: &str = r#"
title = "Kept"
model = { family = "committee", students = 1, teachers = 1, activation = "linear" }
data = { dimension = 20 }
training = { learning-rate = 0.5 }
start = { q = [[0.25]], r = [[0.1]] }
record = { times = [0, 1, 2] }
sweep = { "training.learning-rate" = [0.2, 0.4] }
run = [{ name = "theory", engine = "ode" }, { name = "sgd", engine = "reduced" }]
measure = [{ name = "end", kind = "value-at", run = "sgd", observable = "loss", time = 2 }]
scan = [{ name = "s", quantity = "committee/escape", inputs = { eta = 0.1 }, over = { M = [2, 3] } }]
figure = [{ name = "loss", panel = [{ series = [{ run = "theory" }] }] }]
"#;

fn execute(text: &str, root: &Path) -> Finished {
    checked(text).unwrap().execute(root, &NoMonitor).unwrap()
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all
}

/// Everything but the provenance depends on the description alone.
fn without_provenance(mut files: BTreeMap<PathBuf, Vec<u8>>) -> BTreeMap<PathBuf, Vec<u8>> {
    files.retain(|path, _| !path.ends_with("provenance.json"));
    files
}

#[test]
fn every_file_that_is_changed_or_gone_is_found_out_and_made_anew() {
    let root = empty_folder("healed");
    let first = execute(WHOLE, &root);
    let folder = first.folder.clone();
    let before = files(&folder);
    let notes = folder.join("notes.txt");
    std::fs::write(&notes, "a file of the user").unwrap();
    assert!(execute(WHOLE, &root).reused);
    assert!(before.len() > 15, "{before:?}");
    let (provenance, others): (Vec<&PathBuf>, Vec<&PathBuf>) =
        before.keys().partition(|path| path.ends_with("provenance.json"));
    // All at once but the provenance, by which they are told, and then that one.
    for (spoiled, gone) in [(&others, false), (&others, true), (&provenance, false), (&provenance, true)] {
        for path in spoiled {
            if gone {
                std::fs::remove_file(path).unwrap();
            } else {
                let mut changed = std::fs::read(path).unwrap();
                let middle = changed.len() / 2;
                changed[middle] ^= 1;
                std::fs::write(path, changed).unwrap();
            }
        }
        let FolderState::Damaged(damage) = FolderState::of(&folder) else {
            panic!("{spoiled:?}: not found out")
        };
        let found: Vec<PathBuf> = damage.iter().map(|d| folder.join(&d.file)).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), *spoiled);
        assert!(finished(&folder).is_err());
        let healed = execute(WHOLE, &root);
        assert_eq!((healed.reused, &healed.healed), (false, &damage));
        assert_eq!(healed.measured, first.measured);
        assert!(matches!(FolderState::of(&folder), FolderState::Whole(_)));
    }
    let mut after = files(&folder);
    assert_eq!(after.remove(&notes).unwrap(), b"a file of the user");
    assert_eq!(without_provenance(after), without_provenance(before));
    assert!(execute(WHOLE, &root).reused);
    assert_eq!(std::fs::read_dir(&root).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn a_folder_without_its_provenance_is_unfinished_and_one_with_another_is_damaged() {
    let root = empty_folder("provenance");
    let folder = execute(WHOLE, &root).folder;
    std::fs::write(folder.join("provenance.json"), "{\"complete\": true}").unwrap();
    assert!(matches!(finished(&folder), Err(NotFinished::Damaged(_))));
    std::fs::remove_file(folder.join("provenance.json")).unwrap();
    assert_eq!(finished(&folder).err(), Some(NotFinished::Unfinished));
    let healed = execute(WHOLE, &root);
    assert_eq!(healed.healed[0].to_string(), "provenance.json is missing");
    assert!(execute(WHOLE, &root).reused);
}

/// A run that fails at one of two points when it builds its weights.
const ONE_FAILS: &str = r#"
title = "One point fails"
model = { family = "committee", students = 2, teachers = 1, activation = "erf(z/sqrt2)" }
data = { dimension = 8 }
training = { learning-rate = 0.5 }
start = { q = [[1.0, 0.0], [0.0, 1.0]] }
record = { times = [0, 1] }
run = [{ name = "sgd", engine = "direct" }]
scan = [{ name = "s", quantity = "committee/escape", inputs = { eta = 0.1 }, over = { M = [2, 3] } }]
sweep = { "data.spectrum" = [{ kind = "isotropic" }, { kind = "power-law", levels = 4, beta = 1.0 }] }
figure = [{ name = "loss", panel = [{ series = [{ run = "sgd" }] }] }]
"#;

#[test]
fn a_failed_job_is_tried_again_and_what_was_done_is_not() {
    let root = empty_folder("tried-again");
    let first = execute(ONE_FAILS, &root);
    assert_eq!(
        (first.reused, first.failed_jobs, first.failures.len()),
        (false, 1, 1),
        "{:?}",
        first.failures
    );
    let before = files(&first.folder);
    let second = execute(ONE_FAILS, &root);
    assert_eq!((second.reused, second.failed_jobs), (false, 1), "a failure is never found");
    assert!(second.healed.is_empty());
    assert_eq!(without_provenance(files(&first.folder)), without_provenance(before));
    assert_eq!(finished(&first.folder).unwrap().failed_jobs, 1, "its report can be read all the same");
}

#[test]
fn scans_are_computed_and_kept_when_all_runs_fail() {
    let root = empty_folder("all-fail");
    let text = ONE_FAILS.replace("{ kind = \"isotropic\" }, ", "");
    let first = execute(&text, &root);
    // The run at its only point, and the figure that shows nothing else.
    assert_eq!(first.failed_jobs, first.failures.len());
    assert!(first.failures[0].starts_with("sgd at "), "{:?}", first.failures);
    let table = std::fs::read_to_string(first.folder.join("scan-s.csv")).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
}

#[test]
#[cfg(unix)]
fn a_link_under_the_name_of_the_partial_folder_is_refused() {
    let root = empty_folder("planted");
    let experiment = checked(WHOLE).unwrap();
    let (victim, partial) = (root.join("victim"), root.join(format!("{}.partial", experiment.folder_name())));
    std::fs::create_dir_all(&victim).unwrap();
    std::fs::write(victim.join("precious"), "1").unwrap();
    std::os::unix::fs::symlink(&victim, &partial).unwrap();
    for fresh in [false, true] {
        let ended = if fresh {
            experiment.execute_fresh(&root, &NoMonitor)
        } else {
            experiment.execute(&root, &NoMonitor)
        };
        let Err(Failure::Error(error)) = ended else { panic!("the link was followed") };
        assert!(error.to_string().contains("is a link"), "{error}");
    }
    assert_eq!(files(&victim).len(), 1);
}

/// 130 points of a unit whose equations are solved in no time.
fn large() -> String {
    let rates: Vec<String> = (1..=130).map(|i| format!("{:.3}", 0.005 * f64::from(i))).collect();
    let small = WHOLE.replace("[0.2, 0.4]", &format!("[{}]", rates.join(", ")));
    small
        .replace("run = [{ name = \"theory\", engine = \"ode\" }, ", "run = [")
        .replace("{ run = \"theory\" }", "{ run = \"sgd\" }")
}

/// The tables of many points stand in one file, byte for byte as they stand in files of their own where points are few; what is
/// promised of those is true of it.
#[test]
fn tables_of_many_points_are_packed_and_found_checked_and_healed_like_others() {
    let root = empty_folder("packed");
    let text = large();
    let first = execute(&text, &root);
    let before = files(&first.folder);
    assert!(before.len() <= 11, "{:?}", before.keys().collect::<Vec<_>>());
    let pack = first.folder.join("tables-1.zip");
    let packed = &before[&pack];
    let few = execute(&text.replace(", 0.015, ", "] }\n# "), &empty_folder("unpacked"));
    assert!(!few.folder.join("tables-1.zip").exists());
    for place in ["point-0000/sgd", "point-0001/sgd"] {
        for kind in ["npz", "csv", "json"] {
            let name = format!("{place}.{kind}");
            let mut entry = name.clone().into_bytes();
            entry.extend(std::fs::read(few.folder.join(&name)).unwrap());
            assert!(packed.windows(entry.len()).any(|window| window == entry), "{name}");
        }
    }
    // Programs read tables from the pack.
    let experiment = checked(&text).unwrap();
    let reader = TableReader::default();
    let ends: Vec<f64> = experiment
        .runs
        .iter()
        .map(|run| *reader.table(&first.folder, run).unwrap().columns[0].curves[0].last().unwrap())
        .collect();
    let measured: Vec<f64> = first.measured[0].values.iter().map(|v| v.as_ref().unwrap().value).collect();
    assert_eq!(ends, measured);
    // One changed byte, a cut, no list of what there is: found out and healed, with the same bytes.
    let damages: [fn(&Path, &Path); 3] = [
        |pack, _| {
            let mut bytes = std::fs::read(pack).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(pack, bytes).unwrap();
        },
        |pack, _| std::fs::write(pack, &std::fs::read(pack).unwrap()[..5000]).unwrap(),
        |_, folder| std::fs::remove_file(folder.join("provenance.json")).unwrap(),
    ];
    for (number, damage) in damages.into_iter().enumerate() {
        damage(&pack, &first.folder);
        assert!(finished(&first.folder).is_err(), "damage {number}");
        let healed = execute(&text, &root);
        assert_eq!((healed.reused, healed.healed.len()), (false, 1), "damage {number}");
        assert_eq!(without_provenance(files(&first.folder)), without_provenance(before.clone()));
    }
    // Another experiment that shares the tables takes them, and the scan, over.
    assert_eq!(execute(&text.replace("Kept", "Another title"), &root).taken_over, 130 + 1);
    // The same folder from shares is compared in `sweep.rs`; here from threads that take turns in another order.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let elsewhere = empty_folder("packed-elsewhere");
    let again = pool.install(|| execute(&text, &elsewhere));
    let relative = |folder: &Path| -> BTreeMap<PathBuf, Vec<u8>> {
        let all = without_provenance(files(folder)).into_iter();
        all.map(|(path, bytes)| (path.strip_prefix(folder).unwrap().into(), bytes)).collect()
    };
    assert!(relative(&again.folder) == relative(&first.folder));
}

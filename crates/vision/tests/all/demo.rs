//! The demo in seconds: pre-training, checkpoints, LoRA, tables that `didact` reads.

use didact_experiment::{Experiment, Size, Source};
use didact_model::NoMonitor;
use didact_vision::demo::{DemoScale, demo};
use std::path::PathBuf;

pub(crate) fn empty_folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("didact-vision-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_tiny_transfer_learns_and_its_tables_are_read() {
    let folder = empty_folder("demo");
    let outcome = demo(DemoScale::Tiny, &folder, &|| false, &|_| {}).unwrap();
    for (seed, epochs) in outcome.source.models.iter().enumerate() {
        let (first, last) = (epochs[0], epochs[epochs.len() - 1]);
        // 128 test images of four classes: chance is 0.25 with a standard error of 0.04.
        assert!(last.test_accuracy > 0.45 && last.test_loss < first.test_loss, "seed {seed}: {last:?}");
    }
    // Two checkpoints of two seeds.
    assert_eq!(outcome.adapted.models.len(), 4);
    for epochs in &outcome.adapted.models {
        assert!(epochs[epochs.len() - 1].train_loss < epochs[0].train_loss);
    }
    let text = "title = \"t\"\n[[run]]\nname = \"a\"\nengine = \"recorded\"\npath = \"adapted-006.csv\"\n";
    let source = Source { name: folder.join("it.toml").display().to_string(), text: text.into() };
    let experiment = Experiment::new(source, Size::Normal, None).unwrap_or_else(|e| panic!("{e}"));
    let table = experiment.runs[0].schedule.run(&NoMonitor).unwrap();
    let last = |replica: usize| *table.curves("test_accuracy").unwrap()[replica].last().unwrap();
    assert_eq!([last(0), last(1)], [2, 3].map(|model: usize| outcome.adapted.models[model][5].test_accuracy));
    std::fs::remove_dir_all(folder).unwrap();
}

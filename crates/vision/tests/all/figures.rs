//! The descriptions in `figures/` fit the tables that a run leaves: they are checked, measured and judged on made ones.

use crate::demo::empty_folder;
use didact_experiment::{Experiment, Size, Source};
use didact_model::NoMonitor;
use didact_vision::protocol::Protocol;
use std::path::Path;

/// A table in which the last accuracy is as given, and replicas differ by a thousandth.
fn table(epochs: usize, last: f64) -> String {
    let mut text = String::from("replica,time,train_loss,train_accuracy,test_loss,test_accuracy\n");
    for replica in 0..3 {
        for epoch in 1..=epochs {
            let accuracy = last * (1.0 - 0.5 / epoch as f64) + 0.001 * f64::from(replica);
            text += &format!("{replica},{epoch},1,0.5,1,{accuracy}\n");
        }
    }
    text
}

#[test]
fn every_description_reads_the_tables_of_its_protocol() {
    let figures = Path::new(env!("CARGO_MANIFEST_DIR")).join("figures");
    for protocol in Protocol::all() {
        let folder = empty_folder(&protocol.name);
        let tables = folder.join(&protocol.name);
        std::fs::create_dir_all(&tables).unwrap();
        std::fs::write(tables.join("source.csv"), table(protocol.pretraining.epochs, 0.8)).unwrap();
        for (number, epoch) in protocol.checkpoints.iter().enumerate() {
            // Later checkpoints adapt worse, as the paper has it.
            let text = table(protocol.adaptation.epochs, 0.7 - 0.1 * number as f64);
            std::fs::write(tables.join(format!("adapted-{epoch:03}.csv")), text).unwrap();
        }
        let file = std::fs::read_dir(&figures).unwrap().map(|e| e.unwrap().path());
        let file = file.into_iter().find(|f| f.display().to_string().contains(&protocol.name)).unwrap();
        let text = std::fs::read_to_string(file).unwrap();
        let source = Source { name: folder.join("it.toml").display().to_string(), text };
        let experiment = Experiment::new(source, Size::Normal, None).unwrap_or_else(|e| panic!("{e}"));
        let finished = experiment.execute(&folder.join("runs"), &NoMonitor).unwrap();
        assert!(finished.failures.is_empty(), "{:?}", finished.failures);
        let verdicts: Vec<String> = finished.claims.iter().map(|c| format!("{:?}", c.verdict)).collect();
        assert_eq!(verdicts, ["Holds", "Holds", "Holds"], "{:?}", finished.claims);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn the_description_of_the_demo_reads_its_tables() {
    let folder = empty_folder("demo-figure");
    std::fs::write(folder.join("source.csv"), table(16, 0.9)).unwrap();
    for epoch in ["001", "004", "016"] {
        std::fs::write(folder.join(format!("adapted-{epoch}.csv")), table(30, 0.7)).unwrap();
    }
    let results = didact_vision::demo::figure(&folder).unwrap();
    assert!(results.join("demo.svg").exists() && results.join("report.html").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

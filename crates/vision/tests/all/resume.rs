//! A run that is stopped in the middle of an epoch, as often as one likes, ends with the same bits.

use crate::demo::empty_folder;
use didact_vision::demo::{DemoScale, demo};
use didact_vision::train::NetworkTrainingError;
use std::cell::Cell;

#[test]
fn stopped_in_the_middle_of_epochs_it_goes_on_to_the_same_bits() {
    let (whole, parts) = (empty_folder("whole"), empty_folder("parts"));
    demo(DemoScale::Tiny, &whole, &|| false, &|_| {}).unwrap();
    let mut stops = 0;
    loop {
        // Every process asks seventeen times before it is stopped: a step of ten per epoch, or a part of an evaluation.
        let asked = Cell::new(0);
        let stopped = || {
            asked.set(asked.get() + 1);
            asked.get() > 17
        };
        match demo(DemoScale::Tiny, &parts, &stopped, &|_| {}) {
            Ok(_) => break,
            Err(NetworkTrainingError::Interrupted) => stops += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(stops >= 5, "{stops}");
    for file in [
        "source.csv",
        "adapted-001.csv",
        "adapted-006.csv",
        "checkpoint-006.safetensors",
        "adaptation.safetensors",
    ] {
        let read = |folder: &std::path::Path| std::fs::read(folder.join(file)).unwrap();
        assert!(read(&whole) == read(&parts), "{file}");
    }
    // A state of another training is refused.
    let state = whole.join("pre-training.safetensors");
    std::fs::copy(whole.join("adaptation.safetensors"), &state).unwrap();
    let error = demo(DemoScale::Tiny, &whole, &|| false, &|_| {}).err().expect("it is refused").to_string();
    assert!(error.contains("another training"), "{error}");
    std::fs::remove_dir_all(whole).unwrap();
    std::fs::remove_dir_all(parts).unwrap();
}

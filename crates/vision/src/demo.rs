//! A transfer in small, on images that are made: stripes of four directions, then the same directions turned by half a step between them.

use crate::data::made;
use crate::device::Cpu;
use crate::experiment::{TransferOutcome, TransferSetting, run};
use crate::network::{Architecture, Lora};
use crate::protocol::{Data, Optimiser, Protocol};
use crate::train::NetworkTrainingError;
use didact_experiment::{Experiment, Size, Source};
use didact_model::NoMonitor;
use std::path::Path;

/// How large the demo is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoScale {
    /// Seconds, for a test.
    Tiny,
    /// Under two minutes.
    Small,
}

/// What is learned and how.
pub fn protocol(scale: DemoScale) -> Protocol {
    let tiny = scale == DemoScale::Tiny;
    let pretraining = Optimiser { epochs: if tiny { 6 } else { 16 }, batch: 32, rate: 3e-3, decay: 1e-4 };
    Protocol {
        name: "demo".into(),
        published: "no experiment of the paper".into(),
        architecture: Architecture {
            channels: 1,
            side: 12,
            patch: 4,
            width: if tiny { 16 } else { 32 },
            depth: 2,
            heads: 2,
            expansion: 2,
        },
        held_out: 0.0,
        pretraining,
        checkpoints: if tiny { vec![1, 6] } else { vec![1, 4, 16] },
        per_class: if tiny { 24 } else { 50 },
        lora: Lora { rank: 2, alpha: 2.0 },
        keeps_head: false,
        adaptation: Optimiser { epochs: if tiny { 6 } else { 30 }, ..pretraining },
        choices: Vec::new(),
    }
}

/// Stripes of four directions, and the same turned.
pub fn data(scale: DemoScale) -> Data {
    let (train, test, noise) = if scale == DemoScale::Tiny { (320, 128, 45.0) } else { (1500, 600, 100.0) };
    let of = |turn: f64, seed: u64| {
        [seed, seed + 1].map(|seed| {
            let count = if seed % 2 == 1 { train } else { test };
            made::stripes(count, (4, 12), (turn, noise), seed)
        })
    };
    Data { source: of(0.0, 1), downstream: of(0.35, 3), stand_ins: Vec::new() }
}

/// Runs it on the processor, three seeds (two when tiny), and writes the description of its figure beside the tables.
pub fn demo(
    scale: DemoScale,
    folder: &Path,
    stopped: &dyn Fn() -> bool,
    tell: &dyn Fn(&str),
) -> Result<TransferOutcome, NetworkTrainingError> {
    let device = Cpu::<f32>::new();
    let seeds = if scale == DemoScale::Tiny { 2 } else { 3 };
    let setting = TransferSetting {
        device: &device,
        folder: folder.into(),
        seed: 7,
        seeds,
        per_class: None,
        stopped,
        tell,
    };
    run(&protocol(scale), &data(scale), &setting)
}

/// The description of the demo's figure, which reads the tables that lie beside it.
const DESCRIPTION: &str = include_str!("demo.toml");

/// Draws the figure and judges the claims of a demo in a folder, by the machinery of `didact`; the folder of the results.
pub fn figure(folder: &Path) -> Result<std::path::PathBuf, String> {
    let place = folder.join("demo.toml");
    crate::safetensors::write_whole(&place, DESCRIPTION.as_bytes())?;
    let source = Source { name: place.display().to_string(), text: DESCRIPTION.into() };
    let experiment = Experiment::new(source, Size::Normal, None).map_err(|e| e.to_string())?;
    let finished = experiment.execute(folder, &NoMonitor).map_err(|e| format!("{e:?}"))?;
    if finished.failures.is_empty() { Ok(finished.folder) } else { Err(finished.failures.join("\n")) }
}

//! One experiment: pre-training with checkpoints, then LoRA from each of them, all seeds side by side, and the tables of both.

use crate::alignment::{AdapterAlignment, alignments};
use crate::data::Images;
use crate::device::{Device, DeviceError};
use crate::network::{Backbone, ParameterValues, adapters, draw, head};
use crate::protocol::{Data, Protocol, kept, per_class};
use crate::safetensors::{Arrays, write_whole};
use crate::train::{History, Loaded, NetworkTrainer, NetworkTraining, NetworkTrainingError, Watch, lanes};
use std::path::{Path, PathBuf};

/// Where and with which seeds.
pub struct TransferSetting<'a, D: Device> {
    /// The device.
    pub device: &'a D,
    /// A folder for states, checkpoints and tables.
    pub folder: PathBuf,
    /// Seed of all random numbers.
    pub seed: u64,
    /// How many networks are pre-trained.
    pub seeds: u32,
    /// Images per class downstream, if others than those of the protocol: the tables then go to a folder of their own beside the checkpoints.
    pub per_class: Option<usize>,
    /// Says whether to stop, and hears how far it is.
    pub stopped: &'a dyn Fn() -> bool,
    /// Hears a line now and then.
    pub tell: &'a dyn Fn(&str),
}

/// Keeps checkpoints while the training goes on.
struct Keeper<'a> {
    checkpoints: &'a [usize],
    folder: &'a Path,
    stopped: &'a dyn Fn() -> bool,
    tell: &'a dyn Fn(&str),
    what: &'a str,
}

fn checkpoint(folder: &Path, epoch: usize) -> PathBuf {
    folder.join(format!("checkpoint-{epoch:03}.safetensors"))
}

impl Watch for Keeper<'_> {
    fn stopped(&self) -> bool {
        (self.stopped)()
    }

    fn progress(&self, line: &str) {
        (self.tell)(&format!("{}: {line}", self.what));
    }

    fn epoch(
        &mut self,
        epoch: usize,
        values: &mut dyn FnMut() -> Result<ParameterValues, DeviceError>,
    ) -> Result<(), String> {
        if !self.checkpoints.contains(&epoch) {
            return Ok(());
        }
        let values = values().map_err(|e| e.to_string())?;
        let mut arrays = Arrays::default();
        arrays.push("backbone", &[values.backbone.len()], &values.backbone);
        arrays.push("head", &[values.head.len()], &values.head);
        arrays.write(&checkpoint(self.folder, epoch))
    }
}

/// What came out.
pub struct TransferOutcome {
    /// Pre-training: a model per seed.
    pub source: History,
    /// Fine-tuning: checkpoint by checkpoint, in each seed by seed.
    pub adapted: History,
}

/// Runs a protocol, or what is left of it, and writes `source.csv` and, per checkpoint, `adapted-NNN.csv`; and `alignment.csv`, whose times
/// are the epochs of the checkpoints: what pre-training and LoRA have in common ([`AdapterAlignment`]), and how long LoRA needs.
pub fn run<D: Device>(
    protocol: &Protocol,
    data: &Data,
    setting: &TransferSetting<D>,
) -> Result<TransferOutcome, NetworkTrainingError> {
    let TransferSetting { device, folder, seed, seeds, per_class: images, stopped, tell } = setting;
    let (device, seed, a) = (*device, *seed, protocol.architecture);
    a.check().map_err(NetworkTrainingError::File)?;
    let models: Vec<u32> = (0..*seeds).collect();
    let classes = |images: &[Images; 2]| images[0].classes;

    // Checkpoints of all seeds.
    let training = NetworkTraining {
        architecture: a,
        lora: None,
        models: models.clone(),
        batch: protocol.pretraining.batch,
        epochs: protocol.pretraining.epochs,
        rate: protocol.pretraining.rate,
        decay: protocol.pretraining.decay,
        seed,
        lane: lanes::ORDER,
        samples: kept(&data.source[0], protocol.held_out, seed, &models),
    };
    let start = ParameterValues {
        backbone: draw(&Backbone::new(&a).layout, seed, &models, lanes::BACKBONE),
        head: draw(&head(&a, classes(&data.source)), seed, &models, lanes::HEAD),
        adapters: Vec::new(),
    };
    let source = {
        let state = folder.join("pre-training.safetensors");
        let mut trainer =
            NetworkTrainer::new(device, &training, classes(&data.source), &start, Some(&state))?;
        let train = Loaded::new(device, &data.source[0])?;
        let test = Loaded::new(device, &data.source[1])?.normalised_as(&data.source[0]);
        let (checkpoints, what) = (protocol.checkpoints.as_slice(), "pre-training");
        let mut keeper = Keeper { checkpoints, folder, stopped, tell, what };
        trainer.run(&train, &test, &mut keeper)?;
        trainer.history
    };
    let table = |folder: &Path, name: &str, text: String| {
        write_whole(&folder.join(name), text.as_bytes()).map_err(NetworkTrainingError::File)
    };
    table(folder, "source.csv", source.csv(0..models.len()))?;

    // LoRA from every checkpoint of every seed at once.
    let kept = &protocol.checkpoints;
    let all: Vec<u32> = kept.iter().flat_map(|_| models.iter().copied()).collect();
    let mut values = ParameterValues::default();
    let read: Vec<Arrays> = kept
        .iter()
        .map(|epoch| Arrays::read(&checkpoint(folder, *epoch)).map_err(NetworkTrainingError::File))
        .collect::<Result<_, _>>()?;
    let side_by_side =
        |layout: &crate::network::Layout, group: &str| -> Result<Vec<f64>, NetworkTrainingError> {
            let mut joined = Vec::new();
            for tensor in 0..layout.tensors.len() {
                let (at, length) =
                    (layout.offset(tensor, models.len()), layout.tensors[tensor].len() * models.len());
                for arrays in &read {
                    let array = arrays.get(group).map_err(NetworkTrainingError::File)?;
                    let part = array.values.get(at..at + length);
                    let part = part.ok_or_else(|| {
                        NetworkTrainingError::File(format!("a checkpoint of other sizes: {group}"))
                    })?;
                    joined.extend(part.iter().map(|v| f64::from(*v)));
                }
            }
            Ok(joined)
        };
    values.backbone = side_by_side(&Backbone::new(&a).layout, "backbone")?;
    let new_head = head(&a, classes(&data.downstream));
    values.head = if protocol.keeps_head {
        side_by_side(&new_head, "head")?
    } else {
        // Drawn anew, by the numbers that belong to fine-tuning.
        draw(&new_head, seed ^ 1 << 63, &all, lanes::HEAD)
    };
    values.adapters = draw(&adapters(&a, &protocol.lora), seed, &all, lanes::ADAPTERS);
    let training = NetworkTraining {
        lora: Some(protocol.lora),
        models: all.clone(),
        batch: protocol.adaptation.batch,
        epochs: protocol.adaptation.epochs,
        rate: protocol.adaptation.rate,
        decay: protocol.adaptation.decay,
        lane: lanes::ADAPTATION_ORDER,
        samples: per_class(&data.downstream[0], images.unwrap_or(protocol.per_class), seed, &all)
            .map_err(NetworkTrainingError::File)?,
        ..training
    };
    let results = images.map_or_else(|| folder.clone(), |n| folder.join(format!("{n}-per-class")));
    let state = results.join("adaptation.safetensors");
    let mut trainer =
        NetworkTrainer::new(device, &training, classes(&data.downstream), &values, Some(&state))?;
    // The frozen network sees pixels as it was trained on: normalised by the moments of the source.
    let train = Loaded::new(device, &data.downstream[0])?.normalised_as(&data.source[0]);
    let test = Loaded::new(device, &data.downstream[1])?.normalised_as(&data.source[0]);
    let mut keeper = Keeper { checkpoints: &[], folder, stopped, tell, what: "adaptation" };
    trainer.run(&train, &test, &mut keeper)?;
    let fine_tuned = trainer.network.values(device)?;
    let adapted = trainer.history;
    for (number, epoch) in kept.iter().enumerate() {
        let range = number * models.len()..(number + 1) * models.len();
        table(&results, &format!("adapted-{epoch:03}.csv"), adapted.csv(range))?;
    }
    let start = ParameterValues {
        backbone: draw(&Backbone::new(&a).layout, seed, &all, lanes::BACKBONE),
        ..ParameterValues::default()
    };
    let aligned = alignments(&a, &protocol.lora, all.len(), &start, &fine_tuned);
    table(&results, "alignment.csv", alignment_table(kept, &aligned, &adapted))?;
    Ok(TransferOutcome { source, adapted })
}

/// A line per seed and checkpoint; the last column is the number of epochs until the accuracy on test images passes 90 per cent of what
/// all networks reach in the mean.
fn alignment_table(checkpoints: &[usize], aligned: &[AdapterAlignment], adapted: &History) -> String {
    let level = 0.9 * adapted.final_accuracy();
    let seeds = aligned.len() / checkpoints.len();
    let mut text = format!("replica,time,{},epochs_to_level\n", AdapterAlignment::NAMES.join(","));
    for seed in 0..seeds {
        for (number, epoch) in checkpoints.iter().enumerate() {
            let model = number * seeds + seed;
            let numbers = aligned[model].values().map(|v| v.to_string()).join(",");
            let needed = adapted.epochs_to(model, level).map_or(String::new(), |t| t.to_string());
            text += &format!("{seed},{epoch},{numbers},{needed}\n");
        }
    }
    text
}

//! The three experiments, with every number as it is printed, and the data that stand in where the printed ones are in no registry.

use crate::data::found::{Part, Set};
use crate::data::{Images, made};
use crate::network::{Architecture, Lora};
use crate::train::lanes;
use didact_math::random::{RngAddress, Stream};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A source task, a downstream task, and how both are learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Protocol {
    /// In files and commands.
    pub name: String,
    /// As published: source, downstream.
    pub published: String,
    /// Sizes of the network.
    pub architecture: Architecture,
    /// Part of the source's training images that is held out.
    pub held_out: f64,
    /// Pre-training.
    pub pretraining: Optimiser,
    /// Epochs after which a checkpoint is kept.
    pub checkpoints: Vec<usize>,
    /// Images per class downstream.
    pub per_class: usize,
    /// LoRA on q and v.
    pub lora: Lora,
    /// Whether the head of the source is kept and trained on, rather than drawn anew.
    pub keeps_head: bool,
    /// Fine-tuning.
    pub adaptation: Optimiser,
    /// What the paper does not print, and what is taken here.
    pub choices: Vec<String>,
}

/// AdamW with a cosine schedule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Optimiser {
    /// Epochs.
    pub epochs: usize,
    /// Images per step.
    pub batch: usize,
    /// Learning rate at the start.
    pub rate: f64,
    /// Weight decay.
    pub decay: f64,
}

/// Rotation of the shifted task in degrees, and the deviation of its noise, as printed.
const SHIFT: (f64, f64) = (25.0, 0.2);

impl Protocol {
    /// All three.
    pub fn all() -> Vec<Self> {
        let rest = "expansion 4, pre-norm, mean over patches, no dropout, no augmentation; AdamW with betas 0.9 and 0.999; cosine to 0 without warm-up".to_string();
        let letters = Self {
            name: "letters-to-fashion".into(),
            published: "EMNIST Letters to Fashion-MNIST (Figure 10)".into(),
            architecture: Architecture {
                channels: 1,
                side: 28,
                patch: 4,
                width: 192,
                depth: 3,
                heads: 4,
                expansion: 4,
            },
            held_out: 0.1,
            pretraining: Optimiser { epochs: 100, batch: 256, rate: 1e-3, decay: 1e-4 },
            checkpoints: vec![2, 5, 10, 15, 20, 50, 100],
            per_class: 500,
            lora: Lora { rank: 8, alpha: 8.0 },
            keeps_head: false,
            adaptation: Optimiser { epochs: 100, batch: 128, rate: 5e-4, decay: 1e-4 },
            choices: vec![rest.clone(), "the schedule of fine-tuning is a cosine as well".into()],
        };
        let cifar = Self {
            name: "cifar-to-svhn".into(),
            published: "CIFAR-10 to SVHN (Figure 12)".into(),
            architecture: Architecture { channels: 3, side: 32, patch: 4, width: 192, depth: 6, heads: 4, expansion: 4 },
            held_out: 0.0,
            pretraining: Optimiser { epochs: 200, ..letters.pretraining },
            checkpoints: vec![50, 100, 200],
            per_class: 100,
            choices: vec![
                rest.clone(),
                "the sizes of this network, its optimiser and the rank of LoRA are not printed: width 192, depth 6, 4 heads; the rest as for letters".into(),
            ],
            ..letters.clone()
        };
        let shifted = Self {
            name: "letters-to-shifted".into(),
            published: "EMNIST Letters to shifted EMNIST Letters (Figure 11)".into(),
            architecture: Architecture { width: 128, depth: 2, ..letters.architecture },
            per_class: 25,
            lora: Lora { rank: 4, alpha: 4.0 },
            keeps_head: true,
            adaptation: Optimiser { rate: 7e-4, ..letters.adaptation },
            choices: vec![rest, "shifted pixels are cut to 0 to 1 and rounded to eight bits".into()],
            ..letters.clone()
        };
        vec![letters, cifar, shifted]
    }

    /// The one of this name.
    pub fn named(name: &str) -> Result<Self, String> {
        let all = Self::all();
        let names: Vec<&str> = all.iter().map(|p| p.name.as_str()).collect();
        all.iter().find(|p| p.name == name).cloned().ok_or_else(|| {
            format!("there is no protocol `{name}`\n\nhint: protocols are {}", names.join(", "))
        })
    }

    /// The data of both tasks: the printed ones where they are in the folder, otherwise those that stand in, which say so.
    pub fn data(&self, root: &Path, seed: u64) -> Result<Data, String> {
        let has = |set: Set| set.find(root, Part::Train).is_some() && set.find(root, Part::Test).is_some();
        let both = |set: Set| Ok::<_, String>([set.read(root, Part::Train)?, set.read(root, Part::Test)?]);
        let mut stand_ins = Vec::new();
        let source = if self.name == "cifar-to-svhn" {
            both(Set::Cifar10)?
        } else if has(Set::EmnistLetters) {
            both(Set::EmnistLetters)?
        } else {
            stand_ins.push("MNIST stands in for EMNIST Letters".to_string());
            both(Set::Mnist)?
        };
        let downstream = match self.name.as_str() {
            "letters-to-fashion" => both(Set::FashionMnist)?,
            "letters-to-shifted" => {
                [0, 1].map(|part| made::shifted(&source[part], SHIFT.0, SHIFT.1, seed + part as u64))
            }
            _ if has(Set::Svhn) => both(Set::Svhn)?,
            _ => {
                stand_ins.push("coloured digits of MNIST on pictures of CIFAR-10 stand in for SVHN".into());
                let digits = both(Set::Mnist)?;
                let part = |n: usize| made::coloured_digits(&digits[n], &source[n], seed + n as u64);
                [part(0)?, part(1)?]
            }
        };
        Ok(Data { source, downstream, stand_ins })
    }
}

/// Training and test images of both tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    /// What the network is pre-trained on.
    pub source: [Images; 2],
    /// What it is adapted to.
    pub downstream: [Images; 2],
    /// What stands in for what.
    pub stand_ins: Vec<String>,
}

/// For every model the images of the source that it is trained on: all but a part that is held out.
pub fn kept(images: &Images, held_out: f64, seed: u64, models: &[u32]) -> Vec<Vec<u32>> {
    let count = images.len() - (held_out * images.len() as f64).round() as usize;
    let of = |&replica: &u32| {
        let address = RngAddress { seed, replica, step: 0, lane: lanes::HELD_OUT };
        let order = Stream::at(address).permutation(images.len());
        order.into_iter().take(count).map(|i| i as u32).collect()
    };
    models.iter().map(of).collect()
}

/// For every model so many images of each class.
pub fn per_class(images: &Images, count: usize, seed: u64, models: &[u32]) -> Result<Vec<Vec<u32>>, String> {
    let of = |&replica: &u32| {
        let address = RngAddress { seed, replica, step: 0, lane: lanes::SUBSET };
        let mut left = vec![count; images.classes];
        let mut chosen = Vec::new();
        for index in Stream::at(address).permutation(images.len()) {
            let left = &mut left[images.labels[index] as usize];
            if *left > 0 {
                *left -= 1;
                chosen.push(index as u32);
            }
        }
        match left.iter().position(|left| *left > 0) {
            Some(class) => Err(format!("{} has fewer than {count} images of class {class}", images.name)),
            None => Ok(chosen),
        }
    };
    models.iter().map(of).collect()
}

//! Training of many networks side by side: batches, AdamW with a cosine schedule, evaluation after every epoch, and a state on
//! disk from which the same bits follow.

mod history;
mod state;

pub use history::{Epoch, History};

use crate::data::Images;
use crate::device::{AdamW, Device, DeviceError, Done, PADDING};
use crate::network::{Architecture, ImageBatch, Lora, ParameterValues, Pass, VisionNetwork};
use didact_math::random::{RngAddress, Stream};
use std::f64::consts::PI;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Lanes of random numbers: what they are for.
pub mod lanes {
    /// Parameters of backbones at the start.
    pub const BACKBONE: u16 = 1;
    /// Parameters of heads.
    pub const HEAD: u16 = 2;
    /// Factors of LoRA.
    pub const ADAPTERS: u16 = 3;
    /// Order of the images of an epoch of pre-training.
    pub const ORDER: u16 = 4;
    /// Order of the images of an epoch of fine-tuning.
    pub const ADAPTATION_ORDER: u16 = 5;
    /// Which images fine-tuning sees.
    pub const SUBSET: u16 = 6;
    /// Which images of the source are held out.
    pub const HELD_OUT: u16 = 7;
    /// Images that are made.
    pub const PICTURES: u16 = 8;
}

/// Why training did not end.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NetworkTrainingError {
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A file.
    #[error("{0}")]
    File(String),
    /// The user.
    #[error("interrupted; the same command goes on from here")]
    Interrupted,
}

/// One training of several networks.
#[derive(Debug, Clone)]
pub struct NetworkTraining {
    /// Sizes.
    pub architecture: Architecture,
    /// Fine-tuning by LoRA, or training of all parameters.
    pub lora: Option<Lora>,
    /// Number of every model in the addresses of its random numbers; models of one number see the same batches.
    pub models: Vec<u32>,
    /// Images per step and model.
    pub batch: usize,
    /// Times that all images are seen.
    pub epochs: usize,
    /// Learning rate at the start; it falls to 0 along half a cosine.
    pub rate: f64,
    /// Weight decay of AdamW.
    pub decay: f64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Lane of the order of images.
    pub lane: u16,
    /// For every model the images that it is trained on, equally many.
    pub samples: Vec<Vec<u32>>,
}

/// What watches a training.
pub trait Watch {
    /// True when the user wants the end.
    fn stopped(&self) -> bool;
    /// The part that is done, and the time since the start of this process with the part that was done then.
    fn progress(&self, _line: &str) {}
    /// An epoch is over: the parameters may be kept.
    fn epoch(
        &mut self,
        _epoch: usize,
        _values: &mut dyn FnMut() -> Result<ParameterValues, DeviceError>,
    ) -> Result<(), String> {
        Ok(())
    }
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoWatch;

impl Watch for NoWatch {
    fn stopped(&self) -> bool {
        false
    }
}

/// Images on a device.
pub struct Loaded<D: Device> {
    pixels: D::Bytes,
    labels: D::Words,
    mean: [f32; 3],
    deviation: [f32; 3],
    count: usize,
}

impl<D: Device> Loaded<D> {
    /// Sends images there.
    pub fn new(device: &D, images: &Images) -> Result<Self, DeviceError> {
        let (mean, deviation) = images.normalisation();
        Ok(Self {
            pixels: device.upload_bytes(&images.pixels)?,
            labels: device.upload_words(&images.labels)?,
            mean,
            deviation,
            count: images.len(),
        })
    }

    /// A batch of them.
    pub fn batch<'a>(&'a self, indices: (&'a D::Words, usize), count: usize) -> ImageBatch<'a, D> {
        let (mean, deviation) = (self.mean, self.deviation);
        ImageBatch { images: &self.pixels, labels: &self.labels, indices, count, mean, deviation }
    }

    /// The same pixels are seen by networks that were trained on images of these moments.
    pub fn normalised_as(mut self, other: &Images) -> Self {
        (self.mean, self.deviation) = other.normalisation();
        self
    }
}

/// How often the state is written.
const SAVE_EVERY: Duration = Duration::from_secs(20);

/// A training on its way.
pub struct NetworkTrainer<'a, D: Device> {
    device: &'a D,
    training: &'a NetworkTraining,
    /// The networks.
    pub network: VisionNetwork<D>,
    pass: Pass<D>,
    /// What was seen until now.
    pub history: History,
    /// Whole epochs that are done.
    pub epoch: usize,
    /// Steps of the epoch that are done.
    pub step: usize,
    path: Option<PathBuf>,
    saved: Instant,
}

impl<'a, D: Device> NetworkTrainer<'a, D> {
    /// Begins with these parameters; or goes on from the state in the file, where there is one of this training.
    pub fn new(
        device: &'a D,
        training: &'a NetworkTraining,
        classes: usize,
        values: &ParameterValues,
        path: Option<&Path>,
    ) -> Result<Self, NetworkTrainingError> {
        let models = training.models.len();
        let network =
            VisionNetwork::new(device, training.architecture, (models, classes), training.lora, values)?;
        let pass = Pass::new(device, &network, training.batch)?;
        let mut trainer = Self {
            device,
            training,
            network,
            pass,
            history: History::new(models),
            epoch: 0,
            step: 0,
            path: path.map(Path::to_path_buf),
            saved: Instant::now(),
        };
        if let Some(path) = path.filter(|path| path.exists()) {
            trainer.resume(path)?;
        }
        Ok(trainer)
    }

    /// Steps of an epoch; the last may have fewer images.
    pub fn steps(&self) -> usize {
        self.training.samples[0].len().div_ceil(self.training.batch)
    }

    /// Trains to the end, or until the watch says stop, in which case the state is on disk.
    pub fn run(
        &mut self,
        train: &Loaded<D>,
        test: &Loaded<D>,
        watch: &mut dyn Watch,
    ) -> Result<(), NetworkTrainingError> {
        let began = Instant::now();
        let before = self.epoch * self.steps() + self.step;
        while self.epoch < self.training.epochs {
            let order = self.device.upload_words(&self.order(self.epoch))?;
            while self.step < self.steps() {
                if watch.stopped() {
                    self.save()?;
                    return Err(NetworkTrainingError::Interrupted);
                }
                self.one(train, &order)?;
                self.step += 1;
                if self.saved.elapsed() > SAVE_EVERY {
                    self.save()?;
                }
                let done = self.epoch * self.steps() + self.step;
                if done.is_multiple_of(16) {
                    watch.progress(&self.line(done, before, began.elapsed()));
                }
            }
            let sums = self.device.download(&self.pass.totals)?;
            let train = self.totals(self.training.samples[0].len())?;
            let Some(test) = self.evaluate(test, watch)? else {
                // The epoch is over but for its evaluation: what was seen in it belongs to the state.
                self.pass.totals = self.device.upload(&sums)?;
                self.save()?;
                return Err(NetworkTrainingError::Interrupted);
            };
            self.history.push(&train, &test);
            self.step = 0;
            self.epoch += 1;
            let (device, network) = (self.device, &self.network);
            watch.epoch(self.epoch, &mut || network.values(device)).map_err(NetworkTrainingError::File)?;
        }
        self.save()
    }

    fn line(&self, done: usize, before: usize, elapsed: Duration) -> String {
        let whole = self.training.epochs * self.steps();
        let left = elapsed.as_secs_f64() / (done - before) as f64 * (whole - done) as f64;
        format!(
            "epoch {} of {}, step {} of {}, {left:.0} s left",
            self.epoch + 1,
            self.training.epochs,
            self.step,
            self.steps()
        )
    }

    /// Images of an epoch, step by step, in each step model by model. Its numbers depend on seed, model and epoch alone.
    fn order(&self, epoch: usize) -> Vec<u32> {
        let t = self.training;
        let orders: Vec<Vec<u32>> = t
            .models
            .iter()
            .zip(&t.samples)
            .map(|(&replica, samples)| {
                let address = RngAddress { seed: t.seed, replica, step: epoch as u64, lane: t.lane };
                Stream::at(address).permutation(samples.len()).into_iter().map(|i| samples[i]).collect()
            })
            .collect();
        let mut all = Vec::with_capacity(self.steps() * t.models.len() * t.batch);
        for step in 0..self.steps() {
            for order in &orders {
                let place = |i: usize| order.get(step * t.batch + i).copied().unwrap_or(PADDING);
                all.extend((0..t.batch).map(place));
            }
        }
        all
    }

    fn one(&mut self, train: &Loaded<D>, order: &D::Words) -> Done {
        let t = self.training;
        let count = t.batch.min(t.samples[0].len() - self.step * t.batch);
        let first = self.step * t.models.len() * t.batch;
        self.pass.forward(self.device, &self.network, &train.batch((order, first), count))?;
        self.network.clear_gradients(self.device)?;
        self.pass.backward(self.device, &mut self.network)?;
        let done = self.epoch * self.steps() + self.step;
        let part = done as f64 / (t.epochs * self.steps()) as f64;
        let rate = 0.5 * t.rate * (1.0 + (PI * part).cos());
        let step =
            AdamW { rate, decay: t.decay, first: 0.9, second: 0.999, epsilon: 1e-8, step: done as u64 + 1 };
        self.network.step(self.device, &step)
    }

    /// Mean loss and accuracy of every model since the last call.
    fn totals(&mut self, images: usize) -> Result<Vec<[f64; 2]>, DeviceError> {
        let sums = self.device.download(&self.pass.totals)?;
        self.device.clear(&mut self.pass.totals)?;
        Ok(sums
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[loss, right]| [loss / images as f64, right / images as f64])
            .collect())
    }

    /// Loss and accuracy of every model on all images; `None` when the watch says stop.
    pub fn evaluate(
        &mut self,
        test: &Loaded<D>,
        watch: &dyn Watch,
    ) -> Result<Option<Vec<[f64; 2]>>, DeviceError> {
        let (models, batch) = (self.training.models.len(), self.training.batch);
        self.device.clear(&mut self.pass.totals)?;
        for first in (0..test.count).step_by(batch) {
            if watch.stopped() {
                self.device.clear(&mut self.pass.totals)?;
                return Ok(None);
            }
            let one: Vec<u32> =
                (first..first + batch).map(|i| if i < test.count { i as u32 } else { PADDING }).collect();
            let indices = self.device.upload_words(&one.repeat(models))?;
            self.pass.forward(self.device, &self.network, &test.batch((&indices, 0), batch))?;
        }
        self.totals(test.count).map(Some)
    }
}

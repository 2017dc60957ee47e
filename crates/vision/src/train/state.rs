//! The state of a training on disk: parameters, moments of the optimiser, place in the epoch, and what was seen until then.

use super::{History, NetworkTrainer, NetworkTraining, NetworkTrainingError};
use crate::device::Device;
use crate::safetensors::Arrays;
use serde_json::Value;
use std::path::Path;
use std::time::Instant;

/// What a state must agree in with the training that goes on from it.
fn identity(training: &NetworkTraining) -> String {
    let NetworkTraining { architecture, lora, models, batch, epochs, rate, decay, seed, lane, samples } =
        training;
    // FNV-1a over the images: a state of other images is not taken.
    let digest = samples.iter().flatten().fold(0xcbf2_9ce4_8422_2325_u64, |hash, sample| {
        (hash ^ u64::from(*sample)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{architecture:?} {lora:?} {models:?} {batch} {epochs} {rate} {decay} {seed} {lane} {digest:x}")
}

impl<D: Device> NetworkTrainer<'_, D> {
    /// Writes the state, whole or not at all.
    pub fn save(&mut self) -> Result<(), NetworkTrainingError> {
        self.saved = Instant::now();
        let Some(path) = &self.path else { return Ok(()) };
        let mut arrays = Arrays::default();
        for (name, group) in self.network.groups() {
            let mut push = |part: &str, buffer: &D::Buffer| -> Result<(), NetworkTrainingError> {
                let values = self.device.download(buffer)?;
                arrays.push(format!("{name}.{part}"), &[values.len()], &values);
                Ok(())
            };
            push("values", &group.values)?;
            if let Some(trained) = &group.training {
                push("first", &trained.first)?;
                push("second", &trained.second)?;
            }
        }
        let totals = self.device.download(&self.pass.totals)?;
        arrays.push("totals", &[totals.len()], &totals);
        let history = serde_json::to_string(&self.history).expect("a history is plain data");
        for (key, value) in [
            ("training", identity(self.training)),
            ("epoch", self.epoch.to_string()),
            ("step", self.step.to_string()),
            ("history", history),
        ] {
            arrays.about.insert(key.into(), Value::from(value));
        }
        arrays.write(path).map_err(NetworkTrainingError::File)
    }

    pub(super) fn resume(&mut self, path: &Path) -> Result<(), NetworkTrainingError> {
        let arrays = Arrays::read(path).map_err(NetworkTrainingError::File)?;
        let text = |key: &str| arrays.about.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("training") != identity(self.training) {
            let message = format!(
                "`{}` is the state of another training\n\nhint: remove it to begin anew, or write to another folder",
                path.display()
            );
            return Err(NetworkTrainingError::File(message));
        }
        let wrong = |why: String| NetworkTrainingError::File(format!("`{}`: {why}", path.display()));
        let number = |key: &str| text(key).parse::<usize>().map_err(|e| wrong(format!("`{key}`: {e}")));
        (self.epoch, self.step) = (number("epoch")?, number("step")?);
        self.history = serde_json::from_str::<History>(text("history")).map_err(|e| wrong(e.to_string()))?;
        let device = self.device;
        let get = |name: String, length: usize| -> Result<D::Buffer, NetworkTrainingError> {
            let array = arrays.get(&name).map_err(wrong)?;
            if array.values.len() != length {
                return Err(wrong(format!(
                    "`{name}` has {} numbers in place of {length}",
                    array.values.len()
                )));
            }
            let values: Vec<f64> = array.values.iter().map(|v| f64::from(*v)).collect();
            Ok(device.upload(&values)?)
        };
        let models = self.training.models.len();
        for (name, group) in self.network.groups_mut() {
            let length = models * group.layout.total();
            group.values = get(format!("{name}.values"), length)?;
            if let Some(trained) = &mut group.training {
                trained.first = get(format!("{name}.first"), length)?;
                trained.second = get(format!("{name}.second"), length)?;
            }
        }
        self.pass.totals = get("totals".into(), 2 * models)?;
        Ok(())
    }
}

//! Time per step of pre-training, on images that are made: forward, backward and AdamW of some models.

use crate::data::made;
use crate::device::{AdamW, Device};
use crate::network::{Architecture, Backbone, ParameterValues, Pass, VisionNetwork, draw, head};
use crate::train::{Loaded, NetworkTrainingError, lanes};
use std::time::Instant;

/// The network of the first protocol; the peers in `peers/` time the same.
pub const SIZES: Architecture =
    Architecture { channels: 1, side: 28, patch: 4, width: 192, depth: 3, heads: 4, expansion: 4 };

/// A line of JSON: milliseconds per step of all models, and per model.
pub fn step<D: Device>(
    device: &D,
    models: usize,
    batch: usize,
    steps: usize,
) -> Result<String, NetworkTrainingError> {
    let numbers: Vec<u32> = (0..models as u32).collect();
    let values = ParameterValues {
        backbone: draw(&Backbone::new(&SIZES).layout, 1, &numbers, lanes::BACKBONE),
        head: draw(&head(&SIZES, 10), 1, &numbers, lanes::HEAD),
        adapters: Vec::new(),
    };
    let mut network = VisionNetwork::new(device, SIZES, (models, 10), None, &values)?;
    let mut pass = Pass::new(device, &network, batch)?;
    let images = made::stripes(batch, (10, SIZES.side), (0.0, 45.0), 1);
    let loaded = Loaded::new(device, &images)?;
    let indices = device.upload_words(&(0..batch as u32).collect::<Vec<u32>>().repeat(models))?;
    let warm = (steps / 5).max(1);
    let mut began = Instant::now();
    for number in 0..warm + steps {
        if number == warm {
            device.wait()?;
            began = Instant::now();
        }
        pass.forward(device, &network, &loaded.batch((&indices, 0), batch))?;
        network.clear_gradients(device)?;
        pass.backward(device, &mut network)?;
        let step = AdamW {
            rate: 1e-3,
            decay: 1e-4,
            first: 0.9,
            second: 0.999,
            epsilon: 1e-8,
            step: number as u64 + 1,
        };
        network.step(device, &step)?;
    }
    device.wait()?;
    let each = 1e3 * began.elapsed().as_secs_f64() / steps as f64;
    Ok(format!(
        "{{\"device\": \"{}\", \"models\": {models}, \"batch\": {batch}, \"ms-per-step\": {each:.4}, \"ms-per-model\": {:.4}}}",
        device.name(),
        each / models as f64
    ))
}

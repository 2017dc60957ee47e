//! Vision transformers of one shape side by side, with hand-written derivatives.
//!
//! Arrays of the parameters belong to three groups: backbone, head and, for fine-tuning, the adapters of LoRA. A group is one buffer,
//! so that a step of the optimiser is one operation per group.

mod layout;
mod pass;
mod start;

pub use layout::{Architecture, Backbone, Draw, Layout, Lora, Tensor, adapters, head};
pub use start::{draw, merged};

use crate::device::{AdamW, Device, DeviceError, Done};

/// The arrays of a group and, where it is trained, its gradient and the moments of AdamW.
pub struct ModelGroup<D: Device> {
    /// Names and lengths.
    pub layout: Layout,
    /// The parameters.
    pub values: D::Buffer,
    /// What training keeps.
    pub training: Option<Trained<D>>,
}

/// What training keeps of a group.
pub struct Trained<D: Device> {
    /// Derivatives of the loss.
    pub gradient: D::Buffer,
    /// First moments.
    pub first: D::Buffer,
    /// Second moments.
    pub second: D::Buffer,
}

impl<D: Device> ModelGroup<D> {
    /// Of these values (array by array, all models), trained or frozen.
    pub fn new(device: &D, layout: Layout, values: &[f64], trained: bool) -> Result<Self, DeviceError> {
        let training = if trained {
            let zeros = || device.zeros(values.len());
            Some(Trained { gradient: zeros()?, first: zeros()?, second: zeros()? })
        } else {
            None
        };
        Ok(Self { layout, values: device.upload(values)?, training })
    }

    fn step(&mut self, device: &D, models: usize, step: &AdamW) -> Done {
        let Some(t) = &mut self.training else { return Ok(()) };
        let length = models * self.layout.total();
        device.adamw(step, length, &t.gradient, (&mut t.first, &mut t.second), &mut self.values)
    }
}

/// Networks of one shape.
pub struct VisionNetwork<D: Device> {
    /// Sizes.
    pub architecture: Architecture,
    /// How many networks.
    pub models: usize,
    /// Classes of the head.
    pub classes: usize,
    /// Everything before the head.
    pub backbone: ModelGroup<D>,
    /// The linear map to the classes; always trained.
    pub head: ModelGroup<D>,
    /// The factors of LoRA.
    pub adapters: Option<(Lora, ModelGroup<D>)>,
    parts: Backbone,
}

/// Values of the parameters, array by array, all models of an array together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParameterValues {
    /// Everything before the head.
    pub backbone: Vec<f64>,
    /// The head.
    pub head: Vec<f64>,
    /// LoRA.
    pub adapters: Vec<f64>,
}

impl<D: Device> VisionNetwork<D> {
    /// Networks that are trained whole (`lora` is none), or by LoRA and head on a frozen backbone.
    pub fn new(
        device: &D,
        architecture: Architecture,
        (models, classes): (usize, usize),
        lora: Option<Lora>,
        values: &ParameterValues,
    ) -> Result<Self, DeviceError> {
        let parts = Backbone::new(&architecture);
        let backbone = ModelGroup::new(device, parts.layout.clone(), &values.backbone, lora.is_none())?;
        let head = ModelGroup::new(device, head(&architecture, classes), &values.head, true)?;
        let adapters = match lora {
            None => None,
            Some(lora) => {
                Some((lora, ModelGroup::new(device, adapters(&architecture, &lora), &values.adapters, true)?))
            }
        };
        Ok(Self { architecture, models, classes, backbone, head, adapters, parts })
    }

    /// The groups that are there, by name.
    pub fn groups(&self) -> Vec<(&'static str, &ModelGroup<D>)> {
        let mut all = vec![("backbone", &self.backbone), ("head", &self.head)];
        all.extend(self.adapters.as_ref().map(|(_, group)| ("adapters", group)));
        all
    }

    /// The same, to be changed.
    pub fn groups_mut(&mut self) -> Vec<(&'static str, &mut ModelGroup<D>)> {
        let mut all = vec![("backbone", &mut self.backbone), ("head", &mut self.head)];
        all.extend(self.adapters.as_mut().map(|(_, group)| ("adapters", group)));
        all
    }

    /// Sets the gradients to zero.
    pub fn clear_gradients(&mut self, device: &D) -> Done {
        for (_, group) in self.groups_mut() {
            if let Some(trained) = &mut group.training {
                device.clear(&mut trained.gradient)?;
            }
        }
        Ok(())
    }

    /// One step of AdamW on all that is trained.
    pub fn step(&mut self, device: &D, step: &AdamW) -> Done {
        let models = self.models;
        self.groups_mut().into_iter().try_for_each(|(_, group)| group.step(device, models, step))
    }

    /// The parameters on the host.
    pub fn values(&self, device: &D) -> Result<ParameterValues, DeviceError> {
        let adapters = match &self.adapters {
            Some((_, group)) => device.download(&group.values)?,
            None => Vec::new(),
        };
        Ok(ParameterValues {
            backbone: device.download(&self.backbone.values)?,
            head: device.download(&self.head.values)?,
            adapters,
        })
    }
}

pub use pass::{ImageBatch, Pass};

//! Logits, losses and all gradients against PyTorch, of the same parameters, on two models at once. `peers/vit.py golden` made the file; its
//! header says with which version.

use didact_vision::device::{Cpu, Device};
use didact_vision::network::{
    Architecture, Backbone, Layout, Lora, ParameterValues, Pass, VisionNetwork, adapters, head,
};
use didact_vision::safetensors::Arrays;

const SIZES: Architecture =
    Architecture { channels: 2, side: 6, patch: 3, width: 8, depth: 2, heads: 2, expansion: 2 };
/// The factor of the file is 1.5.
const LORA: Lora = Lora { rank: 2, alpha: 3.0 };
const MODELS: usize = 2;
const IMAGES: usize = 4;
/// Both sides compute in single precision.
const RELATIVE: f64 = 1e-4;

fn golden() -> Arrays {
    Arrays::of_bytes(include_bytes!("../golden/pytorch.safetensors")).unwrap()
}

/// An array of every model, one model after the other.
fn both(golden: &Arrays, name: &str) -> Vec<f64> {
    let of =
        |model: usize| golden.get(&format!("{model}.{name}")).unwrap().values.iter().map(|v| f64::from(*v));
    (0..MODELS).flat_map(of).collect()
}

/// The arrays of a group in our order.
fn group(golden: &Arrays, layout: &Layout, kind: &str) -> Vec<f64> {
    layout.tensors.iter().flat_map(|tensor| both(golden, &format!("{kind}.{}", tensor.name))).collect()
}

fn assert_close(what: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let difference: Vec<f64> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
    // Derivatives with respect to the biases of keys vanish, since softmax does not see them: they are a third of those of qkv.
    assert!(
        norm(&difference) < RELATIVE * norm(expected),
        "{what}: {:e}",
        norm(&difference) / norm(expected)
    );
}

#[test]
fn logits_and_all_gradients_are_those_of_pytorch() {
    let golden = golden();
    let device = Cpu::<f32>::new();
    let pixels: Vec<u8> = both(&golden, "pixels").iter().map(|v| *v as u8).collect();
    let labels: Vec<u32> = both(&golden, "labels").iter().map(|v| *v as u32).collect();
    let images = device.upload_bytes(&pixels).unwrap();
    let labels = device.upload_words(&labels).unwrap();
    let indices = device.upload_words(&(0..(MODELS * IMAGES) as u32).collect::<Vec<_>>()).unwrap();
    let batch = didact_vision::network::ImageBatch::<Cpu<f32>> {
        images: &images,
        labels: &labels,
        indices: (&indices, 0),
        count: IMAGES,
        mean: [0.4, 0.5, 0.0],
        deviation: [0.3, 0.25, 1.0],
    };
    let (backbone, top, factors) = (Backbone::new(&SIZES).layout, head(&SIZES, 3), adapters(&SIZES, &LORA));
    for (kind, lora) in [("whole", None), ("lora", Some(LORA))] {
        let values = ParameterValues {
            backbone: group(&golden, &backbone, "value"),
            head: group(&golden, &top, "value"),
            adapters: if lora.is_some() { group(&golden, &factors, "value") } else { Vec::new() },
        };
        let mut network = VisionNetwork::new(&device, SIZES, (MODELS, 3), lora, &values).unwrap();
        let mut pass = Pass::new(&device, &network, IMAGES).unwrap();
        pass.forward(&device, &network, &batch).unwrap();
        pass.backward(&device, &mut network).unwrap();
        let wide = |buffer: &Vec<f32>| device.download(buffer).unwrap();
        assert_close(
            &format!("{kind} logits"),
            &wide(&pass.logits),
            &both(&golden, &format!("{kind}.logits")),
        );
        let losses: Vec<f64> = wide(&pass.totals).iter().step_by(2).map(|sum| sum / IMAGES as f64).collect();
        assert_close(&format!("{kind} loss"), &losses, &both(&golden, &format!("{kind}.loss")));
        let mut compared = 0;
        for (_, of) in network.groups() {
            let Some(trained) = &of.training else { continue };
            let gradient = wide(&trained.gradient);
            for (index, tensor) in of.layout.tensors.iter().enumerate() {
                let name = format!("{kind}.gradient.{}", tensor.name);
                let found = &gradient[of.layout.offset(index, MODELS)..][..MODELS * tensor.len()];
                assert_close(&name, found, &both(&golden, &name));
                compared += 1;
            }
        }
        assert_eq!(compared, if lora.is_some() { 2 + 8 } else { 2 + 5 + 2 * 12 }, "{kind}");
    }
}

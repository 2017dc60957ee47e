//! Every derivative against central differences of the loss in double precision, and LoRA against its merged weights.

use crate::tiny::{CLASSES, Data, IMAGES, LORA, MODELS, SIZES, network, values};
use didact_vision::device::{Cpu, Device};
use didact_vision::network::{Backbone, Layout, Lora, ParameterValues, Pass, VisionNetwork, head};

/// Step of the differences: their error is of order STEP² times a third derivative.
const STEP: f64 = 1e-5;

/// The sum over models of the mean loss, which has the derivatives of each as its own.
fn loss(values: &ParameterValues, lora: Option<Lora>) -> f64 {
    let device = Cpu::<f64>::new();
    let data = Data::new(&device);
    let network = network(&device, lora, values);
    let mut pass = Pass::new(&device, &network, IMAGES).unwrap();
    pass.forward(&device, &network, &data.batch()).unwrap();
    pass.totals.iter().step_by(2).sum::<f64>() / IMAGES as f64
}

fn gradients<D: Device>(
    device: &D,
    values: &ParameterValues,
    lora: Option<Lora>,
) -> Vec<(&'static str, Vec<f64>)> {
    let data = Data::new(device);
    let mut network: VisionNetwork<D> = network(device, lora, values);
    let mut pass = Pass::new(device, &network, IMAGES).unwrap();
    pass.forward(device, &network, &data.batch()).unwrap();
    pass.backward(device, &mut network).unwrap();
    let trained = network.groups().into_iter().filter_map(|(name, group)| {
        let gradient = &group.training.as_ref()?.gradient;
        Some((name, device.download(gradient).unwrap()))
    });
    trained.collect()
}

#[test]
fn all_gradients_are_central_differences_of_the_loss() {
    for lora in [None, Some(LORA)] {
        let values = values(lora);
        for (name, gradient) in gradients(&Cpu::<f64>::new(), &values, lora) {
            let largest = gradient.iter().fold(0.0_f64, |l, g| l.max(g.abs()));
            assert!(largest > 1e-3, "{name}: no gradient");
            for (index, exact) in gradient.iter().enumerate() {
                let at = |step: f64| {
                    let mut moved = values.clone();
                    let group = match name {
                        "backbone" => &mut moved.backbone,
                        "head" => &mut moved.head,
                        _ => &mut moved.adapters,
                    };
                    group[index] += step;
                    loss(&moved, lora)
                };
                let difference = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                let error = (difference - exact).abs();
                assert!(error < 1e-8, "{name}[{index}]: {difference} and {exact}");
            }
        }
    }
}

/// The slow twin of single precision is double precision.
#[test]
fn single_precision_has_the_gradients_of_double_precision() {
    for lora in [None, Some(LORA)] {
        let values = values(lora);
        let wide = gradients(&Cpu::<f64>::new(), &values, lora);
        for ((name, a), (_, b)) in wide.iter().zip(gradients(&Cpu::<f32>::new(), &values, lora)) {
            let norm = a.iter().map(|a| a * a).sum::<f64>().sqrt();
            let error = a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
            assert!(error < 1e-5 * norm, "{name}: {error:e} of {norm}");
        }
    }
}

fn logits(values: &ParameterValues, lora: Option<Lora>) -> Vec<f64> {
    let device = Cpu::<f64>::new();
    let data = Data::new(&device);
    let network = network(&device, lora, values);
    let mut pass = Pass::new(&device, &network, IMAGES).unwrap();
    pass.forward(&device, &network, &data.batch()).unwrap();
    // The last place of the second model is empty.
    let shown = (MODELS.len() * IMAGES - 1) * CLASSES;
    pass.logits[..shown].to_vec()
}

#[test]
fn adapted_weights_can_be_merged_and_change_nothing_at_the_start() {
    let adapted = values(Some(LORA));
    let frozen = ParameterValues { adapters: Vec::new(), ..adapted.clone() };
    let merged = ParameterValues {
        backbone: didact_vision::network::merged(&SIZES, MODELS.len(), &LORA, &adapted),
        ..frozen.clone()
    };
    let (with, once) = (logits(&adapted, Some(LORA)), logits(&merged, None));
    let without = logits(&frozen, None);
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(distance(&with, &once) < 1e-12, "{with:?} {once:?}");
    assert!(distance(&with, &without) > 1e-3, "the adapters do something");
    let start = ParameterValues {
        adapters: didact_vision::network::draw(
            &didact_vision::network::adapters(&SIZES, &LORA),
            5,
            &MODELS,
            3,
        ),
        ..adapted
    };
    assert_eq!(logits(&start, Some(LORA)), without);
}

/// The numbers of the first model.
fn first(layout: &Layout, values: &[f64]) -> Vec<f64> {
    let part = |index: usize| &values[layout.offset(index, MODELS.len())..][..layout.tensors[index].len()];
    (0..layout.tensors.len()).flat_map(part).copied().collect()
}

#[test]
fn a_model_has_the_same_bits_alone_and_beside_others() {
    let device = Cpu::<f32>::new();
    let both = values(None);
    let (backbone, top) = (Backbone::new(&SIZES).layout, head(&SIZES, CLASSES));
    let alone = ParameterValues {
        backbone: first(&backbone, &both.backbone),
        head: first(&top, &both.head),
        adapters: Vec::new(),
    };
    let data = Data::new(&device);
    let mut network = VisionNetwork::new(&device, SIZES, (1, CLASSES), None, &alone).unwrap();
    let mut pass = Pass::new(&device, &network, IMAGES).unwrap();
    pass.forward(&device, &network, &data.batch()).unwrap();
    pass.backward(&device, &mut network).unwrap();
    let beside = gradients(&device, &both, None);
    for ((name, group), (_, beside)) in network.groups().into_iter().zip(beside) {
        let own = device.download(&group.training.as_ref().unwrap().gradient).unwrap();
        assert_eq!(own, first(&group.layout, &beside), "{name}");
    }
}

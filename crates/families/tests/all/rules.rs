//! What every registered family must satisfy: `kick` is the gradient of `loss`, in single samples and in batches.

use crate::examples;
use didact_math::linalg::Mat;
use didact_math::random::Stream;
use didact_model::rule::{Batch, Expansion, LocalRule};
use didact_model::{Kick, Sample};

/// Random fields, scalars near their starting values, and label noise.
struct Draw {
    fields: Vec<f64>,
    scalars: Vec<f64>,
    noise: f64,
}

impl Draw {
    fn new(rule: &dyn LocalRule, start: &[f64], stream: &mut Stream) -> Self {
        let fields = (0..rule.shape().rows()).map(|_| stream.normal()).collect();
        let scalars = start.iter().map(|a| a + 0.3 * stream.normal()).collect();
        Self { fields, scalars, noise: 0.5 * stream.normal() }
    }

    fn sample(&self) -> Sample<'_> {
        Sample { fields: &self.fields, scalars: &self.scalars, noise: self.noise }
    }
}

/// Every example with its rule and a few dozen draws.
fn for_every_example(mut test: impl FnMut(&str, &dyn LocalRule, Vec<Draw>)) {
    for (model, mut stream) in examples(11) {
        let rule = model.rule().unwrap();
        let start = model.starting_scalars();
        let draws = (0..32).map(|_| Draw::new(&*rule, &start, &mut stream)).collect();
        test(&format!("{model:?}"), &*rule, draws);
    }
}

/// The fourth-order difference quotient; its error is h⁴f⁗′/30 (2e-14 f⁗′) and rounding 2e-16 f/h (4e-13 f).
fn slope(f: impl Fn(f64) -> f64) -> f64 {
    let h = 1e-3;
    (8.0 * (f(h) - f(-h)) - (f(2.0 * h) - f(-2.0 * h))) / (12.0 * h)
}

/// Differences over a kink say nothing: those of two widths then disagree.
fn smooth_slope(f: impl Fn(f64) -> f64) -> Option<f64> {
    let (wide, narrow) = (slope(&f), slope(|x| f(0.5 * x)) * 2.0);
    ((wide - narrow).abs() < 1e-8 * (1.0 + wide.abs())).then_some(narrow)
}

#[test]
fn kick_is_the_gradient_of_the_loss() {
    for_every_example(|name, rule, draws| {
        let shape = rule.shape();
        let mut kick = Kick::new(shape);
        let mut checked = 0;
        for draw in &draws {
            rule.kick(&draw.sample(), &mut kick);
            let with_field = |i: usize, by: f64| {
                let mut fields = draw.fields.clone();
                fields[i] += by;
                rule.loss(&Sample { fields: &fields, ..draw.sample() })
            };
            let with_scalar = |j: usize, by: f64| {
                let mut scalars = draw.scalars.clone();
                scalars[j] += by;
                rule.loss(&Sample { scalars: &scalars, ..draw.sample() })
            };
            let rows = (0..shape.trained).map(|i| (kick.rows[i], smooth_slope(|by| with_field(i, by))));
            let scalars =
                (0..shape.scalars).map(|j| (kick.scalars[j], smooth_slope(|by| with_scalar(j, by))));
            for (got, expected) in rows.chain(scalars) {
                let Some(expected) = expected else { continue };
                let scale = 1.0 + rule.loss(&draw.sample()).abs() + expected.abs();
                assert!((got - expected).abs() < 1e-9 * scale, "{name}: kick {got}, difference {expected}");
                checked += 1;
            }
        }
        assert!(checked > 30 * (shape.trained + shape.scalars), "{name}: only {checked} slopes were smooth");
    });
}

#[test]
fn curvature_is_the_derivative_of_kick() {
    for_every_example(|name, rule, draws| {
        let shape = rule.shape();
        let mut got = Mat::zeros(shape.trained, shape.rows());
        let mut checked = 0;
        for draw in &draws {
            rule.curvature(&draw.sample(), &mut got);
            for i in 0..shape.trained {
                for k in 0..shape.rows() {
                    let kick = |by: f64| {
                        let mut fields = draw.fields.clone();
                        fields[k] += by;
                        let mut kick = Kick::new(shape);
                        rule.kick(&Sample { fields: &fields, ..draw.sample() }, &mut kick);
                        kick.rows[i]
                    };
                    let Some(expected) = smooth_slope(kick) else { continue };
                    // Rules without a curvature of their own use differences of width 6e-6: error 1e-11 kick + 6e-12 kick‴.
                    let scale = 1.0 + kick(0.0).abs() + expected.abs();
                    assert!(
                        (got[(i, k)] - expected).abs() < 1e-8 * scale,
                        "{name}: {} and {expected}",
                        got[(i, k)]
                    );
                    checked += 1;
                }
            }
        }
        assert!(checked >= 28 * shape.trained * shape.rows(), "{name}: only {checked} slopes were smooth");
    });
}

#[test]
fn a_batch_is_its_samples() {
    for_every_example(|name, rule, draws| {
        let (shape, size) = (rule.shape(), draws.len());
        let fields: Vec<f64> =
            (0..shape.rows()).flat_map(|k| draws.iter().map(move |d| d.fields[k])).collect();
        let noise: Vec<f64> = draws.iter().map(|d| d.noise).collect();
        let scalars = &draws[0].scalars;
        let (mut rows, mut sums) = (vec![0.0; shape.trained * size], vec![0.0; shape.scalars]);
        rule.kick_batch(&Batch::new(&fields, size, scalars, &noise), &mut rows, &mut sums);
        let mut kick = Kick::new(shape);
        let (mut expected, mut sizes) = (vec![0.0; shape.scalars], vec![0.0; shape.scalars]);
        for (j, draw) in draws.iter().enumerate() {
            rule.kick(&Sample { scalars, ..draw.sample() }, &mut kick);
            for i in 0..shape.trained {
                let (got, one) = (rows[i * size + j], kick.rows[i]);
                assert!(
                    !rule.steps_in_lanes() || got == one,
                    "{name}: sample {j} depends on the rest of its batch"
                );
                // Another order of the operations: a few roundings of terms of size 1.
                assert!(
                    (got - one).abs() < 1e-13 * (1.0 + one.abs()),
                    "{name}: sample {j}, row {i}: {got} and {one}"
                );
            }
            for (s, one) in kick.scalars.iter().enumerate() {
                expected[s] += one;
                sizes[s] += one.abs();
            }
        }
        for ((got, sum), size) in sums.iter().zip(&expected).zip(&sizes) {
            assert!((got - sum).abs() < 1e-13 * (1.0 + size), "{name}: scalars {got} and {sum}");
        }
    });
}

#[test]
fn labels_known_beforehand_change_nothing() {
    let mut known = 0;
    for_every_example(|name, rule, draws| {
        let (shape, size) = (rule.shape(), draws.len());
        let fields: Vec<f64> =
            (0..shape.rows()).flat_map(|k| draws.iter().map(move |d| d.fields[k])).collect();
        let noise: Vec<f64> = draws.iter().map(|d| d.noise).collect();
        let batch = Batch::new(&fields, size, &draws[0].scalars, &noise);
        let mut labels = vec![0.0; size];
        if !rule.labels(&batch, &mut labels) {
            return;
        }
        known += 1;
        for (label, draw) in labels.iter().zip(&draws) {
            let one = rule.label(&draw.fields[shape.trained..], draw.noise).expect("a label");
            assert!((label - one).abs() < 1e-13 * (1.0 + one.abs()), "{name}: {label} and {one}");
        }
        let kicks = |batch: &Batch| {
            let (mut rows, mut sums) = (vec![0.0; shape.trained * size], vec![0.0; shape.scalars]);
            rule.kick_batch(batch, &mut rows, &mut sums);
            let mut losses = vec![0.0; size];
            rule.loss_batch(batch, &mut losses);
            [rows, sums, losses].concat()
        };
        for (with, without) in kicks(&Batch { labels: &labels, ..batch }).iter().zip(kicks(&batch)) {
            // Labels may be summed in another order.
            assert!((with - without).abs() < 1e-12 * (1.0 + without.abs()), "{name}: {with} and {without}");
        }
    });
    assert!(known >= 10, "only {known} examples have labels");
}

/// Where a rule says that labels suffice, it does not look at the frozen fields.
#[test]
fn labels_and_their_slopes_stand_for_the_frozen_fields() {
    let mut sufficient = 0;
    for_every_example(|name, rule, draws| {
        let (shape, size) = (rule.shape(), draws.len());
        let mut fields: Vec<f64> =
            (0..shape.rows()).flat_map(|k| draws.iter().map(move |d| d.fields[k])).collect();
        let noise: Vec<f64> = draws.iter().map(|d| d.noise).collect();
        let scalars = &draws[0].scalars;
        let all = |batch: &Batch, columns: usize| {
            let (mut kicks, mut losses) = (vec![0.0; shape.trained * size], vec![0.0; size]);
            let mut curvature = vec![0.0; shape.trained * columns * size];
            let out =
                Expansion { losses: &mut losses, kicks: &mut kicks, columns, curvature: &mut curvature };
            rule.expand_batch(batch, out);
            [kicks, losses, curvature].concat()
        };
        let (mut labels, mut slopes) = (vec![0.0; size], vec![0.0; shape.frozen * size]);
        let batch = Batch::new(&fields, size, scalars, &noise);
        if !rule.labels_suffice() {
            return;
        }
        assert!(rule.labels(&batch, &mut labels) && rule.label_slopes(&batch, &mut slopes), "{name}");
        sufficient += 1;
        let expected = [shape.trained, shape.rows()].map(|columns| all(&batch, columns));
        fields[shape.trained * size..].fill(f64::NAN);
        for (columns, expected) in [shape.trained, shape.rows()].into_iter().zip(expected) {
            let batch = Batch::new(&fields, size, scalars, &noise);
            let told = Batch { labels: &labels, label_slopes: &slopes, ..batch };
            for (got, expected) in all(&told, columns).iter().zip(expected) {
                assert!((got - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{name}: {got}, {expected}");
            }
        }
    });
    assert!(sufficient >= 5, "only {sufficient} examples");
}

#[test]
fn losses_and_curvatures_of_a_batch_are_those_of_its_samples() {
    for_every_example(|name, rule, draws| {
        let (shape, size) = (rule.shape(), draws.len());
        let fields: Vec<f64> =
            (0..shape.rows()).flat_map(|k| draws.iter().map(move |d| d.fields[k])).collect();
        let noise: Vec<f64> = draws.iter().map(|d| d.noise).collect();
        let scalars = &draws[0].scalars;
        let batch = Batch::new(&fields, size, scalars, &noise);
        let mut losses = vec![0.0; size];
        rule.loss_batch(&batch, &mut losses);
        for columns in [shape.trained, shape.rows()] {
            let expand = |losses: &mut [f64]| {
                let mut kicks = vec![0.0; shape.trained * size];
                let mut curvature = vec![0.0; shape.trained * columns * size];
                let out = Expansion { losses, kicks: &mut kicks, columns, curvature: &mut curvature };
                rule.expand_batch(&batch, out);
                (kicks, curvature)
            };
            let mut on_the_way = vec![0.0; size];
            let (kicks, curvature) = expand(&mut on_the_way);
            assert_eq!((&kicks, &curvature), (&expand(&mut []).0, &expand(&mut []).1), "{name}");
            let (mut kick, mut one) = (Kick::new(shape), Mat::zeros(shape.trained, shape.rows()));
            for (j, draw) in draws.iter().enumerate() {
                let sample = Sample { scalars, ..draw.sample() };
                rule.kick(&sample, &mut kick);
                rule.curvature(&sample, &mut one);
                let close = |a: f64, b: f64| (a - b).abs() < 1e-13 * (1.0 + b.abs());
                for losses in [&losses, &on_the_way] {
                    assert!(close(losses[j], rule.loss(&sample)), "{name}: loss of sample {j}");
                }
                for i in 0..shape.trained {
                    assert!(close(kicks[i * size + j], kick.rows[i]), "{name}: kick {i} of sample {j}");
                    for k in 0..columns {
                        let got = curvature[(i * columns + k) * size + j];
                        assert!(close(got, one[(i, k)]), "{name}: {got} and {}", one[(i, k)]);
                    }
                }
            }
        }
    });
}

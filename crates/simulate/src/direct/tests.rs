use super::*;
use didact_model::start::Given;
use didact_model::{Clock, NoFamily, Spectrum, Training};

/// Three trained sine units with trained output weights learn from two: enough of a rule to step with.
#[derive(Debug)]
struct Sines;

impl Sines {
    fn error(sample: &Sample) -> f64 {
        let label: f64 = sample.fields[3..].iter().map(|h| h.sin()).sum();
        let output: f64 = sample.fields.iter().zip(sample.scalars).map(|(h, a)| a * h.sin()).sum();
        label + sample.noise - output
    }
}

impl LocalRule for Sines {
    fn shape(&self) -> Shape {
        Shape { trained: 3, frozen: 2, scalars: 3, ..Shape::default() }
    }
    fn loss(&self, sample: &Sample) -> f64 {
        0.5 * Self::error(sample).powi(2)
    }
    fn kick(&self, sample: &Sample, out: &mut Kick) {
        let error = Self::error(sample);
        for i in 0..3 {
            out.rows[i] = -error * sample.scalars[i] * sample.fields[i].cos();
            out.scalars[i] = -error * sample.fields[i].sin();
        }
    }
}

/// The definition, one step at a time, on the same inputs.
#[test]
fn blocks_of_steps_give_the_trajectory_of_single_steps() {
    let rule: Arc<dyn LocalRule> = Arc::new(Sines);
    let spectrum = Spectrum::isotropic();
    let blocks = (&Mat::identity(3).scaled(0.3), &Mat::zeros(3, 2), &Mat::identity(2));
    let start = Overlaps::spread(rule.shape(), &spectrum, blocks, vec![1.0, 0.5, -0.3]).unwrap();
    let training = Training { label_noise: 0.1, ..Training::online(0.7) };
    let (d, address) = (37, ReplicaAddress { seed: 5, replica: 1, stage: 0 });
    let problem = Problem {
        rule: rule.clone(),
        about: Arc::new(NoFamily),
        spectrum,
        dimension: Some(d as u64),
        training,
        start: Arc::new(Given(start.clone())),
        clock: Clock::Steps,
    };
    let mut chain = DirectChain::new(&problem, &start, address).unwrap();
    let (mut weights, mut scalars) = (chain.weights.clone(), start.scalars.clone());
    let mut noise = StepNoise::new(address, INPUTS_PER_PASS * d, INPUTS_PER_PASS, Vec::new());
    let (size, mut kick) = (problem.step_size(d as u64), Kick::new(rule.shape()));
    for step in 0..401 {
        chain.step();
        let place = step % INPUTS_PER_PASS;
        if place == 0 {
            noise.advance();
        }
        let x = &noise.normals()[place * d..(place + 1) * d];
        let fields: Vec<f64> = (0..5).map(|i| dot(weights.row(i), x)).collect();
        let sample = Sample { fields: &fields, scalars: &scalars, noise: 0.1 * noise.labels()[place] };
        rule.kick(&sample, &mut kick);
        for i in 0..3 {
            weights.row_mut(i).iter_mut().zip(x).for_each(|(w, x)| *w -= size * kick.rows[i] * x);
            scalars[i] -= size * kick.scalars[i];
        }
        // Measured inside blocks too: they are finished on a copy then.
        let mut difference = chain.overlaps().blocks[0].clone();
        difference.add_scaled(-1.0, &weights.gram());
        assert!(difference.max_abs() < 1e-12, "step {step}: {difference:?}");
    }
    assert!((weights.gram()[(0, 0)] - 0.3).abs() > 0.1, "the rows have moved");
}

/// A batch in parts is the batch at once: the definition, on the same inputs.
#[test]
fn parts_of_a_large_batch_give_the_step_of_the_whole_batch() {
    let rule: Arc<dyn LocalRule> = Arc::new(Sines);
    let spectrum = Spectrum::isotropic();
    let blocks = (&Mat::identity(3).scaled(0.3), &Mat::zeros(3, 2), &Mat::identity(2));
    let start = Overlaps::spread(rule.shape(), &spectrum, blocks, vec![1.0, 0.5, -0.3]).unwrap();
    let (d, batch, address) = (70, 4001, ReplicaAddress { seed: 5, replica: 1, stage: 0 });
    let training =
        Training { label_noise: 0.1, batch, constraint: Constraint::sphere(), ..Training::online(20.0) };
    let problem = Problem {
        rule: rule.clone(),
        about: Arc::new(NoFamily),
        spectrum,
        dimension: Some(d as u64),
        training,
        start: Arc::new(Given(start.clone())),
        clock: Clock::Steps,
    };
    let mut chain = DirectChain::new(&problem, &start, address).unwrap();
    assert!(chain.part.is_some(), "the batch is too small for this test");
    let (mut weights, mut scalars) = (chain.weights.clone(), start.scalars.clone());
    let mut noise = StepNoise::new(address, 0, batch, Vec::new());
    let size = problem.step_size(d as u64) / batch as f64;
    let (mut kick, mut first) = (Kick::new(rule.shape()), Vec::new());
    for step in 0..3 {
        chain.step();
        noise.advance();
        let mut inputs = vec![0.0; batch * d];
        noise.inputs().fill_normal(&mut inputs);
        assert_ne!(first, inputs[..d], "step {step} has inputs of its own");
        first = inputs[..d].to_vec();
        let (old, old_scalars) = (weights.clone(), scalars.clone());
        for (x, label) in inputs.chunks_exact(d).zip(noise.labels()) {
            let fields: Vec<f64> = (0..5).map(|i| dot(old.row(i), x)).collect();
            rule.kick(&Sample { fields: &fields, scalars: &old_scalars, noise: 0.1 * label }, &mut kick);
            for i in 0..3 {
                weights.row_mut(i).iter_mut().zip(x).for_each(|(w, x)| *w -= size * kick.rows[i] * x);
                scalars[i] -= size * kick.scalars[i];
            }
        }
        for i in 0..3 {
            let scale = (0.3 / dot(weights.row(i), weights.row(i))).sqrt();
            weights.row_mut(i).iter_mut().for_each(|w| *w *= scale);
        }
        let mut difference = chain.overlaps().blocks[0].clone();
        difference.add_scaled(-1.0, &weights.gram());
        assert!(difference.max_abs() < 1e-12, "step {step}: {difference:?}");
        for (a, b) in chain.overlaps().scalars.iter().zip(&scalars) {
            assert!((a - b).abs() < 1e-12, "step {step}: {a} {b}");
        }
    }
}

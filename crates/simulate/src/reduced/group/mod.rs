//! A group of replicas: one step of eight chains at once, a chain per lane of the vector registers.
//!
//! A step at batch 1 is a few dozen dependent operations on a handful of numbers, which leaves most of a processor idle.
//! Replicas are independent, so eight of them can step at once. Every lane does the operations of [`ReducedChain`] in the
//! same order. Both give bitwise equal results; a test checks this.

mod lanes;

use super::{HUGE, ReducedChain};
use crate::chain::Group;
use didact_model::constraint::Retraction;
use didact_model::rule::Batch;
use lanes::{add, advance, coefficients, dot, project};

/// Chains of a full group: two registers of four doubles, so that the operations of one hide the delays of the other.
pub(super) const LANES: usize = 8;

/// With fewer chains than this, idle lanes cost more than they save.
const FEWEST: usize = 3;

/// One number of every chain of the group.
type PerLane = [f64; LANES];

/// The rows of all chains in one eigenspace; see [`super::eigenspace::Eigenspace`].
struct Space {
    root: f64,
    shared: usize,
    frozen: Vec<PerLane>,
    along: Vec<PerLane>,
    own: Vec<PerLane>,
    /// Entries of frozen row n that may differ from zero, and whether those are its diagonal alone.
    reach: Vec<usize>,
    diagonal: bool,
    /// Whether trained rows move along a coordinate; empty when along all.
    moves: Vec<bool>,
}

/// Chains that step as one group.
pub(super) struct LaneGroup {
    /// The chains; their rows are brought up to date when asked for.
    chains: Vec<ReducedChain>,
    spaces: Vec<Space>,
    lengths: Vec<PerLane>,
    noise: Noise,
    work: Work,
    unsound: [bool; LANES],
}

/// Random numbers of some steps ahead, for all chains of the group.
struct Noise {
    steps: usize,
    position: usize,
    normals: Vec<PerLane>,
    labels: Vec<PerLane>,
    norms: Vec<Vec<PerLane>>,
}

/// Buffers of a step.
struct Work {
    fields: Vec<f64>,
    kicks: Vec<f64>,
    labels: PerLane,
    coefficients: Vec<PerLane>,
    moved: Vec<PerLane>,
    gram: Vec<PerLane>,
}

impl LaneGroup {
    /// Makes a group of chains. Gives them back if they are too few, or of a kind that steps alone: mini-batches, trained
    /// scalars, eigenspaces kept coordinate by coordinate, rules that gain nothing.
    pub(super) fn of(chains: Vec<ReducedChain>) -> Result<Self, Vec<ReducedChain>> {
        let fits = |chain: &ReducedChain| {
            chain.batch == 1
                && chain.shape.scalars == 0
                && chain.barred.is_none()
                && chain.rule.steps_in_lanes()
                && chain.spaces.iter().all(|space| space.rest.is_some())
        };
        let alike = |a: &ReducedChain, b: &ReducedChain| {
            a.spaces.iter().zip(&b.spaces).all(|(a, b)| a.frozen_factor.is_like(&b.frozen_factor))
        };
        if !(FEWEST..=LANES).contains(&chains.len())
            || !chains.iter().all(|chain| fits(chain) && alike(chain, &chains[0]))
        {
            return Err(chains);
        }
        let first = &chains[0];
        // Idle lanes repeat the first chain.
        let gather = |of: &dyn Fn(&ReducedChain) -> Vec<f64>| -> Vec<PerLane> {
            let each: Vec<Vec<f64>> = chains.iter().map(of).collect();
            let lane = |at: usize| std::array::from_fn(|l| each.get(l).unwrap_or(&each[0])[at]);
            (0..each[0].len()).map(lane).collect()
        };
        let spaces = (0..first.spaces.len()).map(|b| {
            let factor = &first.spaces[b].frozen_factor;
            Space {
                root: first.spaces[b].root,
                shared: first.spaces[b].shared,
                frozen: gather(&|chain| chain.spaces[b].frozen.clone()),
                along: gather(&|chain| chain.spaces[b].along.clone()),
                own: gather(&|chain| chain.spaces[b].own.clone()),
                reach: factor.reach().to_vec(),
                diagonal: factor.is_diagonal(),
                moves: factor.moves().to_vec(),
            }
        });
        let (k, rows) = (first.shape.trained, first.shape.rows());
        Ok(Self {
            spaces: spaces.collect(),
            lengths: gather(&|chain| chain.lengths.clone()),
            noise: Noise {
                steps: 0,
                position: 0,
                normals: Vec::new(),
                labels: Vec::new(),
                norms: Vec::new(),
            },
            work: Work {
                fields: vec![0.0; rows * LANES],
                kicks: vec![0.0; k * LANES],
                labels: [0.0; LANES],
                coefficients: vec![[0.0; LANES]; k],
                moved: vec![[0.0; LANES]; k * k],
                gram: vec![[0.0; LANES]; k * k],
            },
            unsound: [false; LANES],
            chains,
        })
    }
}

impl Noise {
    /// Moves to the next step.
    #[inline]
    fn advance(&mut self, chains: &mut [ReducedChain]) {
        self.position += 1;
        if self.position >= self.steps {
            self.refill(chains);
        }
    }

    #[cold]
    fn refill(&mut self, chains: &mut [ReducedChain]) {
        let idle = chains.len()..LANES;
        for (lane, chain) in chains.iter_mut().enumerate() {
            let chunk = chain.noise.next_chunk();
            self.steps = chunk.steps;
            put(&mut self.normals, lane, chunk.normals);
            put(&mut self.labels, lane, chunk.labels);
            self.norms.resize(chunk.norms.len(), Vec::new());
            self.norms.iter_mut().zip(chunk.norms).for_each(|(all, own)| put(all, lane, own));
        }
        let all = self.normals.iter_mut().chain(&mut self.labels).chain(self.norms.iter_mut().flatten());
        for numbers in all {
            let first = numbers[0];
            numbers[idle.clone()].fill(first);
        }
        self.position = 0;
    }
}

/// Writes the numbers of one chain into its lane.
fn put(all: &mut Vec<PerLane>, lane: usize, own: &[f64]) {
    all.resize(own.len(), [0.0; LANES]);
    all.iter_mut().zip(own).for_each(|(all, own)| all[lane] = *own);
}

impl Group for LaneGroup {
    type Member = ReducedChain;

    fn step(&mut self) {
        let chain = &self.chains[0];
        let (k, s) = (chain.shape.trained, chain.step_size);
        let (constraint, label_noise) = (chain.constraint, chain.label_noise);
        self.noise.advance(&mut self.chains);
        let (noise, work) = (&self.noise, &mut self.work);
        let per_step = noise.normals.len() / noise.steps;
        let normals = &noise.normals[noise.position * per_step..][..per_step];

        work.fields.fill(0.0);
        let mut later = normals;
        for space in &self.spaces {
            let (z, rest) = later.split_at(space.shared + k);
            project(space, k, z, &mut work.fields);
            later = rest;
        }
        if label_noise > 0.0 {
            work.labels = noise.labels[noise.position].map(|z| label_noise * z);
        }
        let batch = Batch::new(&work.fields, LANES, &[], &work.labels);
        self.chains[0].rule.kick_batch(&batch, &mut work.kicks, &mut []);
        if !coefficients(s, &work.kicks, &mut work.coefficients) {
            note_unsound(&mut self.unsound, &work.coefficients);
        }
        let tangent = constraint.sphere == Some(Retraction::Tangent);
        if constraint.weight_decay > 0.0 || tangent {
            let kept = 1.0 - s * constraint.weight_decay;
            for i in 0..k {
                let mut scale = [kept; LANES];
                if tangent {
                    let (c, length) = (&work.coefficients[i], &self.lengths[i]);
                    for l in 0..LANES {
                        scale[l] -= c[l] * work.fields[i * LANES + l] / length[l];
                    }
                }
                self.spaces.iter_mut().for_each(|space| space.scale(i, k, &scale));
            }
        }
        let mut later = normals;
        for (space, norms) in self.spaces.iter_mut().zip(&noise.norms) {
            let (z, rest) = later.split_at(space.shared + k);
            advance(space, k, z, &norms[noise.position], work);
            later = rest;
        }
        if constraint.sphere.is_some() {
            self.retract(k);
        }
    }

    fn size(&self) -> usize {
        self.chains.len()
    }

    fn member(&mut self, index: usize) -> &ReducedChain {
        let chain = &mut self.chains[index];
        let take =
            |own: &mut [f64], all: &[PerLane]| own.iter_mut().zip(all).for_each(|(x, all)| *x = all[index]);
        for (own, all) in chain.spaces.iter_mut().zip(&self.spaces) {
            take(&mut own.along, &all.along);
            take(&mut own.own, &all.own);
        }
        chain.sound = !self.unsound[index];
        chain
    }

    #[inline]
    fn is_sound(&self) -> bool {
        !self.unsound[..self.chains.len()].contains(&true)
    }
}

impl LaneGroup {
    /// Every row back to its length.
    fn retract(&mut self, k: usize) {
        for i in 0..k {
            let mut length = [-0.0; LANES];
            for space in &self.spaces {
                add(&mut length, &space.squared_length(i, k));
            }
            let scale = std::array::from_fn(|l| (self.lengths[i][l] / length[l]).sqrt());
            self.spaces.iter_mut().for_each(|space| space.scale(i, k, &scale));
        }
    }
}

#[cold]
fn note_unsound(unsound: &mut [bool; LANES], coefficients: &[PerLane]) {
    for (l, unsound) in unsound.iter_mut().enumerate() {
        // A NaN is not below it either.
        *unsound |= !coefficients.iter().all(|c| c[l].abs() < HUGE);
    }
}

impl Space {
    /// w_i ← scale w_i.
    fn scale(&mut self, i: usize, k: usize, scale: &PerLane) {
        let rows = self.along[i * self.shared..(i + 1) * self.shared]
            .iter_mut()
            .chain(&mut self.own[i * k..(i + 1) * k]);
        for value in rows {
            for l in 0..LANES {
                value[l] *= scale[l];
            }
        }
    }

    /// |w_i|² in this eigenspace.
    fn squared_length(&self, i: usize, k: usize) -> PerLane {
        let (along, own) =
            (&self.along[i * self.shared..(i + 1) * self.shared], &self.own[i * k..(i + 1) * k]);
        let mut sum = dot(along, along);
        add(&mut sum, &dot(own, own));
        sum
    }
}

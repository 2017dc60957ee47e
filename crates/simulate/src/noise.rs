//! Random numbers of a chain, drawn in chunks of steps so that the vectorised samplers are used at any size.
//!
//! The chunk length depends on the problem alone, so the numbers of a step have a fixed address
//! (seed, replica, chunk, lane): results do not depend on threads or on what else runs.

use crate::chain::ReplicaAddress;
use didact_math::random::{RngAddress, Stream};

/// Numbers that one chunk aims at: enough to amortise a call, few enough to stay in the first-level cache.
const CHUNK: usize = 2048;

/// Lanes per stage of a schedule; lane 0 are inputs, 1 label noise, from 2 on one per eigenspace.
const NORMALS: u16 = 0;
const LABELS: u16 = 1;
const NORMS: u16 = 2;

/// Independent random numbers per step: `normals` standard normals, `labels` label noises, and a chi-square of every
/// `freedom`.
#[derive(Debug)]
pub struct StepNoise {
    address: ReplicaAddress,
    per_step: usize,
    labels_per_step: usize,
    freedom: Vec<u64>,
    steps: usize,
    chunk: u64,
    position: usize,
    normals: Vec<f64>,
    labels: Vec<f64>,
    norms: Vec<Vec<f64>>,
}

/// The numbers of some steps.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Number of steps.
    pub steps: usize,
    /// Standard normals, step by step.
    pub normals: &'a [f64],
    /// Standard normals for the labels.
    pub labels: &'a [f64],
    /// χ² of every entry of `freedom`, one per step.
    pub norms: &'a [Vec<f64>],
}

impl StepNoise {
    /// A source that gives, per step, so many normals and label noises and one chi-square per entry of `freedom`.
    pub fn new(address: ReplicaAddress, normals: usize, labels: usize, freedom: Vec<u64>) -> Self {
        let steps = (CHUNK / normals.max(1)).clamp(1, 256);
        Self {
            address,
            per_step: normals,
            labels_per_step: labels,
            steps,
            chunk: 0,
            position: steps,
            normals: vec![0.0; steps * normals],
            labels: vec![0.0; steps * labels],
            norms: vec![vec![0.0; steps]; freedom.len()],
            freedom,
        }
    }

    /// Moves to the next step.
    #[inline]
    pub fn advance(&mut self) {
        self.position += 1;
        if self.position >= self.steps {
            self.refill();
        }
    }

    #[cold]
    fn refill(&mut self) {
        self.position = 0;
        let stream = |lane: u16| {
            let ReplicaAddress { seed, replica, stage } = self.address;
            // Stages share the step counter's upper half, so their chunks never meet.
            Stream::at(RngAddress { seed, replica, step: self.chunk | (u64::from(stage) << 40), lane })
        };
        stream(NORMALS).fill_normal(&mut self.normals);
        if self.labels_per_step > 0 {
            stream(LABELS).fill_normal(&mut self.labels);
        }
        for (b, (values, &freedom)) in self.norms.iter_mut().zip(&self.freedom).enumerate() {
            stream(NORMS + b as u16).fill_chi_square(freedom as f64, values);
        }
        self.chunk += 1;
    }

    /// The numbers of the next chunk of steps, for chains that step as a group. Not to be mixed with `advance`.
    pub fn next_chunk(&mut self) -> Chunk<'_> {
        self.refill();
        Chunk { steps: self.steps, normals: &self.normals, labels: &self.labels, norms: &self.norms }
    }

    /// Standard normals of this step.
    #[inline]
    pub fn normals(&self) -> &[f64] {
        &self.normals[self.position * self.per_step..][..self.per_step]
    }

    /// Standard normals of this step, for a caller that scales them where they stand.
    #[inline]
    pub fn normals_mut(&mut self) -> &mut [f64] {
        &mut self.normals[self.position * self.per_step..][..self.per_step]
    }

    /// Standard normals for the labels of this step.
    #[inline]
    pub fn labels(&self) -> &[f64] {
        &self.labels[self.position * self.labels_per_step..][..self.labels_per_step]
    }

    /// χ² of entry b of `freedom`.
    #[inline]
    pub fn chi_square(&self, b: usize) -> f64 {
        self.norms[b][self.position]
    }

    /// The inputs of this step as a stream, for a batch that is drawn in parts: one address per step.
    pub fn inputs(&self) -> Stream {
        self.stream(NORMALS)
    }

    /// A stream for draws of irregular number in this step (Wishart factors).
    pub fn irregular(&self) -> Stream {
        self.stream(u16::MAX - 1)
    }

    fn stream(&self, lane: u16) -> Stream {
        let ReplicaAddress { seed, replica, stage } = self.address;
        let step = (self.chunk - 1) * self.steps as u64 + self.position as u64;
        Stream::at(RngAddress { seed, replica, step: step | (u64::from(stage) << 40), lane })
    }
}

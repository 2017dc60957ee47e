//! Rodas5P, a stiffly accurate, L-stable Rosenbrock method of order 5 with eight stages, an embedded solution of
//! order 4 and an interpolant of order 4.
//!
//! G. Steinebach, *Construction of Rosenbrock-Wanner method Rodas5P and numerical benchmarks within the Julia
//! differential equations package*, BIT Numer. Math. 63 (2023) 27. Form of the stages free of products with the
//! Jacobian: Hairer & Wanner, *Solving ODEs II* (2nd ed.), §IV.7:
//!
//!   (1/(γh) − J) k_i = f(t + c_i h, y + Σ_j a_ij k_j) + Σ_j (C_ij/h) k_j + h d_i ∂f/∂t,    y_new = y + Σ_j m_j k_j,
//!
//! so that a step costs one Jacobian, one LU factorisation, and no iteration that could fail to converge.

use super::control::{StepControl, Tolerance};
use super::field::Counted;
use super::lu::Lu;
use super::stages::{Stages, Stepper, all_finite};

pub(super) const STAGES: usize = 8;
/// γ, the diagonal entry of Γ, the same for all stages.
pub(super) const GAMMA: f64 = 0.21193756319429014;
/// Nodes c_i.
pub(super) const NODES: [f64; STAGES] =
    [0.0, 0.6358126895828704, 0.4095798393397535, 0.9769306725060716, 0.4288403609558664, 1.0, 1.0, 1.0];
/// d_i = Σ_j Γ_ij.
pub(super) const TIME: [f64; STAGES] = [
    0.21193756319429014,
    -0.42387512638858027,
    -0.3384627126235924,
    1.8046452872882734,
    2.325825639765069,
    0.0,
    0.0,
    0.0,
];
/// a_ij. Each of the last three stages starts where the stage before it ended, and so does y_new (stiff accuracy).
pub(super) const A: [&[f64]; STAGES] = [
    &[],
    &[3.0],
    &[2.849394379747939, 0.45842242204463923],
    &[-6.954028509809101, 2.489845061869568, -10.358996098473584],
    &[2.8029986275628964, 0.5072464736228206, -0.3988312541770524, -0.04721187230404641],
    LAST.split_at(5).0,
    LAST.split_at(6).0,
    LAST.split_at(7).0,
];
/// m_j. The first five are also the row a_6j of stage 6.
pub(super) const LAST: [f64; STAGES] = [
    -7.502846399306121,
    2.561846144803919,
    -11.627539656261098,
    -0.18268767659942256,
    0.030198172008377946,
    1.0,
    1.0,
    1.0,
];
/// C_ij.
pub(super) const COUPLING: [&[f64]; STAGES] = [
    &[],
    &[-14.155112264123755],
    &[-17.97296035885952, -2.859693295451294],
    &[147.12150275711716, -1.41221402718213, 71.68940251302358],
    &[165.43517024871676, -0.4592823456491126, 42.90938336958603, -5.961986721573306],
    &[24.854864614690072, -3.0009227002832186, 47.4931110020768, 5.5814197821558125, -0.6610691825249471],
    &[
        30.91273214028599,
        -3.1208243349937974,
        77.79954646070892,
        34.28646028294783,
        -19.097331116725623,
        -28.087943162872662,
    ],
    &[
        37.80277123390563,
        -3.2571969029072276,
        112.26918849496327,
        66.9347231244047,
        -40.06618937091002,
        -54.66780262877968,
        -9.48861652309627,
    ],
];
/// Corrections to linear interpolation between both ends of the step: coefficients of θ(1−θ), θ²(1−θ) and θ³(1−θ).
const DENSE: [[f64; STAGES]; 3] = [
    [
        25.948786856663858,
        -2.5579724845846235,
        10.433815404888879,
        -2.3679251022685204,
        0.524948541321073,
        1.1241088310450404,
        0.4272876194431874,
        -0.17202221070155493,
    ],
    [
        -9.91568850695171,
        -0.9689944594115154,
        3.0438037242978453,
        -24.495224566215796,
        20.176138334709044,
        15.98066361424651,
        -6.789040303419874,
        -6.710236069923372,
    ],
    [
        11.419903575922262,
        2.8879645146136994,
        72.92137995996029,
        80.12511834622643,
        -52.072871366152654,
        -59.78993625266729,
        -0.15582684282751913,
        4.883087185713722,
    ],
];

/// Rodas5P with its Jacobian and the LU factors of 1/(γh) − J.
pub(super) struct Rodas5P {
    /// `scratch` holds the right-hand side of a stage.
    stages: Stages,
    slope: Vec<f64>,
    new_slope: Vec<f64>,
    /// ∂f/∂t.
    time_slope: Vec<f64>,
    jacobian: Vec<f64>,
    /// Whether the Jacobian belongs to the current point. It stays valid after a rejected step.
    jacobian_is_current: bool,
    lu: Lu,
}

impl Rodas5P {
    pub(super) fn new(n: usize) -> Self {
        Rodas5P {
            stages: Stages::new(n, STAGES),
            slope: vec![0.0; n],
            new_slope: vec![0.0; n],
            time_slope: vec![0.0; n],
            jacobian: vec![0.0; n * n],
            jacobian_is_current: false,
            lu: Lu::new(n),
        }
    }

    /// Computes the Jacobian and ∂f/∂t at the current point.
    fn linearise(&mut self, field: &mut Counted<'_>, time: f64, step: f64) {
        let state = &self.stages.state;
        field.jacobian(time, state, &mut self.jacobian);
        // A forward difference in the direction of integration, with the same increment as in the Jacobian.
        let moved = time + (f64::EPSILON * time.abs().max(1e-5)).sqrt().copysign(step);
        field.derivative(moved, state, &mut self.time_slope);
        for (there, here) in self.time_slope.iter_mut().zip(&self.slope) {
            *there = (*there - here) / (moved - time);
        }
        self.jacobian_is_current = true;
    }
}

/// Returns the weights w_j(θ), θ = `share`, of the interpolant  y(t + θh) = y + Σ_j w_j(θ) k_j.
pub(super) fn interpolant(share: f64) -> [f64; STAGES] {
    let quadratic = share * (1.0 - share);
    std::array::from_fn(|j| {
        share * LAST[j] + quadratic * (DENSE[0][j] + share * (DENSE[1][j] + share * DENSE[2][j]))
    })
}

/// out += weight · k.
fn add(out: &mut [f64], weight: f64, k: &[f64]) {
    for (value, k) in out.iter_mut().zip(k) {
        *value += weight * k;
    }
}

impl Stepper for Rodas5P {
    fn begin(&mut self, field: &mut Counted<'_>, time: f64, state: &[f64]) -> bool {
        self.stages.state.copy_from_slice(state);
        field.derivative(time, state, &mut self.slope);
        self.jacobian_is_current = false;
        all_finite(&self.slope)
    }

    fn state(&self) -> &[f64] {
        &self.stages.state
    }

    fn slope(&self) -> &[f64] {
        &self.slope
    }

    fn candidate(&self) -> &[f64] {
        &self.stages.candidate
    }

    fn attempt(&mut self, field: &mut Counted<'_>, time: f64, step: f64, tolerance: Tolerance) -> f64 {
        if !self.jacobian_is_current {
            self.linearise(field, time, step);
        }
        field.factorisations += 1;
        if !self.lu.factorise_shifted(1.0 / (GAMMA * step), &self.jacobian) {
            return f64::INFINITY;
        }
        let Stages { state, candidate, scratch, k } = &mut self.stages;
        for i in 0..STAGES {
            if i == 0 {
                scratch.copy_from_slice(&self.slope);
            } else {
                candidate.copy_from_slice(state);
                for (&a, k) in A[i].iter().zip(&*k) {
                    add(candidate, a, k);
                }
                field.derivative(time + NODES[i] * step, candidate, scratch);
            }
            for (&c, k) in COUPLING[i].iter().zip(&*k) {
                add(scratch, c / step, k);
            }
            if TIME[i] != 0.0 {
                add(scratch, step * TIME[i], &self.time_slope);
            }
            self.lu.solve(scratch);
            std::mem::swap(scratch, &mut k[i]);
        }
        // The last stage is the difference between the solutions of order 5 and 4.
        add(candidate, 1.0, &k[STAGES - 1]);
        let error = tolerance.mean_square(&k[STAGES - 1], state, candidate).sqrt();
        if error.is_nan() {
            return f64::INFINITY;
        }
        if error <= 1.0 {
            field.derivative(time + step, candidate, &mut self.new_slope);
            if !all_finite(&self.new_slope) {
                return f64::INFINITY;
            }
        }
        error
    }

    fn interpolate(&self, _step: f64, share: f64, out: &mut [f64]) {
        out.copy_from_slice(&self.stages.state);
        for (weight, k) in interpolant(share).into_iter().zip(&self.stages.k) {
            add(out, weight, k);
        }
    }

    fn advance(&mut self) {
        std::mem::swap(&mut self.stages.state, &mut self.stages.candidate);
        std::mem::swap(&mut self.slope, &mut self.new_slope);
        self.jacobian_is_current = false;
    }

    fn step_control(&self) -> StepControl {
        // The exponents 0.7/k and 0.4/k of Gustafsson, with k = 5.
        StepControl {
            order: 5.0,
            plain: 0.2,
            proportional: 0.14,
            integral: 0.08,
            safety: 0.9,
            shortest: 0.2,
            longest: 6.0,
        }
    }

    fn hint(&self) -> &'static str {
        "the field may be discontinuous, or its Jacobian wrong: split the interval, supply `jacobian`, \
         or loosen the tolerance"
    }
}

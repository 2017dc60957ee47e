//! The learning rule: the networks of student and teacher, and what their pair knows in closed form.

mod averages;
mod by_panels;
mod by_tables;
mod conditional;
mod continued;
mod edges;
mod erf;
mod kicks;
mod kinked;
mod kinked_risk;
mod planes;
mod scaled;
mod two_slopes;

use averages::Route;
use didact_math::activation::Activation;
use didact_model::averages::{QuadratureEstimate, by_quadrature, risk_by_quadrature};
use didact_model::loss::Loss;
use didact_model::rule::{
    Averages, Batch, Kick, KinkPlane, Law, LocalRule, Needed, Sample, Shape, kicks_one_by_one,
};
use didact_model::teacher_student::{ClosedForms, Student, Teacher, TeacherRows, TeacherStudent};
use std::borrow::Cow;
use std::sync::Arc;

/// Units whose activations are computed together.
const UNITS: usize = 8;

/// Σ_i a_i σ(h_i).
fn weighted_sum(activation: &dyn Activation, weights: &[f64], fields: &[f64]) -> f64 {
    let mut values = [0.0; UNITS];
    let mut sum = 0.0;
    for (weights, fields) in weights.chunks(UNITS).zip(fields.chunks(UNITS)) {
        let values = &mut values[..weights.len()];
        values.copy_from_slice(&fields[..weights.len()]);
        activation.values(values);
        sum += weights.iter().zip(&*values).map(|(a, value)| a * value).sum::<f64>();
    }
    sum
}

/// The student's hidden layer; output weights are fixed, or trained as scalars that start there.
#[derive(Debug, Clone)]
pub(super) struct Hidden {
    pub(super) activation: Arc<dyn Activation>,
    pub(super) weights: Vec<f64>,
    pub(super) trained: bool,
}

impl Hidden {
    pub(super) fn output_weights<'a>(&'a self, scalars: &'a [f64]) -> &'a [f64] {
        if self.trained { scalars } else { &self.weights }
    }
}

impl Student for Hidden {
    fn shape(&self) -> Shape {
        let k = self.weights.len();
        Shape { trained: k, scalars: if self.trained { k } else { 0 }, ..Shape::default() }
    }

    fn output(&self, fields: &[f64], scalars: &[f64]) -> f64 {
        weighted_sum(self.activation.as_ref(), self.output_weights(scalars), fields)
    }

    fn gradient(&self, fields: &[f64], scalars: &[f64], out: &mut Kick) -> f64 {
        let mut output = 0.0;
        for (i, a) in self.output_weights(scalars).iter().enumerate() {
            let (value, slope) = self.activation.value_and_slope(fields[i]);
            output += a * value;
            out.rows[i] = a * slope;
            if self.trained {
                out.scalars[i] = value;
            }
        }
        output
    }

    fn has_kinks(&self) -> bool {
        self.activation.slope_jumps()
    }

    fn kink_planes(&self, _scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        let units = self.weights.len();
        let kinks = || self.activation.kinks().iter().filter(|kink| kink.jump != 0.0);
        let of_unit = |i: usize| kinks().map(move |kink| KinkPlane::of_field(units, i, kink.at));
        Some((0..units).flat_map(of_unit).collect())
    }
}

/// The teacher.
#[derive(Debug, Clone)]
pub(super) struct Labels {
    pub(super) activation: Arc<dyn Activation>,
    pub(super) weights: Vec<f64>,
}

impl Teacher for Labels {
    fn directions(&self) -> usize {
        self.weights.len()
    }
    fn label(&self, fields: &[f64]) -> f64 {
        weighted_sum(self.activation.as_ref(), &self.weights, fields)
    }
}

/// A student committee, its teacher, and their averages.
pub(super) type CommitteeRule = TeacherStudent<Hidden, Labels, Forms>;

/// What is known in closed form of the square loss of two committees.
#[derive(Debug, Clone)]
pub(super) struct Forms {
    route: Route,
    /// w, the weight of the loss w (y − f)²/2. `None` for any other loss, of which nothing is known.
    square: Option<f64>,
    /// The same, and 1 for any other loss.
    weight: f64,
    /// At the starting output weights: computed once, since they are asked for at every right-hand side of an ODE.
    fixed: OutputFactors,
}

/// How the output weights enter the averages.
#[derive(Debug, Clone)]
pub(super) struct OutputFactors {
    /// v_k, the coefficient of unit k in y − f: −a_i for the student, v_n for the teacher.
    pub(super) residual: Vec<f64>,
    /// c_i = w a_i.
    pub(super) gain: Vec<f64>,
}

impl OutputFactors {
    fn new(own: &[f64], teacher: &Labels, weight: f64) -> Self {
        Self {
            residual: own.iter().map(|a| -a).chain(teacher.weights.iter().copied()).collect(),
            gain: own.iter().map(|a| weight * a).collect(),
        }
    }
}

/// The rule of two committees.
pub(super) fn rule(student: Hidden, teacher: Labels, loss: Loss) -> CommitteeRule {
    let square = if let Loss::Square { weight } = loss { Some(weight) } else { None };
    let weight = square.unwrap_or(1.0);
    let route =
        Route::of(&student.activation, &teacher.activation, student.weights.len(), teacher.weights.len());
    let fixed = OutputFactors::new(&student.weights, &teacher, weight);
    TeacherStudent {
        student,
        teacher,
        loss,
        teacher_rows: TeacherRows::Separate,
        forms: Forms { route, square, weight, fixed },
    }
}

/// The factors at these output weights.
pub(super) fn output_factors<'a>(rule: &'a CommitteeRule, scalars: &[f64]) -> Cow<'a, OutputFactors> {
    if rule.student.trained {
        Cow::Owned(OutputFactors::new(scalars, &rule.teacher, rule.forms.weight))
    } else {
        Cow::Borrowed(&rule.forms.fixed)
    }
}

/// The activation of a row of either network.
pub(super) fn activation_of(rule: &CommitteeRule, row: usize) -> &Arc<dyn Activation> {
    if row < rule.student.weights.len() { &rule.student.activation } else { &rule.teacher.activation }
}

impl ClosedForms<Hidden, Labels> for Forms {
    fn averages(&self, pair: &CommitteeRule, law: &Law, needed: Needed, out: &mut Averages) {
        match self.square {
            Some(_) => averages::fill(pair, law, needed, out),
            None => by_quadrature(pair, law, needed, out),
        }
    }

    fn risk_within(&self, pair: &CommitteeRule, law: &Law, accuracy: f64) -> QuadratureEstimate {
        match self.square {
            Some(_) => averages::risk(pair, law, accuracy),
            None => risk_by_quadrature(pair, law, accuracy),
        }
    }

    fn kick(&self, pair: &CommitteeRule, sample: &Sample, out: &mut Kick) {
        if self.square.is_none() {
            return pair.kick_by_gradient(sample, out);
        }
        let &Sample { fields, scalars, noise } = sample;
        let noise = [noise];
        let one = Batch::new(fields, 1, scalars, &noise);
        kicks::fill(pair, &one, &mut out.rows, &mut out.scalars);
    }

    fn kick_batch(&self, pair: &CommitteeRule, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        match self.square {
            Some(_) => kicks::fill(pair, batch, rows, scalars),
            None => kicks_one_by_one(pair, batch, rows, scalars),
        }
    }

    fn steps_in_lanes(&self, _pair: &CommitteeRule) -> bool {
        self.square.is_some()
    }

    fn units(&self, pair: &CommitteeRule) -> usize {
        pair.student.weights.len()
    }

    fn with_unit_factors(&self, pair: &CommitteeRule, factors: &[f64]) -> Option<Arc<dyn LocalRule>> {
        if pair.student.trained {
            return Some(Arc::new(scaled::ScaledOutputs { rule: pair.clone(), factors: factors.to_vec() }));
        }
        let mut rule = pair.clone();
        rule.student.weights.iter_mut().zip(factors).for_each(|(a, factor)| *a *= factor);
        rule.forms.fixed = OutputFactors::new(&rule.student.weights, &rule.teacher, self.weight);
        Some(Arc::new(rule))
    }
}

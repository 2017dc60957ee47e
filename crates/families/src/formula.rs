//! A model that is written down: the loss of one sample as a formula of its fields.
//!
//!   loss = "(a1*tanh(h1) + tanh(h2) - v1^2)^2/2"
//!
//! with trained fields h_i = w_i·x, frozen fields v_n = b_n·x, trained scalars a_j and the noise e of the sample. All else
//! follows: kicks ∂loss/∂h_i and ∂loss/∂a_j and their derivatives by exact differentiation of the formula
//! ([`didact_math::expression::Graph`]), batches by a tape that runs over many samples at once, Gaussian averages by quadrature
//! with stated errors.
//!
//! The file is also the template of a family: parameters, [`Family`], and a rule with all three traits that a rule may have.

use super::{Family, ModelError, Reference, Refusal};
use didact_math::expression::{Expression, Graph, NodeId, Notation, Tape, VariableValues};
use didact_math::linalg::Mat;
use didact_math::random::{RngAddress, Stream};
use didact_model::problem::Problem;
use didact_model::rule::{
    Batch, BatchRule, CurvatureRule, Expansion, Jumps, Kick, KinkPlane, LabelledRule, LocalRule, Sample,
    Shape, central_differences, expand_one_by_one,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Any model: the loss of a sample as a formula of its fields, differentiated exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FormulaModel {
    /// Rows that learn; the formula reads them through the fields `h1`, `h2`, …, also written `h[1]` (`h` if there is one).
    #[schemars(range(max = 2048))]
    pub trained: usize,
    /// Rows that do not: the fields `v1`, `v2`, … of teacher directions and pre-trained rows.
    #[serde(default)]
    #[schemars(range(max = 2048))]
    pub frozen: usize,
    /// Trained numbers `a1`, `a2`, …; they start at 1 unless `start.scalars` says otherwise.
    #[serde(default)]
    #[schemars(range(max = 2048))]
    pub scalars: usize,
    /// The loss of one sample, such as `(a1*tanh(h1) + tanh(h2) - v1^2)^2/2`: a formula of `h`, `v`, `a` and the noise `e`, which has
    /// standard deviation `label-noise`. `sum(tanh(h[i]), i)` is a sum over all components, `sum(h[i]*h[i+1], i, 1, 3)` over some.
    pub loss: String,
    /// How many of the frozen rows, counted from the first, belong to the student (see the constraint `off-own`).
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(max = 2048))]
    pub own_frozen: usize,
    /// Numbers that the formula calls by name; a sweep may vary them (`model.parameters.mu`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Samples on which a loss must be finite.
const PROBES: usize = 64;

impl FormulaModel {
    /// A loss of so many trained and frozen fields and scalars.
    pub fn new(trained: usize, frozen: usize, scalars: usize, loss: &str) -> Self {
        Self { trained, frozen, scalars, loss: loss.into(), own_frozen: 0, parameters: BTreeMap::new() }
    }

    fn shape(&self) -> Shape {
        let Self { trained, frozen, scalars, own_frozen, .. } = *self;
        Shape { trained, frozen, scalars, own_frozen }
    }

    /// Which variable of the formula is the noise; fields and scalars come before it.
    fn noise(&self) -> usize {
        self.shape().rows() + self.scalars
    }

    /// The formula, its variables in the order of fields, scalars and noise.
    fn expression(&self) -> Result<Expression, ModelError> {
        let Shape { trained, scalars, .. } = self.shape();
        let (rows, noise) = (self.shape().rows(), self.noise());
        let vectors = [("h", 0..trained), ("v", trained..rows), ("a", rows..noise)];
        let names: Vec<String> = vectors
            .iter()
            .flat_map(|(name, range)| (1..=range.len()).map(move |i| format!("{name}{i}")))
            .chain(["e".to_string()])
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let single = [("h", "h1", trained), ("v", "v1", self.frozen), ("a", "a1", scalars)];
        let mut aliases = vec![("eps", "e")];
        aliases
            .extend(single.iter().filter(|(.., count)| *count == 1).map(|(alias, name, _)| (*alias, *name)));
        let constants: Vec<(&str, f64)> =
            self.parameters.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let notation =
            Notation { aliases: &aliases, vectors: &vectors, constants: &constants, ..Notation::default() };
        Expression::parse_with(&self.loss, &names, notation)
            .map_err(|source| ModelError::Formula { name: "loss", source: Box::new(source) })
    }

    fn check_parameters(&self) -> Result<(), ModelError> {
        let invalid = |message: String| Err(ModelError::Invalid { name: "parameters", message });
        for (name, value) in &self.parameters {
            if !value.is_finite() {
                return Err(ModelError::NotFinite { name: "parameters", value: *value });
            }
            let is_word = name.starts_with(char::is_alphabetic)
                && name.chars().all(|c| c.is_alphanumeric() || c == '_');
            let own = name.trim_end_matches(|c: char| c.is_ascii_digit());
            let taken = ["h", "v", "a", "e", "eps", "sum"].contains(&own)
                || Expression::parse(name, &[]).is_ok()
                || Expression::parse(&format!("{name}(0)"), &[]).is_ok()
                || Expression::parse(&format!("{name}(0, 0)"), &[]).is_ok();
            if !is_word || taken {
                return invalid(format!(
                    "a parameter cannot be called `{name}`\n\nhint: use a word that means nothing else in a formula"
                ));
            }
            let is_named =
                self.loss.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == name);
            if !is_named {
                return invalid(format!("the loss does not name the parameter `{name}`"));
            }
        }
        Ok(())
    }

    fn compile(&self) -> Result<FormulaRule, ModelError> {
        if self.trained == 0 {
            return Err(ModelError::Zero { name: "trained" });
        }
        if self.own_frozen > self.frozen {
            let message = format!("own-frozen is {}, but frozen is {}", self.own_frozen, self.frozen);
            return Err(ModelError::Invalid { name: "own-frozen", message });
        }
        self.check_parameters()?;
        let rule = FormulaRule::new(&self.expression()?, self.shape());
        rule.check_slopes()?;
        rule.check_values(&self.starting_scalars())?;
        Ok(rule)
    }

    fn names_noise(&self) -> bool {
        self.expression().is_ok_and(|loss| loss.uses(self.noise()))
    }
}

impl Family for FormulaModel {
    const NAME: &'static str = "formula";
    const SUMMARY: &'static str = "any model: the loss of a sample as a formula of its fields";

    fn references(&self) -> Vec<Reference> {
        Vec::new()
    }

    fn rule(&self) -> Result<Arc<dyn LocalRule>, ModelError> {
        Ok(Arc::new(self.compile()?))
    }

    fn starting_scalars(&self) -> Vec<f64> {
        vec![1.0; self.scalars]
    }

    fn admits(&self, problem: &Problem) -> Result<(), Refusal> {
        let noise = problem.training.label_noise;
        if noise > 0.0 && !self.names_noise() {
            return Err(Refusal {
                key: "training.label-noise",
                message: format!("the label noise is {noise}, but the loss does not name the noise `e`"),
                hint: "write `e` where the noise enters, as in `(h1 - v1 - e)^2/2`".into(),
            });
        }
        Ok(())
    }

    fn standard_noise(&self) -> f64 {
        f64::from(self.names_noise())
    }

    fn warning(&self, problem: &Problem) -> Option<String> {
        if self.names_noise() && problem.training.label_noise == 0.0 {
            return Some(
                "the loss names the noise e, but training.label-noise is 0, so that e is 0; 1 makes it a standard normal".into(),
            );
        }
        let rule = self.compile().ok()?;
        let moves = rule.graph.jumps_along(&[rule.loss], 0..self.trained);
        moves.then(|| {
            "the loss jumps as a trained field varies; gradient descent does not see the jumps, only the slope between them".into()
        })
    }

    fn examples() -> Vec<Self> {
        let mu = BTreeMap::from([("mu".to_string(), 0.4)]);
        vec![
            Self::new(2, 1, 1, "(a1*tanh(h1) + tanh(h2) - v1^2)^2/2"),
            Self::new(2, 2, 0, "(sum(erf(h[i]/sqrt(2)), i) - sum(erf(v[i]/sqrt(2)), i) - e)^2/2"),
            Self { parameters: mu, ..Self::new(1, 1, 1, "(tanh(mu*v + a*h) - tanh(v) - e)^2/2") },
            Self::new(2, 1, 0, "log(1 + exp(-(h1 + h2^2/2)*tanh(3*v1)))"),
            Self::new(1, 1, 0, "abs(relu(h1) - relu(v1) - e)"),
            Self::new(2, 2, 0, "sqrt(1 + (gelu(h1)*h2 - 1{v1 > 0}*v2 - e)^2) - 1"),
            Self::new(1, 1, 2, "(a1*max(h1, a2) - sigmoid(v1) - e)^2"),
        ]
    }
}

/// The rule of a formula. Variables are numbered: fields, scalars, noise; the label, where there is one, comes last.
#[derive(Debug)]
struct FormulaRule {
    shape: Shape,
    graph: Graph,
    loss: NodeId,
    /// ∂loss/∂h_i, then ∂loss/∂a_j.
    slopes: Vec<NodeId>,
    /// The part of the loss through which alone it depends on frozen fields and noise, if there is one such part.
    label: Option<Label>,
    tapes: Tapes,
    /// Second derivatives, made when they are first asked for; nothing where there are too many.
    second: OnceLock<Option<Second>>,
    jumps: OnceLock<Jumps>,
}

/// Programs of first order.
#[derive(Debug)]
struct Tapes {
    loss: Tape,
    /// Slopes by trained fields and scalars.
    kicks: Tape,
}

/// y(v, e) and what is computed from it.
#[derive(Debug)]
struct Label {
    node: NodeId,
    value: Tape,
    /// ∂y/∂v_n.
    slopes: Tape,
    /// Programs that read the label in place of frozen fields and noise.
    tapes: Tapes,
}

/// Programs of second order: their results are the loss, the kicks and then, for every trained row, derivatives of its kick.
#[derive(Debug)]
struct Second {
    /// By trained fields.
    trained: Tape,
    /// By all fields.
    all: Tape,
    /// By trained fields, from the label.
    told: Option<Tape>,
    /// By trained fields and by the label, from the label.
    told_mixed: Option<Tape>,
}

/// Second derivatives beyond this number are taken by central differences: their program would be too long.
const MOST_CURVATURES: usize = 1 << 14;

impl FormulaRule {
    fn new(loss: &Expression, shape: Shape) -> Self {
        let (rows, noise) = (shape.rows(), shape.rows() + shape.scalars);
        let early: Vec<bool> =
            (0..=noise).map(|v| v == noise || (shape.trained..rows).contains(&v)).collect();
        let mut graph = Graph::new(&early);
        let loss = graph.add(loss);
        let moving: Vec<usize> = (0..shape.trained).chain(rows..noise).collect();
        let slopes = graph.gradient(loss, &moving);
        let frozen: Vec<usize> = (shape.trained..rows).collect();
        let label = graph.early_part(loss).map(|node| (node, graph.gradient(node, &frozen)));
        let tapes = |given: &[(NodeId, usize)]| Tapes {
            loss: Tape::new(&graph, &[loss], given),
            kicks: Tape::new(&graph, &slopes, given),
        };
        let label = label.map(|(node, by_frozen)| Label {
            node,
            value: Tape::new(&graph, &[node], &[]),
            slopes: Tape::new(&graph, &by_frozen, &[]),
            tapes: tapes(&[(node, noise + 1)]),
        });
        let tapes = tapes(&[]);
        let (second, jumps) = (OnceLock::new(), OnceLock::new());
        Self { shape, graph, loss, slopes, label, tapes, second, jumps }
    }

    /// Every trained row and scalar must have a slope.
    fn check_slopes(&self) -> Result<(), ModelError> {
        let (k, s) = (self.shape.trained, self.shape.scalars);
        let names = (1..=k).map(|i| format!("h{i}")).chain((1..=s).map(|j| format!("a{j}")));
        let is_zero = |slope: &NodeId| {
            let mut zero = false;
            let tape = Tape::new(&self.graph, &[*slope], &[]);
            if tape.reads_nothing() {
                tape.run_one(|_| f64::NAN, |_, value| zero = value == 0.0);
            }
            zero
        };
        match names.zip(&self.slopes).find(|(_, slope)| is_zero(slope)) {
            None => Ok(()),
            Some((name, _)) => Err(ModelError::Invalid {
                name: "loss",
                message: format!(
                    "the loss has no slope along `{name}`, which would never learn\n\nhint: use `{name}` in the loss, or train fewer rows or scalars"
                ),
            }),
        }
    }

    /// Loss and slopes must be finite on samples as they occur.
    fn check_values(&self, scalars: &[f64]) -> Result<(), ModelError> {
        let mut stream = Stream::at(RngAddress { seed: 2, replica: 0, step: 0, lane: 0 });
        let mut kick = Kick::new(self.shape);
        for _ in 0..PROBES {
            let fields: Vec<f64> = (0..self.shape.rows()).map(|_| stream.normal()).collect();
            let sample = Sample { fields: &fields, scalars, noise: stream.normal() };
            let loss = self.loss(&sample);
            self.kick(&sample, &mut kick);
            let slopes = kick.rows.iter().chain(&kick.scalars);
            let (what, value) = match slopes.copied().find(|slope| !slope.is_finite()) {
                _ if !loss.is_finite() => ("the loss", loss),
                Some(slope) => ("a slope of the loss", slope),
                None => continue,
            };
            let (own, frozen) = fields.split_at(self.shape.trained);
            let list = |name: &str, values: &[f64]| -> Vec<String> {
                values.iter().take(4).enumerate().map(|(i, h)| format!("{name}{} = {h:.3}", i + 1)).collect()
            };
            let place = [list("h", own), list("v", frozen)].concat().join(", ");
            let value = if value.is_nan() { "not a number".into() } else { format!("{value}") };
            return Err(ModelError::Invalid {
                name: "loss",
                message: format!(
                    "{what} is {value} at {place}\n\nhint: Gaussian fields take all values; keep roots and logarithms away from negative arguments"
                ),
            });
        }
        Ok(())
    }

    /// The values of a variable for the samples of a batch.
    fn column<'a>(&self, batch: &Batch<'a>, variable: usize) -> VariableValues<'a> {
        let (rows, n) = (self.shape.rows(), batch.size);
        let noise = rows + self.shape.scalars;
        if variable < rows {
            VariableValues::Each(&batch.fields[variable * n..(variable + 1) * n])
        } else if variable < noise {
            VariableValues::All(batch.scalars[variable - rows])
        } else if variable == noise {
            VariableValues::Each(batch.noise)
        } else {
            VariableValues::Each(batch.labels)
        }
    }

    /// The value of a variable for one sample.
    #[inline]
    fn value(&self, sample: &Sample, variable: usize) -> f64 {
        let rows = self.shape.rows();
        if variable < rows {
            sample.fields[variable]
        } else {
            sample.scalars.get(variable - rows).copied().unwrap_or(sample.noise)
        }
    }

    /// The programs for a batch: those that read the label if the batch has it.
    fn tapes_for(&self, batch: &Batch) -> &Tapes {
        match &self.label {
            Some(label) if !batch.labels.is_empty() => &label.tapes,
            _ => &self.tapes,
        }
    }

    fn second(&self) -> Option<&Second> {
        let make = || {
            let (k, rows) = (self.shape.trained, self.shape.rows());
            (k * rows <= MOST_CURVATURES).then(|| self.second_order())
        };
        self.second.get_or_init(make).as_ref()
    }

    fn second_order(&self) -> Second {
        let (k, rows) = (self.shape.trained, self.shape.rows());
        let mut graph = self.graph.clone();
        let kicks = &self.slopes[..k];
        let fields: Vec<usize> = (0..rows).collect();
        let mut by_fields: Vec<Vec<NodeId>> =
            kicks.iter().map(|kick| graph.gradient(*kick, &fields)).collect();
        for i in 0..k {
            for j in 0..i {
                // Second derivatives commute: one of the two is computed.
                by_fields[i][j] = by_fields[j][i];
            }
        }
        let outputs = |rows: &mut dyn Iterator<Item = NodeId>| -> Vec<NodeId> {
            [self.loss].into_iter().chain(kicks.iter().copied()).chain(rows).collect()
        };
        let trained = outputs(&mut by_fields.iter().flat_map(|row| row[..k].iter().copied()));
        let all = outputs(&mut by_fields.iter().flatten().copied());
        let told = self.label.as_ref().map(|label| {
            let given = [(label.node, rows + self.shape.scalars + 1)];
            let by_label: Vec<NodeId> =
                kicks.iter().map(|kick| graph.gradient_by(*kick, &[label.node])[0]).collect();
            let each = by_fields.iter().zip(by_label);
            let mixed = outputs(&mut each.flat_map(|(row, own)| row[..k].iter().copied().chain([own])));
            (Tape::new(&graph, &trained, &given), Tape::new(&graph, &mixed, &given))
        });
        let (told, told_mixed) = told.unzip();
        Second {
            trained: Tape::new(&graph, &trained, &[]),
            all: Tape::new(&graph, &all, &[]),
            told,
            told_mixed,
        }
    }
}

impl LocalRule for FormulaRule {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn loss(&self, sample: &Sample) -> f64 {
        let mut loss = 0.0;
        self.tapes.loss.run_one(|v| self.value(sample, v), |_, value| loss = value);
        loss
    }

    fn kick(&self, sample: &Sample, out: &mut Kick) {
        let k = self.shape.trained;
        self.tapes.kicks.run_one(
            |v| self.value(sample, v),
            |i, slope| {
                if i < k {
                    out.rows[i] = slope;
                } else {
                    out.scalars[i - k] = slope;
                }
            },
        );
    }

    fn curvature(&self, sample: &Sample, out: &mut Mat) {
        let Some(second) = self.second() else { return central_differences(self, sample, out) };
        let (k, rows) = (self.shape.trained, self.shape.rows());
        second.all.run_one(
            |v| self.value(sample, v),
            |entry, value| {
                if let Some(at) = entry.checked_sub(1 + k) {
                    out[(at / rows, at % rows)] = value;
                }
            },
        );
    }

    fn batch(&self) -> Option<&dyn BatchRule> {
        Some(self)
    }

    fn labelled(&self) -> Option<&dyn LabelledRule> {
        self.label.as_ref().map(|_| self as &dyn LabelledRule)
    }

    fn curved(&self) -> Option<&dyn CurvatureRule> {
        Some(self)
    }
}

impl BatchRule for FormulaRule {
    fn kick_batch(&self, batch: &Batch, rows: &mut [f64], scalars: &mut [f64]) {
        let (k, n) = (self.shape.trained, batch.size);
        scalars.fill(0.0);
        self.tapes_for(batch).kicks.run(
            n,
            |v| self.column(batch, v),
            |i, from, slopes| {
                if i < k {
                    rows[i * n + from..i * n + from + slopes.len()].copy_from_slice(slopes);
                } else {
                    // Sample after sample, as the sum over single samples is taken.
                    slopes.iter().for_each(|slope| scalars[i - k] += slope);
                }
            },
        );
    }

    fn loss_batch(&self, batch: &Batch, out: &mut [f64]) {
        self.tapes_for(batch).loss.run(
            batch.size,
            |v| self.column(batch, v),
            |_, from, losses| out[from..from + losses.len()].copy_from_slice(losses),
        );
    }

    fn expand_batch(&self, batch: &Batch, mut out: Expansion) {
        let (k, n, columns) = (self.shape.trained, batch.size, out.columns);
        let Some(second) = self.second() else {
            if !out.losses.is_empty() {
                self.loss_batch(batch, out.losses);
            }
            return expand_one_by_one(self, batch, &mut out);
        };
        // Derivatives along frozen fields are those along the label times its own slopes, where both were handed over.
        let told = !batch.labels.is_empty();
        let (tape, stride, mixed) = match (columns <= k, second) {
            (true, Second { told: Some(tape), .. }) if told => (tape, k, false),
            (false, Second { told_mixed: Some(tape), .. }) if told && !batch.label_slopes.is_empty() => {
                (tape, k + 1, true)
            }
            (true, _) => (&second.trained, k, false),
            (false, _) => (&second.all, self.shape.rows(), false),
        };
        tape.run(
            n,
            |v| self.column(batch, v),
            |entry, from, values| {
                let samples = |row: usize| row * n + from..row * n + from + values.len();
                let Some(at) = entry.checked_sub(1) else {
                    if !out.losses.is_empty() {
                        out.losses[samples(0)].copy_from_slice(values);
                    }
                    return;
                };
                let Some(at) = at.checked_sub(k) else {
                    return out.kicks[samples(at)].copy_from_slice(values);
                };
                let (i, column) = (at / stride, at % stride);
                if mixed && column == k {
                    for frozen in 0..columns - k {
                        let slopes = &batch.label_slopes[samples(frozen)];
                        let target = &mut out.curvature[samples(i * columns + k + frozen)];
                        for ((target, value), slope) in target.iter_mut().zip(values).zip(slopes) {
                            *target = value * slope;
                        }
                    }
                } else if column < columns {
                    out.curvature[samples(i * columns + column)].copy_from_slice(values);
                }
            },
        );
    }

    fn steps_in_lanes(&self) -> bool {
        true
    }
}

/// Where the loss depends on frozen fields and noise through one subexpression alone, that is the label.
impl LabelledRule for FormulaRule {
    fn label(&self, frozen: &[f64], noise: f64) -> f64 {
        let (k, rows) = (self.shape.trained, self.shape.rows());
        let mut label = f64::NAN;
        let Some(own) = &self.label else { return label };
        own.value.run_one(|v| if v < rows { frozen[v - k] } else { noise }, |_, value| label = value);
        label
    }

    fn labels(&self, batch: &Batch, out: &mut [f64]) {
        let Some(label) = &self.label else { return };
        label.value.run(
            batch.size,
            |v| self.column(batch, v),
            |_, from, labels| out[from..from + labels.len()].copy_from_slice(labels),
        );
    }

    fn label_slopes(&self, batch: &Batch, out: &mut [f64]) -> bool {
        let Some(label) = &self.label else { return false };
        let n = batch.size;
        label.slopes.run(
            n,
            |v| self.column(batch, v),
            |row, from, slopes| out[row * n + from..row * n + from + slopes.len()].copy_from_slice(slopes),
        );
        true
    }

    fn labels_suffice(&self) -> bool {
        self.second().is_some()
    }
}

impl CurvatureRule for FormulaRule {
    fn jumps(&self) -> Jumps {
        *self.jumps.get_or_init(|| {
            let (k, rows) = (self.shape.trained, self.shape.rows());
            let kicks = &self.slopes[..k];
            Jumps {
                trained: self.graph.jumps_along(kicks, 0..k),
                frozen: self.graph.jumps_along(kicks, k..rows),
            }
        })
    }

    fn kink_planes(&self, scalars: &[f64]) -> Option<Vec<KinkPlane>> {
        if !self.jumps().trained {
            return Some(Vec::new());
        }
        let (k, rows) = (self.shape.trained, self.shape.rows());
        let planes = self.graph.jump_planes(&self.slopes[..k], 0..k, (rows, scalars))?;
        Some(planes.into_iter().map(|(normal, offset)| KinkPlane { normal, offset }).collect())
    }
}

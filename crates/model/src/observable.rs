//! What can be measured of a state, by name.
//!
//! `loss`, `train_loss`, `batch_loss`, `test_loss`, `Q[i,j]`, `R[i,n]`, `T[n,m]`, `norm[i]`, `alignment[i,n]`, `scalar[j]`, the names of the family, and any
//! expression of these such as `abs(R[0,0] - R[0,1])`. Indices start at 0; `*` stands for every index.

mod snapshot;

pub use snapshot::Snapshot;

use crate::problem::Problem;
use crate::rule::{Sample, Shape};
use didact_math::expression::{Expression, ExpressionError};
use std::fmt::Debug;
use std::sync::Arc;

/// What every model has, with one line each, for lists.
pub const CATALOGUE: [(&str, &str); 16] = [
    ("loss", "generalisation error, label noise excluded"),
    ("train_loss", "mean loss over the training set; engines `full-batch` and `dmft`"),
    ("batch_loss", "mean loss over the batch of a step; engines `full-batch` and `dmft`"),
    ("test_loss", "mean loss over fresh samples, label noise included"),
    (
        "classification_error",
        "share of fresh inputs whose output and label differ in sign (in class, for the logistic loss); models with one output",
    ),
    (
        "label_agreement",
        "share of fresh inputs whose output and label agree in sign: 1 - classification_error",
    ),
    (
        "Q[i,j]",
        "overlap of trained rows i, j: covariance of their fields; Q0, Q2, ... for other orders of the spectrum",
    ),
    ("R[i,n]", "overlap of trained row i with frozen row n"),
    ("T[n,m]", "overlap of frozen rows n, m"),
    ("norm[i]", "length of trained row i"),
    ("alignment[i,n]", "cosine between trained row i and frozen row n"),
    ("scalar[j]", "trained scalar j"),
    ("Qwp[i,j]", "overlap of trained row i with velocity j, per unit of alpha; momentum only"),
    ("Qpp[i,j]", "overlap of velocities i, j, per unit of alpha"),
    ("Rp[i,n]", "overlap of velocity i with frozen row n, per unit of alpha"),
    ("expression", "any formula of these, such as abs(R[0,0] - R[0,1]); * as an index stands for all"),
];

/// A named number of a state.
pub trait Observable: Send + Sync + Debug {
    /// Name of the column.
    fn name(&self) -> String;
    /// Its value.
    fn measure(&self, snapshot: &Snapshot) -> f64;
    /// True when it is an average over a training set, which only some engines have.
    fn needs_training_set(&self) -> bool {
        false
    }
    /// True when it is an overlap of velocities, which only momentum has.
    fn needs_velocities(&self) -> bool {
        false
    }
}

/// The mean loss over the batch of the last step of training by mini-batches, label noise included.
#[derive(Debug, Clone, Copy)]
pub struct BatchLoss;

impl Observable for BatchLoss {
    fn name(&self) -> String {
        "batch_loss".into()
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        snapshot.batch_loss.unwrap_or(f64::NAN)
    }
    fn needs_training_set(&self) -> bool {
        true
    }
}

/// Which overlap of velocities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VelocitySector {
    /// Row with velocity, Qwp.
    RowVelocity,
    /// Velocity with velocity, Qpp.
    Velocity,
    /// Velocity with frozen row, Rp.
    Frozen,
}

/// An overlap of velocities per unit of alpha, of order 1: Σ_b λ_b over the eigenspaces.
#[derive(Debug, Clone, Copy)]
pub struct VelocityOverlap {
    /// Qwp, Qpp or Rp.
    pub sector: VelocitySector,
    /// Trained row (Qwp), velocity otherwise.
    pub i: usize,
    /// Velocity (Qwp, Qpp) or frozen row (Rp).
    pub j: usize,
}

impl Observable for VelocityOverlap {
    fn name(&self) -> String {
        let name = match self.sector {
            VelocitySector::RowVelocity => "Qwp",
            VelocitySector::Velocity => "Qpp",
            VelocitySector::Frozen => "Rp",
        };
        format!("{name}[{},{}]", self.i, self.j)
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        let Some(velocities) = &snapshot.overlaps.velocities else { return f64::NAN };
        let shape = snapshot.overlaps.shape();
        let (row, column) = match self.sector {
            VelocitySector::RowVelocity => (self.j, self.i),
            VelocitySector::Velocity => (self.i, shape.rows() + self.j),
            VelocitySector::Frozen => (self.i, shape.trained + self.j),
        };
        let blocks = velocities.blocks.iter().zip(snapshot.problem.spectrum.eigenvalues());
        blocks.map(|(block, lambda)| lambda * block[(row, column)]).sum()
    }
    fn needs_velocities(&self) -> bool {
        true
    }
}

/// The mean loss over the training set, label noise included.
#[derive(Debug, Clone, Copy)]
pub struct TrainLoss;

impl Observable for TrainLoss {
    fn name(&self) -> String {
        "train_loss".into()
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        snapshot.train_loss.unwrap_or(f64::NAN)
    }
    fn needs_training_set(&self) -> bool {
        true
    }
}

/// The mean loss of fresh samples, label noise included.
#[derive(Debug, Clone, Copy)]
pub struct TestLoss;

impl Observable for TestLoss {
    fn name(&self) -> String {
        "test_loss".into()
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        snapshot.test_loss()
    }
}

/// The generalisation error `E[loss]`, label noise excluded: the observable `loss`.
#[derive(Debug, Clone, Copy)]
pub struct Risk;

impl Observable for Risk {
    fn name(&self) -> String {
        "loss".into()
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        snapshot.loss()
    }
}

/// The share of fresh inputs, without label noise, whose output and label are in different classes, or in the same one.
#[derive(Debug, Clone, Copy)]
pub struct ClassShare {
    /// Whether those in the same class are counted.
    pub same: bool,
}

impl Observable for ClassShare {
    fn name(&self) -> String {
        if self.same { "label_agreement" } else { "classification_error" }.into()
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        let other = snapshot.classification_error();
        if self.same { 1.0 - other } else { other }
    }
}

/// The observables of one model: those of its family, and those of its classes where its rule has any.
fn own_observables(problem: &Problem) -> Vec<Arc<dyn Observable>> {
    let mut own = problem.about.observables();
    let shape = problem.rule.shape();
    let (fields, scalars) = (vec![0.0; shape.rows()], vec![0.0; shape.scalars]);
    let sample = Sample { fields: &fields, scalars: &scalars, noise: 0.0 };
    if problem.rule.same_class(&sample).is_some() {
        own.extend([false, true].map(|same| Arc::new(ClassShare { same }) as Arc<dyn Observable>));
    }
    own
}

/// Which pair of rows an overlap joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sector {
    /// Trained with trained, Q.
    Student,
    /// Trained with frozen, R.
    Cross,
    /// Frozen with frozen, T.
    Teacher,
}

/// An entry of Q^(l), R^(l) or T^(l); order 1 is the covariance of the fields, order 0 the plain scalar product.
#[derive(Debug, Clone, Copy)]
pub struct Overlap {
    /// Q, R or T.
    pub sector: Sector,
    /// l.
    pub order: i32,
    /// First row, counted within its kind.
    pub i: usize,
    /// Second row, counted within its kind.
    pub j: usize,
}

impl Observable for Overlap {
    fn name(&self) -> String {
        let letter = match self.sector {
            Sector::Student => "Q",
            Sector::Cross => "R",
            Sector::Teacher => "T",
        };
        let order = if self.order == 1 { String::new() } else { self.order.to_string() };
        format!("{letter}{order}[{},{}]", self.i, self.j)
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        let k = snapshot.overlaps.shape().trained;
        let (i, j) = match self.sector {
            Sector::Student => (self.i, self.j),
            Sector::Cross => (self.i, k + self.j),
            Sector::Teacher => (k + self.i, k + self.j),
        };
        snapshot.moment(self.order)[(i, j)]
    }
}

/// |w_i|.
#[derive(Debug, Clone, Copy)]
pub struct Norm {
    /// Trained row.
    pub row: usize,
}

impl Observable for Norm {
    fn name(&self) -> String {
        format!("norm[{}]", self.row)
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        snapshot.moment(0)[(self.row, self.row)].max(0.0).sqrt()
    }
}

/// The cosine between trained row i and frozen row n.
#[derive(Debug, Clone, Copy)]
pub struct Alignment {
    /// Trained row.
    pub row: usize,
    /// Frozen row.
    pub direction: usize,
}

impl Observable for Alignment {
    fn name(&self) -> String {
        format!("alignment[{},{}]", self.row, self.direction)
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        let g = snapshot.moment(0);
        let n = snapshot.overlaps.shape().trained + self.direction;
        let length = (g[(self.row, self.row)] * g[(n, n)]).sqrt();
        if length > 0.0 { g[(self.row, n)] / length } else { 0.0 }
    }
}

/// A trained scalar a_j.
#[derive(Debug, Clone, Copy)]
pub struct Scalar {
    /// Which.
    pub index: usize,
}

impl Observable for Scalar {
    fn name(&self) -> String {
        format!("scalar[{}]", self.index)
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        snapshot.overlaps.scalars[self.index]
    }
}

/// A user expression of other observables.
#[derive(Debug, Clone)]
struct Formula {
    text: String,
    expression: Expression,
    inputs: Vec<Arc<dyn Observable>>,
}

impl Observable for Formula {
    fn name(&self) -> String {
        self.text.clone()
    }
    fn measure(&self, snapshot: &Snapshot) -> f64 {
        let values: Vec<f64> = self.inputs.iter().map(|o| o.measure(snapshot)).collect();
        self.expression.value(&values)
    }
    fn needs_training_set(&self) -> bool {
        self.inputs.iter().any(|o| o.needs_training_set())
    }
    fn needs_velocities(&self) -> bool {
        self.inputs.iter().any(|o| o.needs_velocities())
    }
}

/// Entries of the catalogue that are no name, or that only models with classes have.
const NOT_COMMON: [&str; 3] = ["expression", "classification_error", "label_agreement"];

/// The names that every model has, for hints.
fn common_names() -> String {
    let names: Vec<&str> =
        CATALOGUE.iter().map(|(name, _)| *name).filter(|name| !NOT_COMMON.contains(name)).collect();
    names.join(", ")
}

/// Why a text names no observable.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ObservableError {
    /// Not a name.
    #[error("`{name}` is not an observable\n\nhint: use {}{also}, or an expression of these", common_names())]
    Unknown {
        /// The text.
        name: String,
        /// Names of the family.
        also: String,
    },
    /// Index out of range.
    #[error("`{name}`: index {index} is out of range; there are {count} (counted from 0)")]
    Range {
        /// The text.
        name: String,
        /// The index.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// Wrong number of indices.
    #[error("`{name}` takes {expected} indices in brackets, for example `{example}`")]
    Indices {
        /// The text.
        name: String,
        /// How many.
        expected: usize,
        /// What it looks like.
        example: String,
    },
    /// Not an expression.
    #[error(transparent)]
    Expression(#[from] ExpressionError),
    /// `*` in an expression.
    #[error("`{name}`: `*` stands for several columns and cannot be part of an expression")]
    Wildcard {
        /// The text.
        name: String,
    },
}

/// The observables that a text names: one, or several where an index is `*`.
pub fn parse(text: &str, problem: &Problem) -> Result<Vec<Arc<dyn Observable>>, ObservableError> {
    let text = text.trim();
    let own = own_observables(problem);
    match parse_name(text, problem.rule.shape(), &own) {
        Some(found) => found,
        None => parse_formula(text, problem, &own).map(|o| vec![o]),
    }
}

fn parse_formula(
    text: &str,
    problem: &Problem,
    own: &[Arc<dyn Observable>],
) -> Result<Arc<dyn Observable>, ObservableError> {
    // In a formula a hyphen is a minus, but `polar-drift^2` means the observable; the longest name counts.
    let mut hyphenated: Vec<String> =
        own.iter().map(|o| o.name()).filter(|name| name.contains('-')).collect();
    hyphenated.sort_by_key(|name| std::cmp::Reverse(name.len()));
    let joined = |name: &str| name.replace('-', "_");
    let plain = hyphenated.iter().fold(text.to_string(), |text, name| text.replace(name, &joined(name)));
    let expression = Expression::parse_free(&plain)?;
    let mut inputs = Vec::new();
    for name in expression.variables() {
        let name = hyphenated.iter().find(|own| joined(own) == *name).unwrap_or(name);
        let unknown = || {
            let also: String = own.iter().map(|o| format!(", {}", o.name())).collect();
            ObservableError::Unknown { name: name.clone(), also }
        };
        let mut found = parse_name(name, problem.rule.shape(), own).ok_or_else(unknown)??;
        if found.len() != 1 {
            return Err(ObservableError::Wildcard { name: name.clone() });
        }
        inputs.append(&mut found);
    }
    Ok(Arc::new(Formula { text: text.to_string(), expression, inputs }))
}

/// Whether a text such as `S[*,0]` names an observable of the family such as `S[2,0]`.
fn names(text: &str, name: &str) -> bool {
    let pieces =
        |s: &str| -> Vec<String> { s.split(['[', ',', ']']).map(|piece| piece.trim().to_string()).collect() };
    let (text, name) = (pieces(text), pieces(name));
    text.len() == name.len() && text.iter().zip(&name).all(|(t, n)| t == n || (t == "*" && !n.is_empty()))
}

type Found = Result<Vec<Arc<dyn Observable>>, ObservableError>;

/// Makes an observable from an order and up to two indices.
type Make = fn(i32, usize, usize) -> Arc<dyn Observable>;

/// `None` when the text is not of the form `name` or `name[indices]` of a known name.
fn parse_name(text: &str, shape: Shape, own: &[Arc<dyn Observable>]) -> Option<Found> {
    let named: Vec<_> = own.iter().filter(|o| names(text, &o.name())).cloned().collect();
    if !named.is_empty() {
        return Some(Ok(named));
    }
    match text {
        "loss" => return Some(Ok(vec![Arc::new(Risk)])),
        "train_loss" => return Some(Ok(vec![Arc::new(TrainLoss)])),
        "batch_loss" => return Some(Ok(vec![Arc::new(BatchLoss)])),
        "test_loss" => return Some(Ok(vec![Arc::new(TestLoss)])),
        _ => {}
    }
    let (name, inside) = match text.split_once('[') {
        // More brackets than one pair make a formula, such as `R[0,0] - R[0,1]`.
        Some((name, rest)) => {
            (name.trim(), Some(rest.strip_suffix(']').filter(|inside| !inside.contains(['[', ']']))?))
        }
        None => (text, None),
    };
    let (k, f, s) = (shape.trained, shape.frozen, shape.scalars);
    let overlap = |sector: Sector| -> Make {
        match sector {
            Sector::Student => |order, i, j| Arc::new(Overlap { sector: Sector::Student, order, i, j }),
            Sector::Cross => |order, i, j| Arc::new(Overlap { sector: Sector::Cross, order, i, j }),
            Sector::Teacher => |order, i, j| Arc::new(Overlap { sector: Sector::Teacher, order, i, j }),
        }
    };
    let velocity = |sector: VelocitySector| -> Make {
        use VelocitySector::{Frozen, RowVelocity, Velocity};
        match sector {
            RowVelocity => |_, i, j| Arc::new(VelocityOverlap { sector: RowVelocity, i, j }),
            Velocity => |_, i, j| Arc::new(VelocityOverlap { sector: Velocity, i, j }),
            Frozen => |_, i, j| Arc::new(VelocityOverlap { sector: Frozen, i, j }),
        }
    };
    let (make, counts, order): (Make, Vec<usize>, i32) = match name {
        "norm" => (|_, row, _| Arc::new(Norm { row }), vec![k], 0),
        "alignment" => (|_, row, direction| Arc::new(Alignment { row, direction }), vec![k, f], 0),
        "scalar" => (|_, index, _| Arc::new(Scalar { index }), vec![s], 0),
        "Qwp" => (velocity(VelocitySector::RowVelocity), vec![k, k], 1),
        "Qpp" => (velocity(VelocitySector::Velocity), vec![k, k], 1),
        "Rp" => (velocity(VelocitySector::Frozen), vec![k, f], 1),
        _ => {
            let order = if name.len() == 1 { 1 } else { name.get(1..)?.parse::<u8>().ok()?.into() };
            match name.get(..1)? {
                "Q" => (overlap(Sector::Student), vec![k, k], order),
                "R" => (overlap(Sector::Cross), vec![k, f], order),
                "T" => (overlap(Sector::Teacher), vec![f, f], order),
                _ => return None,
            }
        }
    };
    let indices: Vec<&str> = inside.map(|i| i.split(',').map(str::trim).collect()).unwrap_or_default();
    if indices.len() != counts.len() {
        let example = format!("{name}[{}]", vec!["0"; counts.len()].join(","));
        return Some(Err(ObservableError::Indices { name: text.into(), expected: counts.len(), example }));
    }
    let mut ranges = Vec::new();
    for (index, &count) in indices.iter().zip(&counts) {
        if *index == "*" {
            ranges.push((0..count).collect::<Vec<_>>());
            continue;
        }
        let index: usize = index.parse().ok()?;
        if index >= count {
            return Some(Err(ObservableError::Range { name: text.into(), index, count }));
        }
        ranges.push(vec![index]);
    }
    let second = ranges.get(1).cloned().unwrap_or_else(|| vec![0]);
    let pairs = ranges[0].iter().flat_map(|&i| second.iter().map(move |&j| (i, j)));
    Some(Ok(pairs.map(|(i, j)| make(order, i, j)).collect()))
}

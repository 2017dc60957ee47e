//! Numbers read off the results, with their standard errors: one file per kind of measure, or per few that share their keys.
//!
//! A kind is a struct of its keys that implements [`MeasureDefinition`]: what it depends on, and how it is evaluated. One
//! line of `measures!` below registers it under its name in kebab case. Descriptions, schema, name checks, runs that wait
//! for `--full` and references follow from what it says of itself.
//!
//! | question | kinds |
//! |---|---|
//! | when does a replica pass a level? | `event-time`, `event-median`, `event-fraction` |
//! | what does a curve do? | `value-at`, `plateau-height`, `exponent`, `rate`, `growth-rate` |
//! | does a simulation follow its prediction? | `agreement`, `variance-agreement` |
//! | what is predicted without a run? | `quantity`, `scan-exponent`, `scan-extremum` |
//! | what did an optimisation find? | `optimum` |
//! | how does a measure change over the sweep? | `log-law`, `power-law`, `mean-over`, `elsewhere` |
//! | what follows from other measures? | `formula` |

pub mod agreement;
pub mod dependency;
pub mod elsewhere;
pub mod estimate;
pub mod events;
pub mod exponent;
pub mod findings;
pub mod formula;
pub mod growth_rate;
pub mod laws;
pub mod mean_over;
pub mod optimum;
pub mod plateau_height;
pub mod quantity;
pub mod rate;
pub mod scan_exponent;
pub mod scan_extremum;
pub mod value_at;
pub mod variance_agreement;

pub use dependency::Dependency;
pub use estimate::Estimate;
pub use findings::Findings;

use crate::experiment::Run;
use crate::guard;
use crate::points::Point;
use crate::results::{Missing, Results};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A named number of the results, one per point of the sweep unless it is a fit over the sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Measure {
    /// Name in claims, figures and tables.
    pub name: String,
    /// What it is.
    #[serde(flatten)]
    pub kind: MeasureKind,
}

/// What a measure is checked against before anything runs.
pub struct Planned<'a> {
    /// Points of the sweep (one without a sweep).
    pub points: &'a [Point],
    /// Every run at every point.
    pub runs: &'a [Run],
}

/// A key of a measure, and what is wrong with its value.
pub type WrongKey = (&'static str, String);

/// A kind of measure, implemented by the struct of its keys.
pub trait MeasureDefinition {
    /// Every run, column, event, earlier measure, scan, swept key and quantity that the measure is computed from.
    ///
    /// These names are checked before anything runs, and a measure waits for `--full` with the runs and measures that it
    /// depends on. [`Findings`] gives [`Self::evaluate`] nothing that is not listed here.
    fn depends_on(&self) -> Vec<Dependency<'_>>;

    /// What is wrong with the keys of the measure besides its names, by the key that is wrong; found before anything runs.
    fn check(&self, _planned: &Planned) -> Result<(), WrongKey> {
        Ok(())
    }

    /// The number at each point of the sweep ([`Findings::at_each_point`]), or one number over all of them
    /// ([`MeasuredValues::Single`]).
    fn evaluate(&self, findings: &Findings) -> MeasuredValues;
}

macro_rules! measures {
    ($($variant:ident($module:ident::$definition:ident)),+ $(,)?) => {
        /// What a measure is.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        // The schema and the option reference take the sentence of a kind from the struct of its keys.
        #[expect(missing_docs, reason = "the struct in each variant is documented")]
        pub enum MeasureKind {
            $($variant($module::$definition),)+
        }

        impl MeasureKind {
            /// The kind as what all of them can do.
            fn definition(&self) -> &dyn MeasureDefinition {
                match self { $(Self::$variant(definition) => definition,)+ }
            }
        }
    };
}

measures! {
    EventTime(events::EventTimeMeasure),
    EventMedian(events::EventMedianMeasure),
    EventFraction(events::EventFractionMeasure),
    ValueAt(value_at::ValueAtMeasure),
    PlateauHeight(plateau_height::PlateauHeightMeasure),
    Exponent(exponent::ExponentMeasure),
    Rate(rate::RateMeasure),
    GrowthRate(growth_rate::GrowthRateMeasure),
    Agreement(agreement::AgreementMeasure),
    VarianceAgreement(variance_agreement::VarianceAgreementMeasure),
    Quantity(quantity::QuantityMeasure),
    ScanExponent(scan_exponent::ScanExponentMeasure),
    ScanExtremum(scan_extremum::ScanExtremumMeasure),
    LogLaw(laws::LogLawMeasure),
    PowerLaw(laws::PowerLawMeasure),
    MeanOver(mean_over::MeanOverMeasure),
    Elsewhere(elsewhere::ElsewhereMeasure),
    Formula(formula::FormulaMeasure),
    Optimum(optimum::OptimumMeasure),
}

impl MeasureKind {
    /// Everything that the measure is computed from.
    pub fn depends_on(&self) -> Vec<Dependency<'_>> {
        self.definition().depends_on()
    }

    /// What is wrong with the keys of the measure besides its names.
    pub fn check(&self, planned: &Planned) -> Result<(), WrongKey> {
        self.definition().check(planned)
    }
}

/// A number, or why there is none.
pub type Found = Result<Estimate, Missing>;

/// What evaluating a measure gives.
#[derive(Debug, Clone, PartialEq)]
pub enum MeasuredValues {
    /// One number per point of the sweep, in the order of the points.
    PerPoint(Vec<Found>),
    /// One number over the whole sweep or scan.
    Single(Found),
}

/// What a measure found: per point of the sweep, or once for a fit over it. `Err` says why there is no number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The measure.
    pub name: String,
    /// One per point, or a single one.
    pub values: Vec<Found>,
    /// True when it is one number over the whole sweep.
    pub global: bool,
}

impl Measured {
    /// Values under the name of their measure.
    fn new(name: &str, values: MeasuredValues) -> Self {
        let (mut values, global) = match values {
            MeasuredValues::PerPoint(values) => (values, false),
            MeasuredValues::Single(value) => (vec![value], true),
        };
        for value in &mut values {
            if value.as_ref().is_ok_and(|estimate| !estimate.value.is_finite()) {
                *value = Err("its value is not a finite number".into());
            }
        }
        Self { name: name.into(), values, global }
    }

    /// The number of a point (or the only one).
    pub fn at(&self, point: &Point) -> Found {
        self.values[if self.global { 0 } else { point.index }].clone()
    }
}

/// Evaluates all measures in order; later ones may use earlier ones. The second list has the measures at which the program
/// failed: they have that reason in place of a number.
pub fn evaluate(measures: &[Measure], results: &Results) -> (Vec<Measured>, Vec<String>) {
    let (mut done, mut failures): (Vec<Measured>, Vec<String>) = Default::default();
    for measure in measures {
        let definition = measure.kind.definition();
        let findings = Findings::new(definition.depends_on(), results, &done);
        let inputs = || serde_json::to_string(&measure).unwrap_or_default();
        let values = guard::caught(inputs, || definition.evaluate(&findings)).unwrap_or_else(|why| {
            failures.push(format!("measure {}: {why}", measure.name));
            MeasuredValues::Single(Err(why.into()))
        });
        done.push(Measured::new(&measure.name, values));
    }
    (done, failures)
}

/// The window that holds every positive number, for keys that leave it out. TOML and JSON can both write its ends.
fn everything() -> [f64; 2] {
    [0.0, f64::MAX]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Overrides;

    /// A measure of a run that it does not declare.
    struct Forgetful;

    impl MeasureDefinition for Forgetful {
        fn depends_on(&self) -> Vec<Dependency<'_>> {
            Vec::new()
        }

        fn evaluate(&self, findings: &Findings) -> MeasuredValues {
            findings.at_each_point(|point| {
                findings.table(point, "run")?;
                Ok(Estimate::exact(1.0))
            })
        }
    }

    #[test]
    fn a_measure_that_declares_no_dependency_gets_no_number() {
        let point = Point { index: 0, values: Overrides::new() };
        let results = Results { points: vec![point.clone()], ..Results::default() };
        let findings = Findings::new(Forgetful.depends_on(), &results, &[]);
        let measured = Measured::new("forgetful", Forgetful.evaluate(&findings));
        let why = measured.at(&point).unwrap_err();
        assert!(matches!(&why, Missing::Failed(text) if text.contains("does not declare")), "{why:?}");
    }
}

//! What a measure is computed from, so that its names can be checked before anything runs.

use std::borrow::Cow;

/// A name in the description, and the key of the measure under which it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedAt<'a> {
    /// The key, to point at in an error: `run`, `of`, `with.a`.
    pub key: Cow<'static, str>,
    /// The name.
    pub name: &'a str,
}

/// One thing that a measure is computed from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dependency<'a> {
    /// A column of the table of a run.
    Column {
        /// The run.
        run: NamedAt<'a>,
        /// The column.
        column: NamedAt<'a>,
    },
    /// The first passages of an event in a run.
    Event {
        /// The run.
        run: NamedAt<'a>,
        /// The event.
        event: NamedAt<'a>,
    },
    /// An earlier measure.
    Measure(NamedAt<'a>),
    /// A scan.
    Scan(NamedAt<'a>),
    /// An optimisation.
    Optimise(NamedAt<'a>),
    /// A key of the sweep.
    SweptKey(NamedAt<'a>),
    /// A predicted quantity.
    Quantity {
        /// Its path, `family/quantity`.
        path: NamedAt<'a>,
        /// Names of the inputs that are given.
        inputs: Vec<&'a str>,
    },
}

impl<'a> Dependency<'a> {
    /// The key `observable` names a column of the run that the key `run_key` names.
    pub fn column(run_key: &'static str, run: &'a str, observable: &'a str) -> Self {
        Self::Column { run: named(run_key, run), column: named("observable", observable) }
    }

    /// The key `event` names an event of the run that the key `run` names.
    pub fn event(run: &'a str, event: &'a str) -> Self {
        Self::Event { run: named("run", run), event: named("event", event) }
    }

    /// A key names an earlier measure.
    pub fn measure(key: impl Into<Cow<'static, str>>, name: &'a str) -> Self {
        Self::Measure(named(key, name))
    }

    /// The key `scan` names a scan.
    pub fn scan(name: &'a str) -> Self {
        Self::Scan(named("scan", name))
    }

    /// The key `optimise` names an optimisation.
    pub fn optimise(name: &'a str) -> Self {
        Self::Optimise(named("optimise", name))
    }

    /// A key names a key of the sweep.
    pub fn swept_key(key: &'static str, name: &'a str) -> Self {
        Self::SweptKey(named(key, name))
    }

    /// The key `quantity` names a quantity that gets these inputs.
    pub fn quantity(path: &'a str, inputs: impl IntoIterator<Item = &'a String>) -> Self {
        let inputs = inputs.into_iter().map(String::as_str).collect();
        Self::Quantity { path: named("quantity", path), inputs }
    }

    /// The run, if the dependency is a part of one.
    pub fn run(&self) -> Option<&'a str> {
        match self {
            Self::Column { run, .. } | Self::Event { run, .. } => Some(run.name),
            Self::Measure(_)
            | Self::Scan(_)
            | Self::Optimise(_)
            | Self::SweptKey(_)
            | Self::Quantity { .. } => None,
        }
    }
}

fn named(key: impl Into<Cow<'static, str>>, name: &str) -> NamedAt<'_> {
    NamedAt { key: key.into(), name }
}

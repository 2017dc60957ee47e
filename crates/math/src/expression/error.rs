//! Errors that point at the offending character, and the search for the nearest known name.

use std::fmt;

/// A formula that could not be read: what is wrong and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// The formula as it was written.
    pub formula: String,
    /// Index of the offending character, counted in characters from 0.
    pub position: usize,
    /// What is wrong there.
    pub problem: FormulaProblem,
}

/// What is wrong with a formula.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormulaProblem {
    /// Nothing but spaces.
    #[error("the formula is empty")]
    Empty,
    /// A character that no token starts with.
    #[error("unexpected character `{0}`")]
    Character(char),
    /// A number that cannot be read.
    #[error("`{0}` is not a number")]
    Number(String),
    /// A value was expected (a number, a name or an opening parenthesis).
    #[error("expected a value, found {0}")]
    ExpectedValue(String),
    /// Two values stand side by side.
    #[error("missing operator before {0}")]
    MissingOperator(String),
    /// An opening bracket without its partner.
    #[error("this `{0}` is never closed")]
    Unclosed(char),
    /// A closing bracket without its partner.
    #[error("this `{0}` was never opened")]
    Unopened(char),
    /// A name that is neither a variable nor a constant.
    #[error("unknown name `{name}`")]
    UnknownName {
        /// The name as written.
        name: String,
        /// The nearest known name.
        nearest: Option<String>,
    },
    /// A call of something that is not a function.
    #[error("unknown function `{name}`")]
    UnknownFunction {
        /// The name as written.
        name: String,
        /// The nearest known function.
        nearest: Option<String>,
    },
    /// A function without its parentheses.
    #[error("`{0}` is a function")]
    BareFunction(String),
    /// A call with too many or too few arguments.
    #[error("`{function}` takes {expected} argument(s), found {found}")]
    Arguments {
        /// The function called.
        function: String,
        /// How many it takes.
        expected: usize,
        /// How many were given.
        found: usize,
    },
    /// An indicator without its comparison.
    #[error("expected `>` or `<` in an indicator, found {0}")]
    Comparison(String),
    /// Bars that are not a squared length.
    #[error("bars are for the squared length `|{0}|^2`")]
    Length(String),
    /// Nesting beyond what evaluation holds.
    #[error("the formula is nested too deeply")]
    TooDeep,
    /// Numbers of a sampled function that make none.
    #[error("{0}")]
    Sampled(String),
    /// An index of a sum that is not a name of its own.
    #[error("`{0}` cannot be the index of a sum")]
    SumIndex(String),
    /// Nothing, or more than one thing, says how far an index runs.
    #[error("nothing says from where to where `{0}` runs")]
    SumRange(String),
    /// Vectors of different lengths under one index.
    #[error("`{index}` runs over {first} and over {second}, which differ in length")]
    SumLengths {
        /// The index.
        index: String,
        /// One vector and its length.
        first: String,
        /// The other.
        second: String,
    },
    /// The first or last value of an index is not a whole number.
    #[error("the first and the last value of an index are whole numbers")]
    SumBound,
    /// A component that a vector has not.
    #[error("`{name}` has the components 1 to {length}, and no `{name}[{index}]`")]
    Component {
        /// The vector.
        name: String,
        /// How many components it has.
        length: usize,
        /// The one that was asked for.
        index: String,
    },
    /// Sums that are too long when written out.
    #[error("with its sums written out the formula has more than {max} terms", max = super::MOST_TERMS)]
    TooManyTerms,
    /// More characters than are read.
    #[error("the formula has {0} characters; at most {max} are read", max = super::LONGEST)]
    TooLong(usize),
}

/// Characters of a formula that a message shows.
const SHOWN: usize = 120;

impl ExpressionError {
    pub(super) fn new(formula: &str, position: usize, problem: FormulaProblem) -> Self {
        // Tabs and line ends would shift the caret.
        let formula = formula.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        Self { formula, position, problem }
    }

    /// The part of the formula around the offending character, and the characters before that one in it.
    fn window(&self) -> (String, usize) {
        let all: Vec<char> = self.formula.chars().collect();
        if all.len() <= SHOWN {
            return (self.formula.clone(), self.position);
        }
        let from = self.position.saturating_sub(SHOWN / 2).min(all.len() - SHOWN);
        let (left, right) =
            (if from > 0 { "…" } else { "" }, if from + SHOWN < all.len() { "…" } else { "" });
        let shown: String = all[from..from + SHOWN].iter().collect();
        (format!("{left}{shown}{right}"), self.position - from + left.chars().count())
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match &self.problem {
            FormulaProblem::UnknownName { nearest: Some(name), .. }
            | FormulaProblem::UnknownFunction { nearest: Some(name), .. } => {
                Some(format!("did you mean `{name}`?"))
            }
            FormulaProblem::MissingOperator(_) => Some("write products with `*`, as in `2*x`".into()),
            FormulaProblem::BareFunction(name) => Some(format!("write `{name}(...)`")),
            FormulaProblem::TooLong(_) => Some("write repeated parts once, with powers and products".into()),
            FormulaProblem::Comparison(_) => Some("write `1{x > 0}`".into()),
            FormulaProblem::SumIndex(_) => {
                Some("write `sum(tanh(h[i]), i)`, with a letter that means nothing else".into())
            }
            FormulaProblem::SumRange(index) | FormulaProblem::SumLengths { index, .. } => {
                Some(format!("give the range: `sum(..., {index}, 1, 3)`"))
            }
            FormulaProblem::TooDeep => Some("write it with fewer nested parentheses".into()),
            _ => None,
        }
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shown, before) = self.window();
        write!(f, "{}\n  {shown}\n  {:>width$}", self.problem, '^', width = before + 1)?;
        self.hint().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

impl std::error::Error for ExpressionError {}

/// The candidate nearest to `name`, if it is near enough to be a likely slip.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let allowed = name.chars().count().div_ceil(3);
    candidates
        .into_iter()
        .map(|candidate| (distance(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|&(steps, _)| steps <= allowed)
        .min_by_key(|&(steps, _)| steps)
        .map(|(_, candidate)| candidate.to_owned())
}

/// Edits between two words: insert, delete, replace, or swap of two neighbours.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replace = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let best = replace.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { best.min(table[i - 2][j - 2] + 1) } else { best }
            };
        }
    }
    table[a.len()][b.len()]
}

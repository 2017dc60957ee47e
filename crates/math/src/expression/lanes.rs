//! Many samples of a formula at once: the postfix program runs on short vectors, so that its interpretation is paid once
//! per vector and plain arithmetic becomes vector instructions.

use super::function::{Binary, Function, power};
use super::{Expression, Number, STACK, Step, run};
use crate::dispatch;

/// Samples per vector: two to four registers, and a small stack that stays in the first-level cache.
const WIDTH: usize = 16;

/// Values that the small stack holds; most formulas need no more.
const SHALLOW: usize = 4;

#[derive(Clone, Copy)]
struct Lanes([f64; WIDTH]);

impl Number for Lanes {
    #[inline(always)]
    fn constant(value: f64) -> Self {
        Self([value; WIDTH])
    }

    #[inline(always)]
    fn negate(self) -> Self {
        Self(self.0.map(|v| -v))
    }

    #[inline(always)]
    fn apply(self, function: Function) -> Self {
        Self(self.0.map(|v| v.apply(function)))
    }

    #[inline(always)]
    fn combine(self, operation: Binary, right: Self) -> Self {
        let (a, b) = (self.0, right.0);
        let each = |f: fn(f64, f64) -> f64| Self(std::array::from_fn(|i| f(a[i], b[i])));
        match operation {
            Binary::Add => each(|a, b| a + b),
            Binary::Subtract => each(|a, b| a - b),
            Binary::Multiply => each(|a, b| a * b),
            Binary::Divide => each(|a, b| a / b),
            // The commonest power of all, as `power` computes it.
            Binary::Power if b == [2.0; WIDTH] => each(|a, _| a * a),
            Binary::Power => each(power),
            Binary::Max => each(f64::max),
            Binary::Min => each(f64::min),
        }
    }
}

impl Expression {
    /// f of many samples, bit by bit what [`value`](Self::value) gives: `x[i]` holds variable i of every sample.
    pub fn values(&self, x: &[&[f64]], out: &mut [f64]) {
        assert_eq!(x.len(), self.variables.len(), "`{}` takes the variables {:?}", self.text, self.variables);
        assert!(x.iter().all(|column| column.len() == out.len()), "every variable has a value per sample");
        let whole = out.len() / WIDTH * WIDTH;
        if self.depth <= SHALLOW {
            shallow(&self.program, x, &mut out[..whole]);
        } else {
            deep(&self.program, x, &mut out[..whole]);
        }
        let mut one = vec![0.0; x.len()];
        for j in whole..out.len() {
            for (slot, column) in one.iter_mut().zip(x) {
                *slot = column[j];
            }
            out[j] = self.value(&one);
        }
    }
}

#[inline(always)]
fn vectors<const DEPTH: usize>(program: &[Step], x: &[&[f64]], out: &mut [f64]) {
    for (block, out) in out.chunks_exact_mut(WIDTH).enumerate() {
        let at = block * WIDTH;
        let variable = |i: usize| Lanes(x[i][at..at + WIDTH].try_into().expect("a whole vector"));
        out.copy_from_slice(&run::<Lanes, DEPTH>(program, variable).0);
    }
}

dispatch! {
    fn shallow(program: &[Step], x: &[&[f64]], out: &mut [f64]) {
        vectors::<SHALLOW>(program, x, out);
    }
}

dispatch! {
    fn deep(program: &[Step], x: &[&[f64]], out: &mut [f64]) {
        vectors::<STACK>(program, x, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_samples_are_the_samples_one_by_one() {
        let columns: [Vec<f64>; 2] =
            [0, 1].map(|c| (0..37).map(|i| f64::from(i * 7 % 11 + c) * 0.37 - 1.9).collect());
        for text in [
            "a^2 + b",
            "a + b + a*b",
            "step(a)*step(b)",
            "tanh(a) - b^3/(1 + a^2)",
            "-max(a, b) + min(a, 2)^0.5",
            "a+(b+(a+(b+(a+(b+1)*2)*3)*4)*5)",
        ] {
            let formula = Expression::parse(text, &["a", "b"]).unwrap();
            let mut out = vec![0.0; 37];
            formula.values(&[&columns[0], &columns[1]], &mut out);
            for (j, got) in out.iter().enumerate() {
                let one = formula.value(&[columns[0][j], columns[1][j]]);
                assert!(
                    got.to_bits() == one.to_bits() || (got.is_nan() && one.is_nan()),
                    "{text}: {got} {one}"
                );
            }
        }
    }
}

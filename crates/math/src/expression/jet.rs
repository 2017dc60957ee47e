//! Second-order jets: numbers that carry their first two derivatives along.

use super::Number;
use super::function::{Binary, Function, power, sign};

/// A value with its first and second derivative in one variable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jet {
    /// f
    pub value: f64,
    /// f′
    pub slope: f64,
    /// f″ (regular part)
    pub curvature: f64,
}

impl Jet {
    /// A number that does not depend on the variable.
    pub fn constant(value: f64) -> Self {
        Self { value, slope: 0.0, curvature: 0.0 }
    }

    /// The variable itself.
    pub fn variable(value: f64) -> Self {
        Self { value, slope: 1.0, curvature: 0.0 }
    }

    /// f∘u from f, f′, f″ at u:  (f∘u)′ = f′u′,  (f∘u)″ = f″u′² + f′u″.
    pub(super) fn chain(self, Self { value, slope, curvature }: Self) -> Self {
        // A zero factor wins over an infinite derivative: √x·0 has slope 0 at x = 0.
        let times = |a: f64, b: f64| if b == 0.0 { 0.0 } else { a * b };
        Self {
            value,
            slope: times(slope, self.slope),
            curvature: times(curvature, self.slope * self.slope) + times(slope, self.curvature),
        }
    }

    /// f∘u with the side of the break of f given as the sign of u.
    pub(super) fn apply_on_side(self, function: Function, side: f64) -> Self {
        if let Function::Sampled(table) = function {
            return self.chain(table.jet(self.value, 0.0));
        }
        let (slope, curvature) = function.derivatives(self.value, side);
        self.chain(Self { value: function.value(self.value, side), slope, curvature })
    }

    /// The larger (+1) or smaller (−1) of two, with the sign of their difference given.
    pub(super) fn select(self, right: Self, side: f64) -> Self {
        let (left_share, right_share) = (f64::midpoint(1.0, side), f64::midpoint(1.0, -side));
        // Shares are 0, 1/2 or 1; an infinite loser must not turn 0·∞ into NaN.
        let mix = |a: f64, b: f64| match side {
            1.0 => a,
            -1.0 => b,
            _ => left_share * a + right_share * b,
        };
        Self {
            value: mix(self.value, right.value),
            slope: mix(self.slope, right.slope),
            curvature: mix(self.curvature, right.curvature),
        }
    }

    fn multiply(self, right: Self) -> Self {
        Self {
            value: self.value * right.value,
            slope: self.slope * right.value + self.value * right.slope,
            curvature: self.curvature * right.value
                + 2.0 * self.slope * right.slope
                + self.value * right.curvature,
        }
    }

    fn raise(self, exponent: Self) -> Self {
        if exponent.slope != 0.0 || exponent.curvature != 0.0 {
            let (u, reciprocal) = (self.value, self.value.recip());
            let log = self.chain(Self { value: u.ln(), slope: reciprocal, curvature: -(u * u).recip() });
            return exponent.multiply(log).apply(Function::Exp);
        }
        let (u, c) = (self.value, exponent.value);
        // c = 0 and c = 1 first: their derivatives vanish, also where u^{c−1} is infinite.
        let slope = if c == 0.0 { 0.0 } else { c * power(u, c - 1.0) };
        let curvature = if c == 0.0 || c == 1.0 { 0.0 } else { c * (c - 1.0) * power(u, c - 2.0) };
        self.chain(Self { value: power(u, c), slope, curvature })
    }
}

impl Number for Jet {
    fn constant(value: f64) -> Self {
        Self::constant(value)
    }

    fn negate(self) -> Self {
        Self { value: -self.value, slope: -self.slope, curvature: -self.curvature }
    }

    fn apply(self, function: Function) -> Self {
        self.apply_on_side(function, sign(self.value))
    }

    fn combine(self, operation: Binary, right: Self) -> Self {
        let add = |a: Self, b: Self| Self {
            value: a.value + b.value,
            slope: a.slope + b.slope,
            curvature: a.curvature + b.curvature,
        };
        match operation {
            Binary::Add => add(self, right),
            Binary::Subtract => add(self, right.negate()),
            Binary::Multiply => self.multiply(right),
            Binary::Divide => {
                let (u, reciprocal) = (right.value, right.value.recip());
                let cube = reciprocal * reciprocal / u;
                let inverse = right.chain(Self {
                    value: reciprocal,
                    slope: -reciprocal * reciprocal,
                    curvature: 2.0 * cube,
                });
                // The quotient itself is divided, not multiplied by a rounded reciprocal.
                Self { value: self.value / u, ..self.multiply(inverse) }
            }
            Binary::Power => self.raise(right),
            Binary::Max => self.select(right, sign(self.value - right.value)),
            Binary::Min => self.select(right, sign(right.value - self.value)),
        }
    }
}

impl Number for f64 {
    fn constant(value: f64) -> Self {
        value
    }

    fn negate(self) -> Self {
        -self
    }

    fn apply(self, function: Function) -> Self {
        function.value(self, sign(self))
    }

    fn combine(self, operation: Binary, right: Self) -> Self {
        match operation {
            Binary::Add => self + right,
            Binary::Subtract => self - right,
            Binary::Multiply => self * right,
            Binary::Divide => self / right,
            Binary::Power => power(self, right),
            Binary::Max => self.max(right),
            Binary::Min => self.min(right),
        }
    }
}

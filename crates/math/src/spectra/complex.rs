//! Complex numbers with the operations that Stieltjes transforms need.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Complex {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

impl Complex {
    /// Creates re + i im.
    pub const fn new(re: f64, im: f64) -> Self {
        Self { re, im }
    }

    /// |z|².
    pub fn norm_squared(self) -> f64 {
        self.re * self.re + self.im * self.im
    }

    /// |z|.
    pub fn norm(self) -> f64 {
        self.re.hypot(self.im)
    }

    /// 1/z.
    pub fn reciprocal(self) -> Self {
        let square = self.norm_squared();
        Self::new(self.re / square, -self.im / square)
    }

    /// The square root with a non-negative real part.
    pub fn sqrt(self) -> Self {
        let larger = (0.5 * (self.norm() + self.re.abs())).sqrt();
        if larger == 0.0 {
            return Self::default();
        }
        // The other part follows from the product of both, im/2; a difference of squares would cancel.
        let smaller = 0.5 * self.im / larger;
        if self.re >= 0.0 {
            Self::new(larger, smaller)
        } else {
            Self::new(smaller.abs(), larger.copysign(self.im))
        }
    }
}

impl From<f64> for Complex {
    fn from(re: f64) -> Self {
        Self::new(re, 0.0)
    }
}

impl Add for Complex {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }
}

impl Sub for Complex {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }
}

impl Mul for Complex {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }
}

impl Mul<f64> for Complex {
    type Output = Self;
    fn mul(self, factor: f64) -> Self {
        Self::new(self.re * factor, self.im * factor)
    }
}

impl Div for Complex {
    type Output = Self;
    #[allow(clippy::suspicious_arithmetic_impl)] // division is multiplication by the reciprocal
    fn div(self, other: Self) -> Self {
        self * other.reciprocal()
    }
}

impl Neg for Complex {
    type Output = Self;
    fn neg(self) -> Self {
        Self::new(-self.re, -self.im)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn square_roots_and_quotients_invert_products() {
        for z in [
            Complex::new(3.0, -4.0),
            Complex::new(-2.0, 0.5),
            Complex::new(-1.0, 0.0),
            Complex::new(0.3, 2.0),
            Complex::new(2.0, 1e-9),
        ] {
            let root = z.sqrt();
            assert!(root.re >= 0.0 && (root * root - z).norm() < 1e-15 * z.norm());
            let w = Complex::new(0.7, -1.9);
            assert!(((z / w) * w - z).norm() < 1e-15 * z.norm());
        }
    }
}

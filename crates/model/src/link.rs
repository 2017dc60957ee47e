//! Links y = h(z1, …, zk, e): how a latent projection becomes a label, as a formula.
//!
//! Formulas are those of [`didact_math::expression`] in `z1` … `zk` (`z` if there is one direction) and the noise `e` (or
//! `eps`), written a little more freely: `3z1` and `z1 z2` are products, `1{z1 > 0}` is an indicator, `|z|^2` the squared
//! length.

use didact_math::expression::{Expression, ExpressionError, Notation};

/// A parsed link.
#[derive(Debug, Clone)]
pub struct Link {
    /// In z1, …, zk and e.
    formula: Expression,
    directions: usize,
    noisy: bool,
}

impl Link {
    /// Reads a link of k latent directions.
    pub fn parse(text: &str, directions: usize) -> Result<Self, ExpressionError> {
        let mut names: Vec<String> = (1..=directions).map(|j| format!("z{j}")).collect();
        names.push("e".into());
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let aliases: &[(&str, &str)] =
            if directions == 1 { &[("eps", "e"), ("z", "z1")] } else { &[("eps", "e")] };
        let vectors = [("z", 0..directions)];
        let notation =
            Notation { implicit_products: true, aliases, vectors: &vectors, ..Notation::default() };
        let formula = Expression::parse_with(text, &names, notation)?;
        let noisy = formula.uses(directions);
        Ok(Self { formula, directions, noisy })
    }

    /// k.
    pub fn directions(&self) -> usize {
        self.directions
    }

    /// True when the formula names the noise; otherwise noise is added to the label.
    pub fn names_noise(&self) -> bool {
        self.noisy
    }

    /// Standard deviation of the noise where none is given: a formula that names it means a standard normal.
    pub fn standard_noise(&self) -> f64 {
        if self.noisy { 1.0 } else { 0.0 }
    }

    /// True when the label can jump.
    pub fn has_jumps(&self) -> bool {
        self.formula.has_jumps()
    }

    /// h(z, e), or h(z) + e when the formula does not name the noise.
    pub fn label(&self, z: &[f64], noise: f64) -> f64 {
        let mut all = [0.0; 17];
        let label = if self.directions < all.len() {
            all[..self.directions].copy_from_slice(z);
            all[self.directions] = noise;
            self.formula.value(&all[..=self.directions])
        } else {
            self.formula.value(&[z, &[noise]].concat())
        };
        if self.noisy { label } else { label + noise }
    }

    /// The labels of many samples: `z[j]` holds direction j of every sample.
    pub fn labels(&self, z: &[&[f64]], noise: &[f64], out: &mut [f64]) {
        self.formula.values(&[z, &[noise]].concat(), out);
        if !self.noisy {
            out.iter_mut().zip(noise).for_each(|(y, e)| *y += e);
        }
    }

    /// ∂h/∂z_j.
    pub fn gradient(&self, z: &[f64], noise: f64, out: &mut [f64]) {
        let all = [z, &[noise]].concat();
        for (j, slope) in out.iter_mut().enumerate() {
            *slope = self.formula.jet(&all, j).slope;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_written_as_in_papers() {
        let cases: [(&str, usize, &[f64], f64); 12] = [
            ("z^2", 1, &[3.0], 9.0),
            ("z1^3-3z1", 1, &[2.0], 2.0),
            ("z1 z2", 2, &[2.0, 5.0], 10.0),
            ("z1+z2+z1*z2", 2, &[2.0, 5.0], 17.0),
            ("1{z1>0}1{z2>0}", 2, &[2.0, 5.0], 1.0),
            ("1{z1>0}1{z2>0}", 2, &[2.0, -5.0], 0.0),
            ("2 1{z1 < 1} + z1", 1, &[0.5], 2.5),
            ("|z|^2", 3, &[1.0, 2.0, 3.0], 14.0),
            ("relu(z1)*relu(z2)", 2, &[2.0, 5.0], 10.0),
            ("3(z1+1)(z1-1)", 1, &[3.0], 24.0),
            ("tanh(z1) + z2^2/2", 2, &[0.0, 2.0], 2.0),
            ("1e-3z1", 1, &[2.0], 0.002),
        ];
        for (text, k, z, expected) in cases {
            let link = Link::parse(text, k).unwrap();
            assert!((link.label(z, 0.0) - expected).abs() < 1e-12, "{text}: {}", link.label(z, 0.0));
        }
    }

    #[test]
    fn noise_is_added_unless_the_link_names_it() {
        assert_eq!(Link::parse("z^2", 1).unwrap().label(&[2.0], 0.5), 4.5);
        assert_eq!(Link::parse("z^2 + 0.2eps", 1).unwrap().label(&[2.0], 0.5), 4.1);
        assert_eq!(Link::parse("z1*e", 1).unwrap().label(&[2.0], 0.5), 1.0);
        assert!(Link::parse("z^2", 1).is_ok_and(|l| !l.names_noise()));
    }

    #[test]
    fn many_labels_and_gradients_are_those_of_single_samples() {
        let link = Link::parse("z1+z2+z1*z2", 2).unwrap();
        let (a, b, e) = (vec![0.3, -1.0, 2.0], vec![1.5, 0.2, -0.7], vec![0.0, 0.1, -0.2]);
        let mut out = vec![0.0; 3];
        link.labels(&[&a, &b], &e, &mut out);
        for j in 0..3 {
            assert_eq!(out[j], link.label(&[a[j], b[j]], e[j]));
        }
        let mut gradient = [0.0; 2];
        link.gradient(&[0.3, 1.5], 0.0, &mut gradient);
        assert_eq!(gradient, [2.5, 1.3]);
    }

    #[test]
    fn a_wrong_name_is_an_error() {
        assert!(Link::parse("z3", 2).is_err());
        assert!(Link::parse("w^2", 1).is_err());
        assert!(Link::parse("z", 2).is_err());
    }
}

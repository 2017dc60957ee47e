//! Linear least-squares fits, straight lines and power laws, with standard errors.
//!
//! The method is weighted least squares by Householder QR: G. H. Golub and C. F. Van Loan, *Matrix Computations*, §5.3. Each fit
//! says with [`Noise`] whether the errors of the values are known or estimated from the residuals.

use thiserror::Error;

/// What is known about the errors of the measured values.
#[derive(Clone, Copy, Debug)]
pub enum Noise<'a> {
    /// Standard error of every value. The standard errors of the fit follow from these alone, and χ² (`chi2`) tests the model.
    Known(&'a [f64]),
    /// The errors are equal but unknown. Their variance is estimated from the residuals as χ²/dof, so χ² is no test of the model.
    Estimated,
}

/// Why a fit was refused.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum FitError {
    /// Two inputs that must have the same length do not.
    #[error("{what}: expected {expected} numbers, got {got}")]
    Length {
        /// Name of the input.
        what: &'static str,
        /// The length it must have.
        expected: usize,
        /// The length it has.
        got: usize,
    },
    /// Too few points for the number of parameters (one more is needed where the noise is estimated).
    #[error(
        "{points} points cannot determine {needed_for}: at least {needed} are needed\n\nhint: widen the window"
    )]
    TooFewPoints {
        /// Points given (inside the window).
        points: usize,
        /// Points needed.
        needed: usize,
        /// What was to be determined.
        needed_for: &'static str,
    },
    /// An input number is unusable.
    #[error("{what} number {index} is {value}; {requirement}")]
    BadValue {
        /// Name of the input.
        what: &'static str,
        /// Position in it.
        index: usize,
        /// The number.
        value: f64,
        /// What it should be.
        requirement: &'static str,
    },
    /// The columns of the design matrix are linearly dependent to rounding.
    #[error("parameter {parameter} is not determined: its column depends linearly on the columns before it")]
    Degenerate {
        /// First column that depends on the earlier ones.
        parameter: usize,
    },
}

/// A least-squares fit  y ≈ X β.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The coefficients β.
    pub coefficients: Vec<f64>,
    /// Standard errors of the coefficients, the square roots of the diagonal of `covariance`.
    pub standard_errors: Vec<f64>,
    /// Covariance of the coefficients, row-major, parameters × parameters.
    pub covariance: Vec<f64>,
    /// χ² = Σ_i ((y_i − (Xβ)_i) / σ_i)², with σ_i = 1 for estimated noise.
    pub chi2: f64,
    /// Points minus parameters.
    pub dof: usize,
}

/// Weighted linear least squares: β minimises χ² = Σ_i ((y_i − Σ_j X_ij β_j) / σ_i)².
///
/// `design` is X, row-major, one row per value. The columns are scaled to norm 1 and X is factorised by Householder QR, which
/// does not square its condition number as the normal equations do (Golub & Van Loan, *Matrix Computations*, §5.3). The
/// covariance is Cov β = (Xᵀ σ⁻² X)⁻¹, multiplied by χ²/dof where the noise is estimated.
pub fn least_squares(
    design: &[f64],
    parameters: usize,
    values: &[f64],
    noise: Noise<'_>,
) -> Result<Fit, FitError> {
    let (points, p) = (values.len(), parameters);
    expect_length("design matrix", points * p, design.len())?;
    all_finite("design matrix", design)?;
    all_finite("values", values)?;
    let needed = match noise {
        Noise::Known(errors) => {
            check_errors(errors, points)?;
            p
        }
        Noise::Estimated => p + 1,
    };
    if points < needed || p == 0 {
        return Err(FitError::TooFewPoints { points, needed: needed.max(1), needed_for: "the parameters" });
    }
    // The columns of X/σ, and the right-hand side y/σ.
    let weight = |i: usize| match noise {
        Noise::Known(errors) => 1.0 / errors[i],
        Noise::Estimated => 1.0,
    };
    let mut columns: Vec<Vec<f64>> =
        (0..p).map(|j| (0..points).map(|i| design[i * p + j] * weight(i)).collect()).collect();
    let mut target: Vec<f64> = (0..points).map(|i| values[i] * weight(i)).collect();
    let scales: Vec<f64> = columns.iter().map(|c| norm(c)).collect();
    for (j, (column, &scale)) in columns.iter_mut().zip(&scales).enumerate() {
        if scale == 0.0 {
            return Err(FitError::Degenerate { parameter: j });
        }
        for value in column {
            *value /= scale;
        }
    }
    let diagonal = triangularise(&mut columns, &mut target)?;
    let upper = |i: usize, j: usize| if i == j { diagonal[j] } else { columns[j][i] };

    let scaled = back_substitute(upper, &target[..p]);
    let chi2 = target[p..].iter().map(|r| r * r).sum::<f64>();
    let dof = points - p;
    let noise_variance = match noise {
        Noise::Known(_) => 1.0,
        Noise::Estimated => chi2 / dof as f64,
    };
    // R⁻¹, column by column; Cov = R⁻¹ R⁻ᵀ.
    let inverse: Vec<Vec<f64>> = (0..p)
        .map(|k| {
            let unit: Vec<f64> = (0..p).map(|i| f64::from(u8::from(i == k))).collect();
            back_substitute(upper, &unit)
        })
        .collect();
    let mut covariance = vec![0.0; p * p];
    for i in 0..p {
        for j in 0..p {
            let sum: f64 = inverse.iter().map(|column| column[i] * column[j]).sum();
            covariance[i * p + j] = noise_variance * sum / (scales[i] * scales[j]);
        }
    }
    Ok(Fit {
        coefficients: (0..p).map(|j| scaled[j] / scales[j]).collect(),
        standard_errors: (0..p).map(|j| covariance[j * p + j].sqrt()).collect(),
        covariance,
        chi2,
        dof,
    })
}

/// A straight line  y ≈ intercept + slope · x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineFit {
    /// Value at x = 0.
    pub intercept: f64,
    /// Standard error of the intercept.
    pub intercept_error: f64,
    /// Slope.
    pub slope: f64,
    /// Standard error of the slope.
    pub slope_error: f64,
    /// Covariance of intercept and slope.
    pub covariance: f64,
    /// χ² of the fit, as in [`Fit`].
    pub chi2: f64,
    /// Points − 2.
    pub dof: usize,
}

impl LineFit {
    /// Value of the line at x and its standard error.
    pub fn at(&self, x: f64) -> (f64, f64) {
        let variance =
            self.intercept_error.powi(2) + 2.0 * x * self.covariance + (x * self.slope_error).powi(2);
        (self.intercept + self.slope * x, variance.max(0.0).sqrt())
    }
}

/// Fits a straight line to the points (x, y).
pub fn straight_line(x: &[f64], y: &[f64], noise: Noise<'_>) -> Result<LineFit, FitError> {
    expect_length("y", x.len(), y.len())?;
    let design: Vec<f64> = x.iter().flat_map(|&x| [1.0, x]).collect();
    let fit = least_squares(&design, 2, y, noise)?;
    Ok(LineFit {
        intercept: fit.coefficients[0],
        intercept_error: fit.standard_errors[0],
        slope: fit.coefficients[1],
        slope_error: fit.standard_errors[1],
        covariance: fit.covariance[1],
        chi2: fit.chi2,
        dof: fit.dof,
    })
}

/// A power law  y ≈ prefactor · x^exponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLawFit {
    /// Slope of ln y against ln x.
    pub exponent: f64,
    /// Its standard error.
    pub exponent_error: f64,
    /// y at x = 1 on the fitted line.
    pub prefactor: f64,
    /// Its standard error, to first order: prefactor times the error of ln prefactor.
    pub prefactor_error: f64,
    /// Number of points inside the window, which are the ones used.
    pub points: usize,
    /// χ² of the fit in ln y.
    pub chi2: f64,
    /// Points − 2.
    pub dof: usize,
}

/// Fits y = prefactor · x^exponent to the points with window.0 ≤ x ≤ window.1, by a straight line in ln x and ln y.
///
/// Known standard errors σ of y become σ/y for ln y, to first order in σ/y. A point inside the window with x ≤ 0 or y ≤ 0 has
/// no logarithm and is an error; leaving it out would bias the exponent, because it removes the low values of noisy points.
pub fn power_law(
    x: &[f64],
    y: &[f64],
    noise: Noise<'_>,
    window: (f64, f64),
) -> Result<PowerLawFit, FitError> {
    expect_length("y", x.len(), y.len())?;
    if let Noise::Known(errors) = noise {
        check_errors(errors, x.len())?;
    }
    let mut log_x = Vec::new();
    let mut log_y = Vec::new();
    let mut log_errors = Vec::new();
    for i in (0..x.len()).filter(|&i| window.0 <= x[i] && x[i] <= window.1) {
        for (what, value) in [("x", x[i]), ("y", y[i])] {
            if !(value > 0.0 && value.is_finite()) {
                let requirement = "a power law needs positive values in its window";
                return Err(FitError::BadValue { what, index: i, value, requirement });
            }
        }
        log_x.push(x[i].ln());
        log_y.push(y[i].ln());
        if let Noise::Known(errors) = noise {
            log_errors.push(errors[i] / y[i]);
        }
    }
    let points = log_x.len();
    let (noise, needed) = match noise {
        Noise::Known(_) => (Noise::Known(&log_errors), 2),
        Noise::Estimated => (Noise::Estimated, 3),
    };
    if points < needed {
        return Err(FitError::TooFewPoints { points, needed, needed_for: "an exponent and its error" });
    }
    let line = straight_line(&log_x, &log_y, noise)?;
    let prefactor = line.intercept.exp();
    Ok(PowerLawFit {
        exponent: line.slope,
        exponent_error: line.slope_error,
        prefactor,
        prefactor_error: prefactor * line.intercept_error,
        points,
        chi2: line.chi2,
        dof: line.dof,
    })
}

/// Householder QR in place: `columns[j][..j]` holds the upper part of R, the returned vector its diagonal, and
/// `target` becomes Qᵀ target.
fn triangularise(columns: &mut [Vec<f64>], target: &mut [f64]) -> Result<Vec<f64>, FitError> {
    let mut diagonal = Vec::with_capacity(columns.len());
    for k in 0..columns.len() {
        let (done, rest) = columns.split_at_mut(k + 1);
        let reflector = &mut done[k][k..];
        let length = norm(reflector);
        // The columns have norm 1, so what is left of a linearly dependent one is of the size of rounding.
        if length <= 8.0 * f64::EPSILON * target.len() as f64 {
            return Err(FitError::Degenerate { parameter: k });
        }
        let alpha = -length.copysign(reflector[0]);
        reflector[0] -= alpha;
        let half_norm2 = length * (length + (reflector[0] + alpha).abs());
        for column in rest.iter_mut().map(|c| &mut c[k..]).chain([&mut target[k..]]) {
            let projection = dot(reflector, column) / half_norm2;
            for (value, &v) in column.iter_mut().zip(reflector.iter()) {
                *value -= projection * v;
            }
        }
        diagonal.push(alpha);
    }
    Ok(diagonal)
}

/// Solves R x = right for an upper-triangular R.
fn back_substitute(upper: impl Fn(usize, usize) -> f64, right: &[f64]) -> Vec<f64> {
    let mut x = right.to_vec();
    for i in (0..x.len()).rev() {
        let known: f64 = (i + 1..x.len()).map(|j| upper(i, j) * x[j]).sum();
        x[i] = (x[i] - known) / upper(i, i);
    }
    x
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Euclidean norm, safe against overflow of the squares.
fn norm(a: &[f64]) -> f64 {
    let largest = a.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    largest * a.iter().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt()
}

fn expect_length(what: &'static str, expected: usize, got: usize) -> Result<(), FitError> {
    if expected == got { Ok(()) } else { Err(FitError::Length { what, expected, got }) }
}

fn all_finite(what: &'static str, values: &[f64]) -> Result<(), FitError> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => {
            Err(FitError::BadValue { what, index, value: values[index], requirement: "it must be finite" })
        }
        None => Ok(()),
    }
}

fn check_errors(errors: &[f64], points: usize) -> Result<(), FitError> {
    expect_length("standard errors", points, errors.len())?;
    match errors.iter().position(|&e| !(e > 0.0 && e.is_finite())) {
        Some(index) => Err(FitError::BadValue {
            what: "standard errors",
            index,
            value: errors[index],
            requirement: "it must be positive; use estimated noise where errors are unknown",
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Deterministic standard normals for the coverage tests (SplitMix64 and Box-Muller).
    struct Normals(u64);

    impl Normals {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn draw(&mut self) -> f64 {
            (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
        }
    }

    #[test]
    fn a_line_through_four_points_agrees_with_the_normal_equations() {
        // Normal equations by hand: x̄ = 1.5, ȳ = 4, Sxx = 5, Sxy = 10, residuals (0,0,0,0) + (1,-1,-1,1)/2.
        let x = [0.0, 1.0, 2.0, 3.0];
        let y = [1.5, 2.5, 4.5, 7.5];
        let line = straight_line(&x, &y, Noise::Estimated).expect("fit");
        assert!((line.slope - 2.0).abs() < 1e-14 && (line.intercept - 1.0).abs() < 1e-14);
        assert!((line.chi2 - 1.0).abs() < 1e-13 && line.dof == 2);
        // s² = 1/2; Var slope = s²/5, Var intercept = s² (1/4 + 1.5²/5), Cov = -s² 1.5/5.
        assert!((line.slope_error - 0.1_f64.sqrt()).abs() < 1e-14);
        assert!((line.intercept_error - (0.5 * 0.7_f64).sqrt()).abs() < 1e-14);
        assert!((line.covariance + 0.15).abs() < 1e-14);
        let (value, error) = line.at(1.5);
        assert!((value - 4.0).abs() < 1e-14 && (error - (0.5_f64 / 4.0).sqrt()).abs() < 1e-14);
    }

    #[test]
    fn known_errors_weight_the_mean() {
        // One column of ones: the weighted mean, variance 1/Σσ⁻².
        let fit = least_squares(&[1.0; 3], 1, &[1.0, 2.0, 4.0], Noise::Known(&[1.0, 0.5, 2.0])).expect("fit");
        let weights = [1.0, 4.0, 0.25];
        assert!((fit.coefficients[0] - (1.0 + 8.0 + 1.0) / 5.25).abs() < 1e-14);
        assert!((fit.standard_errors[0] - (1.0_f64 / 5.25).sqrt()).abs() < 1e-14);
        let mean = fit.coefficients[0];
        let chi2: f64 = [1.0, 2.0, 4.0].iter().zip(weights).map(|(y, w)| w * (y - mean).powi(2)).sum();
        assert!((fit.chi2 - chi2).abs() < 1e-13);
    }

    #[test]
    fn an_ill_conditioned_polynomial_fit_is_accurate() {
        // Sixth degree on [1, 2]: the normal equations have condition number ~1e13 and lose all but 3 digits.
        let exact = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0];
        let x: Vec<f64> = (0..50).map(|i| 1.0 + f64::from(i) / 49.0).collect();
        let design: Vec<f64> = x.iter().flat_map(|&x| (0..7).map(move |k| x.powi(k))).collect();
        let y: Vec<f64> = design.chunks(7).map(|row| dot(row, &exact)).collect();
        let fit = least_squares(&design, 7, &y, Noise::Estimated).expect("fit");
        for (got, want) in fit.coefficients.iter().zip(exact) {
            assert!((got - want).abs() < 1e-6, "{got} {want}");
        }
    }

    #[test]
    fn an_exact_power_law_is_recovered_from_its_window_only() {
        let x: Vec<f64> = (0..40).map(|i| 10f64.powf(f64::from(i) / 10.0)).collect();
        let y: Vec<f64> = x.iter().map(|&x| if x < 10.0 { 5.0 } else { 3.0 * x.powf(-0.75) }).collect();
        let fit = power_law(&x, &y, Noise::Estimated, (10.5, 1e3)).expect("fit");
        assert!((fit.exponent + 0.75).abs() < 1e-13 && (fit.prefactor - 3.0).abs() < 1e-12);
        assert_eq!(fit.points, x.iter().filter(|&&x| (10.5..=1e3).contains(&x)).count());
    }

    #[test]
    fn unusable_input_is_refused_with_its_position() {
        let degenerate =
            least_squares(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0], 2, &[1.0, 2.0, 3.0], Noise::Estimated);
        assert_eq!(degenerate, Err(FitError::Degenerate { parameter: 1 }));
        let negative = power_law(&[1.0, 2.0, 3.0], &[1.0, -2.0, 3.0], Noise::Estimated, (0.0, 9.0));
        assert!(matches!(negative, Err(FitError::BadValue { what: "y", index: 1, .. })));
        let few = power_law(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], Noise::Estimated, (2.5, 9.0));
        assert!(matches!(few, Err(FitError::TooFewPoints { points: 1, needed: 3, .. })));
        let zero = straight_line(&[1.0, 2.0], &[1.0, 2.0], Noise::Known(&[1.0, 0.0]));
        assert!(matches!(zero, Err(FitError::BadValue { index: 1, .. })));
        assert!(matches!(
            straight_line(&[1.0], &[1.0, 2.0], Noise::Estimated),
            Err(FitError::Length { expected: 1, got: 2, .. })
        ));
    }

    #[test]
    fn one_standard_error_covers_the_true_value_in_68_percent_of_the_fits() {
        // Heteroscedastic line, 4000 repeats: 68.27 % within one known standard error; binomial error 0.74 %.
        let x: Vec<f64> = (0..12).map(f64::from).collect();
        let errors: Vec<f64> = x.iter().map(|x| 0.2 + 0.1 * x).collect();
        let mut normals = Normals(11);
        let repeats = 4000;
        let mut inside = [0.0; 2];
        let mut chi2 = 0.0;
        for _ in 0..repeats {
            let y: Vec<f64> =
                x.iter().zip(&errors).map(|(x, e)| 2.0 - 0.3 * x + e * normals.draw()).collect();
            let line = straight_line(&x, &y, Noise::Known(&errors)).expect("fit");
            inside[0] += f64::from(u8::from((line.intercept - 2.0).abs() < line.intercept_error));
            inside[1] += f64::from(u8::from((line.slope + 0.3).abs() < line.slope_error));
            chi2 += line.chi2;
        }
        let n = f64::from(repeats);
        let sigma = (0.6827 * 0.3173 / n).sqrt();
        for share in inside {
            assert!((share / n - 0.6827).abs() < 4.0 * sigma, "{}", share / n);
        }
        // χ² with 10 degrees of freedom: mean 10, variance 20.
        assert!((chi2 / n - 10.0).abs() < 4.0 * (20.0 / n).sqrt(), "{}", chi2 / n);
    }

    #[test]
    fn the_estimated_standard_error_is_the_scatter_of_the_exponent() {
        let x: Vec<f64> = (1..=30).map(f64::from).collect();
        let mut normals = Normals(5);
        let repeats = 3000;
        let (mut variance, mut predicted) = (0.0, 0.0);
        for _ in 0..repeats {
            let y: Vec<f64> = x.iter().map(|&x| 2.0 * x.powf(1.5) * (0.05 * normals.draw()).exp()).collect();
            let fit = power_law(&x, &y, Noise::Estimated, (0.0, f64::INFINITY)).expect("fit");
            variance += (fit.exponent - 1.5).powi(2);
            predicted += fit.exponent_error.powi(2);
        }
        // Both averages estimate Var exponent; the first has relative error √(2/3000) = 2.6 %.
        assert!((variance / predicted - 1.0).abs() < 4.0 * 0.026, "{}", variance / predicted);
    }

    proptest! {
        #[test]
        fn residuals_are_orthogonal_to_the_design(
            values in prop::collection::vec(-10.0..10.0f64, 8),
            slopes in prop::collection::vec(-3.0..3.0f64, 8),
        ) {
            let spread = slopes.iter().fold(0.0_f64, |m, s| m.max((s - slopes[0]).abs()));
            prop_assume!(spread > 1e-2);
            let line = straight_line(&slopes, &values, Noise::Estimated).expect("fit");
            let residual: Vec<f64> =
                slopes.iter().zip(&values).map(|(x, y)| y - line.intercept - line.slope * x).collect();
            prop_assert!(residual.iter().sum::<f64>().abs() < 1e-9);
            prop_assert!(dot(&residual, &slopes).abs() < 1e-9);
            prop_assert!((dot(&residual, &residual) - line.chi2).abs() < 1e-9 * (1.0 + line.chi2));
        }
    }
}

//! Hermite units: the variance polynomial D_k, the means, and the alignments at which escape takes infinitely long.
//!
//! p_k(r) = E[He_k(√r z)²]/k! has the generating function Σ_k p_k t^k = [(1 − t)(1 + (1 − 2r)t)]^{−1/2} (Mehler's
//! kernel, averaged). So D_k(r) = p_k′(r)/k follows from sums whose terms have one sign and from a stable recurrence:
//! no digit is lost at any k, where the alternating sum of the definition loses half of them at k = 20
//! (docs/derivations/lora.md#eq-18 and docs/derivations/lora.md#eq-19).

use didact_math::roots::find_roots_by_scan;

/// Largest order on offer, that of the activations themselves.
pub const LARGEST_ORDER: usize = 60;

/// c_p = C(2p, p)/4^p, the size of D_k(0) for p = ⌊k/2⌋.
pub fn central(p: usize) -> f64 {
    (1..=p).map(|j| (2 * j - 1) as f64 / (2 * j) as f64).product()
}

/// k k!, the inverse of the time rescaling δ of a Hermite unit.
pub fn time_scale(k: usize) -> f64 {
    (1..=k).map(|j| j as f64).product::<f64>() * k as f64
}

/// D_k(r) = S_k′(r)/(k k!), S_k(r) = E[He_k(√r z)²], k ≥ 1.
///
/// ∂_r of the generating function gives k D_k = g_{k−1} − g_{k−2} with Σ g_n t^n = [1 − 2rt + (2r − 1)t²]^{−3/2}:
/// Gegenbauer polynomials, n g_n = (2n + 1) r g_{n−1} − (n + 1)(2r − 1) g_{n−2}. Below r = 1/2 both terms are positive;
/// above, the sum over (2r − 1)^j has positive terms only.
pub fn variance_slope(k: usize, r: f64) -> f64 {
    if r >= 0.5 {
        return above_half(k, 2.0 * r - 1.0);
    }
    let (mut now, mut before) = (1.0, 0.0);
    for n in 1..k {
        let n = n as f64;
        (now, before) = (((2.0 * n + 1.0) * r * now - (n + 1.0) * (2.0 * r - 1.0) * before) / n, now);
    }
    (now - before) / k as f64
}

/// k D_k = Σ_j (2j + 1) c_j c_{k−1−j} (2r − 1)^j, y = 2r − 1 ≥ 0.
fn above_half(k: usize, y: f64) -> f64 {
    let mut power = 1.0;
    let mut sum = 0.0;
    for j in 0..k {
        sum += (2 * j + 1) as f64 * central(j) * central(k - 1 - j) * power;
        power *= y;
    }
    sum / k as f64
}

/// D_k′(r), by the same route: half a derivative by y above 1/2, the differentiated recurrence below.
pub fn variance_curvature(k: usize, r: f64) -> f64 {
    let (mut now, mut before) = ((1.0, 0.0), (0.0, 0.0));
    for n in 1..k {
        let n = n as f64;
        let (a, b) = (2.0 * n + 1.0, n + 1.0);
        let value = (a * r * now.0 - b * (2.0 * r - 1.0) * before.0) / n;
        let slope = (a * (now.0 + r * now.1) - b * (2.0 * before.0 + (2.0 * r - 1.0) * before.1)) / n;
        (now, before) = ((value, slope), now);
    }
    (now.1 - before.1) / k as f64
}

/// Coefficients of D_k(r), powers r^0 .. r^{k−1}.
///
/// [r^i] p_k = (−1)^{k−i} c_i 2^i Σ_l (1/2 + i)_l/l! C(i, k − i − 2l): terms of one sign.
pub fn variance_slope_coefficients(k: usize) -> Vec<f64> {
    (1..=k)
        .map(|i| {
            let mut sum = 0.0;
            let mut rising = 1.0;
            for l in 0..=(k - i) / 2 {
                sum += rising * binomial(i, k - i - 2 * l);
                rising *= (0.5 + i as f64 + l as f64) / (l + 1) as f64;
            }
            let sign = if (k - i).is_multiple_of(2) { 1.0 } else { -1.0 };
            sign * central(i) * 2f64.powi(i as i32) * sum * i as f64 / k as f64
        })
        .collect()
}

fn binomial(n: usize, k: usize) -> f64 {
    if k > n {
        return 0.0;
    }
    (0..k).map(|j| (n - j) as f64 / (j + 1) as f64).product()
}

/// `E[He_k(s)]`, s ~ N(0, r): k! ((r − 1)/2)^{k/2}/(k/2)!, 0 for odd k.
pub fn mean(k: usize, r: f64) -> f64 {
    if !k.is_multiple_of(2) {
        return 0.0;
    }
    // k!/(k/2)! = ∏_{j ≤ k/2} (k/2 + j)
    (1..=k / 2).map(|j| (k / 2 + j) as f64 * 0.5 * (r - 1.0)).product()
}

/// A(μ) and B(μ) of matched He_k in the rescaled time δ = 1/(k k!): B = −D_k(μ²), A = μ^{k−1} + μB.
pub fn drift(k: usize, mu: f64) -> (f64, f64) {
    let b = -variance_slope(k, mu * mu);
    (mu.powi(k as i32 - 1) + mu * b, b)
}

/// All zeros of A in (0, 1) for matched He_k: there λ₊ (`lambda_plus`) vanishes and escape takes infinitely long
/// (docs/derivations/lora.md#s5-1).
///
/// A/μ = μ^{k−2} − D_k(μ²) also vanishes at μ = 1, from above, since its slope there is 1 − 2k; the scan ends before.
pub fn singular_alignments(k: usize) -> Vec<f64> {
    let reduced = |mu: f64| mu.powi(k as i32 - 2) - variance_slope(k, mu * mu);
    find_roots_by_scan(reduced, 1e-6, 0.9999, 8001)
}

/// At a singular μ the line u = 0 is a line of fixed points; it is stable for |m| below m_c = √(−B/K),
/// K = (k − 1)μ^{k−2} − 2μ²D_k′(μ²). `None` where it is stable for every m (docs/derivations/lora.md#eq-30).
pub fn stable_overlap(k: usize, mu: f64) -> Option<f64> {
    let curvature = (k - 1) as f64 * mu.powi(k as i32 - 2) - 2.0 * mu * mu * variance_curvature(k, mu * mu);
    let square = variance_slope(k, mu * mu) / curvature;
    (square > 0.0 && square < 1.0).then(|| square.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_math::gauss::polynomial::horner;

    #[test]
    fn printed_polynomials_are_found() {
        let printed: [&[f64]; 4] = [
            &[-0.5, 1.5],
            &[0.5, -2.0, 2.5],
            &[-3.0 / 8.0, 21.0 / 8.0, -45.0 / 8.0, 35.0 / 8.0],
            &[3.0 / 8.0, -3.0, 39.0 / 4.0, -14.0, 63.0 / 8.0],
        ];
        for (index, expected) in printed.iter().enumerate() {
            let got = variance_slope_coefficients(index + 2);
            for (g, e) in got.iter().zip(*expected) {
                assert!((g - e).abs() < 1e-14 * e.abs(), "{got:?}");
            }
        }
    }

    #[test]
    fn three_ways_to_the_variance_polynomial_agree() {
        for k in 1..=12 {
            let coefficients = variance_slope_coefficients(k);
            let size: f64 = coefficients.iter().map(|c| c.abs()).sum();
            for r in [0.0, 0.03, 0.3, 0.49, 0.5, 0.51, 0.8, 1.0, 1.4] {
                let value = variance_slope(k, r);
                // The monomial sum loses digits in proportion to its terms; the two others do not.
                let scale = size * f64::max(1.0, r.powi(k as i32));
                assert!((value - horner(&coefficients, r)).abs() < 1e-14 * scale, "{k} {r}");
                let direct = above_half(k, 2.0 * r - 1.0);
                assert!((value - direct).abs() < 1e-13 * (1.0 + value.abs()), "{k} {r}: {value} {direct}");
            }
        }
    }

    /// The numerator over k 4^{k−1} of D_k at r = n/2^7, in whole numbers.
    #[test]
    fn no_digit_is_lost_where_exact_arithmetic_can_tell() {
        let choose = |n: i128, k: i128| (0..k).fold(1i128, |c, j| c * (n - j) / (j + 1));
        for k in [5i128, 9, 12] {
            for n in [3i128, 17, 40, 61, 90] {
                // Σ_j (2j + 1) C(2j,j) C(2(k−1−j), k−1−j) (2n − 128)^j 128^{k−1−j}
                let sum: i128 = (0..k)
                    .map(|j| {
                        (2 * j + 1)
                            * choose(2 * j, j)
                            * choose(2 * (k - 1 - j), k - 1 - j)
                            * (2 * n - 128).pow(j as u32)
                            * 128i128.pow((k - 1 - j) as u32)
                    })
                    .sum();
                let scale = k as f64 * 4f64.powi(k as i32 - 1) * 128f64.powi(k as i32 - 1);
                let (exact, got) = (sum as f64 / scale, variance_slope(k as usize, n as f64 / 128.0));
                assert!((got - exact).abs() < 4e-15, "k = {k}, n = {n}: {got} and {exact}");
            }
        }
    }

    #[test]
    fn values_and_slopes_at_the_ends_are_known() {
        for k in 1..=60 {
            assert!((variance_slope(k, 1.0) - 1.0).abs() < 1e-13, "{k}");
            let slope = 1.5 * (k - 1) as f64;
            assert!((variance_curvature(k, 1.0) - slope).abs() < 1e-12 * (1.0 + slope), "{k}");
            let sign = if k % 2 == 1 { 1.0 } else { -1.0 };
            assert!((variance_slope(k, 0.0) - sign * central(k / 2)).abs() < 1e-14, "{k}");
        }
    }

    #[test]
    fn singular_alignments_are_those_of_the_spec_and_zeros_to_all_digits() {
        let known: [(usize, &[f64]); 8] = [
            (2, &[]),
            (3, &[0.3207243473230675]),
            (8, &[]),
            (9, &[0.5358580730952882]),
            (10, &[0.3967893025649656, 0.5732010245551071]),
            (14, &[0.3538318395668381, 0.6808412371606449]),
            (19, &[0.7574776464308583]),
            (20, &[0.3138188056548880, 0.7686003108494268]),
        ];
        for (k, expected) in known {
            let got = singular_alignments(k);
            assert_eq!(got.len(), expected.len(), "{k}: {got:?}");
            for (g, e) in got.iter().zip(expected) {
                assert!((g - e).abs() < 1e-14, "{k}: {g} and {e}");
                assert!(drift(k, *g).0.abs() < 1e-12);
            }
        }
        let third = singular_alignments(3)[0];
        assert!((5.0 * third.powi(3) + 5.0 * third * third + third - 1.0).abs() < 1e-14);
        assert!((stable_overlap(3, third).unwrap() - 0.58192796).abs() < 1e-8);
    }

    #[test]
    fn means_vanish_at_unit_variance_and_match_the_closed_form() {
        assert!((mean(6, 0.5) + 1.875).abs() < 1e-15);
        assert_eq!((mean(4, 1.0), mean(5, 0.3)), (0.0, 0.0));
        assert!((mean(2, 0.3) + 0.7).abs() < 1e-15);
    }
}

use super::*;

type SliceFunction = fn(&[f64], &mut [f64]);
type InPlace = fn(&mut [f64]);

/// Distance between two numbers in units of the last place (ulp) of the expected one.
fn ulp(got: f64, expected: f64) -> f64 {
    if got == expected || (got.is_nan() && expected.is_nan()) {
        return 0.0;
    }
    let unit = f64::from_bits(expected.abs().to_bits() + 1) - expected.abs();
    (got - expected).abs() / unit
}

fn grid(from: f64, to: f64, count: usize) -> Vec<f64> {
    (0..=count).map(|i| from + (to - from) * (i as f64 / count as f64)).collect()
}

/// Positive numbers of all sizes: a fine grid of exponents, with mantissas that are not round.
fn sizes() -> Vec<f64> {
    (0..400_000_u64).map(|i| f64::from_bits(i * 23_056_000_000_003)).filter(|x| x.is_finite()).collect()
}

fn assert_within(name: &str, limit: f64, inputs: &[f64], function: SliceFunction, exact: fn(f64) -> f64) {
    let mut got = vec![0.0; inputs.len()];
    function(inputs, &mut got);
    let mut worst = (0.0, 0.0);
    for (&x, &y) in inputs.iter().zip(&got) {
        let error = ulp(y, exact(x));
        if error > worst.0 || error.is_nan() {
            worst = (error, x);
        }
    }
    assert!(worst.0 <= limit, "{name}: {} ulp at {:e}", worst.0, worst.1);
}

#[test]
fn exp_is_within_1_ulp_from_subnormals_to_overflow() {
    assert_within("exp", 1.0, &grid(-760.0, 720.0, 1_000_000), exp, libm::exp);
    assert_within("exp", 1.0, &grid(-1.0, 1.0, 1_000_000), exp, libm::exp);
    assert_within(
        "exp",
        0.0,
        &[0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e300, -1e300],
        exp,
        libm::exp,
    );
}

#[test]
fn exp_of_negative_is_within_2_ulp() {
    let list = |x: &[f64], y: &mut [f64]| x.iter().zip(y).for_each(|(&x, y)| *y = scalar::exp_of_negative(x));
    assert_within("exp", 2.0, &grid(-700.0, 0.0, 1_000_000), list, libm::exp);
    assert!(scalar::exp_of_negative(-1e9) < 1e-303 && scalar::exp_of_negative(f64::NAN).is_nan());
}

#[test]
fn ln_is_within_1_ulp_from_subnormals_to_overflow() {
    assert_within("ln", 1.0, &sizes(), ln, libm::log);
    assert_within("ln", 1.0, &grid(0.5, 2.0, 1_000_000), ln, libm::log);
    let special = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, f64::MAX];
    assert_within("ln", 1.0, &special, ln, libm::log);
    assert!(sizes().iter().filter(|x| x.is_normal()).all(|&x| scalar::ln(x) == scalar::ln_normal(x)));
}

#[test]
fn asin_is_within_2_ulp() {
    assert_within("asin", 2.0, &grid(-1.0, 1.0, 2_000_000), asin, libm::asin);
    assert_within("asin", 0.0, &[0.0, -0.0, 1.0, -1.0, 1.0 + 1e-15, f64::NAN], asin, libm::asin);
    assert_within("asin", 2.0, &grid(0.0, 1e-9, 1000), asin, libm::asin);
}

#[test]
fn asin_near_is_within_2_ulp_up_to_five_ninths() {
    let near = |x: &[f64], y: &mut [f64]| x.iter().zip(y).for_each(|(&x, y)| *y = scalar::asin_near(x));
    let end = 5.0 / 9.0;
    assert_within("asin", 2.0, &grid(-end, end, 1_000_000), near, libm::asin);
    assert_within("asin", 0.0, &[0.0, -0.0, f64::NAN], near, libm::asin);
}

#[test]
fn erf_is_within_3_ulp() {
    assert_within("erf", 3.0, &grid(-7.0, 7.0, 1_000_000), erf, libm::erf);
    assert_within("erf", 3.0, &grid(0.0, 1e-8, 1000), erf, libm::erf);
    let special = [0.0, -0.0, 1.0, 6.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    assert_within("erf", 1.0, &special, erf, libm::erf);
}

#[test]
fn distribution_function_and_density_are_within_4e_16() {
    let ends = [0.0, -0.0, 8.4, -8.4, 37.7, -37.7, 1e9, -1e9];
    for z in grid(-12.0, 12.0, 1_000_000).into_iter().chain(ends) {
        let density = scalar::normal_density(z);
        let cdf = scalar::normal_cdf(z, density, scalar::mills_ratio(z));
        let expected = 0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2);
        assert!((cdf - expected).abs() <= 4e-16, "Φ({z}): {cdf} {expected}");
        let expected = libm::exp(-0.5 * z * z) / std::f64::consts::TAU.sqrt();
        assert!((density - expected).abs() <= 4e-16, "φ({z}): {density} {expected}");
    }
    let density = scalar::normal_density(f64::NAN);
    let cdf = scalar::normal_cdf(f64::NAN, density, scalar::mills_ratio(f64::NAN));
    assert!(cdf.is_nan() && density.is_nan());
}

#[test]
fn tanh_is_within_3_ulp_and_its_slope_within_6() {
    let places = [
        grid(-20.0, 20.0, 400_001),
        grid(-1.0, 1.0, 400_001),
        grid(0.0, 1e-7, 101),
        grid(-350.0, 350.0, 4001),
    ];
    for z in places.into_iter().flatten().chain([0.0, -0.0, 1e-300]) {
        let (value, slope) = scalar::tanh_and_slope(z);
        assert!(ulp(value, libm::tanh(z)) <= 3.0, "tanh({z}): {value}");
        let t = libm::exp(-2.0 * z.abs());
        let expected = 4.0 * t / ((1.0 + t) * (1.0 + t));
        assert!(ulp(slope, expected) <= 6.0, "slope at {z}: {slope} {expected}");
    }
    assert_eq!(scalar::tanh_and_slope(f64::INFINITY).0, 1.0);
    assert!(scalar::tanh_and_slope(f64::NAN).0.is_nan());
}

/// Reference: x² = h + l exactly, exp(−h)(1 − l), itself good to 1 ulp.
#[test]
fn exp_minus_square_is_within_2_ulp() {
    let exact = |x: f64| {
        let h = x * x;
        let l = libm::fma(x, x, -h);
        let y = libm::exp(-h);
        y - y * l
    };
    assert_within("exp(−x²)", 2.0, &grid(-26.0, 26.0, 1_000_000), exp_minus_square, exact);
    let special = [0.0, -0.0, 27.3, 40.0, 1e200, f64::INFINITY, f64::NAN];
    assert_within("exp(−x²)", 1.0, &special, exp_minus_square, |x| libm::exp(-(x * x)));
}

/// Reference: the angle reduced exactly to an eighth of a turn, then `libm`.
#[test]
fn sine_and_cosine_of_turns_are_within_2_ulp() {
    let turns: Vec<f64> =
        grid(0.0, 1.0, 1_000_000).into_iter().chain(grid(0.0, 1e-9, 1000)).filter(|&u| u < 1.0).collect();
    let (mut s, mut c) = (vec![0.0; turns.len()], vec![0.0; turns.len()]);
    sin_cos_turns(&turns, &mut s, &mut c);
    for (i, &u) in turns.iter().enumerate() {
        let q = libm::rint(4.0 * u);
        let f = u - 0.25 * q;
        // 2π = TAU + 2.449e-16, the second part added to first order.
        let angle = std::f64::consts::TAU * f;
        let rest = libm::fma(std::f64::consts::TAU, f, -angle) + 2.4492935982947064e-16 * f;
        let (sine, cosine) = libm::sincos(angle);
        let (sine, cosine) = (sine + cosine * rest, cosine - sine * rest);
        let expected = [(sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine)][q as usize % 4];
        assert!(ulp(s[i], expected.0) <= 2.0, "sin at {u:e}: {} {}", s[i], expected.0);
        assert!(ulp(c[i], expected.1) <= 2.0, "cos at {u:e}: {} {}", c[i], expected.1);
    }
}

#[test]
fn in_place_and_out_of_place_agree() {
    let inputs = grid(-0.999, 0.999, 1001);
    let cases: [(SliceFunction, InPlace); 4] = [
        (exp, exp_in_place),
        (asin, asin_in_place),
        (erf, erf_in_place),
        (exp_minus_square, exp_minus_square_in_place),
    ];
    for (apart, in_place) in cases {
        let mut output = vec![0.0; inputs.len()];
        apart(&inputs, &mut output);
        let mut values = inputs.clone();
        in_place(&mut values);
        assert_eq!(values, output);
    }
    let mut values = vec![2.0; 5];
    ln_in_place(&mut values);
    assert_eq!(values, [scalar::ln(2.0); 5]);
}

/// The guarantee of this module: the results have the same bits on both code paths and at every position in the slice.
#[test]
fn both_paths_give_the_same_bits() {
    let functions: [SliceFunction; 6] = [exp, ln, asin, erf, exp_minus_square, |x, y| {
        let mut cosine = vec![0.0; x.len()];
        sin_cos_turns(x, y, &mut cosine);
        y.iter_mut().zip(&cosine).for_each(|(s, c)| *s += 3.0 * c);
    }];
    let inputs: Vec<f64> =
        grid(-1.0, 1.0, 20_001).into_iter().chain(grid(-30.0, 30.0, 20_002)).chain(sizes()).collect();
    for (which, function) in functions.iter().enumerate() {
        let run = |path| {
            let mut y = vec![0.0; inputs.len()];
            on_path(path, || function(&inputs, &mut y));
            y.into_iter().map(f64::to_bits).collect::<Vec<u64>>()
        };
        assert!(run(Path::Portable) == run(Path::Avx2), "function {which}");
    }
    let mut reversed: Vec<f64> = inputs.iter().rev().copied().collect();
    erf_in_place(&mut reversed);
    assert!(reversed.iter().rev().zip(&inputs).all(|(y, &x)| y.to_bits() == scalar::erf(x).to_bits()));
}

#[test]
fn functions_of_random_words_are_accurate_at_both_ends() {
    let words = (0..2_000_000_u32).map(|i| i.wrapping_mul(2_654_435_761)).chain([
        0,
        1,
        2,
        !0,
        !0 - 1,
        1 << 31,
        (1 << 31) - 1,
    ]);
    for word in words {
        let below = (f64::from(word) + 0.5) / 4294967296.0;
        let above = (f64::from(!word) + 0.5) / 4294967296.0;
        let exact = if below < 0.5 { -libm::log(below) } else { -libm::log1p(-above) };
        let got = f64::from(single::minus_ln_word(word));
        assert!((got - exact).abs() <= 3e-7 * exact, "{word}: {got} {exact}");
        let (sine, cosine) = libm::sincos(std::f64::consts::TAU * f64::from(word) / 4294967296.0);
        let (s, c) = single::sin_cos_word(word);
        assert!((f64::from(s) - sine).abs() < 2e-7 && (f64::from(c) - cosine).abs() < 2e-7, "{word}");
    }
}

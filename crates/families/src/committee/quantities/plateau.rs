//! erf units on the plateau: typical and arbitrary teachers.

use super::inputs::{
    DIMENSION, ETA, MOST_HIDDEN, UNITS, default, learning_rate, needed_dimension, optional, positive, refuse,
    refused, required, spectrum, with_spectrum,
};
use crate::committee::predictions::teacher::{Plateau, equal_overlaps, growth_coefficient, plateau_length};
use didact_math::linalg::Mat;
use didact_model::quantity::{Answer, Arguments, Kind, Quantity, QuantityError};
use didact_model::rule::Shape;
use didact_model::spectrum::Spectrum;
use didact_model::start::{FrozenRows, RandomRows, RowLaw, Setting, Start};
use serde_json::{Value, json};

pub(super) const QUANTITIES: &[Quantity] = &[
    Quantity {
        name: "escape-typical",
        summary: "escape from the plateau of erf units on a spectrum, teachers as on average: T^(l) = nu_l",
        inputs: with_spectrum![
            UNITS,
            ETA,
            optional("T1", Kind::Number, "diagonal of T^(1); nu_1 unless given"),
            default("D1", Kind::Number, "0", "row sum of the off-diagonal of T^(1)"),
            default("D2", Kind::Number, "0", "row sum of the off-diagonal of T^(2)"),
        ],
        outputs: &["T2", "rate", "tau", "tau-loss"],
        compute: typical,
    },
    Quantity {
        name: "plateau-teacher",
        summary: "plateau of erf units for any teacher: overlaps, height, growth rates",
        inputs: &[
            optional("T1", Kind::Matrix, "T^(1), the teachers' covariance of the fields"),
            optional("T2", Kind::Matrix, "T^(2), for the growth rates"),
            optional("lam", Kind::Numbers, "eigenvalues, with `Ta` in place of T1 and T2"),
            optional("Ta", Kind::Any, "teacher overlaps per eigenspace, a list of M x M matrices"),
            default("eta", Kind::Number, "1", "learning rate"),
        ],
        outputs: &["Q", "loss", "R", "mixture", "tau", "rate", "rates"],
        compute: any_teacher,
    },
    Quantity {
        name: "plateau-sampled",
        summary: "plateau and escape of erf units for teachers drawn at random in N dimensions",
        inputs: with_spectrum![
            UNITS,
            ETA,
            DIMENSION,
            default("seed", Kind::Number, "0", "of the teachers"),
            default("sample", Kind::Number, "0", "which of them"),
            default("order", Kind::Count, "1", "order l of R-of-order and Q-of-order"),
        ],
        outputs: &[
            "Q",
            "loss",
            "R",
            "mixture",
            "loss-equal-overlaps",
            "tau",
            "rates",
            "R-of-order",
            "Q-of-order",
        ],
        compute: sampled,
    },
    Quantity {
        name: "plateau-moments",
        summary: "R^(l) and Q^(l) on the plateau of erf units for typical teachers, l = 0..3 (or as many as asked)",
        inputs: with_spectrum![UNITS, default("orders", Kind::Count, "4", "how many orders")],
        outputs: &["order", "R", "Q"],
        compute: moments,
    },
    Quantity {
        name: "plateau-length",
        summary: "length of the plateau, tau (Dc - ln sigma_J + ln(N)/2)",
        inputs: &[
            required("tau", Kind::Number, "growth time on the plateau"),
            required("sigma_J", Kind::Number, "deviation of the student's components at the start"),
            required("N", Kind::Count, "input dimension"),
            default(
                "Dc",
                Kind::Number,
                "2.47",
                "logarithm of the asymmetry at the end over that at the start",
            ),
        ],
        outputs: &["alpha"],
        compute: length,
    },
];

fn several(units: f64) -> Result<(), QuantityError> {
    if units < 2.0 { refuse("one unit has no symmetric plateau to escape from; use M >= 2") } else { Ok(()) }
}

fn typical(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (m, rate, given) = (arguments.number("M"), learning_rate(arguments)?, spectrum(arguments)?);
    several(m)?;
    let second = given.spectrum.moment(2);
    let first = if arguments.given("T1") { arguments.number("T1") } else { given.spectrum.moment(1) };
    let (t, d) = (first, arguments.number("D1"));
    if t <= 0.0 || t + d <= 0.0 || t + d >= m * (1.0 + t) {
        return refuse(format!("no teachers have T1 = {t}, D1 = {d} at M = {m}"));
    }
    let signal = second - arguments.number("D2") / (m - 1.0);
    let growth = rate * growth_coefficient(m, t, d) * signal;
    if growth <= 0.0 {
        return refuse(format!("the growth rate is {growth}: these teachers do not break the symmetry"));
    }
    Ok(vec![
        ("T2", json!(second)),
        ("rate", json!(growth)),
        ("tau", json!(1.0 / growth)),
        ("tau-loss", json!(0.5 / growth)),
    ])
}

fn any_teacher(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (first, second) = teachers(arguments)?;
    let plateau = Plateau::new(&first).map_err(refused)?;
    let mut answer = described(&plateau);
    if let Some(second) = second {
        let rates = plateau.growth_rates(&second, learning_rate(arguments)?).map_err(refused)?;
        answer.push(("tau", json!(1.0 / rates[0])));
        answer.push(("rate", json!(rates[0])));
        answer.push(("rates", json!(rates)));
    }
    Ok(answer)
}

fn described(plateau: &Plateau) -> Answer {
    vec![
        ("Q", json!(plateau.student)),
        ("loss", json!(plateau.error)),
        ("R", json!(plateau.cross)),
        ("mixture", json!(plateau.mixture)),
    ]
}

/// T^(1) and, when known, T^(2).
fn teachers(arguments: &Arguments) -> Result<(Mat, Option<Mat>), QuantityError> {
    if arguments.given("Ta") {
        if !arguments.given("lam") {
            return refuse("`Ta` needs `lam`, the eigenvalues");
        }
        let lambda = arguments.numbers("lam");
        let blocks = matrices(arguments.value("Ta"))?;
        if blocks.len() != lambda.len() {
            return refuse(format!("{} matrices in `Ta` for {} eigenvalues", blocks.len(), lambda.len()));
        }
        let moment = |order: i32| {
            let mut sum = Mat::zeros(blocks[0].rows(), blocks[0].rows());
            for (block, l) in blocks.iter().zip(&lambda) {
                sum.add_scaled(l.powi(order), block);
            }
            sum
        };
        return Ok((moment(1), Some(moment(2))));
    }
    if !arguments.given("T1") {
        return refuse("give the teachers: `T1` (and `T2`), or `lam` and `Ta`");
    }
    let first = arguments.matrix("T1");
    let second = arguments.given("T2").then(|| arguments.matrix("T2"));
    if second.as_ref().is_some_and(|s| s.rows() != first.rows()) {
        return refuse("`T1` and `T2` have different sizes");
    }
    Ok((first, second))
}

fn matrices(value: &Value) -> Result<Vec<Mat>, QuantityError> {
    let wrong = || QuantityError::Type {
        name: "Ta".into(),
        value: value.to_string(),
        expected: "a list of square matrices of one size",
    };
    let lists: Vec<Vec<Vec<f64>>> = serde_json::from_value(value.clone()).map_err(|_| wrong())?;
    let blocks: Option<Vec<Mat>> = lists.iter().map(|rows| Mat::from_rows(rows)).collect();
    let blocks = blocks.filter(|b| !b.is_empty()).ok_or_else(wrong)?;
    let size = blocks[0].rows();
    if size == 0 || blocks.iter().any(|b| b.rows() != size || b.cols() != size) {
        return Err(wrong());
    }
    if let Some(at) = blocks.iter().position(|b| !didact_math::linalg::is_psd(b)) {
        return refuse(format!("matrix {at} of `Ta` is not symmetric, or has a negative direction"));
    }
    Ok(blocks)
}

fn sampled(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (m, rate, given) =
        (arguments.count_up_to("M", MOST_HIDDEN)?, learning_rate(arguments)?, spectrum(arguments)?);
    several(m as f64)?;
    let n = needed_dimension(arguments, &given)?;
    let whole = |name: &str| {
        let value = arguments.number(name);
        if value < 0.0 || value.fract() != 0.0 {
            return refuse(format!("`{name}` is {value}; it must be a whole number, not negative"));
        }
        Ok(value as u64)
    };
    let (seed, replica) = (whole("seed")?, whole("sample")? as u32);
    let order = arguments.count_up_to("order", LARGEST_ORDER)? as i32;
    let [first, second, of_order] = sampled_teachers(&given.spectrum, m, n, (seed, replica), [1, 2, order])?;
    let plateau = Plateau::new(&first).map_err(refused)?;
    let rates = plateau.growth_rates(&second, rate).map_err(refused)?;
    let mut answer = described(&plateau);
    let diagonal = first.trace() / m as f64;
    let row_sum = first.as_slice().iter().sum::<f64>() / m as f64 - diagonal;
    let uniform = Plateau::new(&equal_overlaps(m, diagonal, row_sum)).map_err(refused)?;
    answer.push(("loss-equal-overlaps", json!(uniform.error)));
    answer.push(("tau", json!(1.0 / rates[0])));
    answer.push(("rates", json!(rates)));
    let (cross, student) = plateau.moments(&of_order);
    answer.push(("R-of-order", json!(cross)));
    answer.push(("Q-of-order", json!(student)));
    Ok(answer)
}

/// Moments of a spectrum beyond this order leave the range of numbers.
const LARGEST_ORDER: usize = 20;

/// T^(l) of some orders l of the teachers that a run with this seed and replica has.
fn sampled_teachers(
    spectrum: &Spectrum,
    units: usize,
    dimension: u64,
    (seed, replica): (u64, u32),
    orders: [i32; 3],
) -> Result<[Mat; 3], QuantityError> {
    let shape = Shape { trained: units, frozen: units, ..Shape::default() };
    let rows = RandomRows {
        trained: RowLaw::Gaussian { deviation: 1.0 },
        frozen: FrozenRows::Sampled,
        scalars: vec![],
    };
    let setting = Setting { shape, spectrum, dimension: Some(dimension), seed, replica };
    let drawn = rows.draw(&setting).map_err(refused)?;
    let teachers = |order: i32| drawn.moment(spectrum, order).block(units..2 * units, units..2 * units);
    Ok(orders.map(teachers))
}

fn moments(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (m, given) = (arguments.count_up_to("M", MOST_HIDDEN)?, spectrum(arguments)?);
    let order = |l: usize| equal_overlaps(m, given.spectrum.moment(l as i32), 0.0);
    let plateau = Plateau::new(&order(1)).map_err(refused)?;
    let pairs: Vec<(f64, f64)> = (0..arguments.count_up_to("orders", 100)?)
        .map(|l| {
            let (cross, student) = plateau.moments(&order(l));
            (cross[0], student)
        })
        .collect();
    Ok(vec![
        ("order", json!((0..pairs.len()).collect::<Vec<_>>())),
        ("R", json!(pairs.iter().map(|p| p.0).collect::<Vec<f64>>())),
        ("Q", json!(pairs.iter().map(|p| p.1).collect::<Vec<f64>>())),
    ])
}

fn length(arguments: &Arguments) -> Result<Answer, QuantityError> {
    let (tau, deviation) = (positive(arguments, "tau")?, positive(arguments, "sigma_J")?);
    let alpha = plateau_length(tau, deviation, arguments.number("N"), arguments.number("Dc"));
    Ok(vec![("alpha", json!(alpha))])
}

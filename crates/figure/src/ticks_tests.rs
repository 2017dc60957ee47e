use super::*;
use proptest::prelude::*;

fn chosen(kind: ScaleKind, low: f64, high: f64) -> Ticks {
    choose(&Scale { kind, low, high }, None, 200.0, |ticks| Ok(ticks.major.len() <= 6)).unwrap()
}

fn labels(ticks: &Ticks) -> Vec<&str> {
    ticks.major.iter().map(|tick| tick.label.trim_matches('$')).collect()
}

#[test]
fn linear_labels_are_round_and_equally_long() {
    assert_eq!(labels(&chosen(ScaleKind::Linear, 0.0, 1.0)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    assert_eq!(labels(&chosen(ScaleKind::Linear, -3.0, 4.4)), ["-2", "0", "2", "4"]);
    let tiny = chosen(ScaleKind::Linear, 1.0001, 1.0002);
    assert_eq!(labels(&tiny), ["1.00010", "1.00012", "1.00014", "1.00016", "1.00018", "1.00020"]);
}

#[test]
fn large_and_small_values_share_a_factor() {
    let large = chosen(ScaleKind::Linear, 0.0, 3e7);
    assert_eq!(large.note.as_deref(), Some("$\\times 10^{7}$"));
    assert_eq!(large.major.last().unwrap().label, "$3$");
    assert_eq!(chosen(ScaleKind::Linear, 0.0, 4e-5).note.as_deref(), Some("$\\times 10^{-5}$"));
}

#[test]
fn values_that_differ_far_behind_the_point_share_an_offset() {
    let ticks = chosen(ScaleKind::Linear, 1.0, 1.0 + 1e-8);
    assert_eq!(ticks.note.as_deref(), Some("$\\times 10^{-8} + 1$"));
    assert_eq!(labels(&ticks), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
}

#[test]
fn decades_have_minor_ticks_at_two_to_nine() {
    let ticks = chosen(ScaleKind::Log, 1e-2, 1e1);
    assert_eq!(labels(&ticks), ["10^{-2}", "10^{-1}", "10^{0}", "10^{1}"]);
    assert_eq!(ticks.minor.len(), 24);
    assert!((ticks.minor[0] - 0.02).abs() < 1e-15 && (ticks.minor[23] - 9.0).abs() < 1e-14);
}

#[test]
fn log_axes_shorter_than_a_decade_and_longer_than_ten_are_labelled() {
    assert_eq!(labels(&chosen(ScaleKind::Log, 0.15, 0.9)), ["0.2", "0.3", "0.4", "0.6", "0.8"]);
    assert_eq!(
        labels(&chosen(ScaleKind::Log, 2e-7, 6e-7)),
        (2..7).map(|d| format!("{d}\\times 10^{{-7}}")).collect::<Vec<_>>()
    );
    assert_eq!(labels(&chosen(ScaleKind::Log, 1.01, 1.09)).len(), 4, "linear steps on a very short axis");
    let long = chosen(ScaleKind::Log, 1e-30, 1.0);
    assert!(long.major.len() >= 3 && !long.minor.is_empty());
}

#[test]
fn given_ticks_are_kept_in_order_and_cut_to_the_axis() {
    let scale = Scale { kind: ScaleKind::Linear, low: 0.0, high: 1.0 };
    assert_eq!(labels(&as_given(&scale, &[0.25, 0.0, 2.0, 1.0])), ["0.00", "0.25", "1.00"]);
    let scale = Scale { kind: ScaleKind::Log, low: 1e-3, high: 1e3 };
    assert_eq!(labels(&as_given(&scale, &[1e-3, 1e3])), ["10^{-3}", "10^{3}"]);
}

fn assert_sound(ticks: &Ticks, low: f64, high: f64) -> std::result::Result<(), TestCaseError> {
    let values: Vec<f64> = ticks.major.iter().map(|tick| tick.value).collect();
    prop_assert!((2..=11).contains(&values.len()), "{} ticks in [{low}, {high}]", values.len());
    for list in [&values, &ticks.minor] {
        prop_assert!(list.windows(2).all(|pair| pair[0] < pair[1]), "sorted: {list:?}");
        prop_assert!(
            list.iter().all(|&value| (low..=high).contains(&value)),
            "inside [{low}, {high}]: {list:?}"
        );
    }
    let mut labels = labels(ticks);
    labels.dedup();
    prop_assert_eq!(labels.len(), values.len(), "labels differ: {:?}", ticks.major);
    Ok(())
}

proptest! {
    #[test]
    fn linear_candidates_are_sound(low in -1e3..1e3f64, exponent in -6..9i32, mantissa in 1.0..10.0f64) {
        let high = low + mantissa * 10f64.powi(exponent);
        let candidates = candidates(&Scale { kind: ScaleKind::Linear, low, high }, 200.0);
        prop_assert!(candidates.iter().any(|ticks| ticks.major.len() >= 4));
        for ticks in candidates {
            assert_sound(&ticks, low, high)?;
        }
    }

    #[test]
    fn log_candidates_are_sound(low in -300.0..290.0f64, decades in 0.001..18.0f64) {
        let (low, high) = (10f64.powf(low), 10f64.powf(low + decades));
        let candidates = candidates(&Scale { kind: ScaleKind::Log, low, high }, 200.0);
        prop_assert!(!candidates.is_empty());
        for ticks in candidates {
            assert_sound(&ticks, low, high)?;
        }
    }
}

//! Sizes and times for people.

/// A number of bytes with its unit.
pub(crate) fn bytes(count: f64) -> String {
    match count {
        c if c < 1e6 => format!("{:.0} kB", c / 1e3),
        c if c < 1e9 => format!("{:.0} MB", c / 1e6),
        c => format!("{:.1} GB", c / 1e9),
    }
}

/// A time with its unit.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", (s * 1e3).max(1.0)),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

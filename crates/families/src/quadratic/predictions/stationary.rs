//! All stationary points of the population risk, and the Hessian there, in closed form:
//! docs/derivations/quadratic-networks.md#s7.

/// A stationary point (r, s): students span r directions outside and s inside the teacher space.
///
///   τ = 2 (p*−s)/(p* (2+r+s)),   G = g_O = p τ/2 outside,   g_T = p (τ/2 + 1/p*) inside
///
/// (docs/derivations/quadratic-networks.md#eq-29).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stationary {
    /// p.
    pub students: usize,
    /// p*.
    pub teachers: usize,
    /// r.
    pub outside: usize,
    /// s.
    pub inside: usize,
}

/// Why there is no stationary point (r, s).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StationaryError {
    /// More directions than students.
    #[error("r + s = {sum} directions for {students} students; use r + s <= p")]
    Students {
        /// r + s.
        sum: usize,
        /// p.
        students: usize,
    },
    /// More inside directions than the teacher has.
    #[error("s = {inside} directions inside a teacher space of {teachers}; use s <= p*")]
    Inside {
        /// s.
        inside: usize,
        /// p*.
        teachers: usize,
    },
    /// Outside directions beside a fully learned teacher.
    #[error(
        "with the whole teacher learned (s = p* = {teachers}) every further direction vanishes; use r = 0"
    )]
    Surplus {
        /// p*.
        teachers: usize,
    },
    /// Too few dimensions.
    #[error("r = {outside} directions outside {teachers} teachers need N >= {needed}, but N = {dimension}")]
    Dimension {
        /// r.
        outside: usize,
        /// p*.
        teachers: usize,
        /// r + p*.
        needed: usize,
        /// N.
        dimension: usize,
    },
}

impl Stationary {
    /// Checks that the point exists in N dimensions.
    pub fn check(&self, dimension: usize) -> Result<(), StationaryError> {
        let Self { students, teachers, outside, inside } = *self;
        if inside > teachers {
            return Err(StationaryError::Inside { inside, teachers });
        }
        if inside == teachers && outside > 0 {
            return Err(StationaryError::Surplus { teachers });
        }
        if outside + inside > students {
            return Err(StationaryError::Students { sum: outside + inside, students });
        }
        if outside + teachers > dimension {
            let needed = outside + teachers;
            return Err(StationaryError::Dimension { outside, teachers, needed, dimension });
        }
        Ok(())
    }

    /// τ.
    pub fn missing_norm(&self) -> f64 {
        let (teachers, r, s) = (self.teachers as f64, self.outside as f64, self.inside as f64);
        2.0 * (teachers - s) / (teachers * (2.0 + r + s))
    }

    /// g_O, the eigenvalue of WᵀW outside the teacher space.
    pub fn outside_norm(&self) -> f64 {
        0.5 * self.students as f64 * self.missing_norm()
    }

    /// g_T, its eigenvalue inside.
    pub fn inside_norm(&self) -> f64 {
        self.outside_norm() + self.students as f64 / self.teachers as f64
    }

    /// The risk R_(r,s) (docs/derivations/quadratic-networks.md#eq-30); the width p does not enter.
    pub fn risk(&self) -> f64 {
        let (teachers, r, s) = (self.teachers as f64, self.outside as f64, self.inside as f64);
        2.0 * (teachers - s) * (teachers + r + 2.0) / (teachers * teachers * (2.0 + r + s))
    }

    /// Eigenvalues of the Hessian and how often they occur, ascending, equal ones merged: the table
    /// docs/derivations/quadratic-networks.md#hessian-table, in N dimensions and unit scaling. Flow rates in t are
    /// these eigenvalues.
    pub fn hessian_spectrum(&self, dimension: usize) -> Result<Vec<(f64, usize)>, StationaryError> {
        self.check(dimension)?;
        let Self { students, teachers, outside: r, inside: s } = *self;
        let (p, target, tau) = (students as f64, teachers as f64, self.missing_norm());
        let (g_out, g_in) = (self.outside_norm() / (p * p), self.inside_norm() / (p * p));
        let (idle, unlearned, empty) = (students - r - s, teachers - s, dimension - teachers - r);
        let pair = |n: usize| n * n.saturating_sub(1) / 2;
        let mut levels = vec![
            (-4.0 / p * (tau + 2.0 / target), idle * unlearned),
            (-4.0 * tau / p, idle * empty),
            (-8.0 / (p * target), r * unlearned),
            (0.0, idle * (r + s) + r * empty + s * unlearned + pair(r + s)),
            (8.0 / (p * target), s * empty),
            (16.0 * g_out, pair(r) + r.saturating_sub(1)),
            (16.0 * g_in, pair(s) + s.saturating_sub(1)),
            (8.0 * (g_out + g_in), r * s),
        ];
        let (a, d) = ((16.0 + 8.0 * r as f64) * g_out, (16.0 + 8.0 * s as f64) * g_in);
        match (r > 0, s > 0) {
            (true, true) => {
                let coupling = 8.0 * (r as f64 * s as f64 * g_out * g_in).sqrt();
                let (middle, half) = (0.5 * (a + d), (0.5 * (a - d)).hypot(coupling));
                levels.extend([(middle - half, 1), (middle + half, 1)]);
            }
            (true, false) => levels.push((a, 1)),
            (false, true) => levels.push((d, 1)),
            (false, false) => {}
        }
        Ok(merge_levels(levels))
    }

    /// Null directions of the Hessian along which the point can be moved without leaving the stationary set.
    pub fn tangent_directions(&self, dimension: usize) -> Result<usize, StationaryError> {
        self.check(dimension)?;
        let Self { students, teachers, outside: r, inside: s } = *self;
        let used = r + s;
        Ok((students - used) * used
            + r * (dimension - teachers - r)
            + s * (teachers - s)
            + used * used.saturating_sub(1) / 2)
    }
}

/// Sorts levels, drops empty ones and merges those that differ by rounding alone.
fn merge_levels(mut levels: Vec<(f64, usize)>) -> Vec<(f64, usize)> {
    levels.retain(|(_, count)| *count > 0);
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let scale = levels.iter().map(|l| l.0.abs()).fold(0.0, f64::max);
    let mut merged: Vec<(f64, usize)> = Vec::new();
    for (value, count) in levels {
        match merged.last_mut() {
            Some(last) if value - last.0 <= 1e-12 * scale => last.1 += count,
            // −0 from a vanishing τ is 0.
            _ => merged.push((value + 0.0, count)),
        }
    }
    merged
}

/// Dimension of the set of WᵀW that p students reach in N dimensions: N p − p(p−1)/2, at most N(N+1)/2.
pub fn student_degrees_of_freedom(dimension: u64, students: u64) -> u64 {
    let p = students.min(dimension);
    dimension * p - p * p.saturating_sub(1) / 2
}

/// Dimension of the set of perfect students, p m − m(m+1)/2 with m = min(p*, N); `None` for p < m, where there is none.
pub fn manifold_dimension(dimension: u64, teachers: u64, students: u64) -> Option<u64> {
    let m = teachers.min(dimension);
    (students >= m).then(|| students * m - m * (m + 1) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_hessian_has_as_many_eigenvalues_as_weights_and_no_spurious_minimum(
            students in 1usize..7, teachers in 1usize..5, outside in 0usize..6, inside in 0usize..5, extra in 0usize..6,
        ) {
            let (point, dimension) = (Stationary { students, teachers, outside, inside }, students + teachers + extra);
            prop_assume!(point.check(dimension).is_ok());
            let levels = point.hessian_spectrum(dimension).unwrap();
            prop_assert_eq!(levels.iter().map(|l| l.1).sum::<usize>(), students * dimension);
            prop_assert!(levels.windows(2).all(|w| w[0].0 < w[1].0));
            let negative: usize = levels.iter().filter(|l| l.0 < -1e-12).map(|l| l.1).sum();
            let minimum = inside == students.min(teachers) && outside == 0;
            prop_assert_eq!(negative == 0, minimum);
            let null: usize = levels.iter().filter(|l| l.0.abs() < 1e-12).map(|l| l.1).sum();
            let tangent = point.tangent_directions(dimension).unwrap();
            // Only perfect students have flat directions that leave the manifold.
            let flat = if inside == teachers { (dimension - teachers) * (students - teachers) } else { 0 };
            prop_assert_eq!(null, tangent + flat);
        }
    }

    #[test]
    fn special_points_are_those_of_the_text() {
        // Plateau (p, 0) at N = 20, p = 4, p* = 2; one teacher (0, 1).
        let plateau = Stationary { students: 4, teachers: 2, outside: 4, inside: 0 };
        let levels = plateau.hessian_spectrum(20).unwrap();
        let expected = [(-1.0, 8), (0.0, 62), (2.0 / 3.0, 9), (2.0, 1)];
        assert!(
            levels.iter().zip(expected).all(|(a, b)| (a.0 - b.0).abs() < 1e-14 && a.1 == b.1),
            "{levels:?}"
        );
        assert!((plateau.risk() - (1.0 + 1.0 / 3.0)).abs() < 1e-15);
        let solution = Stationary { students: 4, teachers: 2, outside: 0, inside: 2 };
        assert_eq!(solution.tangent_directions(20).unwrap() as u64, manifold_dimension(20, 2, 4).unwrap());
    }

    #[test]
    fn counts_saturate_where_they_should() {
        assert_eq!([1, 9, 10, 14].map(|p| student_degrees_of_freedom(10, p)), [10, 54, 55, 55]);
        assert_eq!(manifold_dimension(100, 1, 7), Some(6));
        assert_eq!(manifold_dimension(100, 3, 2), None);
        assert_eq!(manifold_dimension(2, 5, 2), Some(1));
    }
}

//! Where learning starts, and what a schedule starts anew.

use crate::description::{
    Description, NamedTeachers, RestartSpec, RowsSpec, ScalarsLaw, ScalarsSpec, StartSpec, TeachersSpec,
};
use crate::source::{Diagnostic, Source};
use didact_families::Model;
use didact_math::linalg::Mat;
use didact_model::composed_start::{Restart, ScalarLaw, WithScalars};
use didact_model::start::{FrozenRows, Given, RandomRows, RowLaw, Start};
use didact_model::{Overlaps, Shape, Spectrum};
use std::sync::Arc;

/// The start of a description, or the family's own where nothing is said.
pub(super) fn start(
    description: &Description,
    model: &Model,
    shape: Shape,
    spectrum: &Spectrum,
    source: &Source,
) -> Result<Arc<dyn Start>, Diagnostic> {
    let StartSpec { students, teachers, q, r, scalars } = &description.start;
    if description.start == StartSpec::default() {
        let own = model.start().map_err(|e| Diagnostic::of_model(&e, source))?;
        if let Some(own) = own {
            return Ok(own);
        }
    }
    let law = match scalars {
        Some(given) => Some(scalar_law(given, "start.scalars", source)?),
        None => model.scalar_law().filter(|_| description.data.dimension.is_some()),
    };
    let scalars = match &law {
        Some(ScalarLaw::Given(list)) => list.clone(),
        _ => model.starting_scalars(),
    };
    let with_scalars = |rows: Arc<dyn Start>| -> Arc<dyn Start> {
        match law {
            Some(scalars @ (ScalarLaw::Fixed { .. } | ScalarLaw::Gaussian { .. })) => {
                Arc::new(WithScalars { rows, scalars })
            }
            _ => rows,
        }
    };
    let gram = match teachers {
        TeachersSpec::Named(NamedTeachers::Orthonormal) => Some(Mat::identity(shape.frozen)),
        TeachersSpec::Named(NamedTeachers::Sampled) => None,
        TeachersSpec::Gram(rows) => Some(matrix(rows, "start.teachers", source)?),
    };
    if let Some(t) = &gram {
        let square = t.rows() == shape.frozen && t.cols() == shape.frozen;
        if !square {
            let message = format!(
                "`teachers` is {} x {}, but the model has {} frozen rows",
                t.rows(),
                t.cols(),
                shape.frozen
            );
            return Err(Diagnostic::new(message).at_key(source, "start.teachers"));
        }
        if t.asymmetry() > 1e-10 * t.max_abs() {
            let message = "the teacher overlaps are not symmetric";
            return Err(Diagnostic::new(message).at_key(source, "start.teachers"));
        }
        if let Err(error) = didact_math::linalg::cholesky_psd(t) {
            let message = format!("the teacher overlaps are impossible: {error}");
            let hint = "overlaps of real vectors have no negative eigenvalue; check the off-diagonal entries";
            return Err(Diagnostic::new(message).hint(hint).at_key(source, "start.teachers"));
        }
    }
    match (q, r, gram) {
        (Some(q), r, Some(t)) => {
            let q = matrix(q, "start.q", source)?;
            let r = match r {
                Some(r) => matrix(r, "start.r", source)?,
                None => Mat::zeros(shape.trained, shape.frozen),
            };
            for (name, given, expected) in
                [("q", &q, [shape.trained, shape.trained]), ("r", &r, [shape.trained, shape.frozen])]
            {
                if [given.rows(), given.cols()] != expected {
                    let message = format!(
                        "`{name}` is {} x {}, but the model has {} trained and {} frozen rows",
                        given.rows(),
                        given.cols(),
                        shape.trained,
                        shape.frozen
                    );
                    let hint = format!("give {} rows of {} numbers", expected[0], expected[1]);
                    return Err(Diagnostic::new(message).hint(hint).at_key(source, &format!("start.{name}")));
                }
            }
            let overlaps = Overlaps::spread(shape, spectrum, (&q, &r, &t), scalars)
                .map_err(|e| Diagnostic::new(e).at_key(source, "start.q"))?;
            Ok(with_scalars(Arc::new(Given(overlaps))))
        }
        (Some(_), _, None) => {
            Err(Diagnostic::new("given overlaps `q` need given teachers, not `sampled` ones")
                .at_key(source, "start.teachers"))
        }
        (None, Some(_), _) => Err(Diagnostic::new("`r` is given without `q`").at_key(source, "start.r")),
        (None, None, gram) => {
            let trained = row_law(students, "start.students", source)?;
            let frozen = gram.map_or(FrozenRows::Sampled, FrozenRows::Gram);
            Ok(with_scalars(Arc::new(RandomRows { trained, frozen, scalars })))
        }
    }
}

/// The law of random rows, of a length that makes sense.
fn row_law(rows: &RowsSpec, key: &str, source: &Source) -> Result<RowLaw, Diagnostic> {
    let (law, length) = match *rows {
        RowsSpec::Gaussian { deviation } => (RowLaw::Gaussian { deviation }, deviation),
        RowsSpec::Sphere { radius } => (RowLaw::Sphere { radius }, radius),
        RowsSpec::Orthogonal { radius } => (RowLaw::Orthogonal { radius }, radius),
    };
    if !(length.is_finite() && length >= 0.0) {
        let message = format!("rows of length {length}; it must be finite and not negative");
        return Err(Diagnostic::new(message).at_key(source, key));
    }
    Ok(law)
}

/// The law of trained scalars, of finite numbers.
fn scalar_law(scalars: &ScalarsSpec, key: &str, source: &Source) -> Result<ScalarLaw, Diagnostic> {
    let refused = |message: String| Err(Diagnostic::new(message).at_key(source, key));
    match scalars {
        ScalarsSpec::Given(list) => match list.iter().find(|a| !a.is_finite()) {
            Some(bad) => refused(format!("`scalars` holds {bad}, which is not a finite number")),
            None => Ok(ScalarLaw::Given(list.clone())),
        },
        ScalarsSpec::Law(ScalarsLaw::Fixed { size }) if size.is_finite() => {
            Ok(ScalarLaw::Fixed { size: *size })
        }
        ScalarsSpec::Law(ScalarsLaw::Gaussian { deviation })
            if deviation.is_finite() && *deviation >= 0.0 =>
        {
            Ok(ScalarLaw::Gaussian { deviation: *deviation })
        }
        ScalarsSpec::Law(ScalarsLaw::Fixed { size: bad } | ScalarsLaw::Gaussian { deviation: bad }) => {
            refused(format!("scalars of size {bad}; it must be finite, and a deviation not negative"))
        }
    }
}

/// What a schedule begins anew after a stage.
pub(super) fn restart(spec: &RestartSpec, key: &str, source: &Source) -> Result<Restart, Diagnostic> {
    let RestartSpec { scalars, students, velocity } = spec;
    if scalars.is_none() && students.is_none() && !velocity {
        let message = "a `restart` that restarts nothing";
        let hint =
            "give `scalars` (a list, or a law), `students` (a law), `velocity = true`, or several of them";
        return Err(Diagnostic::new(message).hint(hint).at_key(source, key));
    }
    Ok(Restart {
        scalars: scalars.as_ref().map(|s| scalar_law(s, &format!("{key}.scalars"), source)).transpose()?,
        rows: students.as_ref().map(|s| row_law(s, &format!("{key}.students"), source)).transpose()?,
        velocity: *velocity,
    })
}

fn matrix(rows: &[Vec<f64>], key: &str, source: &Source) -> Result<Mat, Diagnostic> {
    Mat::from_rows(rows).ok_or_else(|| {
        Diagnostic::new(format!("the rows of `{key}` have different lengths")).at_key(source, key)
    })
}

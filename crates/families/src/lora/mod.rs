//! LoRA fine-tuning of a pre-trained student.
//!
//! A teacher y = φ(w*·x), |w*| = 1; a student that already has a fraction μ of the right direction and is corrected by a
//! low-rank term, of which only the adapter is trained, by one-pass SGD on the sphere:
//!
//!   single index: f = σ((μ w* + u w)·x),      two layers, rank R: f = Σ_k v_k σ((μ_k w*_k + Σ_r U_kr w_r)·x).
//!
//! Nwemadji, Loureiro & Barbier, *When pre-training hurts LoRA fine-tuning* (arXiv:2602.02855), corrected where the paper
//! errs (docs/derivations/lora.md#s12). Derived in docs/derivations/lora.md; how to use it is in docs/guides/lora.md.
//! Loss (y − f)²/2 unless said otherwise; time t = step size × steps.

pub mod predictions;
mod quantities;
mod rule;
mod single_index;
pub mod two_layer;

pub use predictions::{flow, hermite, landscape, large_batch, population, search_phase, two_stage};
pub use single_index::{LoraSingleIndex, Misalignment, NamedMisalignment};
pub use two_layer::LoraTwoLayer;

use super::{Reference, Refusal};
use didact_model::overlaps::Overlaps;
use didact_model::problem::Problem;

const REFERENCE: Reference = Reference {
    key: "NwemadjiLoureiroBarbier2026",
    citation: "G. Nwemadji, B. Loureiro and J. Barbier, When pre-training hurts LoRA fine-tuning: a dynamical analysis via single-index models (2026)",
    locator: "arXiv:2602.02855",
};

/// An adapter is a unit vector: rows must start with length 1 and be kept there. The start of the first replica, if it can be drawn.
fn needs_unit_rows(problem: &Problem) -> Result<Option<Overlaps>, Refusal> {
    if problem.training.constraint.sphere.is_none() {
        return Err(Refusal {
            key: "training.constraint",
            message: "LoRA trains unit vectors, but nothing keeps the rows on the sphere".into(),
            hint: "set training.constraint = { sphere = \"euclidean\" } (or \"tangent\")".into(),
        });
    }
    let setting = problem.setting(0, 0);
    // A start that cannot be drawn is refused where starts are checked.
    let Ok(start) = problem.start.draw(&setting) else { return Ok(None) };
    let plain = start.moment(&problem.spectrum, 0);
    let rows = 0..setting.shape.rows();
    if let Some(row) = rows.into_iter().find(|&i| (plain[(i, i)] - 1.0).abs() > 1e-6) {
        let (what, key) = if row < setting.shape.trained {
            ("trained row (w)", "start")
        } else {
            ("frozen row (teacher or pre-trained direction)", "start.teachers")
        };
        return Err(Refusal {
            key,
            message: format!("a {what} starts with squared length {}, not 1", plain[(row, row)]),
            hint: "use start.students = { law = \"sphere\", radius = 1 }, or overlaps with ones on the diagonal of q".into(),
        });
    }
    Ok(Some(start))
}

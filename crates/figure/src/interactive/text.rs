//! Labels for the browser.

use crate::error::Result;
use crate::label::Block;
use crate::tex::{self, Typesetter};

/// A label for plotly: one formula if it has any, else text without mark-up.
pub(super) fn label(label: &str) -> Result<String> {
    Ok(tex::formula(label)?.unwrap_or_else(|| escape(&label.replace("\\$", "$"))))
}

/// As [`label`], in lines no longer than `room` pixels.
pub(super) fn wrapped(text: &str, size: f64, room: f64) -> Result<String> {
    let block = Block::fit(&Typesetter::default(), text, size, room)?;
    let lines: Vec<&str> = block.sources().collect();
    if lines.len() < 2 {
        return label(text);
    }
    if !text.contains('$') {
        return Ok(lines.into_iter().map(escape).collect::<Vec<_>>().join("<br>"));
    }
    let row =
        |line: &str| Ok(tex::formula(&format!("{line}$$"))?.unwrap_or_default().trim_matches('$').to_owned());
    let rows = lines.into_iter().map(row).collect::<Result<Vec<_>>>()?;
    Ok(format!("$\\displaylines{{{}}}$", rows.join(r"\\")))
}

/// `&`, `<`, `>` and quotes as entities.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const GREEK: [(&str, char); 34] = [
    ("alpha", 'α'),
    ("beta", 'β'),
    ("gamma", 'γ'),
    ("delta", 'δ'),
    ("varepsilon", 'ε'),
    ("epsilon", 'ε'),
    ("zeta", 'ζ'),
    ("eta", 'η'),
    ("theta", 'θ'),
    ("iota", 'ι'),
    ("kappa", 'κ'),
    ("lambda", 'λ'),
    ("mu", 'μ'),
    ("nu", 'ν'),
    ("xi", 'ξ'),
    ("pi", 'π'),
    ("rho", 'ρ'),
    ("sigma", 'σ'),
    ("tau", 'τ'),
    ("phi", 'φ'),
    ("varphi", 'φ'),
    ("chi", 'χ'),
    ("psi", 'ψ'),
    ("omega", 'ω'),
    ("Gamma", 'Γ'),
    ("Delta", 'Δ'),
    ("Theta", 'Θ'),
    ("Lambda", 'Λ'),
    ("Sigma", 'Σ'),
    ("Phi", 'Φ'),
    ("Omega", 'Ω'),
    ("star", '⋆'),
    ("infty", '∞'),
    ("propto", '∝'),
];

/// A label in characters alone, for hover boxes and page titles, which cannot show formulas: Greek letters by
/// themselves, other commands and braces dropped.
pub(super) fn plain(label: &str) -> String {
    let mut text = String::new();
    let mut rest = label;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '\\' => {
                let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
                let (name, after) = rest.split_at(end);
                text.extend(GREEK.iter().find(|(known, _)| *known == name).map(|(_, letter)| letter));
                rest = after;
            }
            '$' | '{' | '}' => {}
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hover_text_has_greek_letters_and_no_commands() {
        assert_eq!(plain(r"loss $\mathcal{L}(\alpha_{c}) = 1$"), "loss L(α_c) = 1");
        assert_eq!(plain("plain"), "plain");
    }

    #[test]
    fn words_around_a_formula_go_into_it() {
        assert_eq!(
            label(r"ratio $\alpha = P/N$ (100%)").unwrap(),
            r"$\text{ratio }\alpha = P/N\text{ (100%)}$"
        );
        assert_eq!(label("a < b").unwrap(), "a &lt; b");
    }

    #[test]
    fn long_labels_are_broken_with_or_without_formulas() {
        assert_eq!(wrapped("a long label", 10.0, 30.0).unwrap(), "a long<br>label");
        let formula = wrapped("long label $x$", 10.0, 30.0).unwrap();
        assert_eq!(formula, r"$\displaylines{\text{long}\\\text{label }x}$");
        assert_eq!(wrapped("short $x$", 10.0, 300.0).unwrap(), r"$\text{short }x$");
    }
}

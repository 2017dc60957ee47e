//! Labels for the browser.

use crate::error::Result;
use crate::tex;

/// A label for plotly: one formula if it has any, else text without mark-up.
pub(super) fn label(label: &str) -> Result<String> {
    Ok(tex::formula(label)?.unwrap_or_else(|| escape(&label.replace("\\$", "$"))))
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
        assert_eq!(label(r"ratio $\alpha = P/N$ (100%)").unwrap(), r"$\text{ratio }\alpha = P/N\text{ (100%)}$");
        assert_eq!(label("a < b").unwrap(), "a &lt; b");
    }
}

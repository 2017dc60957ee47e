//! Labels in characters alone, where no formula can be drawn: read-outs, tables, alternative texts, CSV.

/// TeX commands and the characters that stand for them.
const SYMBOLS: [(&str, &str); 78] = [
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("epsilon", "ε"),
    ("varepsilon", "ε"),
    ("zeta", "ζ"),
    ("eta", "η"),
    ("theta", "θ"),
    ("iota", "ι"),
    ("kappa", "κ"),
    ("lambda", "λ"),
    ("mu", "μ"),
    ("nu", "ν"),
    ("xi", "ξ"),
    ("pi", "π"),
    ("rho", "ρ"),
    ("sigma", "σ"),
    ("tau", "τ"),
    ("upsilon", "υ"),
    ("phi", "φ"),
    ("varphi", "φ"),
    ("chi", "χ"),
    ("psi", "ψ"),
    ("omega", "ω"),
    ("Gamma", "Γ"),
    ("Delta", "Δ"),
    ("Theta", "Θ"),
    ("Lambda", "Λ"),
    ("Xi", "Ξ"),
    ("Pi", "Π"),
    ("Sigma", "Σ"),
    ("Phi", "Φ"),
    ("Psi", "Ψ"),
    ("Omega", "Ω"),
    ("star", "⋆"),
    ("ast", "∗"),
    ("infty", "∞"),
    ("propto", "∝"),
    ("times", "×"),
    ("cdot", "·"),
    ("pm", "±"),
    ("le", "≤"),
    ("leq", "≤"),
    ("ge", "≥"),
    ("geq", "≥"),
    ("ll", "≪"),
    ("gg", "≫"),
    ("ne", "≠"),
    ("neq", "≠"),
    ("approx", "≈"),
    ("sim", "∼"),
    ("simeq", "≃"),
    ("equiv", "≡"),
    ("to", "→"),
    ("rightarrow", "→"),
    ("partial", "∂"),
    ("nabla", "∇"),
    ("sum", "∑"),
    ("prod", "∏"),
    ("int", "∫"),
    ("sqrt", "√"),
    ("langle", "⟨"),
    ("rangle", "⟩"),
    ("ell", "ℓ"),
    ("perp", "⊥"),
    ("parallel", "∥"),
    ("top", "⊤"),
    ("ldots", "…"),
    ("dots", "…"),
    ("mid", "|"),
    ("in", "∈"),
    ("quad", " "),
    ("log", "log"),
    ("exp", "exp"),
    ("min", "min"),
    ("max", "max"),
    ("lim", "lim"),
];

/// What a label says: Greek letters and signs by themselves, fractions as a/b, other commands and braces dropped.
pub(crate) fn plain(label: &str) -> String {
    let mut text = String::new();
    let mut formula = false;
    let mut rest = label;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match character {
            '\\' if rest.starts_with('$') => {
                text.push('$');
                rest = &rest[1..];
            }
            '$' => formula = !formula,
            other if !formula => text.push(other),
            '\\' => rest = command(&mut text, rest),
            '{' | '}' => {}
            '-' => text.push('−'),
            '~' => text.push(' '),
            other => text.push(other),
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Writes the command at the start of `rest` and gives what follows it.
fn command<'a>(text: &mut String, rest: &'a str) -> &'a str {
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    if name.is_empty() {
        // `\,` and its like are spaces; `\%` and its like are the character.
        let mut after = after.chars();
        match after.next() {
            Some(',' | ';' | ':' | ' ' | '\\') => text.push(' '),
            Some('!') | None => {}
            Some(other) => text.push(other),
        }
        return after.as_str();
    }
    if matches!(name, "frac" | "tfrac" | "dfrac")
        && let Some((above, after)) = group(after)
        && let Some((below, after)) = group(after)
    {
        let part = |tex: &str| {
            let part = plain(&format!("${tex}$"));
            if part.chars().all(char::is_alphanumeric) { part } else { format!("({part})") }
        };
        text.push_str(&format!("{}/{}", part(above), part(below)));
        return after;
    }
    if name == "sqrt"
        && let Some((inside, after)) = group(after)
    {
        let inside = plain(&format!("${inside}$"));
        let single = inside.chars().count() == 1;
        text.push_str(&if single { format!("√{inside}") } else { format!("√({inside})") });
        return after;
    }
    if let Some((_, symbol)) = SYMBOLS.iter().find(|(known, _)| *known == name) {
        text.push_str(symbol);
    }
    after
}

/// The group in braces at the start of `rest`, and what follows it.
fn group(rest: &str) -> Option<(&str, &str)> {
    let inner = rest.trim_start().strip_prefix('{')?;
    let mut depth = 1;
    for (at, character) in inner.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&inner[..at], &inner[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_characters() {
        assert_eq!(plain(r"loss $\mathcal{L}(\alpha_{c}) = 1$"), "loss L(α_c) = 1");
        assert_eq!(plain(r"$t/\log d$, 5\$"), "t/log d, 5$");
        assert_eq!(plain(r"$\frac{a}{b+1}\,\sqrt{2}\sqrt{d-1}$"), "a/(b+1) √2√(d−1)");
        assert_eq!(plain("plain \\ {text} - as it is"), "plain \\ {text} - as it is");
    }

    #[test]
    fn what_is_no_tex_does_not_break_it() {
        for label in ["$", "$\\", "$\\frac{a", "$\\frac{a}{", "${", "\\$\\", "$\\sqrt"] {
            let _ = plain(label);
        }
    }
}

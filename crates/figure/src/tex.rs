//! Labels: plain text with TeX between dollar signs, laid out by RaTeX. [`math`] is the one function that touches it.
//!
//! As in TeX, each stretch of text and each formula is a box of its own, and the boxes stand side by side. So a parse error
//! has its position in the label, and Greek letters typed in the text can be set as formulas.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use ratex_types::{DisplayItem, MathStyle, PathCommand};

use crate::error::{Error, Result};
use crate::fonts;
use crate::scene::{Path, Rect, Step};

/// A label laid out: lengths in em, y down from the baseline.
#[derive(Clone, Debug, Default)]
pub(crate) struct Typeset {
    /// The label as the user wrote it.
    pub(crate) source: String,
    pub(crate) width: f64,
    /// Above the baseline.
    pub(crate) height: f64,
    /// Below the baseline.
    pub(crate) depth: f64,
    pub(crate) marks: Vec<Mark>,
}

/// Ink of a label.
#[derive(Clone, Debug)]
pub(crate) enum Mark {
    Glyph { x: f64, y: f64, scale: f64, font: String, character: char },
    Shape { path: Path, filled: bool },
}

/// Lays out labels, each only once.
#[derive(Default)]
pub(crate) struct Typesetter {
    known: RefCell<BTreeMap<(String, bool), Rc<Typeset>>>,
}

impl Typesetter {
    pub(crate) fn set(&self, label: &str) -> Result<Rc<Typeset>> {
        self.look_up(label, false)
    }

    pub(crate) fn set_bold(&self, label: &str) -> Result<Rc<Typeset>> {
        self.look_up(label, true)
    }

    fn look_up(&self, label: &str, bold: bool) -> Result<Rc<Typeset>> {
        let key = (label.to_owned(), bold);
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let typeset = Rc::new(typeset(label, bold)?);
        self.known.borrow_mut().insert(key, Rc::clone(&typeset));
        Ok(typeset)
    }
}

/// Characters of a label, and braces within braces: what is longer or deeper is no label, and would take long to set.
const LONGEST_LABEL: usize = 1000;
const DEEPEST_BRACES: usize = 30;

/// Refuses a label that no figure has room for.
fn check_size(label: &str) -> Result<()> {
    let refuse = |message: String, position: usize| {
        let label: String = label.chars().take(60).chain(['…']).collect();
        Err(Error::Tex { label, position, message })
    };
    let length = label.chars().count();
    if length > LONGEST_LABEL {
        return refuse(format!("the label has {length} characters; at most {LONGEST_LABEL} are drawn"), 1);
    }
    let mut depth = 0_usize;
    for (position, character) in label.chars().enumerate() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST_BRACES {
            return refuse(format!("braces within braces more than {DEEPEST_BRACES} deep"), position + 1);
        }
    }
    Ok(())
}

fn typeset(label: &str, bold: bool) -> Result<Typeset> {
    check_size(label)?;
    let mut whole = Typeset { source: label.to_owned(), ..Typeset::default() };
    for piece in pieces(label)? {
        let part = match &piece {
            Piece::Text(text) => {
                let command = if bold { "textbf" } else { "text" };
                math(label, &format!("\\{command}{{{}}}", escape(text)), None)?
            }
            Piece::Math { tex, start } => math(label, tex, Some(*start))?,
        };
        let shift = whole.width;
        whole.marks.extend(part.marks.into_iter().map(|mark| mark.shifted(shift)));
        whole.width += part.width;
        whole.height = whole.height.max(part.height);
        whole.depth = whole.depth.max(part.depth);
    }
    Ok(whole)
}

/// A stretch of a label: text, or what stands between dollar signs.
#[derive(Debug, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    /// `start` is the character position of the formula in the label, from 0.
    Math {
        tex: String,
        start: usize,
    },
}

pub(crate) fn pieces(label: &str) -> Result<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut characters = label.chars().enumerate().peekable();
    let flush = |text: &mut String, pieces: &mut Vec<Piece>| {
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(text)));
        }
    };
    while let Some((position, character)) = characters.next() {
        match character {
            '\\' if characters.next_if(|&(_, next)| next == '$').is_some() => text.push('$'),
            '$' => {
                flush(&mut text, &mut pieces);
                let mut tex = String::new();
                let mut closed = false;
                while let Some((_, inner)) = characters.next() {
                    if inner == '$' {
                        closed = true;
                        break;
                    }
                    tex.push(inner);
                    if inner == '\\' {
                        tex.extend(characters.next().map(|(_, escaped)| escaped));
                    }
                }
                if !closed {
                    let message = "this dollar sign opens a formula that is not closed".to_owned();
                    return Err(Error::Tex { label: label.to_owned(), position: position + 1, message });
                }
                pieces.push(Piece::Math { tex, start: position + 1 });
            }
            // The text fonts have Latin letters and punctuation only; everything else is set as a formula.
            other if other.is_ascii() || fonts::has("Main-Regular", other) && !is_symbol(other) => {
                text.push(other);
            }
            other => {
                flush(&mut text, &mut pieces);
                pieces.push(Piece::Math { tex: other.to_string(), start: position });
            }
        }
    }
    flush(&mut text, &mut pieces);
    Ok(pieces)
}

/// Greek letters and mathematical symbols, which text mode refuses even where the font has them.
fn is_symbol(character: char) -> bool {
    matches!(character, '\u{0370}'..='\u{03ff}' | '\u{2100}'..='\u{2bff}' | '\u{d7}' | '\u{f7}' | '\u{b1}' | '\u{b7}')
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '_' | '%' | '&' | '#' | '{' | '}' | '$' => escaped.extend(['\\', character]),
            '\\' => escaped.push_str("\\textbackslash "),
            '~' => escaped.push_str("\\textasciitilde "),
            '^' => escaped.push_str("\\textasciicircum "),
            '\n' | '\t' => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Lays out one formula. `start` is its position in `label`, for messages; `None` for text that we wrapped ourselves.
fn math(label: &str, tex: &str, start: Option<usize>) -> Result<Typeset> {
    let nodes = ratex_parser::parse(tex).map_err(|error| {
        let inside = error.loc.map_or(0, |at| tex.get(..at.start).map_or(0, |before| before.chars().count()));
        let position = start.map_or(1, |start| start + inside + 1);
        Error::Tex { label: label.to_owned(), position, message: error.message }
    })?;
    let options = ratex_layout::LayoutOptions { style: MathStyle::Text, ..Default::default() };
    let list = ratex_layout::to_display_list(&ratex_layout::layout(&nodes, &options));
    let baseline = list.height;
    let mut marks = Vec::with_capacity(list.items.len());
    for item in list.items {
        match item {
            DisplayItem::GlyphPath { x, y, scale, font, char_code, .. } => {
                let character = char::from_u32(char_code).unwrap_or(char::REPLACEMENT_CHARACTER);
                if character.is_whitespace() {
                    continue;
                }
                if !fonts::has(&font, character) {
                    return Err(Error::NoGlyph { label: label.to_owned(), character });
                }
                marks.push(Mark::Glyph { x, y: y - baseline, scale, font, character });
            }
            DisplayItem::Line { x, y, width, thickness, .. } => {
                // The y of a rule is its centre.
                let top = y - baseline - thickness / 2.0;
                let rule = Rect { left: x, top, right: x + width, bottom: top + thickness };
                marks.push(Mark::Shape { path: rule.path(), filled: true });
            }
            DisplayItem::Rect { x, y, width, height, .. } => {
                let top = y - baseline;
                let rule = Rect { left: x, top, right: x + width, bottom: top + height };
                marks.push(Mark::Shape { path: rule.path(), filled: true });
            }
            DisplayItem::Path { x, y, commands, fill, .. } => {
                let path = Path(commands.iter().map(|command| step(command, x, y - baseline)).collect());
                marks.push(Mark::Shape { path, filled: fill });
            }
        }
    }
    Ok(Typeset { source: String::new(), width: list.width, height: list.height, depth: list.depth, marks })
}

fn step(command: &PathCommand, dx: f64, dy: f64) -> Step {
    match *command {
        PathCommand::MoveTo { x, y } => Step::Move(x + dx, y + dy),
        PathCommand::LineTo { x, y } => Step::Line(x + dx, y + dy),
        PathCommand::QuadTo { x1, y1, x, y } => Step::Quadratic([x1 + dx, y1 + dy, x + dx, y + dy]),
        PathCommand::CubicTo { x1, y1, x2, y2, x, y } => {
            Step::Cubic([x1 + dx, y1 + dy, x2 + dx, y2 + dy, x + dx, y + dy])
        }
        PathCommand::Close => Step::Close,
    }
}

impl Mark {
    fn shifted(mut self, by: f64) -> Self {
        match &mut self {
            Self::Glyph { x, .. } => *x += by,
            Self::Shape { path, .. } => {
                for step in &mut path.0 {
                    match step {
                        Step::Move(x, _) | Step::Line(x, _) => *x += by,
                        Step::Quadratic(c) => [c[0], c[2]] = [c[0] + by, c[2] + by],
                        Step::Cubic(c) => [c[0], c[2], c[4]] = [c[0] + by, c[2] + by, c[4] + by],
                        Step::Close => {}
                    }
                }
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(label: &str) -> String {
        typeset(label, false).unwrap_err().to_string()
    }

    #[test]
    fn an_error_names_the_label_and_the_character() {
        let message = error("ratio $\\alpha + \\nosuch$ here");
        assert!(
            message.contains("ratio $\\alpha + \\nosuch$ here") && message.contains("character 17"),
            "{message}"
        );
        assert!(error("é $x").contains("character 3"));
        assert!(error("$a^b^c$").contains("character 5"));
        assert!(error("word 漢").contains('漢'));
    }

    #[test]
    fn plain_text_may_hold_any_ascii_character() {
        for character in ' '..='~' {
            let label = if character == '$' { "a\\$b".to_owned() } else { format!("a{character}b") };
            typeset(&label, false).unwrap_or_else(|error| panic!("{character}: {error}"));
        }
        assert_eq!(pieces("5\\$ a$\\$$").unwrap()[0], Piece::Text("5$ a".into()));
    }

    #[test]
    fn greek_letters_and_symbols_typed_in_text_are_set_as_formulas() {
        for label in ["σ", "loss ε ≤ ∞", "café – naïve", "a × b ± c", "α→β", "“x” … ’"]
        {
            assert!(!typeset(label, false).unwrap().marks.is_empty(), "{label}");
        }
    }

    #[test]
    fn pieces_stand_side_by_side() {
        let width = |label: &str| typeset(label, false).unwrap().width;
        assert!((width("ratio $x$") - width("ratio ") - width("$x$")).abs() < 1e-12);
        assert!(width("a ") > width("a"), "the space before a formula is kept");
        let label = typeset("a$b$", false).unwrap();
        let Mark::Glyph { x, .. } = &label.marks[1] else { panic!("a glyph") };
        assert!((x - width("a")).abs() < 1e-12);
    }

    #[test]
    fn the_formulas_of_papers_have_all_their_glyphs() {
        for label in [
            r"$\mathbb{E}\,\mathcal{L}(\boldsymbol{w})$",
            r"$\langle \left[\frac{a}{b}\right] \rangle$",
            r"$\sum_{k} \int \overline{x} \tilde{y} \lesssim \sqrt{1+\beta}$",
            r"$\operatorname{erf}(\lambda_\star), \widehat{W}^\top$",
            r"$\propto \alpha^{-\beta/(1+\beta)}$",
        ] {
            typeset(label, false).unwrap();
        }
    }
}

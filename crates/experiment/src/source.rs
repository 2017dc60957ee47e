//! Reading a description, and errors that point at the line they are about.

use crate::description::Description;
use serde_json::Value;
use std::fmt;
use std::ops::Range;
use std::path::Path;

/// A text and where it came from.
#[derive(Debug, Clone)]
pub struct Source {
    /// File name for messages.
    pub name: String,
    /// The text.
    pub text: String,
}

/// One error: what is wrong, where, what to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Where: file, line (from 1), column (from 1), length, and the line itself.
    pub place: Option<Place>,
}

/// A place in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// Characters to mark.
    pub length: usize,
    /// The line.
    pub text: String,
}

impl Diagnostic {
    /// An error without a place; a `hint:` paragraph of the text becomes the hint.
    pub fn new(message: impl fmt::Display) -> Self {
        let text = message.to_string();
        match text.split_once("\nhint: ") {
            Some((message, hint)) => {
                Self { message: message.trim_end().into(), hint: Some(hint.into()), place: None }
            }
            None => Self { message: text, hint: None, place: None },
        }
    }

    /// With advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// About a key of the source.
    pub fn at_key(mut self, source: &Source, path: &str) -> Self {
        self.place = source.find_key(path).map(|range| source.place(range));
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            let mark = "^".repeat(place.length.max(1));
            write!(f, "\n{margin}--> {}:{}:{}", place.file, place.line, place.column)?;
            write!(f, "\n{margin} |\n{number} | {}", place.text)?;
            write!(f, "\n{margin} | {}{mark}", " ".repeat(place.column - 1))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

impl Source {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Self { name, text }),
            Err(error) => Err(Diagnostic::new(format!("cannot read {name}: {error}"))),
        }
    }

    /// The description in the text: JSON if the name ends in `.json`, else TOML.
    pub fn description(&self) -> Result<Description, Diagnostic> {
        let read: Result<Description, Diagnostic> =
            if Path::new(&self.name).extension().is_some_and(|e| e == "json") {
                let value: Value = serde_json::from_str(&self.text).map_err(|e| self.json_error(&e))?;
                serde_json::from_value(value).map_err(|e| self.explain(&e.to_string(), None))
            } else {
                toml::from_str(&self.text).map_err(|error| self.explain(error.message(), error.span()))
            };
        crate::spectra::resolve(read?.complete(), self)
    }

    fn json_error(&self, error: &serde_json::Error) -> Diagnostic {
        let text = self.text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default().to_string();
        let place = Place {
            file: self.name.clone(),
            line: error.line(),
            column: error.column().max(1),
            length: 1,
            text,
        };
        Diagnostic { message: error.to_string(), hint: None, place: Some(place) }
    }

    /// A message of the deserialiser, with the nearest match for unknown names and the best place known.
    pub fn explain(&self, message: &str, span: Option<Range<usize>>) -> Diagnostic {
        let mut names = message.split('`').skip(1).step_by(2);
        let plain = ["usize", "u64", "u32", "u8"].iter().fold(message.to_string(), |text, integer| {
            text.replace(&format!("expected {integer}"), "expected a whole number, not negative")
        });
        let mut diagnostic = Diagnostic::new(plain.replace("expected f64", "expected a number"));
        let slip = message.starts_with("unknown field") || message.starts_with("unknown variant");
        if let Some(unknown) = names.next().filter(|_| slip) {
            let known: Vec<&str> = names.collect();
            let kind = if message.starts_with("unknown field") { "key" } else { "value" };
            diagnostic.message = format!("unknown {kind} `{unknown}`");
            diagnostic.hint = Some(match nearest(unknown, &known) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!(
                    "expected one of {}",
                    known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ")
                ),
            });
            // Tables that are told apart by a tag lose the position of their keys; the name finds it again.
            let exact = span.clone().filter(|s| {
                self.text.get(s.clone()).is_some_and(|t| t.contains(unknown) && !t.contains('\n'))
            });
            let range = exact.or_else(|| self.find_word(unknown, kind == "key")).or(span);
            diagnostic.place = range.map(|r| self.place(r));
            return diagnostic;
        }
        // Tables whose keys depend on each other are judged as a whole; the name that a message begins with finds the line.
        let named = |span: &Range<usize>| {
            let mut names = message.split('`').skip(1).step_by(2);
            if message.starts_with("unknown engine ") {
                let value = self.find_word_in(span.clone(), names.next()?, false)?;
                return Some(value.start - 1..value.end + 1);
            }
            let about_a_run = message.starts_with("run ");
            names.find_map(|name| self.find_word_in(span.clone(), name, true)).filter(|_| about_a_run)
        };
        diagnostic.place = span.map(|span| self.place(named(&span).unwrap_or(span)));
        diagnostic
    }

    fn place(&self, range: Range<usize>) -> Place {
        let start = range.start.min(self.text.len());
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let text = self.text[line_start..].lines().next().unwrap_or_default().to_string();
        let column = before[line_start..].chars().count();
        let length = self.text.get(range).map_or(1, |t| t.lines().next().unwrap_or_default().chars().count());
        let length = length.min(text.chars().count().saturating_sub(column)).max(1);
        Place {
            file: self.name.clone(),
            line: before.matches('\n').count() + 1,
            column: column + 1,
            length,
            text,
        }
    }

    /// The first place where a word stands as a key (before `=`), or as a quoted value.
    fn find_word(&self, word: &str, key: bool) -> Option<Range<usize>> {
        self.find_word_in(0..self.text.len(), word, key)
    }

    /// [`Self::find_word`] within a part of the text.
    fn find_word_in(&self, part: Range<usize>, word: &str, key: bool) -> Option<Range<usize>> {
        let mut from = part.start;
        while let Some(at) = self.text.get(from..part.end)?.find(word).map(|at| at + from) {
            let after = self.text[at + word.len()..].trim_start_matches(['"', '\'', ' ']);
            let inside_a_word = self.text[..at].ends_with(|c: char| c.is_alphanumeric() || "-_.".contains(c));
            let quoted = self.text[..at].ends_with(['"', '\'']);
            if !inside_a_word && ((key && after.starts_with('=')) || (!key && quoted)) {
                return Some(at..at + word.len());
            }
            from = at + word.len();
        }
        None
    }

    /// The value of a dotted path such as `training.learning-rate`, or the nearest table that holds it.
    fn find_key(&self, path: &str) -> Option<Range<usize>> {
        let document = toml::de::DeTable::parse(&self.text).ok()?;
        let mut found = None;
        let mut table = Some(document.get_ref());
        let mut parts = path.split('.').peekable();
        while let Some(part) = parts.next() {
            let Some((key, value)) = table?.iter().find(|(k, _)| k.get_ref() == part) else { return found };
            found = Some(if value.get_ref().is_table() || value.get_ref().is_array() {
                key.span()
            } else {
                value.span()
            });
            table = value.get_ref().as_table();
            if let Some(list) = value.get_ref().as_array() {
                // The entry that the path names, or the first.
                let index =
                    parts.next_if(|p| p.parse::<usize>().is_ok()).map_or(0, |p| p.parse().unwrap_or(0));
                table = list.get(index).and_then(|v| v.get_ref().as_table());
            }
            if table.is_none() {
                return found;
            }
        }
        found
    }
}

/// The candidate with the fewest edits, if that is few enough to be a slip.
pub fn nearest<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let best = candidates.iter().map(|c| (edits(name, c), *c)).min()?;
    (best.0 <= 1 + name.chars().count() / 3).then_some(best.1)
}

/// Levenshtein distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_nearest_name() {
        assert_eq!(nearest("learning-rat", &["batch", "learning-rate"]), Some("learning-rate"));
        assert_eq!(nearest("zzz", &["batch", "learning-rate"]), None);
        assert_eq!(edits("kitten", "sitting"), 3);
    }

    #[test]
    fn keys_are_found_by_their_path() {
        let source =
            Source { name: "x.toml".into(), text: "title = \"a\"\n[training]\nlearning-rate = -1\n".into() };
        let place = Diagnostic::new("bad").at_key(&source, "training.learning-rate").place.unwrap();
        assert_eq!((place.line, place.column, place.text.as_str()), (3, 17, "learning-rate = -1"));
        let parent = Diagnostic::new("bad").at_key(&source, "training.batch").place.unwrap();
        assert_eq!(parent.line, 2);
    }
}

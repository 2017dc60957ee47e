//! Reading a description, and errors that point at the line they are about.

use crate::description::Description;
use crate::reader;
use didact_families::ModelError;
use didact_model::files;
use didact_model::plain_words::in_plain_words;
use serde_json::Value;
use std::borrow::Cow;
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
    pub place: Option<Box<Place>>,
    /// The key that the place was found by.
    pub(crate) key: Option<String>,
    /// True when another machine might not refuse it.
    machine: bool,
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
        let text = short_numbers(&message.to_string());
        match text.split_once("\nhint: ") {
            Some((message, hint)) => Self {
                message: message.trim_end().into(),
                hint: Some(hint.into()),
                place: None,
                key: None,
                machine: false,
            },
            None => Self { message: text, hint: None, place: None, key: None, machine: false },
        }
    }

    /// About what this machine has, which another one may have.
    pub fn of_this_machine(self, machine: bool) -> Self {
        Self { machine, ..self }
    }

    /// Whether another machine might not refuse it.
    pub fn is_of_this_machine(&self) -> bool {
        self.machine
    }

    /// With advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// About a key of the source.
    pub fn at_key(mut self, source: &Source, path: &str) -> Self {
        self.place = source.find_key(path).map(|range| Box::new(source.place(range)));
        self.key = Some(path.to_string());
        self
    }

    /// What is wrong with a model, at the key of it that is wrong. A formula is marked at its wrong character.
    pub fn of_model(error: &ModelError, source: &Source) -> Self {
        let path = format!("model.{}", error.key());
        if let ModelError::Formula { source: problem, .. } = error
            && let Some(range) = source.find_in_formula(&path, &problem.formula, problem.position)
        {
            let place = Some(Box::new(source.place(range)));
            let mut diagnostic = Self { place, key: Some(path), ..Self::new(&problem.problem) };
            diagnostic.hint = problem.hint();
            return diagnostic;
        }
        Self::new(error).at_key(source, &path)
    }

    /// About the run of this name: an error about a key of "the" run points at that of this one.
    ///
    /// Runs that wait for `--full` are taken out before the others are built, so the position of a run in the
    /// description need not be its position in the source; its name is.
    pub fn of_run(self, source: &Source, name: &str) -> Self {
        let part = match self.key.as_deref() {
            Some("run") => "name",
            Some(key) => match key.strip_prefix("run.") {
                Some(part) if !part.starts_with(|c: char| c.is_ascii_digit()) => part,
                _ => return self,
            },
            None => return self,
        };
        match source.position_of_run(name) {
            Some(index) => {
                let key = format!("run.{index}.{part}");
                self.at_key(source, &key)
            }
            None => self,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", cut(&printable(&self.message)))?;
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            let margin = " ".repeat(number.len());
            let (line, before, length) = place.window();
            write!(f, "\n{margin}--> {}:{}:{}", printable(&place.file), place.line, place.column)?;
            write!(f, "\n{margin} |\n{number} | {line}")?;
            write!(f, "\n{margin} | {}{}", " ".repeat(before), "^".repeat(length))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {}", cut(&printable(hint)))?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

/// Bytes of a description; the largest of the papers has 20 kB, and lists of eigenvalues have files of their own.
const LARGEST_SOURCE: u64 = 16 << 20;

/// Characters of a line of the source that a message shows.
const SHOWN: usize = 120;

impl Place {
    /// What is shown of the line, the characters before the mark in it, and the length of the mark.
    fn window(&self) -> (String, usize, usize) {
        // One character for one, so that the mark stands where it belongs.
        let plain = |c: char| if c.is_control() { if c == '\t' { ' ' } else { '\u{fffd}' } } else { c };
        let line: Vec<char> = self.text.chars().map(plain).collect();
        let column = self.column - 1;
        let length = self.length.max(1);
        if line.len() <= SHOWN {
            return (line.into_iter().collect(), column, length);
        }
        // The mark stands in the middle where the line goes on at both sides.
        let from = column.saturating_sub(SHOWN / 2).min(line.len().saturating_sub(SHOWN));
        let to = (from + SHOWN).min(line.len());
        let (left, right) = (if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" });
        let shown: String = line[from..to].iter().collect();
        let before = column - from + left.chars().count();
        (format!("{left}{shown}{right}"), before, length.min(to.saturating_sub(column).max(1)))
    }
}

/// Characters of a message.
const LONGEST_MESSAGE: usize = 4000;

/// A text that is too long for a message, with its end left out.
fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(LONGEST_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// A text for a terminal: control characters, which could move the cursor or change colours, are written as `\u{1b}`.
pub fn printable(text: &str) -> String {
    let control = |c: char| c.is_control() && c != '\n';
    text.chars().flat_map(|c| if control(c) { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Numbers of more than twenty digits in a row in short form: 1 followed by 308 zeros becomes 1e308.
fn short_numbers(text: &str) -> String {
    const DIGITS: usize = 20;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let length =
            rest[start..].find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len() - start);
        let (before, number) = (&rest[..start], &rest[start..start + length]);
        out += before;
        match number.parse::<f64>() {
            Ok(value) if number.len() > DIGITS && value.is_finite() => out += &format!("{value:e}"),
            _ => out += number,
        }
        rest = &rest[start + length..];
    }
    out + rest
}

impl Source {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Diagnostic> {
        let name = path.display().to_string();
        let refused = |why: String| Diagnostic::new(format!("cannot read {name}: {why}"));
        let bytes = files::read_bounded(path, LARGEST_SOURCE).map_err(refused)?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Self { name, text }),
            Err(_) => Err(refused("it is no text in UTF-8".into())),
        }
    }

    /// The description in the text: JSON if the name ends in `.json`, else TOML.
    pub fn description(&self) -> Result<Description, Diagnostic> {
        let read = if self.has_extension("json") { self.read_json() } else { self.read_toml() };
        crate::spectra::resolve(read?.complete(), self)
    }

    fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.name).extension().is_some_and(|e| e == extension)
    }

    fn read_json(&self) -> Result<Description, Diagnostic> {
        let value: Value = serde_json::from_str(&self.text).map_err(|e| self.json_error(&e))?;
        reader::check(&value).map_err(|fault| fault.diagnostic.at_key(self, &fault.path))?;
        serde_json::from_value(value).map_err(|e| self.explain(&e.to_string(), None))
    }

    fn read_toml(&self) -> Result<Description, Diagnostic> {
        let table = toml::de::DeTable::parse(&self.text).map_err(|error| {
            if self.has_extension("toml") {
                return self.explain(error.message(), error.span());
            }
            // What it says may be nobody's business.
            Diagnostic::new(format!("{} is no description: {}", self.name, error.message()))
                .hint("descriptions are TOML (`.toml`) or JSON (`.json`) files")
        })?;
        let here = |fault: reader::Fault| fault.diagnostic.at_key(self, &fault.path);
        let (value, open_ends) = reader::plain(table.get_ref()).map_err(here)?;
        reader::check(&value).map_err(here)?;
        // JSON, by which descriptions are compared and changed, has no infinity: an open end becomes the largest number.
        let mut text = Cow::from(&self.text);
        for (place, number) in open_ends.iter().rev() {
            text.to_mut().replace_range(place.clone(), number);
        }
        let closed = Self { name: self.name.clone(), text: text.into_owned() };
        toml::from_str(&closed.text).map_err(|error| closed.explain(error.message(), error.span()))
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
        Diagnostic { place: Some(Box::new(place)), ..Diagnostic::new(error) }
    }

    /// A message of the deserialiser, with the nearest match for unknown names and the best place known.
    pub fn explain(&self, message: &str, span: Option<Range<usize>>) -> Diagnostic {
        let mut names = message.split('`').skip(1).step_by(2);
        let mut diagnostic = Diagnostic::new(in_plain_words(message));
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
            diagnostic.place = range.map(|r| Box::new(self.place(r)));
            return diagnostic;
        }
        let named = span.clone().and_then(|span| self.find_in_run(message, span));
        diagnostic.place = named.or(span).map(|range| Box::new(self.place(range)));
        diagnostic
    }

    /// What a message about a whole run speaks of: its engine, or the first key of the run that the message names. A run is
    /// judged as a whole, since its engine decides which keys it may have.
    fn find_in_run(&self, message: &str, span: Range<usize>) -> Option<Range<usize>> {
        let table = self.whole_table(span);
        let mut names = message.split('`').skip(1).step_by(2);
        if message.starts_with("unknown engine ") {
            let value = self.find_word_in(table, names.next()?, false)?;
            return Some(value.start - 1..value.end + 1);
        }
        if !message.starts_with("run ") {
            return None;
        }
        names.find_map(|name| self.find_word_in(table.clone(), name, true))
    }

    /// The text of a table: its parser gives the header alone where there is one, and the keys follow up to the next header.
    fn whole_table(&self, span: Range<usize>) -> Range<usize> {
        let is_header = self.text.get(span.clone()).is_some_and(|text| text.starts_with('['));
        let next = self.text.get(span.end..).and_then(|rest| rest.find("\n["));
        let end = next.map_or(self.text.len(), |at| span.end + at);
        if is_header { span.start..end } else { span }
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
        // An empty word stands everywhere, so nowhere in particular.
        if word.is_empty() {
            return None;
        }
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

    /// Which of the `[[run]]` tables of the source has this name.
    fn position_of_run(&self, name: &str) -> Option<usize> {
        let document = toml::de::DeTable::parse(&self.text).ok()?;
        let (_, runs) = document.get_ref().iter().find(|(key, _)| key.get_ref() == "run")?;
        runs.get_ref().as_array()?.iter().position(|run| {
            let table = run.get_ref().as_table();
            let own = table.and_then(|t| t.iter().find(|(key, _)| key.get_ref() == "name"));
            own.is_some_and(|(_, value)| value.get_ref().as_str() == Some(name))
        })
    }

    /// The place of a character of a formula that is the value of a dotted path. `None` where the source has another value there, as it
    /// has when a sweep or a stage has changed it.
    fn find_in_formula(&self, path: &str, formula: &str, position: usize) -> Option<Range<usize>> {
        let value = self.find_key(path)?;
        let characters = toml_characters(self.text.get(value.clone())?)?;
        // Errors write every kind of white space as a blank.
        let plain = |c: char| if c.is_whitespace() { ' ' } else { c };
        if !characters.iter().map(|(_, c)| plain(*c)).eq(formula.chars()) {
            return None;
        }
        // The end of the formula is marked at the quote that follows it.
        let last = characters.last().map_or(1, |(at, c)| at + c.len_utf8());
        let at = value.start + characters.get(position).map_or(last, |(at, _)| *at);
        let length = self.text[at..].chars().next().map_or(0, char::len_utf8);
        Some(at..at + length)
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
                let index = parts.next_if(|p| p.parse::<usize>().is_ok()).and_then(|p| p.parse().ok());
                let entry = list.get(index.unwrap_or(0));
                table = entry.and_then(|v| v.get_ref().as_table());
                // A key that the entry lacks is pointed at in that entry, not in the first one.
                found = entry.filter(|_| index.is_some()).map(toml::Spanned::span).or(found);
            }
            if table.is_none() {
                return found;
            }
        }
        found
    }
}

/// The characters of a TOML string as it is written, quotes included, each with the byte at which it begins. `None` for other values.
fn toml_characters(text: &str) -> Option<Vec<(usize, char)>> {
    let quote = text.chars().next().filter(|c| "\"'".contains(*c))?;
    let triple: String = [quote; 3].iter().collect();
    let is_long = text.len() >= 6 && text.starts_with(&triple);
    let width = if is_long { 3 } else { 1 };
    let inner = text.get(width..text.len().checked_sub(width)?)?;
    // A line end right after three quotes is not part of the string.
    let skipped =
        ["\r\n", "\n"].iter().find(|end| is_long && inner.starts_with(**end)).map_or(0, |end| end.len());
    let mut found = Vec::new();
    let mut rest = inner[skipped..].char_indices().map(|(at, c)| (at + width + skipped, c)).peekable();
    while let Some((at, c)) = rest.next() {
        if c != '\\' || quote == '\'' {
            found.push((at, c));
            continue;
        }
        let (_, escaped) = rest.next()?;
        let digits = match escaped {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            'b' | 't' | 'n' | 'f' | 'r' | 'e' | '"' | '\\' => {
                let meant = match escaped {
                    'b' => '\u{8}',
                    't' => '\t',
                    'n' => '\n',
                    'f' => '\u{c}',
                    'r' => '\r',
                    'e' => '\u{1b}',
                    other => other,
                };
                found.push((at, meant));
                continue;
            }
            // A backslash at the end of a line swallows it and the blanks of the next.
            c if c.is_whitespace() => {
                while rest.next_if(|(_, c)| c.is_whitespace()).is_some() {}
                continue;
            }
            _ => return None,
        };
        let code: String = rest.by_ref().take(digits).map(|(_, c)| c).collect();
        found.push((at, char::from_u32(u32::from_str_radix(&code, 16).ok()?)?));
    }
    Some(found)
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
    fn the_characters_of_a_string_are_found_where_they_stand() {
        let read = |text: &str| -> Option<(String, Vec<usize>)> {
            toml_characters(text)
                .map(|all| (all.iter().map(|(_, c)| c).collect(), all.iter().map(|(at, _)| *at).collect()))
        };
        assert_eq!(read("\"a+b\""), Some(("a+b".into(), vec![1, 2, 3])));
        assert_eq!(read("'a\\b'"), Some(("a\\b".into(), vec![1, 2, 3])));
        assert_eq!(read("\"a\\tb\\u0041c\""), Some(("a\tbAc".into(), vec![1, 2, 4, 5, 11])));
        assert_eq!(read("\"\"\"\na \\\n  +b\"\"\""), Some(("a +b".into(), vec![4, 5, 10, 11])));
        assert_eq!(read("\"\""), Some((String::new(), vec![])));
        assert_eq!(read("3.5"), None);
        assert_eq!(read("\""), None);
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

    #[test]
    fn messages_about_a_run_point_into_that_run() {
        let place = |text: &str| {
            let source = Source { name: "x.toml".into(), text: text.into() };
            let place = source.description().unwrap_err().place.unwrap();
            (place.line, place.column, place.length)
        };
        let first = "title = \"a\"\n[[run]]\nname = \"b\"\nengine = \"ode\"\ntolerance = 1e-6\n";
        let second = |rest: &str| format!("{first}\n[[run]]\nname = \"c\"\n{rest}");
        assert_eq!(place(&second("engine = \"odee\"\n[data]\n")), (9, 10, 6));
        assert_eq!(place(&second("engine = \"reduced\"\ntolerance = 1e-6\n[data]\n")), (10, 1, 9));
        assert_eq!(place(&second("engine = \"ode\"\ntolerance = \"low\"\n")), (10, 13, 5));
        assert_eq!(place(&second("engine = \"ode\"\ntolernce = 1\n")), (10, 1, 8));
        let inline = "title = \"a\"\nrun = [{ name = \"b\", engine = \"reduced\", spread = 2 }]\n";
        assert_eq!(place(inline), (2, 42, 6));
    }
}

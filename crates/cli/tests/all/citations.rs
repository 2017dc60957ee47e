//! Citations of the derivations: every page and anchor that is named exists, and no section is cited without its page.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What precedes the name of a page, in a path from the root and in a relative link.
const FOLDER: &str = "derivations/";

/// The papers by the names under which comments may speak of them.
const PAPERS: [&str; 8] = [
    "gd-phase-transitions",
    "lora",
    "lora-single-index",
    "low-rank-perturbation",
    "optimal-protocols",
    "power-law-spectra",
    "quadratic-networks",
    "training-rules",
];

/// A page of the derivations and, where one is named, an anchor on it.
#[derive(Debug, PartialEq)]
struct Citation {
    line: usize,
    page: String,
    anchor: Option<String>,
}

/// The derivations: anchors by the name of their page.
type Pages = BTreeMap<String, BTreeSet<String>>;

/// Something to read, and how.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Rust: sections are cited in comments.
    Source,
    /// Description files and documentation: all of it is read.
    Text,
    /// A page of the derivations, which may speak of its own sections and link to pages beside it.
    Derivation,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files with this extension under a folder, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found
}

/// Everything that may cite a derivation: its path from the root, its kind and its text.
fn readable() -> Vec<(String, Kind, String)> {
    let root = root();
    let mut paths: Vec<(PathBuf, Kind)> = Vec::new();
    paths.extend(files(&root.join("crates"), "rs").into_iter().map(|p| (p, Kind::Source)));
    paths.extend(files(&root.join("papers"), "toml").into_iter().map(|p| (p, Kind::Text)));
    let derivations = root.join("docs/derivations");
    for path in files(&root.join("docs"), "md") {
        let kind = if path.starts_with(&derivations) { Kind::Derivation } else { Kind::Text };
        paths.push((path, kind));
    }
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        paths.push((root.join(name), Kind::Text));
    }
    paths
        .into_iter()
        .map(|(path, kind)| {
            let text = std::fs::read_to_string(&path).expect("a text file");
            let name = path.strip_prefix(&root).expect("a path under the root").display().to_string();
            (name, kind, text)
        })
        .collect()
}

/// Every page of the derivations with its explicit anchors, `<a id="...">`.
fn pages() -> Pages {
    files(&root().join("docs/derivations"), "md")
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a page");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, anchors(&text))
        })
        .collect()
}

/// The anchors of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let ends = text.split("<a id=\"").skip(1);
    ends.filter_map(|rest| rest.split_once('"')).map(|(anchor, _)| anchor.to_owned()).collect()
}

/// The anchors that a page has from its headings; they change with the words, so only the page itself may link to them.
fn headings(text: &str) -> BTreeSet<String> {
    let titles = text.lines().filter(|l| l.starts_with('#')).map(|l| l.trim_start_matches('#').trim());
    let slug = |title: &str| -> String {
        let kept = title.to_lowercase().replace(' ', "-");
        kept.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect()
    };
    titles.map(slug).collect()
}

/// The longest beginning of a text that can be the name of a page or an anchor.
fn name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    &text[..end.unwrap_or(text.len())]
}

/// `page.md` or `page.md#anchor` at the beginning of a text; no placeholders such as `<page>.md`.
fn page_at(text: &str) -> Option<(String, Option<String>)> {
    let page = name(text);
    let rest = text[page.len()..].strip_prefix(".md")?;
    let anchor = rest.strip_prefix('#').map(|anchor| name(anchor).to_owned());
    (!page.is_empty()).then(|| (page.to_owned(), anchor))
}

/// All citations of derivations in a text. On a page of the derivations (`own` is its name) links to the pages beside it
/// and to its own anchors count too.
fn citations(text: &str, own: Option<&str>) -> Vec<Citation> {
    let mut found = Vec::new();
    let headings = headings(text);
    for (index, content) in text.lines().enumerate() {
        let line = index + 1;
        for (at, _) in content.match_indices(FOLDER) {
            if let Some((page, anchor)) = page_at(&content[at + FOLDER.len()..]) {
                found.push(Citation { line, page, anchor });
            }
        }
        let Some(own) = own else { continue };
        for (at, open) in content.match_indices("](") {
            let target = &content[at + open.len()..];
            if let Some(anchor) = target.strip_prefix('#').map(name) {
                if !headings.contains(anchor) {
                    found.push(Citation { line, page: own.to_owned(), anchor: Some(anchor.to_owned()) });
                }
            } else if let Some((page, anchor)) = page_at(target) {
                found.push(Citation { line, page, anchor });
            }
        }
    }
    found
}

/// What is wrong with a citation.
fn fault(citation: &Citation, pages: &Pages) -> Option<String> {
    let Citation { page, anchor, .. } = citation;
    let Some(anchors) = pages.get(page) else {
        return Some(format!("docs/derivations/{page}.md does not exist"));
    };
    let anchor = anchor.as_ref().filter(|anchor| !anchors.contains(*anchor))?;
    Some(format!("docs/derivations/{page}.md has no anchor `<a id=\"{anchor}\">`"))
}

/// Lines that belong together: a paragraph, or a comment that goes over several lines. Joined by single spaces.
#[derive(Default)]
struct Block {
    text: String,
    /// Where each line begins in `text`, and its number in the file.
    starts: Vec<(usize, usize)>,
}

impl Block {
    fn push(&mut self, line: usize, content: &str) {
        self.starts.push((self.text.len(), line));
        self.text.push_str(&content.trim().to_lowercase());
        self.text.push(' ');
    }

    /// The line of the file in which byte `at` of the text stands.
    fn line(&self, at: usize) -> usize {
        self.starts.iter().rev().find(|start| start.0 <= at).map_or(0, |start| start.1)
    }
}

/// The prose of a file: its comments if it is a source, its paragraphs otherwise.
fn blocks(kind: Kind, text: &str) -> Vec<Block> {
    let mut all = vec![Block::default()];
    for (index, content) in text.lines().enumerate() {
        let prose = match kind {
            Kind::Source => content.find("//").map(|at| content[at..].trim_start_matches(['/', '!'])),
            Kind::Text | Kind::Derivation => Some(content),
        };
        // A comment after code is not the continuation of the one above it.
        let begins = kind == Kind::Source && !content.trim_start().starts_with("//");
        if begins || prose.is_none_or(|p| p.trim().is_empty()) {
            all.push(Block::default());
        }
        if let (Some(prose), Some(block)) = (prose, all.last_mut()) {
            block.push(index + 1, prose);
        }
    }
    all
}

/// Where a phrase begins that is not part of a longer word on its left.
fn phrases<'a>(text: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    let free = |c: char| !(c.is_alphanumeric() || c == '_' || c == '`');
    text.match_indices(phrase).map(|(at, _)| at).filter(move |&at| text[..at].chars().last().is_none_or(free))
}

/// Citations of a numbered section without the page that it is a section of, and of texts that are not in the repository.
fn homeless(kind: Kind, text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for block in blocks(kind, text) {
        let mut note = |at: usize, why: &str| {
            let excerpt: String = block.text[at..].chars().take(40).collect();
            found.push((block.line(at), format!("{why}: `{}`", excerpt.trim())));
        };
        for at in phrases(&block.text, "spec") {
            let rest = &block.text[at + "spec".len()..];
            let article = block.text[..at].ends_with("the ");
            let word = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '`');
            let paper = |rest: &str| PAPERS.iter().any(|p| name(rest) == *p);
            let cited = rest.starts_with(',')
                || rest.starts_with(" section")
                || rest.strip_prefix(' ').is_some_and(paper);
            if (word && (article || cited)) || (article && rest.starts_with("ification")) {
                note(at, "a text that is not in the repository");
            }
        }
        if kind == Kind::Derivation || block.text.contains(FOLDER) {
            continue;
        }
        for word in ["section ", "sections "] {
            for at in phrases(&block.text, word) {
                let number = &block.text[at + word.len()..];
                let after = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
                let numbered = number.starts_with(|c: char| c.is_ascii_digit());
                let bracketed = block.text[..at].ends_with('(');
                // Papers have sections too: "section 4 of the paper", or, in a description file, after its authors.
                let of_another = after.starts_with(" of ");
                if numbered && !of_another && (bracketed || kind == Kind::Source) {
                    note(at, "a section without its page");
                }
            }
        }
    }
    found
}

fn report(faults: &[String]) -> String {
    format!("{} faults; docs/derivations/README.md says how to cite\n{}", faults.len(), faults.join("\n"))
}

#[test]
fn every_cited_page_and_anchor_exists() {
    let pages = pages();
    let (mut faults, mut seen) = (Vec::new(), 0);
    for (path, kind, text) in readable() {
        let stem = Path::new(&path).file_stem().map(|s| s.to_string_lossy().into_owned());
        for citation in citations(&text, stem.as_deref().filter(|_| kind == Kind::Derivation)) {
            seen += 1;
            faults.extend(fault(&citation, &pages).map(|why| format!("{path}:{}: {why}", citation.line)));
        }
    }
    assert!(faults.is_empty(), "{}", report(&faults));
    // The walk reached sources, papers and guides.
    assert!(seen > 100 && pages.len() > 1, "{seen} citations of {} pages", pages.len());
}

#[test]
fn no_section_is_cited_without_its_page() {
    let mut faults = Vec::new();
    for (path, kind, text) in readable() {
        faults.extend(homeless(kind, &text).into_iter().map(|(line, why)| format!("{path}:{line}: {why}")));
    }
    assert!(faults.is_empty(), "{}", report(&faults));
}

#[test]
fn a_planted_bad_citation_is_found() {
    let pages = Pages::from([("paper".into(), anchors("<a id=\"s1\"></a>\n## 1. One\n<a id=\"eq-2\"></a>"))]);
    let faults = |text: &str, own: Option<&str>| -> Vec<(usize, String)> {
        let all = citations(text, own);
        all.iter().filter_map(|c| fault(c, &pages).map(|why| (c.line, why))).collect()
    };
    // Put together here, so that this file does not cite them itself.
    let cite = |target: &str| format!("/// A law\n/// (docs/{FOLDER}{target}).");
    assert_eq!(faults(&cite("paper.md#s1"), None), []);
    assert_eq!(faults(&cite("paper.md#eq-2, and more"), None), []);
    assert_eq!(faults(&cite("paper.md"), None), []);
    assert_eq!(faults(&cite("<page>.md#s9"), None), []);
    assert_eq!(faults(&cite("paper.md#s9"), None).len(), 1);
    assert_eq!(faults(&cite("paper.md#eq-22"), None)[0].0, 2);
    assert!(faults(&cite("other.md#s1"), None)[0].1.contains("does not exist"));
    let both = format!("[a](../{FOLDER}paper.md#s1), [b](../{FOLDER}paper.md#e8)");
    assert_eq!(faults(&both, None).len(), 1);
    assert_eq!(faults("see [1](#s1), [2](#s2) and [3](paper.md#s3)", Some("paper")).len(), 2);
    assert_eq!(faults("see [1](#s1), [2](#s2)", None), []);
    assert_eq!(faults("see [4](#two-words)\n## Two words", Some("paper")), []);
}

#[test]
fn a_planted_section_without_a_page_is_found() {
    let lines = |kind: Kind, text: &str| -> Vec<usize> { homeless(kind, text).iter().map(|f| f.0).collect() };
    // A percent sign begins a comment here, so that these lines are not comments of this file.
    let source = |text: &str| lines(Kind::Source, &text.replace('%', "//"));
    assert_eq!(source("let a = 1;\n% The law (section 4.2)."), [2]);
    assert_eq!(source("%! Two laws (sections 4.2 and 5)."), [1]);
    assert_eq!(source("%/ As in the spec, section 5."), [1, 1]);
    assert_eq!(source("%/ What the\n%/ specification asks."), [2]);
    assert_eq!(source("%! Of Spec\n%! section 3"), [1, 2]);
    assert_eq!(source("% spec quadratic-networks, 2.2"), [1]);
    assert_eq!(source("    % (quadratic-networks, section 13)"), [1]);
    assert_eq!(source(&format!("%/ Section 4.2, docs/{FOLDER}paper.md#s4-2.")), [0usize; 0]);
    assert_eq!(source("%/ Section 4 of the paper; found by golden section. 3"), [0usize; 0]);
    assert_eq!(source("fn f(spec: &Spec, g: u8) {} % a DataSpec, `spec`, specialised"), [0usize; 0]);
    assert_eq!(source("let the_spec = (spec, section(4));"), [0usize; 0]);
    assert_eq!(lines(Kind::Text, "The law (section 4)"), [1]);
    assert_eq!(lines(Kind::Text, "source = \"Authors (2026), section 3\""), [0usize; 0]);
    assert_eq!(lines(Kind::Derivation, "The law (section 4)"), [0usize; 0]);
    assert_eq!(lines(Kind::Derivation, "of the specification"), [1]);
}

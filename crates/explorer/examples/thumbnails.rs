//! Makes the pictures of the gallery from folders of finished runs.
//!
//! `cargo run -p didact-explorer --example thumbnails -- RUNS…` looks through every folder below RUNS for runs whose title is that of a
//! card (of an example, or of a figure below `papers/`) and writes `crates/explorer/thumbnails/<card>.svg`: curves and frames of the
//! first figure, without any text. Make runs with `didact reproduce PAPER --quick --out RUNS` and `didact run FILE --out RUNS`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Places of a path that are nearer than the first of these, in points, are left out; further ones are tried until a picture is small.
const NEAR: [f64; 5] = [3.0, 5.0, 8.0, 12.0, 18.0];

/// Bytes of a picture.
const SMALL: usize = 12_000;

#[expect(clippy::print_stdout, reason = "a program")]
fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cards: BTreeMap<String, String> = BTreeMap::new();
    for file in files(&root.join("examples")).into_iter().chain(files(&root.join("papers"))) {
        if file.extension().is_none_or(|e| e != "toml") || file.ends_with("paper.toml") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("a description");
        let folder =
            file.parent().and_then(Path::file_name).expect("a folder").to_string_lossy().into_owned();
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        cards.insert(title(&text), format!("{folder}--{name}"));
    }
    for runs in std::env::args().skip(1) {
        for file in files(Path::new(&runs)) {
            if !file.ends_with("description.toml")
                || file.with_file_name("provenance.json").metadata().is_err()
            {
                continue;
            }
            let text = std::fs::read_to_string(&file).expect("a description");
            let Some(card) = cards.get(&title(&text)) else { continue };
            let mut names = text.split("[[figure]]").skip(1).filter_map(|figure| value(figure, "name"));
            let drawing =
                |name: String| std::fs::read_to_string(file.with_file_name(format!("{name}.svg"))).ok();
            let drawing = names.find_map(drawing);
            if let Some(drawing) = drawing {
                let pictures = NEAR.iter().map(|near| sketch(&drawing, *near));
                let picture = pictures.reduce(|a, b| if a.len() <= SMALL { a } else { b }).expect("one");
                println!("{card}: {} bytes", picture.len());
                let place = root.join(format!("crates/explorer/thumbnails/{card}.svg"));
                std::fs::write(place, picture).expect("the folder can be written");
            }
        }
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

fn title(text: &str) -> String {
    value(text, "title").unwrap_or_default()
}

/// The text of a key at the beginning of a line.
fn value(text: &str, key: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))?;
    Some(line.trim().trim_matches(['"', '\'']).to_string())
}

/// The drawing without text: glyphs are `use` elements, and labels of axes are of no use at this size.
fn sketch(drawing: &str, near: f64) -> String {
    let view = drawing.split("viewBox=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a drawing");
    let mut out = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{view}\">");
    // What is defined first are outlines of letters.
    let shapes = drawing.split("</defs>").last().expect("a part");
    for element in elements(shapes) {
        let keep = element.starts_with("<path") || element.starts_with("<image");
        let is_text = element.contains("href=\"#");
        // Ticks: many strokes of two points each.
        let is_ticks =
            element.matches('M').count() > 3 && element.matches('M').count() == element.matches('L').count();
        if keep && !is_text && !is_ticks {
            out += &bolder(&thinned(&element, near));
        }
    }
    out + "</svg>\n"
}

/// Strokes that can still be seen when the picture is small.
fn bolder(element: &str) -> String {
    const TIMES: f64 = 1.8;
    let Some((before, rest)) = element.split_once("stroke-width=\"") else { return element.into() };
    let Some((width, after)) = rest.split_once('"') else { return element.into() };
    format!("{before}stroke-width=\"{:.1}\"{after}", TIMES * width.parse::<f64>().unwrap_or(1.0))
}

/// The tags of a drawing, in order.
fn elements(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let Some(end) = rest[start..].find('>') else { break };
        all.push(rest[start..=start + end].to_string());
        rest = &rest[start + end + 1..];
    }
    all
}

/// A path with fewer points and digits.
fn thinned(element: &str, near: f64) -> String {
    let Some((before, rest)) = element.split_once(" d=\"") else { return element.into() };
    let Some((data, after)) = rest.split_once('"') else { return element.into() };
    let mut out = String::new();
    let mut last = (f64::NAN, f64::NAN);
    let mut numbers: Vec<f64> = Vec::new();
    let mut command = ' ';
    let mut flush = |command: char, numbers: &[f64], out: &mut String, is_last: bool| {
        match (command, numbers) {
            ('L', [x, y]) => {
                if !is_last && (x - last.0).hypot(y - last.1) < near {
                    return;
                }
                last = (*x, *y);
            }
            ('M', [x, y]) => last = (*x, *y),
            _ => {}
        }
        let words: Vec<String> =
            numbers.iter().map(|n| format!("{n:.1}").trim_end_matches(".0").to_string()).collect();
        out.push_str(&format!("{command}{}", words.join(" ")));
    };
    let mut digits = String::new();
    for c in data.chars().chain([' ']) {
        let goes_on = c.is_ascii_digit() || c == '.' || (c == '-' && digits.is_empty());
        if goes_on {
            digits.push(c);
            continue;
        }
        if !digits.is_empty() {
            numbers.push(digits.parse().unwrap_or(0.0));
            digits.clear();
        }
        if c == '-' {
            digits.push(c);
        } else if c.is_ascii_alphabetic() {
            if command != ' ' {
                flush(command, &numbers, &mut out, c != 'L');
            }
            numbers.clear();
            command = c;
        }
    }
    if command != ' ' {
        flush(command, &numbers, &mut out, true);
    }
    format!("{before} d=\"{out}\"{after}")
}

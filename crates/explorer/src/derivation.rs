//! The pages of derivations as HTML, formulas drawn: just the Markdown that these pages use.

use didact_experiment::explain;
use didact_figure::interactive::{Prose, STYLE, escape};

/// A page of derivations; `None` for a name that is none.
pub fn html(page: &str) -> Option<String> {
    let text = explain::derivation(page)?;
    let mut writer = Writer::default();
    writer.blocks(text);
    let title = text.lines().next().unwrap_or(page).trim_start_matches(['#', ' ']);
    Some(format!(
        "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <meta name=color-scheme content=\"light dark\"><title>{}</title><style>{STYLE}{OWN_STYLE}</style></head>\n<body>{}{}</body></html>\n",
        escape(title),
        writer.prose.definitions(),
        writer.html
    ))
}

const OWN_STYLE: &str = "body{max-width:52rem;margin:2rem auto;padding:0 1rem;font:17px/1.55 Georgia,serif}\
    table{border-collapse:collapse;display:block;overflow-x:auto}td,th{border-bottom:1px solid #8884;padding:.2rem .7rem;text-align:left}\
    .equation{overflow-x:auto;text-align:center;margin:1rem 0}.equation .number{float:right}:target+.equation{background:#ffd54a55;outline:6px solid #ffd54a55}\
    pre,code{font-size:.9em}pre{overflow-x:auto}a{color:#0072b2}@media(prefers-color-scheme:dark){a{color:#6bb8e8}body{background:#16181d;color:#e6e6e6}}";

#[derive(Default)]
struct Writer {
    html: String,
    prose: Prose,
}

impl Writer {
    fn blocks(&mut self, text: &str) {
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let trimmed = line.trim();
            if let Some(id) = trimmed.strip_prefix("<a id=\"").and_then(|rest| rest.strip_suffix("\"></a>")) {
                self.html += &format!("<a id=\"{}\"></a>\n", escape(id));
            } else if let Some(kind) = trimmed.strip_prefix("```") {
                let body: Vec<&str> = lines.by_ref().take_while(|l| l.trim() != "```").collect();
                if kind == "math" {
                    self.equation(&body.join("\n"));
                } else {
                    self.html += &format!("<pre>{}</pre>\n", escape(&body.join("\n")));
                }
            } else if trimmed.starts_with('#') {
                let level = trimmed.bytes().take_while(|b| *b == b'#').count().min(4);
                let inner = self.inline(trimmed.trim_start_matches('#').trim());
                self.html += &format!("<h{level}>{inner}</h{level}>\n");
            } else if trimmed.starts_with('|') {
                let mut rows = vec![trimmed];
                while let Some(row) = lines.next_if(|l| l.trim_start().starts_with('|')) {
                    rows.push(row.trim());
                }
                self.table(&rows);
            } else if let Some(first) = list_item(trimmed) {
                let mut items = vec![first.to_string()];
                while let Some(next) = lines.next_if(|l| !l.trim().is_empty()) {
                    match list_item(next.trim()) {
                        Some(item) => items.push(item.into()),
                        None => items.last_mut().expect("one item").push_str(&format!(" {}", next.trim())),
                    }
                }
                let items: String =
                    items.iter().map(|item| format!("<li>{}</li>", self.inline(item))).collect();
                self.html += &format!("<ul>{items}</ul>\n");
            } else if !trimmed.is_empty() {
                let mut paragraph = trimmed.to_string();
                let goes_on = |l: &&str| {
                    let l = l.trim();
                    !(l.is_empty()
                        || l.starts_with("```")
                        || l.starts_with("<a id=")
                        || l.starts_with('#')
                        || l.starts_with('|'))
                };
                while let Some(next) = lines.next_if(goes_on) {
                    paragraph += &format!(" {}", next.trim());
                }
                let inner = self.inline(&paragraph);
                self.html += &format!("<p>{inner}</p>\n");
            }
        }
    }

    fn equation(&mut self, tex: &str) {
        let number =
            tex.split_once("\\tag{").and_then(|(_, rest)| rest.split_once('}')).map(|(number, _)| number);
        let number = number.map_or(String::new(), |n| format!("<span class=number>({})</span>", escape(n)));
        let tex: String = explain::without_tag(tex).split_whitespace().collect::<Vec<_>>().join(" ");
        let drawn = self.prose.html(&format!("${tex}$"));
        self.html += &format!("<div class=equation>{number}{drawn}</div>\n");
    }

    fn table(&mut self, rows: &[&str]) {
        let mut html = String::from("<table>");
        for (index, row) in rows.iter().enumerate() {
            if index == 1 {
                continue;
            }
            let tag = if index == 0 { "th" } else { "td" };
            // A bar within a cell is written as \|.
            let cells = row.trim_matches('|').replace("\\|", "\u{1}");
            let cells: String = cells
                .split('|')
                .map(|cell| format!("<{tag}>{}</{tag}>", self.inline(&cell.trim().replace('\u{1}', "|"))))
                .collect();
            html += &format!("<tr>{cells}</tr>");
        }
        self.html += &(html + "</table>\n");
    }

    /// Text with formulas, code, links and emphasis.
    fn inline(&mut self, text: &str) -> String {
        let mut html = String::new();
        let mut rest = text;
        let (mut strong, mut emphasis) = (false, false);
        while let Some(first) = rest.chars().next() {
            let closed = |mark: char| rest[1..].find(mark).map(|end| (&rest[1..=end], &rest[end + 2..]));
            match first {
                '`' | '$' if closed(first).is_some() => {
                    let (inner, after) = closed(first).expect("just looked");
                    html += &if first == '`' {
                        format!("<code>{}</code>", escape(inner))
                    } else {
                        self.prose.html(&format!("${inner}$"))
                    };
                    rest = after;
                }
                '<' if anchor(rest).is_some() => {
                    let (id, after) = anchor(rest).expect("just looked");
                    html += &format!("<a id=\"{}\"></a>", escape(id));
                    rest = after;
                }
                '[' if link(rest).is_some() => {
                    let (words, address, after) = link(rest).expect("just looked");
                    let words = self.inline(words);
                    html += &match local(address) {
                        Some(address) => {
                            format!("<a href=\"{}\" rel=noreferrer>{words}</a>", escape(&address))
                        }
                        None => words,
                    };
                    rest = after;
                }
                '*' if rest.starts_with("**") => {
                    strong = !strong;
                    html += if strong { "<strong>" } else { "</strong>" };
                    rest = &rest[2..];
                }
                '*' if emphasis || rest[1..].starts_with(|c: char| !c.is_whitespace()) => {
                    emphasis = !emphasis;
                    html += if emphasis { "<em>" } else { "</em>" };
                    rest = &rest[1..];
                }
                '\\' if rest[1..].starts_with(['*', '_', '|', '\\']) => {
                    html += &rest[1..2];
                    rest = &rest[2..];
                }
                other => {
                    html += &escape(&other.to_string());
                    rest = &rest[other.len_utf8()..];
                }
            }
        }
        html + if emphasis { "</em>" } else { "" } + if strong { "</strong>" } else { "" }
    }
}

/// `<a id="…"></a>` at the beginning of a text: the name, and what follows.
fn anchor(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("<a id=\"")?.split_once("\"></a>").filter(|(id, _)| !id.contains(['<', '>']))
}

fn list_item(line: &str) -> Option<&str> {
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))
}

/// `[words](address)` at the beginning of a text: words, address, and what follows.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let middle = text.find("](")?;
    let words = &text[1..middle];
    let end = text[middle..].find(')')? + middle;
    (!words.contains('[')).then(|| (words, &text[middle + 2..end], &text[end + 1..]))
}

/// The address of a link as the explorer has it: anchors, other pages of derivations, and the web.
fn local(address: &str) -> Option<String> {
    if address.starts_with('#') || address.starts_with("https://") {
        return Some(address.into());
    }
    let (page, anchor) = address.split_once('#').unwrap_or((address, ""));
    let page = page.strip_suffix(".md")?;
    explain::derivation(page)
        .map(|_| if anchor.is_empty() { page.into() } else { format!("{page}#{anchor}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_drawn_with_its_anchors_and_its_equations() {
        for (page, text) in explain::DERIVATIONS {
            let html = html(page).unwrap();
            for part in text.split("<a id=\"").skip(1) {
                let anchor = part.split('"').next().unwrap();
                assert!(html.contains(&format!("id=\"{anchor}\"")), "{page}#{anchor}");
            }
            let equations = html.matches("<div class=equation>").count();
            assert_eq!(equations, text.matches("```math").count(), "{page}");
            let undrawn = html
                .split("<div class=equation>")
                .skip(1)
                .filter(|e| !e.split("</div>").next().unwrap().contains("<svg"))
                .count();
            assert_eq!(undrawn, 0, "{page}: equations that cannot be typeset");
        }
        assert!(html("../lora").is_none() && html("README").is_none());
    }

    #[test]
    fn text_is_never_markup_and_marks_become_markup() {
        let mut writer = Writer::default();
        writer.blocks("A <b> **c** *d* `<e>` $x$ [f](#eq-1) [g](../guides/lora.md) [h](lora.md#eq-2) 2 * 3\n\n- one\n  more\n- two");
        let html = writer.html;
        assert!(
            html.contains("A &lt;b&gt; <strong>c</strong> <em>d</em> <code>&lt;e&gt;</code> <svg"),
            "{html}"
        );
        assert!(
            html.contains(
                "<a href=\"#eq-1\" rel=noreferrer>f</a> g <a href=\"lora#eq-2\" rel=noreferrer>h</a> 2 * 3"
            ),
            "{html}"
        );
        assert!(html.contains("<ul><li>one more</li><li>two</li></ul>"), "{html}");
    }
}

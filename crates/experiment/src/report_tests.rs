use super::*;
use didact_figure::{Axis, Layer, Line, Panel};

fn figure(curves: usize, points: usize) -> Figure {
    let curve = |k: usize| {
        let x: Vec<f64> = (1..=points).map(|i| i as f64 / 37.0).collect();
        let y: Vec<f64> = x.iter().map(|x| (x * (1.0 + k as f64 / 7.0)).sin() / (1.0 + x)).collect();
        let legend = Some(format!("$k = {k}$"));
        Layer::Line(Line { x: x.into(), y: y.into(), legend, ..Line::default() })
    };
    let panel = Panel { x: Axis::log("time"), layers: (0..curves).map(curve).collect(), ..Panel::default() };
    Figure { panels: vec![panel], caption: Some("Curves against $t$.".into()), ..Figure::default() }
}

/// A page of hostile text with these figures.
fn page(figures: &[(String, Figure)], notice: Option<&str>) -> String {
    let evil = "<script>alert(1)</script><img src=x onerror=alert(2)>' onmouseover='x";
    let claim = Judged {
        says: format!("{evil} at $\\beta$"),
        source: evil.into(),
        verdict: Verdict::Holds,
        evidence: "2.0".into(),
    };
    let report = Report {
        title: evil,
        about: "</pre></p><script>alert(3)</script>",
        notice,
        claims: &[claim],
        figures,
        measures: &[(evil.into(), evil.into())],
        scans: &[],
        words: &Words::default(),
        description: "</pre><script>alert(4)</script>",
        provenance: &[("seed".into(), "7".into())],
        references: &[Reference { key: "a", citation: "A. <b>Author</b>", locator: "doi:10.1000/<1>" }],
        failures: &[evil.into()],
    };
    report.html().unwrap()
}

/// The values of an attribute in all tags of the page, scripts and their data left out.
fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for tag in page.split('<').skip(1) {
        let Some(tag) = tag.split('>').next() else { continue };
        found.extend(tag.split(&format!(" {name}=\"")).skip(1).filter_map(|rest| rest.split('"').next()));
    }
    found
}

#[test]
fn a_report_holds_the_drawing_of_every_figure_file() {
    let figures = [("one".to_string(), figure(2, 50)), ("two".into(), figure(3, 60))];
    let page = page(&figures, None);
    for (name, figure) in &figures {
        assert!(page.contains(&didact_figure::to_svg(figure).unwrap()), "{name}");
    }
}

#[test]
fn a_report_of_many_points_stays_below_300_kilobytes() {
    let figures: Vec<(String, Figure)> = (0..2).map(|i| (format!("f{i}"), figure(12, 3000))).collect();
    let page = page(&figures, None);
    assert!(page.len() < 300_000, "{} bytes", page.len());
    let blocks: Vec<&str> = page.split("class=\"data\">").skip(1).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let data: serde_json::Value = serde_json::from_str(block.split("</script>").next().unwrap()).unwrap();
        assert_eq!(data["panels"][0]["layers"].as_array().unwrap().len(), 12);
        assert_eq!(data["panels"][0]["layers"][11]["name"], "k = 11");
    }
}

#[test]
fn a_report_asks_nothing_of_the_network() {
    let page = page(&[("f".to_string(), figure(2, 40))], None);
    for name in ["href", "src"] {
        for address in attributes(&page, name) {
            let here = address.starts_with('#') || address.starts_with("./") || address.starts_with("data:");
            let citation = name == "href" && address == "https://doi.org/10.1000/&lt;1&gt;";
            assert!(here || citation, "{name}={address}");
        }
    }
    assert!(!page.contains("@import") && !page.contains("url(http") && !page.contains("<iframe"));
}

#[test]
fn text_of_users_is_never_markup() {
    let page = page(&[("f".to_string(), figure(1, 9))], Some("<b>quick</b>"));
    // The numbers of the figure and the script of the page.
    assert_eq!(page.matches("<script").count(), 2);
    assert!(!page.contains("<img") && !page.contains("<b>") && !page.contains("</pre></p>"));
    assert!(page.contains("&lt;b&gt;quick&lt;/b&gt;") && page.contains("A. &lt;b&gt;Author"));
    // No quote of a user ends an attribute.
    assert!(!page.contains("' onmouseover='x"));
}

#[test]
fn formulas_are_drawn_and_their_glyphs_defined_once() {
    let page = page(&[], None);
    assert!(page.contains("aria-label=\"β\""));
    assert_eq!(page.matches("id=\"gk-3b2\"").count(), 1, "{page}");
}

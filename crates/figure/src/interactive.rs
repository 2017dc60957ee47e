//! Figures in a web page: the drawing of [`crate::to_svg`], to the byte, with its caption.

use crate::error::Result;
use crate::figure::Figure;

/// One figure with its caption. `id` must be unique on the page.
pub fn div(figure: &Figure, id: &str) -> Result<String> {
    let caption =
        figure.caption.as_deref().map(|text| format!("<figcaption>{}</figcaption>\n", escape(text)));
    Ok(format!(
        "<figure class=\"didact-figure\" id=\"{}\">\n{}{}</figure>\n",
        escape(id),
        crate::to_svg(figure)?,
        caption.unwrap_or_default()
    ))
}

/// A page with one figure.
pub fn to_html(figure: &Figure) -> Result<String> {
    let title = escape(figure.title.as_deref().unwrap_or("Figure"));
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n</head>\n<body>\n{}</body>\n</html>\n",
        div(figure, "figure")?
    ))
}

/// `&`, `<`, `>` and quotes as entities.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

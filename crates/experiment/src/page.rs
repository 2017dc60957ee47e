//! What all pages share: style, script, and the frame around the text.

use didact_figure::interactive::{self, Prose, escape, plain_text};

const STYLE: &str = include_str!("page.css");

/// A whole page. Light or dark as the reader likes it, for a narrow screen and for paper too.
pub(crate) fn html(title: &str, body: &str, prose: &Prose) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
         <link rel=\"icon\" href=\"data:,\"><title>{}</title>\n<style>\n{STYLE}{}</style></head>\n\
         <body>\n{}{body}<script>\n{}</script>\n</body></html>\n",
        escape(&plain_text(title)),
        interactive::STYLE,
        prose.definitions(),
        interactive::SCRIPT
    )
}

//! PDF through krilla, with the KaTeX fonts embedded and subset, so that text stays text.

use std::sync::{Arc, LazyLock};

use krilla::geom::Size;
use krilla::page::PageSettings;
use krilla_svg::{SurfaceExt, SvgSettings};
use usvg::fontdb::{Database, FaceInfo, ID, Language, Source, Stretch, Style, Weight};

use crate::error::{Error, Result};
use crate::fonts;

/// Every face is a family of its own. Left to its own reading of weights and slants, the database takes the italic for the
/// regular face.
static FONTS: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut database = Database::new();
    for (name, file) in fonts::files() {
        database.push_face_info(FaceInfo {
            id: ID::dummy(),
            source: Source::Binary(Arc::new(file)),
            index: 0,
            families: vec![(format!("KaTeX_{name}"), Language::English_UnitedStates)],
            post_script_name: format!("KaTeX_{name}"),
            style: Style::Normal,
            weight: Weight::NORMAL,
            stretch: Stretch::Normal,
            monospaced: false,
        });
    }
    Arc::new(database)
});

/// Converts an SVG of ours that has its glyphs as characters; the page size is in points.
pub(crate) fn pdf(svg: &str, (width, height): (f64, f64)) -> Result<Vec<u8>> {
    let failed = |message: String| Error::Encoding { format: "PDF", message };
    let options = usvg::Options { fontdb: Arc::clone(&FONTS), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| failed(error.to_string()))?;
    let (width, height) = (width as f32, height as f32);
    let size =
        Size::from_wh(width, height).ok_or_else(|| failed(format!("a page of {width} x {height} pt")))?;
    let mut document = krilla::Document::new();
    let mut page = document.start_page_with(PageSettings::new(size));
    let mut surface = page.surface();
    surface
        .draw_svg(&tree, size, SvgSettings::default())
        .ok_or_else(|| failed("the drawing was refused".to_owned()))?;
    surface.finish();
    page.finish();
    document.finish().map_err(|error| failed(format!("{error:?}")))
}

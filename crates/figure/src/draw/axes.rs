//! Frame, ticks, labels, letter, title and colour bar.

use super::heat;
use super::{BLACK, pen};
use crate::label::text;
use crate::layer::Stroke;
use crate::plan::{AxisPlan, BAR_GAP, BAR_WIDTH, BarPlan, LETTER, PanelPlan, Sizes, x_label_gap};
use crate::scene::{Item, Path, Rect, Role};

pub(super) fn draw(items: &mut Vec<Item>, plan: &PanelPlan, frame: Rect) {
    let sizes = &plan.sizes;
    let across = |axis: &AxisPlan, value: f64| frame.left + axis.scale.fraction(value) * frame.width();
    let up = |axis: &AxisPlan, value: f64| frame.bottom - axis.scale.fraction(value) * frame.height();
    let (mut major, mut minor) = (Path::default(), Path::default());
    let both_sides_x = |path: &mut Path, value: f64, length: f64| {
        let x = across(&plan.x, value);
        path.segment(x, frame.bottom, x, frame.bottom - length);
        path.segment(x, frame.top, x, frame.top + length);
    };
    plan.x.ticks.major.iter().for_each(|tick| both_sides_x(&mut major, tick.value, sizes.major));
    plan.x.ticks.minor.iter().for_each(|&value| both_sides_x(&mut minor, value, sizes.minor));
    let both_sides_y = |path: &mut Path, value: f64, length: f64| {
        let y = up(&plan.y, value);
        path.segment(frame.left, y, frame.left + length, y);
        path.segment(frame.right, y, frame.right - length, y);
    };
    plan.y.ticks.major.iter().for_each(|tick| both_sides_y(&mut major, tick.value, sizes.major));
    plan.y.ticks.minor.iter().for_each(|&value| both_sides_y(&mut minor, value, sizes.minor));
    let first = items.len();
    ruled(items, minor, 0.7 * sizes.pen);
    ruled(items, major, sizes.pen);
    super::group(items, first, Role::Ticks);
    ruled(items, frame.path(), sizes.pen);

    let first = items.len();
    let size = sizes.tick_label;
    let (rise, fall) = plan.x.rise();
    let top = frame.bottom + x_label_gap(sizes);
    for (tick, label) in plan.x.ticks.major.iter().zip(&plan.x.labels) {
        let x = across(&plan.x, tick.value) - label.width * size / 2.0;
        items.push(text(label, x, top + rise, size, false, BLACK));
    }
    for (tick, label) in plan.y.ticks.major.iter().zip(&plan.y.labels) {
        let x = frame.left - sizes.gap - label.width * size;
        items.push(text(
            label,
            x,
            up(&plan.y, tick.value) + centring(label.height, label.depth, size),
            size,
            false,
            BLACK,
        ));
    }
    super::group(items, first, Role::Ticks);
    let below =
        if plan.x.labels.is_empty() { frame.bottom + 2.0 * sizes.gap } else { top + rise + fall + sizes.gap };
    plan.x.label.draw(items, frame.centre().0, below + plan.x_note_line(frame.width()), BLACK);
    if let Some(note) = &plan.x.note {
        let factor =
            text(note, frame.right - note.width * size, below + note.height * size, size, false, BLACK);
        items.push(Item::Group { role: Role::Ticks, items: vec![factor] });
    }
    let beside = frame.left - sizes.gap - plan.y.widest() - sizes.gap - plan.y.label.height();
    plan.y.label.draw_upright(items, beside, frame.centre().1, BLACK);
    if let Some(note) = &plan.y.note {
        let baseline = frame.top - sizes.gap - note.depth * size;
        let factor = text(note, frame.left, baseline, size, false, BLACK);
        items.push(Item::Group { role: Role::Ticks, items: vec![factor] });
    }
    if let Some(letter) = &plan.letter {
        let baseline = frame.top - sizes.gap - letter.depth * LETTER;
        items.push(text(letter, frame.left - plan.margins.left, baseline, LETTER, false, BLACK));
    }
    let line = frame.top - plan.note_line();
    plan.title.draw(items, frame.centre().0, line - sizes.gap - plan.title.height(), BLACK);
    if let Some(bar) = &plan.bar {
        colour_bar(items, bar, frame, sizes);
    }
}

/// From the middle of a label to its baseline.
fn centring(height: f64, depth: f64, size: f64) -> f64 {
    (height - depth) / 2.0 * size
}

fn ruled(items: &mut Vec<Item>, path: Path, width: f64) {
    items.push(Item::Path { path, fill: None, pen: Some(pen(BLACK, width, Stroke::Solid)) });
}

fn colour_bar(items: &mut Vec<Item>, bar: &BarPlan, frame: Rect, sizes: &Sizes) {
    let left = frame.right + BAR_GAP;
    let place = Rect { left, right: left + BAR_WIDTH, ..frame };
    items.push(heat::gradient(bar.map, place));
    let axis = &bar.axis;
    let up = |value: f64| place.bottom - axis.scale.fraction(value) * place.height();
    let (mut major, mut minor) = (Path::default(), Path::default());
    for tick in &axis.ticks.major {
        major.segment(place.right, up(tick.value), place.right - 0.7 * sizes.major, up(tick.value));
    }
    for &value in &axis.ticks.minor {
        minor.segment(place.right, up(value), place.right - 0.7 * sizes.minor, up(value));
    }
    ruled(items, minor, 0.7 * sizes.pen);
    ruled(items, major, sizes.pen);
    ruled(items, place.path(), sizes.pen);
    let size = sizes.tick_label;
    for (tick, label) in axis.ticks.major.iter().zip(&axis.labels) {
        let baseline = up(tick.value) + centring(label.height, label.depth, size);
        items.push(text(label, place.right + sizes.gap, baseline, size, false, BLACK));
    }
    let mut line = frame.top - bar.clearance(frame.height(), sizes);
    if let Some(note) = &axis.note {
        items.push(text(note, place.left, line - note.depth * size, size, false, BLACK));
        line -= (note.height + note.depth) * size + sizes.gap;
    }
    if bar.above {
        let centre = (place.centre().0).min(frame.right + bar.room - axis.label.width() / 2.0);
        axis.label.draw(items, centre, line - axis.label.height(), BLACK);
    } else {
        let beside = place.right + sizes.gap + axis.widest() + sizes.gap;
        axis.label.draw_upright(items, beside, place.centre().1, BLACK);
    }
}

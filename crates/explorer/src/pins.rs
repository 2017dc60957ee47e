//! Pinned states: what a figure showed for another description, drawn in grey behind the present one.

use didact_figure::{Colour, Figure, Layer, Line, Panel, Stroke};

/// Greys of the pinned states, the first the darkest; dashes tell them apart as well.
const GREYS: [(&str, Stroke); 3] =
    [("#8a8a8a", Stroke::Solid), ("#8a8a8a", Stroke::Dashed), ("#8a8a8a", Stroke::Dotted)];

/// States that can be pinned at a time.
pub(crate) const MOST: usize = GREYS.len();

/// Draws the curves of the figures of a pinned state, `number` counted from 0, into those of the same name.
pub(crate) fn draw(
    figures: &mut [(String, Result<Figure, String>)],
    pinned: &[(String, Figure)],
    number: usize,
) {
    let (grey, stroke) = &GREYS[number % MOST];
    for (name, figure) in figures {
        let Ok(figure) = figure else { continue };
        let Some((_, before)) = pinned.iter().find(|(own, _)| own == name) else { continue };
        // A name takes the next place of the palette. Pinned lines have none, so that the present series keep their colours; the one of
        // the legend stands in the last panel, behind all others.
        let has_lines = |panel: &Panel| panel.layers.iter().any(|layer| matches!(layer, Layer::Line(_)));
        let both = figure.panels.len().min(before.panels.len());
        let last = before.panels[..both].iter().rposition(has_lines);
        for (index, (panel, old)) in figure.panels.iter_mut().zip(&before.panels).enumerate() {
            let lines = old.layers.iter().filter_map(|layer| match layer {
                Layer::Line(line) => Some(line),
                _ => None,
            });
            for (place, line) in lines.enumerate() {
                let named = place == 0 && Some(index) == last;
                panel.layers.push(Layer::Line(Line {
                    colour: Some(Colour::Hex((*grey).into())),
                    stroke: Some(*stroke),
                    group: None,
                    legend: named.then(|| format!("pinned {}", number + 1)),
                    ..line.clone()
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn figure(height: f64) -> Figure {
        let line = Line {
            x: vec![0.0, 1.0].into(),
            y: vec![0.0, height].into(),
            legend: Some("loss".into()),
            ..Line::default()
        };
        Figure {
            panels: vec![Panel { layers: vec![Layer::Line(line)], ..Panel::default() }],
            ..Figure::default()
        }
    }

    #[test]
    fn curves_of_a_pinned_state_are_drawn_in_grey_and_the_present_ones_stay() {
        let mut figures =
            vec![("a".to_string(), Ok(figure(1.0))), ("b".to_string(), Err("waits".to_string()))];
        draw(&mut figures, &[("a".to_string(), figure(2.0)), ("c".to_string(), figure(3.0))], 0);
        let layers = &figures[0].1.as_ref().unwrap().panels[0].layers;
        assert_eq!(layers.len(), 2);
        assert_eq!(layers[0], figure(1.0).panels[0].layers[0]);
        let Layer::Line(pinned) = &layers[1] else { panic!() };
        assert_eq!(
            (pinned.legend.as_deref(), pinned.colour.clone()),
            (Some("pinned 1"), Some(Colour::Hex("#8a8a8a".into())))
        );
        didact_figure::to_svg(figures[0].1.as_ref().unwrap()).unwrap();
    }

    /// A pinned line of the first panel once took the colour of the first series of the second one.
    #[test]
    fn pinned_lines_take_no_colour_from_the_series_of_later_panels() {
        let two = |height: f64| {
            let mut two = figure(height);
            let mut second = two.panels[0].clone();
            let Layer::Line(line) = &mut second.layers[0] else { panic!() };
            line.legend = Some("overlap".into());
            two.panels.push(second);
            two
        };
        let colours = |figure: &Figure| -> BTreeSet<String> {
            let svg = didact_figure::to_svg(figure).unwrap();
            svg.split("stroke=\"#").skip(1).map(|rest| rest[..6].to_string()).collect()
        };
        let mut figures = vec![("a".to_string(), Ok(two(1.0)))];
        draw(&mut figures, &[("a".to_string(), two(2.0))], 0);
        let drawn = figures[0].1.as_ref().unwrap();
        let mut expected = colours(&two(1.0));
        expected.insert("8a8a8a".into());
        assert_eq!(colours(drawn), expected);
        let legends = drawn
            .panels
            .iter()
            .map(|panel| panel.layers.iter().filter(|layer| layer.legend() == Some("pinned 1")).count());
        assert_eq!(legends.collect::<Vec<_>>(), [0, 1]);
    }
}

//! Pinned states: what a figure showed for another description, drawn in grey behind the present one.

use didact_figure::{Colour, Figure, Layer, Line, Stroke};

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
        for (panel, old) in figure.panels.iter_mut().zip(&before.panels) {
            for (index, layer) in old.layers.iter().enumerate() {
                if let Layer::Line(line) = layer {
                    panel.layers.push(Layer::Line(Line {
                        colour: Some(Colour::Hex((*grey).into())),
                        stroke: Some(*stroke),
                        // A group of its own: a series of the palette would lend it its colour.
                        group: Some(format!("pinned {} {index}", number + 1)),
                        legend: (index == 0 && panel_is_first(&before.panels, old))
                            .then(|| format!("pinned {}", number + 1)),
                        ..line.clone()
                    }));
                }
            }
        }
    }
}

fn panel_is_first(panels: &[didact_figure::Panel], panel: &didact_figure::Panel) -> bool {
    panels.first().is_some_and(|first| std::ptr::eq(first, panel))
}

#[cfg(test)]
mod tests {
    use super::*;
    use didact_figure::Panel;

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
}

//! A label in the room it has: broken at spaces, and made smaller only if a single word is too long.

use std::rc::Rc;

use crate::error::Result;
use crate::scene::{Item, Text};
use crate::tex::{Typeset, Typesetter};

/// Distance of baselines, and the least height and depth of a line, in em: labels in one row share their baselines.
const PITCH: f64 = 1.25;
const HEIGHT: f64 = 0.72;
const DEPTH: f64 = 0.22;

/// Labels may shrink by this factor before they are broken into one more line.
const SMALLER: f64 = 0.88;

/// Lines of text set centred below each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    lines: Vec<Rc<Typeset>>,
    size: f64,
}

impl Block {
    /// The label in lines no longer than `room`.
    pub(crate) fn fit(typesetter: &Typesetter, label: &str, size: f64, room: f64) -> Result<Self> {
        let whole = typesetter.set(label)?;
        if whole.marks.is_empty() {
            return Ok(Self::default());
        }
        if whole.width * size <= room {
            return Ok(Self { lines: vec![whole], size });
        }
        let words = words(label);
        for count in 1..=words.len() {
            let lines = balanced(typesetter, &words, count)?;
            let widest = lines.iter().fold(0.0f64, |widest, line| widest.max(line.width));
            // A little smaller is better than one line more.
            if SMALLER * widest * size <= room || count == words.len() {
                return Ok(Self { lines, size: size.min(room / widest) });
            }
        }
        Ok(Self { lines: vec![whole], size })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(crate) fn width(&self) -> f64 {
        self.lines.iter().fold(0.0f64, |width, line| width.max(line.width)) * self.size
    }

    pub(crate) fn height(&self) -> f64 {
        let (Some(first), Some(last)) = (self.lines.first(), self.lines.last()) else { return 0.0 };
        let between = PITCH * (self.lines.len() - 1) as f64;
        (first.height.max(HEIGHT) + between + last.depth.max(DEPTH)) * self.size
    }

    /// Draws the lines centred at `centre`, the first below `top`.
    pub(crate) fn draw(&self, items: &mut Vec<Item>, centre: f64, top: f64, colour: &str) {
        self.each(|line, offset| {
            let x = centre - line.width * self.size / 2.0;
            items.push(text(line, x, top + offset, self.size, false, colour));
        });
    }

    /// Draws the lines with their left ends at `left`.
    pub(crate) fn draw_left(&self, items: &mut Vec<Item>, left: f64, top: f64, colour: &str) {
        self.each(|line, offset| items.push(text(line, left, top + offset, self.size, false, colour)));
    }

    /// Draws the lines upright, reading upwards, centred at height `centre`, the first to the right of `left`.
    pub(crate) fn draw_upright(&self, items: &mut Vec<Item>, left: f64, centre: f64, colour: &str) {
        self.each(|line, offset| {
            let y = centre + line.width * self.size / 2.0;
            items.push(text(line, left + offset, y, self.size, true, colour));
        });
    }

    /// Calls `put` with each line and the distance of its baseline from the top.
    fn each(&self, mut put: impl FnMut(&Rc<Typeset>, f64)) {
        let Some(first) = self.lines.first() else { return };
        let mut baseline = first.height.max(HEIGHT) * self.size;
        for line in &self.lines {
            put(line, baseline);
            baseline += PITCH * self.size;
        }
    }
}

/// Words of a label whose lines are balanced; the lines of a longer one have about as many words each.
const MOST_BALANCED: usize = 40;

/// The words in `count` lines whose longest is as short as possible.
fn balanced(typesetter: &Typesetter, words: &[String], count: usize) -> Result<Vec<Rc<Typeset>>> {
    let line = |from: usize, to: usize| typesetter.set(&words[from..to].join(" "));
    if words.len() > MOST_BALANCED {
        let end = |i: usize| i * words.len() / count;
        return (0..count).map(|i| line(end(i), end(i + 1))).collect();
    }
    // best[n][i]: least possible width of words i.. in n lines, and where the first of them ends.
    let mut best = vec![vec![(f64::INFINITY, words.len()); words.len() + 1]; count + 1];
    best[0][words.len()].0 = 0.0;
    for lines in 1..=count {
        for from in 0..words.len() {
            for to in from + 1..=words.len() {
                let width = line(from, to)?.width.max(best[lines - 1][to].0);
                if width < best[lines][from].0 {
                    best[lines][from] = (width, to);
                }
            }
        }
    }
    let mut from = 0;
    (1..=count)
        .rev()
        .map(|lines| {
            let to = best[lines][from].1;
            let set = line(from, to);
            from = to;
            set
        })
        .collect()
}

/// A label at the left end of its baseline.
pub(crate) fn text(typeset: &Rc<Typeset>, x: f64, y: f64, size: f64, upright: bool, colour: &str) -> Item {
    Item::Text(Text { typeset: Rc::clone(typeset), x, y, size, upright, colour: colour.to_owned() })
}

/// The words of a label; spaces inside formulas do not separate.
fn words(label: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut formula, mut escaped) = (false, false);
    for character in label.chars() {
        if character == ' ' && !formula {
            words.push(String::new());
        } else if let Some(word) = words.last_mut() {
            word.push(character);
        }
        formula ^= character == '$' && !escaped;
        escaped = character == '\\' && !escaped;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_not_broken() {
        assert_eq!(words(r"risk  \$ of $a + b$, here"), ["risk", r"\$", "of", "$a + b$,", "here"]);
    }

    #[test]
    fn a_block_is_never_wider_than_its_room() {
        let typesetter = Typesetter::default();
        let label = "generalisation error of the committee machine $\\epsilon_g(\\alpha)$ after pretraining";
        for room in [20.0, 60.0, 100.0, 300.0, 1000.0] {
            let block = Block::fit(&typesetter, label, 9.0, room).unwrap();
            assert!(block.width() <= room + 1e-9, "{room}");
            assert!(room < 300.0 || block.lines.len() <= 2);
            assert!(
                room < 60.0 || block.size >= SMALLER * 9.0,
                "the words fit at {room}, so the size hardly changes"
            );
        }
        assert!(Block::fit(&typesetter, "", 9.0, 10.0).unwrap().is_empty());
    }
}

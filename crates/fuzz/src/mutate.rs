//! Changes of an input: of its pieces (words, numbers, quoted texts, signs), and now and then of its bytes.

use crate::random::Random;

/// Numbers, texts and signs that readers have stumbled over.
const HOSTILE: &[&str] = &[
    "0",
    "-1",
    "1",
    "2",
    "0.5",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "-1e308",
    "1e-308",
    "1e999",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "4294967296",
    "1e9",
    "1e100",
    "\"\"",
    "''",
    "[]",
    "{}",
    "[[]]",
    "[0]",
    "null",
    "true",
    "false",
    "\"\\u0000\"",
    "\"\\u001b[31m\"",
    "\u{fffd}",
    "\u{202e}",
    "é",
    "λ",
    "\u{10ffff}",
    "\0",
    "\n",
    "\r\n",
    "\t",
    "\"",
    "'",
    "`",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "=",
    ",",
    ".",
    "..",
    "$",
    "\\",
    "#",
    "*",
    "^",
    "%",
    "&",
    "|",
    "-",
    "+",
    "/",
    "<",
    ">",
    "<script>",
    "../..",
    "/dev/zero",
    "1979-05-27T07:32:00Z",
    "0x7fffffffffffffff",
    "1_000",
    "+",
];

/// No input is longer: readers refuse such lengths at once, which is tested elsewhere.
const LONGEST: usize = 60_000;

/// Changes inputs, with words of the language and of the corpus.
pub(crate) struct Mutator {
    words: Vec<Vec<u8>>,
}

impl Mutator {
    pub(crate) fn new(words: &[&str], corpus: &[Vec<u8>]) -> Self {
        let mut all: Vec<Vec<u8>> =
            words.iter().chain(HOSTILE).map(|word| word.as_bytes().to_vec()).collect();
        let mut found: Vec<Vec<u8>> =
            corpus.iter().flat_map(|text| pieces(text)).filter(|p| p.len() > 1).map(<[u8]>::to_vec).collect();
        found.sort();
        found.dedup();
        all.extend(found);
        Self { words: all }
    }

    /// A few changes to `parent`, some of which bring in pieces of the corpus.
    pub(crate) fn mutate(&self, parent: &[u8], corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        let mut input = parent.to_vec();
        for _ in 0..=random.below(4) {
            input = self.once(&input, corpus, random);
            input.truncate(LONGEST);
        }
        input
    }

    fn once(&self, input: &[u8], corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
        let mut parts: Vec<&[u8]> = pieces(input);
        let word = |random: &mut Random| random.choose(&self.words).map_or(&b""[..], |w| w.as_slice());
        let hostile = |random: &mut Random| random.choose(HOSTILE).map_or(&b""[..], |w| w.as_bytes());
        let at = random.below(parts.len() + 1);
        let inside = random.below(parts.len());
        match random.below(12) {
            // Another word in place of one; numbers and quoted texts more often than the rest.
            0..=2 if !parts.is_empty() => {
                let values: Vec<usize> = (0..parts.len()).filter(|i| is_value(parts[*i])).collect();
                let place = random.choose(&values).copied().unwrap_or(inside);
                parts[place] = if random.below(2) == 0 { hostile(random) } else { word(random) };
            }
            3 => parts.insert(at, word(random)),
            4 if !parts.is_empty() => {
                parts.remove(inside);
            }
            5 if !parts.is_empty() => {
                let other = random.below(parts.len());
                parts.swap(inside, other);
            }
            // A piece, or a few in a row, again and again.
            6 if !parts.is_empty() => {
                let length = 1 + random.below(8.min(parts.len() - inside));
                let again: Vec<&[u8]> = parts[inside..inside + length].to_vec();
                let most = if random.below(10) == 0 { 300 } else { 3 };
                for _ in 0..=random.below(most) {
                    let here = inside.min(parts.len());
                    parts.splice(here..here, again.iter().copied());
                }
            }
            7 if !parts.is_empty() => {
                let end = inside + random.below((parts.len() - inside).min(20));
                parts.drain(inside..end);
            }
            // The beginning of this and the end of another one.
            8 => {
                let other = random.choose(corpus).map_or(&b""[..], |o| o.as_slice());
                let mut others = pieces(other);
                let from = random.below(others.len());
                parts.truncate(at);
                parts.extend(others.drain(from..));
            }
            9 => {
                let mut bytes = input.to_vec();
                if let Some(byte) = bytes.get_mut(random.below(input.len())) {
                    *byte ^= 1 << random.below(8);
                }
                return bytes;
            }
            10 => return input[..random.below(input.len() + 1)].to_vec(),
            // A quoted text, a digit or a sign is changed from within.
            _ if !parts.is_empty() => {
                let mut changed = parts[inside].to_vec();
                let place = random.below(changed.len() + 1);
                let new = hostile(random).to_vec();
                changed.splice(place..place, new);
                let mut all: Vec<u8> = parts[..inside].concat();
                all.extend(changed);
                all.extend(parts[inside + 1..].concat());
                return all;
            }
            _ => parts.push(word(random)),
        }
        parts.concat()
    }
}

/// A number or a quoted text.
fn is_value(piece: &[u8]) -> bool {
    piece.first().is_some_and(|b| b.is_ascii_digit() || *b == b'"' || *b == b'\'')
}

/// Words, numbers, quoted texts, runs of blanks, and single signs.
fn pieces(text: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let run = |fits: &dyn Fn(u8) -> bool| rest.iter().position(|b| !fits(*b)).unwrap_or(rest.len());
        let length = match first {
            b'"' | b'\'' => {
                rest[1..].iter().position(|b| *b == first || *b == b'\n').map_or(rest.len(), |end| end + 2)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 128.. => {
                run(&|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || b >= 128)
            }
            b'0'..=b'9' => run(&|b| b.is_ascii_alphanumeric() || b == b'.' || b == b'_'),
            b' ' | b'\t' => run(&|b| b == b' ' || b == b'\t'),
            _ => 1,
        };
        let (piece, after) = rest.split_at(length.clamp(1, rest.len()));
        all.push(piece);
        rest = after;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_whole() {
        for text in ["a-b = [1.5e3, \"x y\"]\n\tλ", "\"open", "'a\nb", ""] {
            assert_eq!(pieces(text.as_bytes()).concat(), text.as_bytes());
        }
        assert_eq!(pieces(b"eta = 0.5").len(), 5);
    }

    #[test]
    fn a_seed_always_gives_the_same_inputs() {
        let corpus = vec![b"a = 1".to_vec(), b"b = [2, 3]".to_vec()];
        let mutator = Mutator::new(&["word"], &corpus);
        let inputs = |seed: u64| {
            let mut random = Random::new(seed);
            (0..200).map(|_| mutator.mutate(&corpus[0], &corpus, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(3), inputs(3));
        assert_ne!(inputs(3), inputs(4));
    }
}

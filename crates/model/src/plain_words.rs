//! Messages of the deserialiser in the words of somebody who writes descriptions.

/// Messages of the deserialiser name types of the program; these are the words of a user for them.
const WORDS: [(&str, &str); 16] = [
    (
        "data did not match any variant of untagged enum ",
        "the value has none of the forms that this key may have",
    ),
    ("expected internally tagged enum ", "expected a table"),
    ("expected adjacently tagged enum ", "expected a table"),
    ("expected struct ", "expected a table"),
    ("expected enum ", "expected a word"),
    ("expected unit variant ", "expected a word"),
    ("expected newtype variant ", "expected a value"),
    ("expected struct variant ", "expected a table"),
    ("expected tuple struct ", "expected a list"),
    ("expected variant identifier", "expected a word"),
    ("expected f64", "expected a number"),
    ("expected usize", "expected a whole number, not negative"),
    ("expected u64", "expected a whole number, not negative"),
    ("expected u32", "expected a whole number, not negative"),
    ("expected u8", "expected a whole number, not negative"),
    ("expected i64", "expected a whole number"),
];

/// The message with names of types left out.
pub fn in_plain_words(message: &str) -> String {
    let mut text = message.to_string();
    for (phrase, words) in WORDS {
        while let Some(at) = text.find(phrase) {
            let end = at + phrase.len();
            // A phrase that ends in a space is followed by the name of a type.
            let name = |c: char| c.is_ascii_alphanumeric() || "_:".contains(c);
            let length = if phrase.ends_with(' ') { text[end..].find(|c| !name(c)) } else { Some(0) };
            text.replace_range(at..length.map_or(text.len(), |l| end + l), words);
        }
    }
    let words = [
        ("missing field", "missing key"),
        ("wanted ", "expected "),
        ("a sequence", "a list"),
        ("sequence", "list"),
        ("a map", "a table"),
        ("floating point", "number"),
    ];
    words
        .iter()
        .fold(text, |text, (from, to)| text.replace(from, to))
        .replace("invalid type: map", "invalid type: table")
}

//! Good inputs, and words of their languages.

use std::path::{Path, PathBuf};

/// A description that is right, to which changes are added.
pub(crate) const SMALL: &str = r#"
title = "T"
model = { family = "committee", students = 2, teachers = 1, activation = "tanh" }
data = { dimension = 50 }
training = { learning-rate = 0.5 }
start = { q = [[0.25, 0], [0, 0.25]], r = [[0.1], [0.1]] }
record = { times = { from = 0, to = 4, points = 5 }, observe = ["loss"], replicas = 2 }
"#;

/// Keys and values of descriptions.
pub(crate) const KEYS: &[&str] = &[
    "title",
    "about",
    "model",
    "data",
    "training",
    "start",
    "record",
    "run",
    "sweep",
    "scan",
    "measure",
    "claim",
    "figure",
    "quick",
    "full",
    "family",
    "students",
    "teachers",
    "activation",
    "dimension",
    "learning-rate",
    "spectrum",
    "times",
    "observe",
    "replicas",
    "seed",
    "event",
    "engine",
    "name",
    "kind",
    "window",
    "inputs",
    "over",
    "quantity",
    "panel",
    "series",
    "layers",
    "label",
    "legend",
    "scale",
    "range",
    "colour",
    "set",
    "where",
    "\"committee\"",
    "\"ode\"",
    "\"reduced\"",
    "\"direct\"",
    "\"dmft\"",
    "\"full-batch\"",
    "\"loss\"",
    "\"R[0,0]\"",
    "\"Q[*,*]\"",
    "\"log\"",
    "\"power-law\"",
    "\"value-at\"",
    "\"formula\"",
    "\"quantity\"",
    "\"committee/escape\"",
    "{ from = 1, to = 10, points = 3 }",
    "[[run]]\n",
    "[[measure]]\n",
    "[[scan]]\n",
    "[[figure]]\n",
    "[sweep]\n",
    "[quick]\n",
];

/// Functions and signs of formulas.
pub(crate) const FUNCTIONS: &[&str] = &[
    "x",
    "z",
    "z1",
    "z2",
    "e",
    "erf",
    "tanh",
    "exp",
    "log",
    "sqrt",
    "abs",
    "max",
    "min",
    "sign",
    "relu",
    "sin",
    "cos",
    "step",
    "pi",
    "1{z1 > 0}",
    "|z|^2",
    "He3",
    "h4",
    "poly(1,2,3)",
    "(",
    ")",
    "^",
    "*",
    "R[0,0]",
    "Q[0,1]",
    "<=",
    ">",
    "if",
];

/// Commands of TeX.
pub(crate) const TEX: &[&str] = &[
    "$",
    "\\alpha",
    "\\frac{1}{2}",
    "\\sqrt",
    "^",
    "_",
    "{",
    "}",
    "\\left(",
    "\\right)",
    "\\text{a}",
    "\\mathbb{R}",
    "\\hat",
    "\\overline{x}",
    "\\begin{matrix}",
    "\\end{matrix}",
    "&",
    "\\\\",
    "\\href{a}{b}",
    "\\color{red}",
    "\\sum_{i=1}^{n}",
    "\\,",
    "\\limits",
    "\\operatorname{f}",
    "\\def\\a{\\a}\\a",
    "\\newcommand{\\b}{\\b\\b}\\b",
    "\\rule{1em}{1em}",
    "\\kern1em",
];

/// The repository: the current folder if it is one, or where this was built.
fn root() -> PathBuf {
    let here = PathBuf::from(".");
    if here.join("papers").is_dir() { here } else { Path::new(env!("CARGO_MANIFEST_DIR")).join("../..") }
}

/// Files below a folder of the repository with this ending, in the order of their names.
fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let mut open = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(here) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&here) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

fn lines(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Small hostile descriptions of our own, then examples and papers.
pub(crate) fn descriptions() -> Vec<Vec<u8>> {
    let mut all = files("crates/fuzz/corpus", "toml");
    all.extend(files("examples", "toml"));
    all.extend(files("papers", "toml"));
    all
}

/// Descriptions as JSON, and what a run folder holds.
pub(crate) fn json() -> Vec<Vec<u8>> {
    let mut all = files("crates/fuzz/corpus", "json");
    let sources = descriptions().into_iter().filter(|text| text.len() < 3000);
    for text in sources {
        let name = "corpus.toml".to_string();
        let source = didact_experiment::Source { name, text: String::from_utf8_lossy(&text).into_owned() };
        if let Ok(description) = source.description()
            && let Ok(json) = serde_json::to_vec(&description)
        {
            all.push(json);
        }
    }
    all
}

/// Changes to [`SMALL`].
pub(crate) fn overrides() -> Vec<Vec<u8>> {
    lines(&[
        "quick = { \"training.learning-rate\" = 0.1, \"record.times\" = [0, 1] }",
        "full = { \"record.replicas\" = 8, \"data\" = { dimension = 99 } }",
        "sweep = { \"training.learning-rate\" = [0.1, 0.2], \"data.dimension\" = { from = 10, to = 20, points = 2, integer = true } }",
        "run = [{ name = \"a\", engine = \"ode\", set = { \"training.label-noise\" = 0.1, \"start.q.0.0\" = 0.3 } }]",
        "run = [{ name = \"b\", engine = \"reduced\", where = { \"data.dimension\" = [1, 2] } }]\nsweep = { \"data.dimension\" = [1, 2] }",
        "[training.constraint]\nweight-decay = 0.1\n[[training.stage]]\nuntil = 2\nset = { \"training.learning-rate\" = 0.1 }",
        "measure = [{ name = \"m\", kind = \"value-at\", run = \"ode\", observable = \"loss\", time = 1 }]\nclaim = [{ says = \"s\", measure = \"m\", check = { at-most = 1 } }]",
        "scan = [{ name = \"s\", quantity = \"committee/escape\", inputs = { eta = 0.1 }, over = { M = [2, 3] } }]",
        "figure = [{ name = \"f\", panel = [{ y = { label = \"$x$\", scale = \"log\" }, series = [{ run = \"ode\", colour = 2 }] }] }]",
    ])
}

pub(crate) fn expressions() -> Vec<Vec<u8>> {
    lines(&[
        "x",
        "erf(z/sqrt2)",
        "tanh(x) + 0.1*x^3",
        "max(0, x)",
        "abs(R[0,0] - R[0,1])",
        "exp(-x^2/2)",
        "x^2 - 1",
        "He3",
        "h4",
        "poly(0,1,0.5)",
        "relu",
        "sigmoid",
        "gelu",
        "1/(1+exp(-x))",
        "sqrt(1 + x^2)",
        "log(1 + x^2)",
        "sin(3*x)*cos(x)",
        "-x^-2",
        "2^x^2",
        "min(max(x, -1), 1)",
        "a/b + c*(d - e)",
        "step(x)",
        "sign(x)*x",
        "((((x))))",
    ])
}

pub(crate) fn links() -> Vec<Vec<u8>> {
    lines(&[
        "z^2",
        "z1*z2",
        "z1 + z2 + z1*z2",
        "|z|^2",
        "z*(1 + 0.2e)",
        "1{z1 > 0}",
        "3z1 z2 - e",
        "sign(z) + e",
        "tanh(z1 z2 z3)",
        "max(z1, z2)",
        "z^2 - 1 + 0.5 eps",
    ])
}

pub(crate) fn labels() -> Vec<Vec<u8>> {
    lines(&[
        "time $t$",
        "$\\alpha = P/N$",
        "$\\epsilon_g$ (log)",
        "$\\frac{a}{b}^{2}_{i}$",
        "$\\sqrt{x^2 + y^2}$",
        "$\\hat{u} \\cdot u$",
        "$\\left( \\sum_{i=1}^{n} x_i \\right)$",
        "$10^{-3}$",
        "learning rate $\\eta$, $d = {d}$",
        "a & b",
        "100 %",
        "$\\text{loss}$",
        "$\\mathbb{E}[\\sigma(z)]$",
        "$\\begin{matrix} a & b \\\\ c & d \\end{matrix}$",
        "\\$5",
        "é λ ₊",
    ])
}

/// Texts and `.npy` files of eigenvalues and of data.
pub(crate) fn spectra() -> Vec<Vec<u8>> {
    let npy = |descr: &str, shape: &str, data: &[u8]| {
        let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00".as_slice(), &(dict.len() as u16).to_le_bytes(), dict.as_bytes(), data].concat()
    };
    let doubles: Vec<u8> = [2.5f64, 0.5, 1.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let singles: Vec<u8> = [2.5f32, 0.5, 1.0, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut all =
        lines(&["3\n1\n1\n0.5\n", "# mine\n1, 2, 3\n", "1 2\n-1 -2\n1,2\n-1,-2\n", "1;2;3", "1e-3\t5"]);
    all.push(npy("<f8", "(4,)", &doubles));
    all.push(npy("<f8", "(2, 2)", &doubles));
    all.push(npy("<f4", "(4,)", &singles));
    all
}

pub(crate) fn archives() -> Vec<Vec<u8>> {
    vec![didact_experiment::fuzzing::archive(2, 3), didact_experiment::fuzzing::archive(1, 1)]
}

/// A call of every quantity at inputs where it has an answer.
pub(crate) fn calls() -> Vec<Vec<u8>> {
    let text = include_str!("../../experiment/tests/all/quantity_inputs.json");
    let all: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(text).expect("a table of inputs");
    all.iter().map(|(path, inputs)| format!("{path} {inputs}").into_bytes()).collect()
}

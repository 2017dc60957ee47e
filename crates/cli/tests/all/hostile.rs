//! Hostile descriptions: each is refused in a moment, with one message in words of a user, and nothing is written.
//!
//! Every test is named after what once went wrong: a hang, a panic, a silent acceptance, an allocation without bound.

use crate::common::{didact, temporary};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// A description that is right, but for what is added to it.
const RIGHT: &str = r#"
title = "T"
model = { family = "committee", students = 1, teachers = 1, activation = "linear" }
data = { dimension = 100 }
training = { learning-rate = 0.5 }
start = { q = [[0.25]], r = [[0.1]] }
record = { times = { from = 0, to = 4, points = 5 }, observe = ["loss"], replicas = 2 }
run = [{ name = "a", engine = "ode" }, { name = "b", engine = "reduced" }]
"#;

const MEASURE: &str =
    "measure = [{ name = \"m\", kind = \"value-at\", run = \"a\", observable = \"loss\", time = 1 }]\n";

/// `didact check` on a text, ended after a while: a check that takes longer hangs.
fn check_file(name: &str, text: &str) -> Output {
    let folder = temporary(&format!("hostile-{name}"));
    std::fs::create_dir_all(&folder).unwrap();
    let extension = if text.trim_start().starts_with('{') { "json" } else { "toml" };
    let file = folder.join(format!("{name}.{extension}"));
    std::fs::write(&file, text).unwrap();
    let mut child = didact()
        .current_dir(&folder)
        .arg("check")
        .arg(file.file_name().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_mins(1) {
            child.kill().unwrap();
            panic!("{name} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    std::fs::remove_dir_all(folder).unwrap();
    output
}

/// The one message with which a text is refused.
fn refused(name: &str, text: &str) -> String {
    let output = check_file(name, text);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{name}: {message}{}", String::from_utf8_lossy(&output.stdout));
    assert!(message.starts_with("error: ") && output.stdout.is_empty(), "{name}: {message}");
    for word in ["struct ", "enum ", "untagged", "variant of", "NaN", "usize", "panicked"] {
        assert!(!message.contains(word), "{name} says `{word}`: {message}");
    }
    assert!(message.lines().all(|line| line.chars().count() < 400), "{name}: {message}");
    message
}

fn accepted(name: &str, text: &str) {
    let output = check_file(name, text);
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_description_without_additions_is_right() {
    accepted("right", RIGHT);
    accepted("right-with-measure", &format!("{RIGHT}{MEASURE}"));
}

#[test]
fn an_empty_word_is_no_infinite_loop() {
    let short = "model={family=\"committee\",students=1,teachers=1,activation=\"x\"}\ntraining={learning-rate=1}\nrecord={times=[0,1]}\nstart={q=[[1]]}\n";
    for (name, text) in [
        ("empty-key", "title = \"x\"\n\"\" = 1\n".to_string()),
        (
            "empty-key-of-model",
            format!("title = \"x\"\n{short}[model]\n\"\" = 1\n")
                .replace("model={family=\"committee\",students=1,teachers=1,activation=\"x\"}\n", "")
                .replace(
                    "[model]",
                    "[model]\nfamily=\"committee\"\nstudents=1\nteachers=1\nactivation=\"x\"",
                ),
        ),
        ("empty-family", "title = \"x\"\nmodel={family=\"\"}\n".into()),
        (
            "empty-output",
            "title=\"x\"\nmodel={family=\"committee\",students=1,teachers=1,activation=\"x\",output=\"\"}\n"
                .into(),
        ),
        ("empty-key-of-json", "{\"title\":\"x\",\"\":1}".into()),
        ("empty-sweep-key", format!("title=\"x\"\n{short}sweep={{\"training.\"=[1]}}\n")),
        ("empty-sweep-value", format!("title=\"x\"\n{short}sweep={{\"training.scaling\"=[\"\"]}}\n")),
    ] {
        refused(name, &text);
    }
    // Changes for `--quick` and `--full` are refused without those flags too.
    for size in ["quick", "full"] {
        for key in [".a", "model."] {
            let message = refused("empty-change", &format!("title = \"x\"\n[{size}]\n\"{key}\" = 1\n"));
            assert!(message.contains("a part of it is empty"), "{message}");
        }
    }
}

#[test]
fn a_number_that_is_not_finite_is_refused_with_its_key_wherever_it_stands() {
    let scan = "scan=[{name=\"s\",quantity=\"committee/escape\",inputs={eta=1.0},over={M=[2,nan]}}]\n";
    for (key, name, addition) in [
        ("scan.0.over.M.1", "nan", scan.to_string()),
        ("scan.0.inputs.eta", "inf", scan.replace("eta=1.0", "eta=inf").replace(",nan", "")),
        (
            "measure.0.inputs.M",
            "nan",
            "measure=[{name=\"m\",kind=\"quantity\",quantity=\"committee/plateau\",inputs={M=nan}}]\n".into(),
        ),
        ("full.record.seed", "nan", "full={\"record.seed\"=nan}\n".into()),
        ("quick.training.learning-rate", "-inf", "quick={\"training.learning-rate\"=-inf}\n".into()),
        (
            "claim.0.at.x",
            "nan",
            format!("{MEASURE}claim=[{{says=\"a\",measure=\"m\",at={{x=nan}},check={{at-most=1}}}}]\n"),
        ),
        ("measure.0.time", "inf", MEASURE.replace("time = 1", "time = inf")),
        ("sweep.training.learning-rate.0", "inf", "sweep={\"training.learning-rate\"=[inf]}\n".into()),
    ] {
        let message = refused("not-finite", &format!("{RIGHT}{addition}"));
        assert!(message.contains(&format!("`{key}` is {name}")), "{key}: {message}");
    }
    let set = RIGHT.replace("engine = \"ode\"", "engine = \"ode\", set = { \"training.label-noise\" = inf }");
    assert!(refused("not-finite-set", &set).contains("`run.0.set.training.label-noise` is inf"));
}

#[test]
fn the_open_end_of_a_window_is_meant() {
    let window = "measure = [{ name = \"m\", kind = \"exponent\", run = \"a\", observable = \"loss\", window = [1, inf] }]\n";
    accepted("open-window", &format!("{RIGHT}{window}"));
    assert!(refused("nan-window", &format!("{RIGHT}{}", window.replace("inf", "nan"))).contains("is nan"));
}

#[test]
fn a_claim_that_checks_nothing_is_refused() {
    let claim = |check: &str| {
        format!("{RIGHT}{MEASURE}claim = [{{ says = \"x\", measure = \"m\", check = {check} }}]\n")
    };
    accepted("claim-right", &claim("{ at-most = 1 }"));
    accepted("claim-equal", &claim("{ equals = 1, absolute = 2 }"));
    assert!(refused("claim-empty", &claim("{}")).contains("the claim checks nothing"));
    assert!(refused("claim-list", &claim("[]")).contains("`claim.0.check` is a list; expected a table"));
    for tolerance in ["absolute", "relative", "sigmas"] {
        let message = refused("claim-tolerance", &claim(&format!("{{ {tolerance} = 1 }}")));
        assert!(message.contains("nothing to be equal to"), "{message}");
    }
    let both = "{ increases-with = \"training.learning-rate\", at-most = 1 }";
    assert!(refused("claim-both", &claim(both)).contains("only one would be checked"));
}

#[test]
fn a_table_cannot_be_written_as_a_list_of_its_values() {
    for (name, from, to) in [
        ("training", "training = { learning-rate = 0.5 }", "training = [0.5]"),
        ("data", "data = { dimension = 100 }", "data = [100]"),
        ("run.0", "{ name = \"a\", engine = \"ode\" }", "[\"a\", \"ode\"]"),
        ("start", "start = { q = [[0.25]], r = [[0.1]] }", "start = []"),
        (
            "model",
            "model = { family = \"committee\", students = 1, teachers = 1, activation = \"linear\" }",
            "model = [\"committee\", 1, 1, \"linear\"]",
        ),
    ] {
        let message = refused("list-for-table", &RIGHT.replace(from, to));
        assert!(message.contains(&format!("`{name}` is a list; expected a table")), "{name}: {message}");
    }
    let changed = format!("{RIGHT}sweep = {{ training = [[0.5]] }}\n");
    assert!(refused("list-in-a-sweep", &changed).contains("is a list; expected a table"));
}

#[test]
fn counts_are_bounded_before_anything_is_allocated() {
    let sized = |from: &str, to: &str| RIGHT.replace(from, to);
    for (name, text) in [
        ("points", sized("points = 5", "points = 1000000000")),
        ("replicas", sized("replicas = 2", "replicas = 4000000000")),
        ("students", sized("students = 1", "students = 9223372036854775807")),
        ("teachers", sized("teachers = 1", "teachers = 100000")),
        ("batch", sized("learning-rate = 0.5", "learning-rate = 0.5, batch = 9000000000000000000")),
        (
            "levels",
            sized("dimension = 100", "spectrum = { kind = \"power-law\", levels = 100000000, beta = 1.0 }"),
        ),
        // Beyond the signed numbers, which the limits did not see once.
        (
            "levels",
            sized(
                "dimension = 100",
                "spectrum = { kind = \"power-law\", levels = 9223372036854775808, beta = 1.0 }",
            ),
        ),
        (
            "width",
            format!(
                "{RIGHT}figure = [{{ name = \"f\", width = 1e9, panel = [{{ series = [{{ run = \"a\" }}] }}] }}]\n"
            ),
        ),
        ("students", format!("{RIGHT}sweep = {{ \"model.students\" = [100000] }}\n")),
    ] {
        let message = refused(name, &text);
        assert!(
            message.contains(&format!("`{name}` is ")) && message.contains("the largest possible"),
            "{message}"
        );
    }
    let grid =
        "over = { M = { from = 1, to = 1e6, points = 1000 }, eta = { from = 0, to = 1, points = 1000 } }";
    let scan = format!("title = \"x\"\n[[scan]]\nname = \"s\"\nquantity = \"committee/escape\"\n{grid}\n");
    assert!(refused("grid", &scan).contains("the grid has more than"));
    let table = sized("points = 5", "points = 1000000").replace("replicas = 2", "replicas = 1000000");
    assert!(refused("table", &table).contains("replicas x"));
}

#[test]
fn long_and_deep_formulas_and_nested_tables_are_refused() {
    let formula = |f: String| RIGHT.replace("\"linear\"", &format!("\"{f}\""));
    assert!(refused("terms", &formula(vec!["x"; 50_000].join("+"))).contains("at most 4096 are read"));
    refused("parentheses", &formula("(".repeat(100_000) + "x" + &")".repeat(100_000)));
    assert!(
        refused("deep", &formula("(".repeat(1_000) + "x" + &")".repeat(1_000))).contains("nested too deeply")
    );
    let observed = RIGHT.replace("\"loss\"", &format!("\"{}\"", vec!["loss"; 20_000].join("+")));
    assert!(refused("observable", &observed).contains("at most 4096 are read"));
    refused("arrays", &format!("title = {}{}", "[".repeat(100_000), "]".repeat(100_000)));
    refused("dotted", &format!("title{} = 1", ".a".repeat(100_000)));
    refused("json", &format!("{{\"title\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000)));
    let path = vec!["a"; 100_000].join(".");
    assert!(refused("override", &format!("{RIGHT}sweep = {{ \"model.{path}\" = [1] }}")).contains("parts"));
}

#[test]
fn duplicate_observables_and_events_are_refused() {
    let message = refused("observe", &RIGHT.replace("[\"loss\"]", "[\"loss\", \"loss\"]"));
    assert!(message.contains("the column `loss` is written down twice"), "{message}");
    let message = refused("observe-all", &RIGHT.replace("[\"loss\"]", "[\"Q[*,*]\", \"Q[0,0]\"]"));
    assert!(message.contains("the column `Q[0,0]` is written down twice"), "{message}");
    let event = "{ name = \"e\", observable = \"loss\", level = 0.1, crossing = \"falls\" }";
    let events = RIGHT.replace("replicas = 2", &format!("replicas = 2, event = [{event}, {event}]"));
    assert!(refused("events", &events).contains("two events are called `e`"));
}

#[test]
fn names_that_collide_on_disk_are_refused() {
    let scan = |name: &str| {
        format!(
            "scan = [{{ name = \"{name}\", quantity = \"committee/escape\", inputs = {{ eta = 0.1 }}, over = {{ M = [2] }} }}]\n"
        )
    };
    let run = |name: &str| RIGHT.replace("name = \"a\"", &format!("name = \"{name}\""));
    for name in ["results", "provenance"] {
        assert!(refused(name, &run(name)).contains("is a file of every folder"), "{name}");
    }
    accepted("scan-alone", &run("scan-x"));
    assert!(
        refused("scan-x", &format!("{}{}", run("scan-x"), scan("x")))
            .contains("would be those of the scan `x`")
    );
    for name in ["../up", "a b", ""] {
        assert!(
            refused("scan-name", &format!("{RIGHT}{}", scan(name))).contains("becomes a file name"),
            "{name}"
        );
    }
    assert!(refused("long-name", &run(&"a".repeat(300))).contains("becomes a file name"));
}

#[test]
fn messages_have_no_words_of_the_program() {
    for (name, addition, expected) in [
        ("series", "figure = [{ name = \"f\", panel = [{ series = [1] }] }]\n", "expected a table"),
        ("width", "figure = [{ name = \"f\", width = true, panel = [] }]\n", "none of the forms"),
        ("legend", "figure = [{ name = \"f\", legend = 3, panel = [] }]\n", "expected"),
        ("sweep", "sweep = 3\n", "expected a table"),
        ("claims", "claim = 3\n", "expected a list"),
    ] {
        let message = refused(name, &format!("{RIGHT}{addition}"));
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn an_echoed_line_is_cut_and_large_numbers_are_short() {
    let long = format!(
        "{RIGHT}about = \"{}\"\nnonsense-{} = 1 # {}\n",
        "x".repeat(5_000),
        "y".repeat(60),
        "z".repeat(5_000)
    );
    let message = refused("long-line", &long);
    let echoed = message.lines().find(|line| line.contains(" | nonsense")).unwrap();
    assert!(echoed.chars().count() <= 130, "{message}");
    let message = refused("large", &RIGHT.replace("learning-rate = 0.5", "learning-rate = -1e308"));
    assert!(message.contains("-1e308") && !message.contains("000000"), "{message}");
}

#[test]
fn control_characters_are_not_sent_to_the_terminal() {
    let message = refused("escape", &format!("{RIGHT}\"bad\\u001B[31mkey\" = 1\n"));
    assert!(!message.contains('\u{1b}'), "{message:?}");
    let titled = RIGHT.replace("title = \"T\"", "title = \"red \\u001B[31m title\"");
    let output = check_file("title", &titled);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && !text.contains('\u{1b}') && text.contains("red \\u{1b}"), "{text:?}");
}

#[test]
fn a_foreign_file_is_not_quoted() {
    let folder = temporary("hostile-foreign");
    std::fs::create_dir_all(&folder).unwrap();
    let secret = folder.join("secret.txt");
    std::fs::write(&secret, "hunter2:x:0:0\n").unwrap();
    let run = didact().arg("check").arg(&secret).output().unwrap();
    let message = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.code() == Some(2) && !message.contains("hunter2"), "{message}");
    let spectrum = RIGHT.replace("dimension = 100", "spectrum = { kind = \"file\", path = \"secret.txt\" }");
    let file = folder.join("it.toml");
    std::fs::write(&file, spectrum).unwrap();
    let run = didact().arg("check").arg(&file).output().unwrap();
    let message = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.code() == Some(2) && !message.contains("hunter2"), "{message}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_another_size_changes_is_checked_without_its_flag() {
    for (name, addition, expected) in [
        ("quick-key", "quick = { \"nonsense.key\" = 1 }\n", "unknown key"),
        ("quick-type", "quick = { \"record.times\" = \"abc\" }\n", "quick"),
        ("full-order", "full = { \"record.times\" = [5, 1] }\n", "(with --full)"),
        ("quick-rate", "quick = { \"training.learning-rate\" = -1 }\n", "(with --quick)"),
    ] {
        let message = refused(name, &format!("{RIGHT}{addition}"));
        assert!(message.contains(expected), "{name}: {message}");
    }
    accepted(
        "sizes",
        &format!("{RIGHT}quick = {{ \"record.replicas\" = 1 }}\nfull = {{ \"record.replicas\" = 9 }}\n"),
    );
}

/// A figure is refused before the first run, not after the last.
#[test]
fn what_a_figure_cannot_draw_is_refused_before_anything_runs() {
    let swept = format!(
        "{RIGHT}{MEASURE}scan = [{{ name = \"s\", quantity = \"committee/escape\", inputs = {{ eta = 0.1 }}, over = {{ M = [2, 3] }} }}]\nsweep = {{ \"training.learning-rate\" = [0.1, 0.2] }}\n"
    );
    let panel = |panel: &str| format!("{swept}figure = [{{ name = \"f\", panel = [{{ {panel} }}] }}]\n");
    let series = |series: &str| panel(&format!("series = [{{ {series} }}]"));
    for (name, right) in [
        (
            "run",
            "run = \"a\", x = \"time\", colour = \"#12abCD\", legend = \"$\\\\eta = {training.learning-rate}$\"",
        ),
        ("measure", "measure = \"m\", x = \"training.learning-rate\""),
        ("scan", "scan = \"s\", x = \"M\", y = \"tau\""),
        ("at", "run = \"a\", at = { \"training.learning-rate\" = 0.1 }"),
    ] {
        accepted(&format!("series-{name}"), &series(right));
    }
    for (name, wrong, expected) in [
        ("colour", "run = \"a\", colour = \"zzz\"", "`zzz` is not a colour"),
        ("tex", "run = \"a\", legend = \"$\\\\nosuchcommand$\"", "label"),
        ("two", "run = \"a\", scan = \"s\"", "one of `run`, `measure` and `scan`"),
        ("none", "colour = 1", "one of `run`, `measure` and `scan`"),
        ("map", "run = \"a\", style = \"map\"", "drawn of a scan"),
        ("column", "run = \"a\", x = \"lss\"", "did you mean `loss`?"),
        ("key", "measure = \"m\"", "needs a swept key as `x`"),
        ("unswept", "measure = \"m\", x = \"data.dimension\"", "no swept key `data.dimension`"),
        ("nowhere", "run = \"a\", at = { \"training.learning-rate\" = 7 }", "no point of the sweep matches"),
        ("entry", "scan = \"s\", x = \"M\", y = \"taus\"", "did you mean `tau`?"),
        ("axis", "scan = \"s\", y = \"tau\"", "needs `x`"),
    ] {
        let message = refused(&format!("series-{name}"), &series(wrong));
        assert!(message.contains(expected), "{name}: {message}");
    }
    for (name, wrong, expected) in [
        ("label", "x = { label = \"$\\\\frac{1}\" }, series = [{ run = \"a\" }]", "label"),
        ("range", "x = { range = [2, 1] }, series = [{ run = \"a\" }]", "must be increasing"),
        ("long", &format!("title = \"{}\", series = [{{ run = \"a\" }}]", "a ".repeat(50_000)), "characters"),
        (
            "deep",
            &format!("title = \"${}x{}$\", series = [{{ run = \"a\" }}]", "{".repeat(400), "}".repeat(400)),
            "braces",
        ),
    ] {
        let message = refused(&format!("panel-{name}"), &panel(wrong));
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
fn what_a_scan_or_a_measure_cannot_compute_is_refused_before_anything_runs() {
    let scan = |inputs: &str, over: &str| {
        format!(
            "{RIGHT}scan = [{{ name = \"s\", quantity = \"committee/escape\", inputs = {{ {inputs} }}, over = {{ {over} }} }}]\n"
        )
    };
    accepted("scan-right", &scan("eta = 0.1", "M = [2]"));
    for (name, text, expected) in [
        ("scan-type", scan("eta = \"x\"", "M = [2]"), "input `eta` is \"x\""),
        ("scan-point", scan("eta = 0.1", "M = [2, 0.5]"), "input `M` is 0.5"),
        ("scan-empty", scan("eta = 0.1", "M = []"), "is empty"),
        (
            "formula",
            format!(
                "{RIGHT}{}",
                MEASURE.replace(
                    "}]",
                    "}, { name = \"f\", kind = \"formula\", formula = \"2*(a\", with = { a = \"m\" } }]"
                )
            ),
            "2*(a",
        ),
        (
            "entry",
            format!(
                "{RIGHT}measure = [{{ name = \"q\", kind = \"quantity\", quantity = \"committee/plateau\", inputs = {{ M = 2 }}, entry = \"nope\" }}]\n"
            ),
            "no entry `nope`",
        ),
        (
            "quantity-type",
            format!(
                "{RIGHT}measure = [{{ name = \"q\", kind = \"quantity\", quantity = \"committee/plateau\", inputs = {{ M = \"two\" }} }}]\n"
            ),
            "input `M` is \"two\"",
        ),
        (
            "value-at",
            format!("{RIGHT}{}", MEASURE.replace("time = 1", "time = 1e9")),
            "is not within the run",
        ),
        (
            "claim-at",
            format!(
                "{RIGHT}{MEASURE}claim = [{{ says = \"x\", measure = \"m\", at = {{ \"data.dimension\" = 5 }}, check = {{ at-most = 1 }} }}]\n"
            ),
            "which is not swept",
        ),
    ] {
        let message = refused(name, &text);
        assert!(message.contains(expected), "{name}: {message}");
    }
}

#[test]
#[cfg(unix)]
fn devices_pipes_and_folders_are_not_read() {
    let folder = temporary("hostile-files");
    std::fs::create_dir_all(&folder).unwrap();
    let pipe = folder.join("pipe.toml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for file in [pipe.as_path(), std::path::Path::new("/dev/zero"), folder.as_path()] {
        let run = didact().arg("check").arg(file).output().unwrap();
        let message = String::from_utf8(run.stderr).unwrap();
        assert!(run.status.code() == Some(2) && message.contains("cannot read"), "{message}");
    }
    for path in ["/dev/zero", "pipe.toml", "."] {
        let text =
            RIGHT.replace("dimension = 100", &format!("spectrum = {{ kind = \"file\", path = \"{path}\" }}"));
        let file = folder.join("it.toml");
        std::fs::write(&file, text).unwrap();
        let run = didact().arg("check").arg(&file).output().unwrap();
        let message = String::from_utf8(run.stderr).unwrap();
        assert!(run.status.code() == Some(2) && message.contains("cannot read"), "{path}: {message}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

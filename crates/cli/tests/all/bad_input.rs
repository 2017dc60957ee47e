//! Bad input gets one clear message, exit code 2, and nothing is written. The messages are kept in `bad/`.
//!
//! Each `bad/<name>.toml` has its message beside it in `bad/<name>.txt`; `DIDACT_BLESS=1 cargo test --test all bad_input`
//! writes the messages anew, to be read before they are committed.

use crate::common::{didact, root, temporary};

#[test]
fn every_bad_description_is_refused_with_its_message() {
    let folder = root().join("crates/cli/tests/bad");
    let bless = std::env::var_os("DIDACT_BLESS").is_some();
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
    names.sort();
    let mut count = 0;
    for path in names.iter().filter(|p| p.extension().is_some_and(|e| e == "toml")) {
        let out = temporary("bad");
        let file = path.file_name().unwrap();
        let run = didact().current_dir(&folder).arg("run").arg(file).arg("--out").arg(&out).output().unwrap();
        let message = String::from_utf8(run.stderr).unwrap();
        let name = file.to_string_lossy().into_owned();
        assert_eq!(run.status.code(), Some(2), "{name}: {message}");
        assert!(run.stdout.is_empty() && !out.exists(), "{name} wrote something");
        assert!(message.starts_with("error: "), "{name}: {message}");
        let kept = path.with_extension("txt");
        if bless {
            std::fs::write(&kept, &message).unwrap();
        }
        assert_eq!(message, std::fs::read_to_string(&kept).unwrap_or_default(), "{name}");
        count += 1;
    }
    assert!(count >= 15, "{count} bad descriptions");
}

#[test]
fn a_missing_file_and_an_unwritable_folder_are_errors() {
    let run = didact().args(["run", "nowhere.toml"]).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&run.stderr).starts_with("error: cannot read nowhere.toml"));

    // A file stands where the folder should go: not writable, whoever asks.
    let out = temporary("unwritable");
    std::fs::write(&out, "in the way").unwrap();
    let run =
        didact().arg("run").arg(root().join("examples/scan.toml")).arg("--out").arg(&out).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    let message = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(
        message.starts_with("error: cannot write to") && message.contains("hint: choose another folder"),
        "{message}"
    );
    std::fs::remove_file(out).unwrap();
}

#[test]
fn unknown_names_on_the_command_line_suggest_the_nearest() {
    for (arguments, hint) in [
        (vec!["compute", "committee/plateu", "M=2"], "did you mean `committee/plateau`?"),
        (vec!["list", "engine"], "did you mean `engines`?"),
        (vec!["reproduce", "comittee"], "did you mean `committee`?"),
        (vec!["compute", "committee/plateau", "K=2"], "inputs are M, T, D, output"),
        (vec!["compute", "committee/plateau", "M"], "write inputs as key=value"),
    ] {
        let run = didact().args(&arguments).output().unwrap();
        assert_eq!(run.status.code(), Some(2), "{arguments:?}");
        let message = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(message.contains(hint), "{arguments:?}: {message}");
    }
}

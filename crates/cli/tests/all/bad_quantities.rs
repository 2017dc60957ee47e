//! Quantities asked for what does not exist: one clear message each, exit code 2.
//!
//! Every `bad/quantities/<name>.txt` holds commands (`$ didact compute …`), each followed by its message. `DIDACT_BLESS=1 cargo test
//! --test all bad_quantities` writes the messages anew, to be read before they are committed.

use crate::common::{didact, root};

#[test]
fn every_impossible_question_is_refused_with_its_message() {
    let folder = root().join("crates/cli/tests/bad/quantities");
    let bless = std::env::var_os("DIDACT_BLESS").is_some();
    let mut count = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let kept = std::fs::read_to_string(&path).unwrap();
        let mut found = String::new();
        for command in kept.lines().filter_map(|line| line.strip_prefix("$ didact compute ")) {
            let run = didact()
                .current_dir(&folder)
                .arg("compute")
                .args(command.split_whitespace())
                .output()
                .unwrap();
            let message = String::from_utf8(run.stderr).unwrap();
            assert_eq!(run.status.code(), Some(2), "{command}: {message}");
            assert!(run.stdout.is_empty(), "{command} printed an answer");
            found += &format!("$ didact compute {command}\n{}\n\n", message.trim_end());
            count += 1;
        }
        if bless {
            std::fs::write(&path, &found).unwrap();
        } else {
            assert_eq!(found, kept, "{}", path.display());
        }
    }
    assert!(count > 0, "no commands in {}", folder.display());
}

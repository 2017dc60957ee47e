//! Inputs outside the domain of a quantity get one clear message and exit code 2. The messages are kept in `bad/`.
//!
//! Each line of `bad/<name>.compute` is what follows `didact compute`; what it prints stands in `bad/<name>.compute.txt`.
//! `DIDACT_BLESS=1 cargo test --test bad_compute` writes the messages anew, to be read before they are committed.

mod common;

use common::{didact, root};

#[test]
fn every_input_outside_its_domain_is_refused_with_its_message() {
    let folder = root().join("crates/cli/tests/bad");
    let bless = std::env::var_os("DIDACT_BLESS").is_some();
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|e| e != "compute") {
            continue;
        }
        let mut all = String::new();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let run = didact().arg("compute").args(line.split_whitespace()).output().unwrap();
            let message = String::from_utf8(run.stderr).unwrap();
            assert_eq!(run.status.code(), Some(2), "{line}: {message}");
            assert!(run.stdout.is_empty() && message.starts_with("error: "), "{line}: {message}");
            all += &format!("$ didact compute {line}\n{message}\n");
        }
        let kept = path.with_extension("compute.txt");
        if bless {
            std::fs::write(&kept, &all).unwrap();
        }
        assert_eq!(all, std::fs::read_to_string(&kept).unwrap_or_default(), "{}", path.display());
    }
}

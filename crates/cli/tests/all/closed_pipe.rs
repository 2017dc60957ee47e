//! A reader may go away before everything is printed, as `head` does.

use std::process::{Command, Stdio};

/// Without a reader from the beginning every write fails.
#[test]
fn a_reader_that_has_gone_is_no_error() {
    let commands: [&[&str]; 6] = [
        &["list"],
        &["list", "quantities", "--json"],
        &["schema"],
        &["man"],
        &["completions", "bash"],
        &["compute", "committee/plateau", "M=2"],
    ];
    for arguments in commands {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = Command::new(env!("CARGO_BIN_EXE_didact"))
            .args(arguments)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .expect("the program starts");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaint.is_empty(), "{arguments:?}: {complaint}");
    }
}

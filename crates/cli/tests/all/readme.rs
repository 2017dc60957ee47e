//! The README says what works: its example is run, its commands are tried as they are written.

use crate::common::{didact, root, temporary};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

/// The code blocks of the README in a language.
fn blocks(language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut blocks = Vec::new();
    for part in text.split("```").skip(1).step_by(2) {
        if let Some(block) = part.strip_prefix(language).and_then(|b| b.strip_prefix('\n')) {
            blocks.push(block.to_string());
        }
    }
    blocks
}

#[test]
fn every_command_of_the_readme_works_as_it_is_written() {
    let folder = temporary("readme");
    std::fs::create_dir_all(&folder).unwrap();
    let [example] = blocks("toml").try_into().expect("one example");
    std::fs::write(folder.join("two-units.toml"), example).unwrap();
    let mut tried = Vec::new();
    for line in blocks("sh").iter().flat_map(|block| block.lines()) {
        let command = line.split(" #").next().unwrap_or_default().trim();
        let called =
            command.strip_prefix("didact ").or_else(|| command.strip_prefix("cargo run --release -- "));
        let Some(called) = called else { continue };
        let mut arguments: Vec<&str> = called.split_whitespace().collect();
        // A whole paper is what other tests and people run; here it is enough that its name is right.
        if arguments.starts_with(&["reproduce", "committee"]) {
            arguments = vec!["list", "papers", "committee"];
        }
        // A server ends when it is told to; that its page is there is enough.
        if arguments == ["explore"] {
            answers(didact().current_dir(&folder).args(["explore", "--no-open"]));
            tried.push("explore".into());
            continue;
        }
        let run = didact().current_dir(&folder).args(&arguments).output().unwrap();
        assert!(run.status.success(), "{command}: {}", String::from_utf8_lossy(&run.stderr));
        tried.push(arguments[0].to_string());
    }
    for command in ["check", "run", "list", "compute", "reproduce", "explore"] {
        assert!(tried.iter().any(|t| t == command), "the README does not show `{command}`: {tried:?}");
    }
    let made = std::fs::read_dir(folder.join("runs")).unwrap().flatten();
    let names: Vec<String> = made.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.iter().any(|n| n.starts_with("two-erf-units-")), "{names:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Starts the explorer, asks for the page whose address it prints, and ends it.
fn answers(command: &mut Command) {
    let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (host, path) =
        line.trim().strip_prefix("http://").and_then(|url| url.split_once('/')).expect("an address");
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("<title>didact explorer</title>"), "{page}");
}

#[test]
fn every_page_that_the_readme_links_to_is_there() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    for link in links.filter(|l| !l.starts_with("http")) {
        assert!(root().join(link).exists(), "{link}");
    }
}

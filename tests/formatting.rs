//! `brine fmt`: the real program formats files of a small tree.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::BRINE;

/// Runs `brine fmt` in a directory with standard input, and returns its status and output.
fn brine_fmt(directory: &Path, words: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(BRINE);
    command.arg("fmt").args(words).current_dir(directory);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

const UNTIDY: &str = "a:   \n\n\n  test.nop:   []\n";
const TIDY: &str = "a:\n\n  test.nop: []\n";

#[test]
fn files_are_formatted_and_keep_their_mode_and_links() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, outside) = (directory.path().join("tree"), directory.path().join("outside.sls"));
    std::fs::create_dir_all(tree.join("vendor")).unwrap();
    for path in [&tree.join("a.sls"), &tree.join("vendor/b.sls"), &outside] {
        std::fs::write(path, UNTIDY).unwrap();
    }
    std::fs::write(tree.join("python.sls"), "#!py\ndef run():  \n    return {}\n").unwrap();
    std::fs::write(tree.join("brine.toml"), "[check]\nexclude = [\"vendor/*\"]\n").unwrap();
    std::fs::set_permissions(tree.join("a.sls"), PermissionsExt::from_mode(0o640)).unwrap();
    symlink(&outside, tree.join("link.sls")).unwrap();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();

    let (status, out, _) = brine_fmt(&tree, &["--check"], "");
    assert_eq!((status, out.as_str()), (Some(1), "./a.sls\n"));
    let (status, out, _) = brine_fmt(&tree, &["--diff"], "");
    assert_eq!(status, Some(0));
    assert!(out.starts_with("--- ./a.sls\n+++ ./a.sls\n") && out.contains("\n+  test.nop: []\n"), "{out}");
    assert_eq!(read(&tree.join("a.sls")), UNTIDY, "--check and --diff write nothing");

    let (status, out, err) = brine_fmt(&tree, &[], "");
    assert_eq!((status, out.as_str()), (Some(0), "./a.sls\n"));
    let left = "1 file changed, 1 left as they are: their data are known only when they are rendered\n";
    assert_eq!(err, left);
    assert_eq!(read(&tree.join("a.sls")), TIDY);
    assert_eq!(std::fs::metadata(tree.join("a.sls")).unwrap().mode() & 0o777, 0o640);
    assert_eq!((read(&outside), read(&tree.join("vendor/b.sls"))), (UNTIDY.to_owned(), UNTIDY.to_owned()));
    assert_eq!(brine_fmt(&tree, &["--check"], "").0, Some(0));

    let (status, _, err) = brine_fmt(&tree, &["link.sls", "nothing.sls"], "");
    assert!(status == Some(2) && err.contains("formatting link.sls failed: it is a link"), "{err}");
}

#[test]
fn standard_input_is_formatted_to_the_byte() {
    let directory = tempfile::tempdir().unwrap();
    let format = |words: &[&str], input: &str| {
        let (status, out, _) = brine_fmt(directory.path(), words, input);
        (status, out)
    };
    assert_eq!(format(&["-"], UNTIDY), (Some(0), TIDY.to_owned()));
    assert_eq!(format(&["-", "--check"], UNTIDY), (Some(1), String::new()));
    // What cannot be read stays as it is: an editor puts it in the place of its text.
    for text in ["a: [\n", "", "a: \"\u{1b}\t\""] {
        assert_eq!(format(&["-"], text), (Some(0), text.to_owned()), "{text:?}");
    }
    assert_eq!(format(&["-", "a.sls"], "").0, Some(64));
}

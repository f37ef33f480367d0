use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

#[test]
fn versions_are_found_in_the_output() {
    let programs = Scripted::new(
        "
            $ bash --version
            | GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)
            $ python -V
            | Python 3
            $ ruby -v
            | no version here
            ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("cmd.shell_info", list!["bash"], map! {}),
        ("cmd.shell_info", list!["python"], map! {}),
        ("cmd.shell_info", list!["ruby"], map! {}),
        ("cmd.shell_info", list!["zsh"], map! {}),
        ("cmd.shell_info", list!["fish"], map! {}),
    ]), @r#"
        cmd.shell_info: {"installed": true, "path": "bash", "version_raw": "5.2.15(1)-release", "version": "5.2.15"}
        cmd.shell_info: {"installed": true, "path": "python", "version_raw": "3", "version": "3.0"}
        cmd.shell_info: {"installed": null, "path": "ruby", "error": "The version regex pattern for shell ruby, could not find the version string", "stdout": "no version here"}
        cmd.shell_info: {"error": "Unable to run command 'zsh --version' Reason: [Errno 2] No such file or directory: 'zsh'", "installed": false}
        cmd.shell_info: {"error": "Salt does not know how to get the version number for fish", "installed": null}
        "#);
}

#[test]
fn messages_reach_terminals_alone() {
    let context = crate::testing::context(&[]);
    insta::assert_snapshot!(answers(&context, &[
        ("cmd.tty", list!["tty/../sda", "x"], map! {}),
        ("cmd.tty", list!["pts/../../sda", "x"], map! {}),
        ("cmd.tty", list!["sda", "x"], map! {}),
        ("cmd.tty", list!["ttynosuch", "x"], map! {}),
    ]), @r#"
        cmd.tty: {"Error": "The specified device is not a valid TTY"}
        cmd.tty: {"Error": "The specified device is not a valid TTY"}
        cmd.tty: {"Error": "The specified device is not a valid TTY"}
        cmd.tty: {"Error": "Echoing to /dev/ttynosuch returned error"}
        "#);
}

use std::process::{Child, Command, Stdio};

use brine_function::Args;
use brine_value::list;

use super::*;
use crate::testing;

/// Starts a process with this word in its command line. It runs until it reads a line from standard input.
fn waiting(word: &str) -> Child {
    Command::new("sh").args(["-c", "read line", word]).stdin(Stdio::piped()).spawn().unwrap()
}

fn called(function: &str, args: brine_value::Map) -> Result<Value, CallError> {
    testing::context(&[]).call(&format!("ps.{function}"), Args::keyword(args))
}

#[test]
fn processes_are_found_and_killed() {
    let word = format!("brine-ps-{}", std::process::id());
    let mut child = waiting(&word);
    let pid = child.id();
    let pids = |more: brine_value::Map| {
        let mut args = map! {"pattern" => &word, "full" => true};
        args.extend(more);
        called("pgrep", args).unwrap()
    };
    // The shell's command line is visible only once it runs.
    while pids(map! {}).is_nil() {
        std::thread::yield_now();
    }
    assert_eq!(pids(map! {}), list![pid]);
    assert_eq!(pids(map! {"pattern" => format!("ps-{}$", std::process::id()), "pattern_is_regex" => true}), list![pid]);
    assert_eq!(pids(map! {"full" => false}), Value::Nil);
    assert_eq!(pids(map! {"user" => "nobody_at_all"}), Value::Nil);
    assert_eq!(
        called("pkill", map! {"pattern" => &word, "full" => true}).unwrap(),
        map! {"killed" => list![pid]}.into()
    );
    assert!(!child.wait().unwrap().success());
    assert_eq!(called("pkill", map! {"pattern" => &word, "full" => true}).unwrap(), Value::Nil);
    assert_eq!(called("kill_pid", map! {"pid" => 0}).unwrap(), Value::Bool(false));
    assert!(called("pkill", map! {"pattern" => ""}).is_err());
    assert!(called("pkill", map! {"pattern" => &word, "signal" => 999}).is_err());
}

#[test]
fn long_names_are_completed() {
    let own = name_of(std::process::id()).unwrap();
    let program = std::env::current_exe().unwrap();
    assert_eq!(own, program.file_name().unwrap().to_string_lossy());
}

use brine_function::Args;

use super::*;
use crate::testing;

#[test]
fn own_process_is_described() {
    let context = testing::context(&[]);
    let own = std::process::id();
    let about = context.call("ps.proc_info", Args::positional([own.into()])).unwrap();
    assert_eq!(about.as_map().unwrap().len(), ATTRIBUTES.len());
    assert_eq!(about.get("pid"), Some(&own.into()));
    assert_eq!(about.get("cwd"), Some(&std::env::current_dir().unwrap().to_string_lossy().into_owned().into()));
    assert_eq!(about.get("cmdline").and_then(|line| line.as_list()).map(<[_]>::len), Some(std::env::args().count()));
    assert!(about.get("memory_percent").unwrap().as_f64().unwrap() > 0.0);
    assert!(!about.get("threads").unwrap().as_list().unwrap().is_empty());
    let some = Args { positional: vec![own.into()], keyword: map! {"attrs" => vec!["ppid".to_owned()]} };
    assert_eq!(
        context.call("ps.proc_info", some).unwrap(),
        map! {"ppid" => std::os::unix::process::parent_id()}.into()
    );
}

#[test]
fn unknown_processes_and_attributes_are_rejected() {
    let context = testing::context(&[]);
    let gone = context.call("ps.proc_info", Args::positional([u32::MAX.into()])).unwrap_err();
    assert_eq!(gone.to_string(), "ERROR: process PID not found (pid=4294967295)");
    let wrong = Args { positional: vec![1.into()], keyword: map! {"attrs" => vec!["colour".to_owned()]} };
    assert!(context.call("ps.proc_info", wrong).unwrap_err().to_string().contains("'colour'"));
    let none = context.call("ps.status", Args::positional(["".into()])).unwrap_err();
    assert_eq!(none.to_string(), "ERROR: Filter is required for ps.status");
    assert!(context.call("ps.status", Args::positional(["tracing_stop".into()])).unwrap().as_list().is_some());
}

#[test]
fn sessions_are_read() {
    let (size, at, _) = RECORD;
    let mut record = vec![0_u8; size];
    record[0] = SESSION;
    record[4] = 7;
    for (from, text) in [(8, "pts/0"), (44, "ada"), (76, "192.0.2.1")] {
        record[from..from + text.len()].copy_from_slice(text.as_bytes());
    }
    record[at + 1] = 1;
    let mut bytes = vec![0_u8; size];
    bytes.extend(&record);
    bytes.extend([1, 2]);
    let expected = map! {
        "name" => "ada", "terminal" => "pts/0", "host" => "192.0.2.1", "started" => 256.0, "pid" => 7,
    };
    assert_eq!(sessions(&bytes), [expected]);
}

#[test]
fn numbers_of_terminals_name_devices() {
    let cases = [(0, None), (0x401, Some("/dev/tty1")), (0x441, Some("/dev/ttyS1")), (0x8803, Some("/dev/pts/3"))];
    for (number, expected) in cases {
        assert_eq!(terminal(number).as_deref(), expected, "{number}");
    }
    assert_eq!(nice("7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 20 10 20 -5 1 0 1000"), (-5).into());
    assert_eq!(environment(b"A=1\0B=x=y\0bad\0"), map! {"A" => "1", "B" => "x=y"});
    assert_eq!(io("rchar: 5\n"), Value::Nil);
}

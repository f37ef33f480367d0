use brine_value::list;

use super::*;
use crate::testing::{self, Scripted, answers, context_with};

#[test]
fn processes_are_described() {
    let text = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 20 10 20 0 1 0 1000 2000 300";
    let process = Process::parse(7, text).unwrap();
    let units = Units { ticks: 100.0, page: 4096, boot: 5.0 };
    assert_eq!((process.key(), process.used(&units)), ((7, 1000), 2.0));
    let about = process.described(&units);
    assert_eq!((about.get("status"), about.get("create_time")), (Some(&"sleeping".into()), Some(&15.0.into())));
    assert_eq!(about.get("cpu").and_then(|cpu| cpu.get("children_system")), Some(&0.1.into()));
    assert_eq!(memory("10 5 3 1 0 2 0", 4096).get("rss"), Some(&20480.into()));
    assert!(Process::parse(7, "7 (x").is_none());
}

#[test]
fn the_busiest_processes_of_this_host_are_returned() {
    let context = testing::context(&[]);
    let args = brine_function::Args { positional: vec![2.into(), 0.01.into()], ..Default::default() };
    let report = context.call("ps.top", args).unwrap();
    let list = report.as_list().unwrap();
    assert!(!list.is_empty() && list.len() <= 2);
    assert!(list.iter().all(|about| about.get("mem").and_then(|mem| mem.get("rss")).is_some()), "{report}");
}

#[test]
fn tables_are_filtered() {
    let context = context_with(
        map! {},
        Scripted::new(
            "
                $ ps aux
                | USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
                | root           1  0.0  0.0   2576  1536 ?        Ss   05:00   0:00 /sbin/init
                | ada            7  0.0  0.0   2576  1536 ?        S    05:00   0:00 salt web1 ps.psaux init
                $ lsof -c init
                | init 1 root cwd DIR 254,0 4096 2 /
                ",
        ),
    );
    insta::assert_snapshot!(answers(&context, &[
        ("ps.psaux", list!["root.+init"], map! {}),
        ("ps.psaux", list!["init"], map! {}),
        ("ps.psaux", list!["("], map! {}),
        ("ps.lsof", list!["init"], map! {}),
        ("ps.lsof", list!["-x"], map! {}),
    ]), @r#"
        ps.psaux: ["root.+init", ["root           1  0.0  0.0   2576  1536 ?        Ss   05:00   0:00 /sbin/init"], "1 occurrence(s)."]
        ps.psaux: ["init", ["root           1  0.0  0.0   2576  1536 ?        Ss   05:00   0:00 /sbin/init"], "1 occurrence(s)."]
        ps.psaux: ERROR: missing ), unterminated subpattern at position 0
        ps.lsof: ["init", "init 1 root cwd DIR 254,0 4096 2 /"]
        ps.lsof: ERROR: '-x' cannot be used: it starts with '-' or is empty
        "#);
}

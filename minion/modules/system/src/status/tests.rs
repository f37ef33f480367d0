use brine_function::Args;
use brine_value::list;

use super::*;
use crate::testing;

#[test]
fn kernel_tables_are_parsed() {
    let report = processor_times("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 11 2\nintr 9 4 5\nctxt 77\nsoftirq 3 1 2\n");
    let cpu = map! {"user" => 1, "nice" => 2, "system" => 3, "idle" => 4, "iowait" => 5, "irq" => 6, "softirq" => 7, "steal" => 8};
    let expected = map! {
        "cpu" => cpu,
        "cpu0" => 11,
        "intr" => map! {"total" => 9, "irqs" => list![4, 5]},
        "ctxt" => 77,
        "softirq" => map! {"total" => 3, "softirqs" => list![1, 2]},
    };
    assert_eq!(report, expected);
    let report = memory("MemTotal:  5 kB\nHugePages_Total:       0\n");
    let expected =
        map! {"MemTotal" => map! {"value" => "5", "unit" => "kB"}, "HugePages_Total" => map! {"value" => "0"}};
    assert_eq!(report, expected);
    let report = processes("USER PID COMMAND\nroot   1 /sbin/init  splash\n");
    assert_eq!(report, map! {"1" => map! {"user" => "root", "cmd" => "/sbin/init splash"}});
    let report = up_for(90_061, "2026-11-21T01:01:02.5Z".parse().unwrap());
    insta::assert_snapshot!(Value::from(report), @"{'seconds': 90061, 'since_iso': '2026-11-20T00:00:01.500000', 'since_t': 1795132801, 'days': 1, 'time': '1:1'}");
}

#[test]
fn this_host_is_reported() {
    let context = testing::context(&[]);
    for fun in [
        "loadavg",
        "cpustats",
        "meminfo",
        "cpuinfo",
        "vmstats",
        "nproc",
        "uptime",
        "diskusage",
        "procs",
        "time",
        "version",
    ] {
        let report = context.call(&format!("status.{fun}"), Args::default());
        assert!(report.as_ref().is_ok_and(Value::is_truthy), "{fun}: {report:?}");
    }
    let root = context.call("status.diskusage", Args::positional(["/".into()])).unwrap();
    assert!(root.get("/").unwrap().get("total").unwrap().as_i64().unwrap() > 0);
}

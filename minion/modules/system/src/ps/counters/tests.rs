use brine_function::Args;
use brine_value::map;

use super::*;
use crate::testing;

#[test]
fn busy_time_is_a_share() {
    let before = processors("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 100 0 50 800 50 0 0 0 0 0\nintr 5\n", false);
    let after = processors("cpu  150 0 75 850 75 0 0 0 40 0\n", false);
    assert_eq!(before, [[100, 0, 50, 800, 50, 0, 0, 0, 0, 0]]);
    assert_eq!(busy(&before[0], &after[0]).to_string(), "50");
    assert_eq!(busy(&before[0], &before[0]).to_string(), "0");
    assert_eq!(processors("cpu  1 2\ncpu0 3 4\ncpu11 5 6\n", true), [[3, 4], [5, 6]]);
}

#[test]
fn counters_are_added_up() {
    let text = "   8  0 sda 10 1 20 3 40 2 50 6 0 7 8\n   8  1 sda1 1 1 1 1 1 1 1 1 1 1 1\n   8 16 sdb 1 0 2 0 0 0 0 0 0 0 0\n";
    let rows = || text.lines().map(|line| (line.split_whitespace().nth(2).unwrap(), columns(line)));
    let expected = map! {
        "read_count" => 11, "write_count" => 40, "read_bytes" => 22 * 512, "write_bytes" => 50 * 512, "read_time" => 3,
        "write_time" => 6, "read_merged_count" => 1, "write_merged_count" => 2, "busy_time" => 7,
    };
    assert_eq!(report(rows(), None, &DISK, |name| name != "sda1"), expected.into());
    assert_eq!(report(rows(), Some("sda1"), &DISK, |_| false).get("write_bytes"), Some(&512.into()));
    assert_eq!(report(rows(), Some("sdz"), &DISK, |_| true), false.into());
}

#[test]
fn this_host_is_counted() {
    let context = testing::context(&[]);
    let ask = |fun: &str, args: Args| context.call(&format!("ps.{fun}"), args).unwrap();
    let word = |word: &str| Args::positional([word.into()]);
    assert!(ask("cpu_times", Args::default()).get("idle").unwrap().as_f64().unwrap() > 0.0);
    assert!((0.0..=100.0).contains(&ask("cpu_percent", Args::default()).as_f64().unwrap()));
    let each = ask("cpu_percent", Args { keyword: map! {"per_cpu" => true}, ..Args::default() });
    assert_eq!(each.as_list().map(<[_]>::len), Some(ask("num_cpus", Args::default()).as_i64().unwrap() as usize));
    assert!(ask("network_io_counters", word("lo")).get("bytes_sent").is_some());
    assert_eq!(ask("network_io_counters", word("nosuch0")), false.into());
    assert_eq!(ask("disk_io_counters", word("nosuch0")), false.into());
    let error = context.call("ps.cpu_percent", Args::positional([(-1).into()])).unwrap_err();
    assert!(error.to_string().contains("interval"), "{error}");
}

use super::*;
use crate::testing::{self, Scripted};

#[test]
fn kernel_counters_are_parsed() {
    let report = protocols("TcpExt: A B\nTcpExt: 1 -2\nIpExt: C\nIpExt: 3\ncut\n");
    assert_eq!(report, map! {"TcpExt" => map! {"A" => 1, "B" => -2}, "IpExt" => map! {"C" => 3}});
    let (name, report) = interface("  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16").unwrap();
    assert_eq!(name, "eth0".into());
    insta::assert_snapshot!(report, @"{'iface': 'eth0', 'rx_bytes': 1, 'rx_packets': 2, 'rx_errs': 3, 'rx_drop': 4, 'rx_fifo': 5, 'rx_frame': 6, 'rx_compressed': 7, 'rx_multicast': 8, 'tx_bytes': 9, 'tx_packets': 10, 'tx_errs': 11, 'tx_drop': 12, 'tx_fifo': 13, 'tx_colls': 14, 'tx_carrier': 15, 'tx_compressed': 16}");
    assert_eq!(interface("Inter-|   Receive  |  Transmit"), None);
    let (name, report) = device(" 254 0 7 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16").unwrap();
    assert_eq!(name, "7".into());
    insta::assert_snapshot!(report, @"{'major': 254, 'minor': 0, 'device': '7', 'reads_issued': 1, 'reads_merged': 2, 'sectors_read': 3, 'ms_spent_reading': 4, 'writes_completed': 5, 'writes_merged': 6, 'sectors_written': 7, 'ms_spent_writing': 8, 'io_in_progress': 9, 'ms_spent_in_io': 10, 'weighted_ms_spent_in_io': 11}");
}

#[test]
fn output_of_w_and_ps_is_parsed() {
    let programs = Scripted::new(
        "
            $ w -h
            | root     pts/0    10.1.2.3         09:01    2:00   0.03s  0.01s vim a b
            | cut
            $ ps -eo user:64,pid,args
            | USER PID COMMAND
            | root   1 /sbin/init  splash
            | root  20 sshd: root
            | tom  300 sshd -D
            | tom  301 brine salt-call status.pid sshd
            ",
    );
    let context = testing::context_with(map! {}, programs);
    let report = context.call("status.w", Args::default()).unwrap();
    insta::assert_snapshot!(report, @"[{'user': 'root', 'tty': 'pts/0', 'login': '10.1.2.3', 'idle': '09:01', 'jcpu': '2:00', 'pcpu': '0.03s', 'what': '0.01s vim a b'}]");
    for (sig, pids) in [("sshd", "20\n300"), ("^/sbin", "1"), ("nothing", "")] {
        assert_eq!(context.call("status.pid", Args::positional([sig.into()])).unwrap(), pids.into(), "{sig}");
    }
}

#[test]
fn all_status_has_every_section() {
    let report = testing::context(&[]).call("status.all_status", Args::default()).unwrap();
    let names: Vec<String> = report.as_map().unwrap().keys().map(ToString::to_string).collect();
    assert_eq!(names, ALL);
    assert!(report.get("netdev").and_then(|all| all.get("lo")).is_some());
}

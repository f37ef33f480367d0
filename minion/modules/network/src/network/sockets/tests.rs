use brine_value::list;

use super::*;
use crate::testing::{Scripted, answers, context_with};

// As written by net-tools 2.10 and iproute2 6.1.
#[test]
fn sockets_are_listed() {
    let programs = Scripted::new(
        "
            $ netstat -tulpnea
            | Active Internet connections (servers and established)
            | Proto Recv-Q Send-Q Local Address           Foreign Address         State       User       Inode      PID/Program name
            | tcp        0      0 0.0.0.0:2024            0.0.0.0:*               LISTEN      0          555        812/sshd
            | udp        0      0 0.0.0.0:68              0.0.0.0:*                           0          556        -
            | udp        0      0 10.0.0.1:50             10.0.0.2:53             ESTABLISHED 100        557        9/x
            $ dig ex_ample.org
            | ;; ANSWER SECTION:
            $ dig ::1
            | ;; ANSWER SECTION:
            $ dig none
            | ;; communications error to 127.0.0.1#53: connection refused
            = 9
            ",
    );
    let context = context_with(map! {}, programs);
    insta::assert_snapshot!(answers(&context, &[
        ("network.netstat", list![], map! {}),
        ("network.dig", list!["+@ex_ample.org; "], map! {}),
        ("network.dig", list!["::1"], map! {}),
        ("network.dig", list!["-f/etc/shadow"], map! {}),
        ("network.dig", list!["none"], map! {}),
    ]), @r#"
        network.netstat: [{"proto": "tcp", "recv-q": "0", "send-q": "0", "local-address": "0.0.0.0:2024", "remote-address": "0.0.0.0:*", "state": "LISTEN", "user": "0", "inode": "555", "program": "812/sshd"}, {"proto": "udp", "recv-q": "0", "send-q": "0", "local-address": "0.0.0.0:68", "remote-address": "0.0.0.0:*", "user": "0", "inode": "556", "program": "-"}, {"proto": "udp", "recv-q": "0", "send-q": "0", "local-address": "10.0.0.1:50", "remote-address": "10.0.0.2:53", "user": "100", "inode": "557", "program": "9/x"}]
        network.dig: ";; ANSWER SECTION:"
        network.dig: ";; ANSWER SECTION:"
        network.dig: ERROR: '-fetcshadow' cannot be used: it starts with '-' or is empty
        network.dig: ";; communications error to 127.0.0.1#53: connection refused"
        "#);
    let line = "tcp   ESTAB 0      128          0.0.0.0:2024      0.0.0.0:*    users:((\"sshd\",pid=812,fd=3)) uid:7 ino:555 sk:1";
    insta::assert_snapshot!(brine_value::json::to_json(&of_ss(line).unwrap().into()), @r#"
        {"proto": "tcp", "recv-q": "0", "send-q": "128", "local-address": "0.0.0.0:2024", "remote-address": "0.0.0.0:*", "state": "ESTABLISHED", "user": "7", "inode": "555", "program": "sshd"}
        "#);
    assert_eq!(of_ss("Netid State  Recv-Q Send-Q Local Address:Port Peer Address:PortProcess"), None);
}

//! What daemons tell systemd, and the unit files of the packages.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use crate::support::System;

/// Receives messages of daemons until one of them is this line.
fn receive(socket: &UnixDatagram, expected: &str) {
    let mut buffer = [0; 4096];
    loop {
        let length = socket.recv(&mut buffer).unwrap_or_else(|error| panic!("no {expected}: {error}"));
        let text = std::str::from_utf8(&buffer[..length]).unwrap();
        if text.lines().any(|line| line == expected) {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_is_told_that_daemons_serve_live_and_stop() {
    let mut system = System::new("");
    let path = system.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    // Longer than any load of this host: a daemon that tells nothing fails the test.
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let path = path.display().to_string();
    let environment = [("NOTIFY_SOCKET", path.as_str()), ("WATCHDOG_USEC", "200000")];
    system.start_master_with(&environment).await;
    receive(&socket, "READY=1");
    receive(&socket, "WATCHDOG=1");
    system.stop_master();
    receive(&socket, "STOPPING=1");

    let mut system = System::start("").await;
    system.configure_minion("web1", "");
    system.spawn_minion_with("web1", &environment);
    receive(&socket, "READY=1");
    receive(&socket, "WATCHDOG=1");
    system.stop_minion("web1");
    receive(&socket, "STOPPING=1");
}

#[test]
fn each_daemon_has_a_unit() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd");
    for (name, tool) in
        [("master", "salt-master"), ("minion", "salt-minion"), ("api", "salt-api"), ("syndic", "salt-syndic")]
    {
        let unit = std::fs::read_to_string(directory.join(format!("brine-{name}.service"))).unwrap();
        for line in [
            "Type=notify",
            "NotifyAccess=main",
            &format!("ExecStart=/usr/bin/brine {name}"),
            &format!("Conflicts={tool}.service"),
            "Restart=on-failure",
        ] {
            assert!(
                unit.lines().any(|other| other == line || other.starts_with(&format!("{line} --pid-file="))),
                "brine-{name}.service has no line {line}"
            );
        }
    }
}

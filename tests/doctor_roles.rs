//! `brine doctor` on hosts with a REST API and a syndic, and where nothing answers.

use crate::doctor::{add, field, is_root, report, restore, signal, with_roots};
use crate::support::syndic::{Syndic, below};
use crate::support::{self, BRINE, System, stderr, stdout, within_limit};

#[tokio::test(flavor = "multi_thread")]
async fn the_api_and_the_syndic_are_examined() {
    let upper = with_roots(System::start("order_masters: True\n").await);
    let port = support::free_port();
    let section = format!(
        "rest_cherrypy: {{port: {port}, host: 127.0.0.1, disable_ssl: True}}\nnetapi_enable_clients: [local]\n\
         external_auth: {{file: {{^filename: ROOT/users, bob: [test.ping]}}}}\napi_pidfile: ROOT/api.pid\n\
         api_logfile: ROOT/api-file.log\n"
    );
    let mut system = with_roots(below(&[upper.ret_port], &section));
    system.write("users", "bob:one\n");
    system.start_master().await;
    let etc = system.path("etc");
    let of = |role: &str| {
        let (findings, _) = report(&etc, &[&format!("--{role}")]);
        let kinds = field(&findings, "kind");
        assert!(field(&findings, "role").iter().all(|one| one == role), "{findings}");
        kinds.first().cloned().unwrap_or_default()
    };
    // Both are configured and do not run.
    let roles = report(&etc, &[]).0.get("roles").map(ToString::to_string);
    assert_eq!(roles.as_deref(), Some("['master', 'api', 'syndic']"));
    assert_eq!((of("api"), of("syndic")), ("daemon-down".into(), "daemon-down".into()));
    let mut api = support::api::serve(&system).await;
    let mut syndic = Syndic::start(&system, "s1").await;
    support::until("the API and the syndic are healthy", || of("api").is_empty() && of("syndic").is_empty()).await;
    let changed = |text: &str, role: &str| {
        add(&system, text);
        let kinds = of(role);
        restore(&system);
        kinds
    };
    // The API: its port, its options, its PID file, its process.
    let closed = support::free_port();
    assert_eq!(
        changed(&format!("rest_cherrypy: {{port: {closed}, host: 127.0.0.1, disable_ssl: True}}\n"), "api"),
        "port-closed"
    );
    assert_eq!(changed("rest_cherrypy: {port: many}\n", "api"), "config-refused");
    assert_eq!(changed("rest_cherrypy: {prot: 1}\n", "api"), "config-warning");
    signal(api.id(), "-STOP");
    assert_eq!(of("api"), "daemon-stopped");
    signal(api.id(), "-CONT");
    api.kill().unwrap();
    api.wait().unwrap();
    assert_eq!(of("api"), "daemon-down");
    let (findings, _) = report(&etc, &["--api", "--fix"]);
    assert!(!field(&findings, "kind").contains(&"pid-stale".to_owned()), "{findings}");
    let held = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    assert_eq!(of("api"), "port-taken");
    drop(held);
    // The syndic: the masters above, its process.
    assert_eq!(changed("syndic_master: no-such-host.invalid\n", "syndic"), "name-unresolved");
    assert_eq!(changed(&format!("syndic_master: '127.0.0.1:{closed}'\n"), "syndic"), "master-unreachable");
    assert_eq!(changed("syndic_mode: other\n", "syndic"), "config-refused");
    syndic.kill();
    assert_eq!(of("syndic"), "daemon-down");
}

/// A name server, a master and an API that accept and say nothing: the doctor ends all the same.
#[test]
fn nothing_that_is_silent_holds_up_the_doctor() {
    if !is_root() {
        return;
    }
    let system = with_roots(System::new(""));
    let names = std::net::UdpSocket::bind("127.0.0.77:53");
    let Ok(_names) = names else { return };
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    system.write("resolv.conf", "nameserver 127.0.0.77\n");
    system.write("nsswitch.conf", "passwd: files\ngroup: files\nhosts: dns\n");
    let options = "root_dir: ROOT\nacceptance_wait_time: 1\n";
    system.write("etc/minion", &format!("id: m1\nmaster: ['127.0.0.1:{port}', 'master.example.com']\n{options}"));
    system.write(
        "etc/master.d/silent.conf",
        &format!("syndic_master: ['above.example.com', '127.0.0.1:{port}']\nret_port: {port}\n"),
    );
    let root = system.path("");
    let script = format!(
        "mount --bind {0}/resolv.conf /etc/resolv.conf && mount --bind {0}/nsswitch.conf /etc/nsswitch.conf && \
         exec {BRINE} doctor --json -c {0}/etc",
        root.display()
    );
    let begun = std::time::Instant::now();
    let output = within_limit("unshare").args(["-m", "sh", "-c", &script]).output().unwrap();
    let text = stdout(&output);
    let report = brine_value::json::from_json(&text).unwrap_or_else(|_| panic!("{text}{}", stderr(&output)));
    assert!(begun.elapsed() < std::time::Duration::from_secs(30), "{:?}: {report}", begun.elapsed());
    let kinds = field(&report, "kind");
    assert!(kinds.contains(&"name-unresolved".to_owned()) && kinds.contains(&"port-taken".to_owned()), "{kinds:?}");
}

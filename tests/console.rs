//! The console in Chromium, with a real master, two minions and the API: each view once, and hostile data.

use crate::support;

use std::process::{Child, Command, Stdio};

use crate::support::browser::{Browser, LOGIN, PASSWORD, click, enter, log_in, show_view, wait_for_text};
use crate::support::{BRINE, System, free_port, stdout, until};

const CONFIG: &str = "auto_accept: False
plan_approval: True
reactor:
  - 'go/*': [ROOT/go.sls]
  - 'bad/*': [ROOT/bad.sls]
";

const FILES: [(&str, &str); 5] = [
    ("go.sls", "ping:\n  local.test.ping: [{tgt: '*'}]\n"),
    ("bad.sls", "wrong:\n  runner.no.such: []\n"),
    ("srv/salt/motd.sls", "ROOT/motd:\n  file.managed:\n    - contents: |\n        one\n        three\n"),
    ("srv/salt/broken.sls", "it_fails:\n  test.fail_without_changes: []\n"),
    ("motd", "one\ntwo\n"),
];

/// The API process, killed on drop.
struct Api(Child);

impl Drop for Api {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Starts a master with the minions m1 and m2, and the API. Returns the address.
async fn start() -> (System, Api, String) {
    let port = free_port();
    let mut system = System::new(&format!("{CONFIG}{LOGIN}").replace("PORT", &port.to_string()));
    for (name, text) in FILES {
        system.write(name, text);
    }
    system.start_master().await;
    for id in ["m1", "m2"] {
        let mut keys = system.events("salt/auth").await;
        let mut started = system.events("salt/minion/").await;
        system.configure_minion(id, "");
        system.spawn_minion(id);
        keys.until("salt/auth").await;
        system.tool_async("salt-key", &["-y", "-a", id]).await;
        started.until(&format!("salt/minion/{id}/start")).await;
    }
    let log = std::fs::File::create(system.path("api.log")).unwrap();
    let mut child = Command::new(BRINE)
        .args(["salt-api", "-c", &system.etc(), "-l", "info"])
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    until("the API serves", || {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the API ended: {}",
            std::fs::read_to_string(system.path("api.log")).unwrap()
        );
        std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    })
    .await;
    (system, Api(child), format!("http://127.0.0.1:{port}/console"))
}

async fn publish(system: &System, tag: &str, data: &str) -> String {
    let mut events = system.events(tag).await;
    assert_eq!(stdout(&system.tool_async("salt-run", &["event.send", tag, data]).await).trim(), "True");
    support::text(&events.next().await.1, "_seq")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_view_works_in_a_browser() {
    let (system, _api, url) = start().await;
    let browser = Browser::start(1280);
    browser.open(&url);
    log_in(&browser, "wrong");
    wait_for_text(&browser, "Log-in failed.");
    browser.screenshot("login");
    // The wrong password is the only error so far.
    let errors = browser.errors();
    assert!(errors.iter().all(|error| error.contains("401")), "{errors:?}");
    log_in(&browser, PASSWORD);
    browser.until("document.querySelector('.view.overview .tile')");
    assert_eq!(browser.run("return document.cookie;"), "", "the cookie must be out of reach of scripts");

    // Events: live, filtered, paused, and replayed.
    show_view(&browser, "bus");
    browser.until("document.body.innerText.includes('live')");
    publish(&system, "test/first", "{n: 1, id: web1}").await;
    wait_for_text(&browser, "test/first");
    click(&browser, "button", "Pause");
    publish(&system, "test/second", "{n: 2}").await;
    assert_eq!(browser.run("return document.body.innerText.includes('test/second');"), false);
    click(&browser, "button", "Resume");
    wait_for_text(&browser, "test/second");
    enter(&browser, "Contains", "web1");
    browser.until("!document.body.innerText.includes('test/second') && document.body.innerText.includes('test/first')");
    enter(&browser, "Contains", "");
    enter(&browser, "Tag", "test/*");
    enter(&browser, "Replay from", "1");
    click(&browser, "button", "Replay");
    wait_for_text(&browser, "live, tags test/* only");
    browser.until("document.querySelectorAll('.rows .row:not([hidden])').length === 2");
    click(&browser, ".rows .row", "test/first");
    browser.until("document.querySelector('.details .key')?.innerText");
    browser.screenshot("events");

    // Minions and grains.
    show_view(&browser, "minions");
    wait_for_text(&browser, "2 of 2 minions, 2 connected");
    click(&browser, ".rows .row", "m1");
    wait_for_text(&browser, "kernelrelease");
    browser.screenshot("minions");
    enter(&browser, "Target", "m2");
    wait_for_text(&browser, "1 of 2 minions");

    // Keys: a pending one is accepted after checking its fingerprint.
    std::fs::copy(system.path("m1/pki/minion.pub"), system.path("pki/minions_pre/new1")).unwrap();
    show_view(&browser, "keys");
    wait_for_text(&browser, "3 of 3 keys, 1 pending, 0 selected");
    click(&browser, ".rows .row", "new1");
    wait_for_text(&browser, "1 selected");
    click(&browser, "button", "Accept");
    browser.until("/^([0-9a-f]{2}:){31}[0-9a-f]{2}$/.test(document.querySelector('dialog code')?.innerText)");
    browser.screenshot("keys");
    click(&browser, "dialog button", "Cancel");
    browser.until("!document.querySelector('dialog')");
    assert!(system.path("pki/minions_pre/new1").exists());
    click(&browser, "button", "Accept");
    click(&browser, "dialog button", "Accept 1 key");
    wait_for_text(&browser, "1 key accepted.");
    wait_for_text(&browser, "3 of 3 keys, 0 pending");
    assert!(system.path("pki/minions/new1").exists());
    // The list is drawn one frame after the numbers.
    browser.until("[...document.querySelectorAll('.rows .row')].some((row) => /new1\\s+accepted/.test(row.innerText))");
    click(&browser, ".rows .row", "new1");
    wait_for_text(&browser, "1 selected");
    click(&browser, "button", "Delete");
    click(&browser, "dialog button", "Delete 1 key");
    wait_for_text(&browser, "2 of 2 keys");
    assert!(system.path("pki/minions/m1").exists() && !system.path("pki/minions/new1").exists());

    // Run: the preview, the progress and the results.
    show_view(&browser, "run");
    wait_for_text(&browser, "2 minions match.");
    enter(&browser, "Target", "m1");
    wait_for_text(&browser, "1 minion matches.");
    enter(&browser, "Function", "state.apply");
    enter(&browser, "Arguments", "motd");
    click(&browser, "form button", "Run");
    wait_for_text(&browser, "1 done, 0 failed, 0 waiting of 1 minion");
    browser.until("document.querySelector('.added')?.innerText.includes('+three')");
    browser.until("document.querySelector('.removed')?.innerText.includes('-two')");
    browser.screenshot("run");
    enter(&browser, "Target", "*");
    wait_for_text(&browser, "2 minions match.");
    enter(&browser, "Arguments", "broken");
    click(&browser, "form button", "Run");
    click(&browser, "dialog button", "Run on 2 minions");
    wait_for_text(&browser, "0 done, 2 failed, 0 waiting of 2 minions");

    // Jobs: filters, one job, and running it again.
    show_view(&browser, "jobs");
    wait_for_text(&browser, "state.apply broken");
    enter(&browser, "Function", "test.*");
    click(&browser, "form button", "Search");
    browser.until("!document.body.innerText.includes('state.apply broken')");
    enter(&browser, "Function", "state.*");
    click(&browser, "form button", "Search");
    browser.screenshot("jobs");
    click(&browser, ".rows .row", "state.apply broken");
    wait_for_text(&browser, "0 done, 2 failed, 0 missing of 2 minions");
    // Equal returns are a group.
    wait_for_text(&browser, "Equal returns (1)");
    click(&browser, ".rows .row", "2 ×");
    wait_for_text(&browser, "2 minions: failed");
    click(&browser, ".segments button", "Each minion (2)");
    click(&browser, ".rows .row", "m2");
    wait_for_text(&browser, "it_fails");
    browser.screenshot("job");
    click(&browser, "button", "Run again on failed (2)");
    click(&browser, "dialog button", "Run on 2 minions");
    wait_for_text(&browser, "0 done, 2 failed, 0 waiting of 2 minions");

    // Plans: what would change as groups, approved by another user than the one who made it.
    system.write("srv/salt/planned.sls", "ROOT/planned:\n  file.managed:\n    - contents: one\n");
    let path = system.path("plan.brine").display().to_string();
    let planned = system.tool_async("salt", &["m*", "state.apply", "planned", &format!("--plan={path}")]).await;
    assert!(planned.status.success(), "{}", stdout(&planned));
    show_view(&browser, "plans");
    wait_for_text(&browser, "2 minions in 1 way");
    wait_for_text(&browser, "waits for an approval");
    browser.run("document.querySelector('.plans td a').click();");
    wait_for_text(&browser, "2 minions: 1 state: m1, m2");
    browser.screenshot("plan");
    click(&browser, "button", "Approve");
    wait_for_text(&browser, "2 minions may then be changed in exactly 1 way, once.");
    click(&browser, "dialog button", "Approve");
    wait_for_text(&browser, "approved by ");

    // Causes: from the event to the returns.
    let mut returns = system.events("salt/job/").await;
    let seq = publish(&system, "go/1", "{id: web1}").await;
    returns.until("salt/job/*/ret/*").await;
    returns.until("salt/job/*/ret/*").await;
    show_view(&browser, &format!("causality/{seq}"));
    for kind in ["event.asked", "entry", "reaction.done", "return.done"] {
        browser.until(&format!("document.querySelector('.graph .node.{kind}')"));
    }
    // Both minions returned the same.
    wait_for_text(&browser, "2 minions: done");
    browser.screenshot("causes");

    // Reactor: entries, dead letters, and dry runs.
    let mut errors_of_reactor = system.events("salt/reactor/error").await;
    let bad = publish(&system, "bad/1", "{}").await;
    errors_of_reactor.next().await;
    show_view(&browser, &format!("reactor?seq={seq}"));
    wait_for_text(&browser, "go/*");
    wait_for_text(&browser, "Dead letters (1)");
    wait_for_text(&browser, "'no.such' is not available");
    enter(&browser, "SLS file", &system.path("go.sls").display().to_string());
    browser.run("document.querySelector('section form').requestSubmit();");
    wait_for_text(&browser, "Event go/1: 1 reaction");
    wait_for_text(&browser, "local.test.ping: [{tgt: '*'}]");
    browser.screenshot("reactor");
    enter(&browser, "SLS file", "/etc/shadow");
    browser.run("document.querySelector('section form').requestSubmit();");
    wait_for_text(&browser, "sls is invalid: expected a salt:// path");
    enter(&browser, "Sequence number of the event", &bad);
    click(&browser, "button", "All entries for this event");
    wait_for_text(&browser, "Event bad/1: 0 reactions");

    // Keyboard, theme, a narrow window, and the logout.
    browser.run("document.activeElement.blur();");
    browser.press("gm");
    browser.until("document.querySelector('.view.minions') && document.querySelector('nav a[aria-current]').innerText === 'Minions'");
    browser.press("?");
    browser.until("document.querySelector('dialog')?.innerText.includes('Keyboard shortcuts')");
    browser.press("\u{e00c}");
    browser.until("!document.querySelector('dialog')");
    browser.run("document.getElementById('theme').click();");
    assert_eq!(browser.run("return document.documentElement.dataset.theme;"), "light");
    let wide = browser.errors();
    assert!(wide.iter().all(|error| error.contains("status of 4") || error.contains("status of 5")), "{wide:?}");
    browser.emulate(390, 844);
    for view in ["overview", "bus", "minions", "keys", "run", "jobs", "causality", "reactor"] {
        show_view(&browser, view);
        browser.until("document.documentElement.scrollWidth <= innerWidth");
        browser.screenshot(&format!("narrow_{view}"));
    }
    click(&browser, "button", "Log out");
    browser.until("document.querySelector('form.login')");
    let status = browser.run("return (await fetch('/keys', {headers: {accept: 'application/json'}})).status;");
    assert_eq!(status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_data_is_harmless_and_bounded() {
    let (system, _api, url) = start().await;
    let browser = Browser::start(1280);
    browser.open(&url);
    log_in(&browser, PASSWORD);
    browser.until("document.querySelector('.view.overview')");
    show_view(&browser, "bus");
    browser.until("document.body.innerText.includes('live')");
    browser
        .run("window.hacked = 0; document.addEventListener('securitypolicyviolation', () => { window.hacked += 1; });");
    let markup = "<img src=x onerror=hacked=1><script>hacked=1</script>";
    let nested = format!("{}1{}", "{a: ".repeat(90), "}".repeat(90));
    for (tag, data) in [
        ("evil/markup", format!("{{id: '{markup}', '{markup}': '{markup}'}}")),
        ("evil/control", "{id: \"\\e[31m\\u202eabc\\0\", text: \"\\r\\n\"}".to_owned()),
        ("evil/nested", format!("{{id: deep, data: {nested}}}")),
        ("evil/large", format!("{{id: large, text: '{}'}}", "x".repeat(100_000))),
    ] {
        publish(&system, tag, &data).await;
        wait_for_text(&browser, tag);
        click(&browser, ".rows .row", tag);
        browser.until(&format!("document.querySelector('.details h2')?.innerText === '{tag}'"));
    }
    click(&browser, "button", "Read it from the journal");
    wait_for_text(&browser, "Show more of");
    // Direction marks and control characters are shown as symbols.
    assert_eq!(browser.run("return /[\\u0000-\\u0008\\u001b\\u202e]/.test(document.body.innerText);"), false);

    // A minion returns the same text, and a megabyte.
    for script in [format!("echo '{markup}'"), "head -c 1000000 /dev/zero | tr '\\0' y".to_owned()] {
        let jid = stdout(&system.tool_async("salt", &["--async", "m1", "cmd.run", &script]).await);
        let jid = jid.split_whitespace().last().unwrap().to_owned();
        until("the job has returned", || {
            stdout(&system.tool("salt-run", &["jobs.exit_success", &jid])).contains("True")
        })
        .await;
        show_view(&browser, &format!("jobs/{jid}"));
        browser.until("document.querySelector('.details pre')");
        let length = browser.run("return document.querySelector('.details pre').innerText.length;");
        assert!(length.as_u64().unwrap() <= 20_000, "{length}");
    }
    assert_eq!(
        browser.run("return [window.hacked, document.querySelectorAll('img, main script').length];"),
        serde_json::json!([0, 0])
    );
}

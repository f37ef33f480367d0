//! The console in Chromium beside 1,000 minions and 100,000 events.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use crate::support::BRINE;
use crate::support::api::Api;
use crate::support::browser::{Browser, LOGIN, PASSWORD, click, enter, log_in, show_view, wait_for_text};
use brine_bus::SocketNames;
use brine_event::Event;
use brine_value::map;
use brine_zmtp::Push;

const CONFIG: &str = "api_pidfile: api.pid
api_logfile: ''
";
const MINIONS: usize = 1_000;
const EVENTS: usize = 100_000;
/// The elements of a page with long lists: only rows in view exist.
const MAX_ELEMENTS: u64 = 3_000;

/// Simulated minions, killed on drop.
struct Swarm(Child);

impl Swarm {
    fn start(api: &Api) -> Self {
        let (port, count) = (api.system.ret_port.to_string(), MINIONS.to_string());
        let mut child = Command::new(BRINE)
            .args(["swarm", "--port", &port, "--minions", &count, "--prefix", "sim", "--json", "--dir"])
            .arg(api.system.path("swarm"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with(&format!("{{\"minions\": {MINIONS},")), "{line}");
        Swarm(child)
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Asserts that the page is small, however long its lists are.
fn is_small(browser: &Browser) {
    let elements = browser.run("return document.querySelectorAll('*').length;").as_u64().unwrap();
    assert!(elements < MAX_ELEMENTS, "{elements} elements");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_minions_and_a_hundred_thousand_events_are_shown() {
    let api = Api::start(&format!("{CONFIG}{LOGIN}"), &[], &[]).await;
    let _swarm = Swarm::start(&api);
    let browser = Browser::start(1280);
    browser.open(&format!("{}/console", api.url));
    log_in(&browser, PASSWORD);

    show_view(&browser, "minions");
    wait_for_text(&browser, "1,000 of 1,000 minions, 1,000 connected");
    is_small(&browser);
    browser.screenshot("minions-1000");

    // All return to one job.
    show_view(&browser, "run");
    wait_for_text(&browser, "1,000 minions match.");
    click(&browser, "form button", "Run");
    wait_for_text(&browser, "1,000 done, 0 failed, 0 waiting of 1,000 minions");
    is_small(&browser);
    browser.screenshot("run-1000");

    // The live view keeps up with the publisher.
    show_view(&browser, "bus");
    wait_for_text(&browser, "live");
    click(&browser, "button", "Clear");
    let mut push = Push::connect(&SocketNames::master().pull_endpoint(&api.system.path("run"))).await.unwrap();
    for number in 0..EVENTS {
        let event = Event::from_map(&format!("load/{number}"), &map! {"id" => "web1", "number" => number}).unwrap();
        push.send(event.frame()).await.unwrap();
    }
    wait_for_text(&browser, "load/99999");
    let count = browser.run("return document.querySelector('.view.bus').innerText.match(/([\\d,]+) events/)[1];");
    let count: usize = count.as_str().unwrap().replace(',', "").parse().unwrap();
    assert!(count > 0 && count <= EVENTS, "{count} events");
    is_small(&browser);
    browser.screenshot("bus-100000");
    enter(&browser, "Tag", "load/4242?");
    wait_for_text(&browser, "load/42420");
    // Replay reads the journal, which contains all events.
    enter(&browser, "Replay from", "30m");
    enter(&browser, "Tag", "load/777*");
    click(&browser, "button", "Replay");
    wait_for_text(&browser, "load/77799");
    browser.until("document.querySelector('.view.bus').innerText.includes('111 events')");
    show_view(&browser, "jobs");
    wait_for_text(&browser, "test.ping");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

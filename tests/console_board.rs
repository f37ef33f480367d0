//! The console as a board for operation: what the overview counts, how its numbers lead to their lists, what a dialog
//! does when its view is left, how wide commands are confirmed; and the accessibility of all views.

use crate::support::api::Api;
use crate::support::browser::{
    Browser, LOGIN, PASSWORD, click, enter, log_in, log_in_as, open_row, show_view, wait_for_text,
};
use crate::support::{stdout, text};

const CONFIG: &str = "reactor:
  - 'go/*': [ROOT/go.sls]
  - 'bad/*': [ROOT/bad.sls]
api_pidfile: api.pid
api_logfile: ''
";
const FILES: &[(&str, &str)] = &[
    ("go.sls", "apply:\n  local.state.apply:\n    - tgt: 'm*'\n    - arg: [broken]\n"),
    ("bad.sls", "wrong:\n  runner.no.such: []\n"),
    ("srv/salt/top.sls", "base:\n  '*': [broken]\n"),
    (
        "srv/salt/broken.sls",
        "it_fails:\n  test.fail_without_changes:\n    - name: the reason\nit_works:\n  test.nop: []\n",
    ),
];
const VIEWS: [&str; 8] = ["overview", "bus", "minions", "keys", "run", "jobs", "causality", "reactor"];

async fn start() -> (Api, Browser) {
    let api = Api::start(&format!("{CONFIG}{LOGIN}"), FILES, &["m1", "m2", "m10"]).await;
    let browser = Browser::start(1400);
    browser.open(&format!("{}/console", api.url));
    (api, browser)
}

async fn publish(api: &Api, tag: &str) -> String {
    let mut events = api.system.events(tag).await;
    assert_eq!(stdout(&api.system.tool_async("salt-run", &["event.send", tag, "{id: m1}"]).await).trim(), "True");
    text(&events.next().await.1, "_seq")
}

/// Runs a highstate that fails on all minions, and reactions that succeed and fail. Returns the id of the reaction's
/// job and the number of the event.
async fn fail(api: &Api) -> (String, String) {
    _ = api.system.tool_async("salt", &["*", "state.highstate"]).await;
    let mut errors = api.system.events("salt/reactor/error").await;
    publish(api, "bad/1").await;
    errors.next().await;
    let mut returns = api.system.events("salt/job/").await;
    let seq = publish(api, "go/1").await;
    let (mut jid, mut left) = (String::new(), 3);
    while left > 0 {
        let (tag, data) = returns.next().await;
        if tag.contains("/ret/") && text(&data, "fun") == "state.apply" {
            (jid, left) = (text(&data, "jid"), left - 1);
        }
    }
    (jid, seq)
}

/// Returns the number of a tile of the overview, once it is this one.
fn tile(browser: &Browser, label: &str, figure: &str) {
    browser.until(&format!(
        "[...document.querySelectorAll('.tile')].some((one) => one.querySelector('.label').innerText === {label:?} && \
         one.querySelector('.figure').innerText === {figure:?})"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cause_of_a_failure_is_five_clicks_away() {
    let (api, browser) = start().await;
    let (jid, _) = fail(&api).await;
    // The only configured system needs no choice.
    browser.until("document.querySelector('form.login') && !document.querySelector('form.login select').offsetParent");
    log_in(&browser, PASSWORD);
    for (label, figure) in [
        ("Minions up", "3"),
        ("Down", "0"),
        ("Never seen", "0"),
        ("Pending keys", "0"),
        ("Failed jobs", "2"),
        ("Failing states", "1"),
        ("Dead letters", "1"),
    ] {
        tile(&browser, label, figure);
    }
    // A failing state leads to the return of a minion with it.
    click(&browser, ".items a", "it_fails");
    wait_for_text(&browser, "Failure!");
    browser.until("document.querySelector('.details .states .failed')");
    // A number leads to its list, whose filters are in the address.
    show_view(&browser, "overview");
    click(&browser, ".tile", "Failed jobs");
    browser.until("location.hash === '#/jobs?outcome=failed'");
    browser.until("[...document.querySelectorAll('.rows .row')].filter((row) => !row.hidden && row.innerText.includes('3 of 3 failed')).length === 2");
    show_view(&browser, "overview");
    click(&browser, ".tile", "Dead letters");
    wait_for_text(&browser, "Dead letters (1)");
    // The graph of the job's causes has its returns and the state that failed, in red up to the first event.
    show_view(&browser, &format!("causality/{jid}"));
    browser.until("document.querySelectorAll('.node.state.failed').length === 3 && document.querySelectorAll('.edge.bad').length >= 8");
    click(&browser, ".node.event", "go/1");
    browser.until("document.querySelector('.details .key')?.innerText");
}

#[tokio::test(flavor = "multi_thread")]
async fn minions_are_selected_and_commands_confirmed() {
    let (api, browser) = start().await;
    _ = api.system.tool_async("salt", &["m1", "state.highstate"]).await;
    log_in(&browser, PASSWORD);
    browser.until("document.querySelector('.view.overview .tile')");
    show_view(&browser, "minions?highstate=failed");
    wait_for_text(&browser, "1 of 3 minions, 1 connected");
    wait_for_text(&browser, "1 of 2 failed");
    show_view(&browser, "minions");
    wait_for_text(&browser, "3 of 3 minions");
    // Natural order.
    browser.until("[...document.querySelectorAll('.rows .row')].filter((row) => !row.hidden).map((row) => row.children[1].innerText).join() === 'm1,m2,m10'");
    enter(&browser, "Contains", "debian");
    browser.until("location.hash.includes('text=debian')");
    enter(&browser, "Contains", "");
    wait_for_text(&browser, "3 of 3 minions");
    // Space selects the row that the arrow keys reached.
    browser.run("document.querySelector('.list').focus();");
    browser.press("\u{e015} \u{e015} ");
    wait_for_text(&browser, "Run on 2 minions");
    click(&browser, "button", "Run on 2 minions");
    wait_for_text(&browser, "2 minions match.");
    enter(&browser, "Function", "cmd.run");
    enter(&browser, "Arguments", "'echo same'");
    wait_for_text(&browser, "Run a command, a string");
    // Offers have a line of documentation.
    let offers = |value: &str, line: &str| {
        browser.until(&format!(
            "[...document.querySelectorAll('datalist option')].some((one) => one.value === '{value}' && one.label.includes('{line}'))"
        ));
    };
    enter(&browser, "Function", "cmd.ru");
    offers("cmd.run", "Run a command, a string");
    enter(&browser, "Function", "cmd.run");
    enter(&browser, "Arguments", "cw");
    offers("cwd=", "Working directory");
    enter(&browser, "Arguments", "'echo same'");
    click(&browser, "form button", "Run");
    wait_for_text(&browser, "2 done, 0 failed, 0 waiting of 2 minions");
    // Equal returns are one row.
    browser.until("[...document.querySelectorAll('.rows .row')].some((row) => !row.hidden && /2 ×\\s+done\\s+m1, m2\\s+same/.test(row.innerText))");
    // A command for all minions is confirmed; a dialog does not outlive its view, and leaving it means no.
    enter(&browser, "Kind of target", "glob");
    enter(&browser, "Target", "*");
    wait_for_text(&browser, "3 minions match.");
    click(&browser, "form button", "Run");
    wait_for_text(&browser, "Run cmd.run on 3 minions?");
    browser.run("history.back();");
    browser.until("document.querySelector('.view.minions') && !document.querySelector('dialog')");
    show_view(&browser, "jobs");
    wait_for_text(&browser, "cmd.run echo same");
    browser.until("[...document.querySelectorAll('.rows .row')].filter((row) => !row.hidden && row.innerText.includes('cmd.run')).length === 1");
    // test=True in one click, without a question.
    show_view(&browser, "run?fun=state.apply");
    wait_for_text(&browser, "3 minions match.");
    click(&browser, "button", "Run with test=True");
    wait_for_text(&browser, "of 3 minions");
    browser.until("document.querySelector('.view.run').innerText.includes('0 waiting')");
    wait_for_text(&browser, "History (");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_filtered_by_values_and_linked() {
    let (api, browser) = start().await;
    log_in(&browser, PASSWORD);
    browser.until("document.querySelector('.view.overview .tile')");
    let seq = publish(&api, "test/linked").await;
    publish(&api, "test/later").await;
    // The view begins with the last minutes, and without the calls of the console.
    show_view(&browser, "bus");
    wait_for_text(&browser, "test/linked");
    browser.until("!document.querySelector('.list').innerText.includes('fleet.')");
    open_row(&browser, "test/later");
    browser.until("document.querySelector('.details .key')?.innerText");
    click(&browser, ".details button[aria-label=\"Filter by id m1\"]", "filter");
    wait_for_text(&browser, "id = m1");
    browser.until("[...document.querySelectorAll('.rows .row')].filter((row) => !row.hidden).every((row) => row.innerText.includes('m1'))");
    // A link opens its event.
    show_view(&browser, &format!("bus?seq={seq}"));
    browser.until("document.querySelector('.details h2')?.innerText === 'test/linked'");
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_accessible_in_both_themes_and_widths() {
    let (api, browser) = start().await;
    let (jid, seq) = fail(&api).await;
    browser.until("document.querySelector('form.login')");
    assert_eq!(browser.findings(), Vec::<String>::new());
    log_in(&browser, PASSWORD);
    browser.until("document.querySelector('.view.overview .tile')");
    let detailed = [
        format!("jobs/{jid}"),
        format!("jobs/{jid}?minion=m1"),
        format!("causality/{seq}"),
        format!("reactor?seq={seq}"),
        format!("bus?seq={seq}"),
        "minions/m1".to_owned(),
    ];
    for (width, height) in [(1400, 900), (390, 844)] {
        browser.emulate(width, height);
        for theme in ["light", "dark"] {
            browser.run(&format!("document.documentElement.dataset.theme = '{theme}';"));
            for view in VIEWS.iter().map(ToString::to_string).chain(detailed.clone()) {
                show_view(&browser, &view);
                browser.until("!/Loading…|^loading/m.test(document.querySelector('main').innerText)");
                browser.until("document.documentElement.scrollWidth <= innerWidth");
                // Lists are drawn in the next frame.
                browser.run(
                    "await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));",
                );
                assert_eq!(browser.findings(), Vec::<String>::new(), "{view} {width} {theme}");
                browser.screenshot(&format!("{}-{width}-{theme}", view.replace(['/', '?', '='], "_")));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_see_what_they_may_call_and_nothing_else() {
    let (_api, browser) = start().await;
    log_in_as(&browser, "guest", PASSWORD);
    wait_for_text(&browser, "not permitted: fleet.overview (client runner)");
    assert_eq!(browser.run("return document.querySelectorAll('.tile').length;"), 0);
    for (view, denied) in [("minions", "fleet.minions"), ("jobs", "fleet.jobs"), ("keys", "key.list_all")] {
        show_view(&browser, view);
        wait_for_text(&browser, &format!("not permitted: {denied}"));
        wait_for_text(&browser, "not available");
        assert_eq!(browser.run("return document.querySelectorAll('.rows .row:not([hidden])').length;"), 0);
    }
    show_view(&browser, "run");
    wait_for_text(&browser, "No preview: not permitted");
    click(&browser, "form button", "Run");
    wait_for_text(&browser, "3 done, 0 failed, 0 waiting of 3 minions");
}

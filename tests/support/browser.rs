//! Chromium for tests, driven over WebDriver's HTTP, and the elements of the console.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// The timeout of a condition in a page, in milliseconds.
const TIMEOUT_MS: u64 = 60_000;

/// A browser with one page, closed on drop.
pub struct Browser {
    driver: Child,
    session: String,
    agent: ureq::Agent,
    directory: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser with a window of this width.
    pub fn start(width: u32) -> Self {
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--allowed-ips=127.0.0.1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is missing: run the tests by tests/run, which installs it");
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            line.split_once("successfully on port ").map(|(_, port)| port.trim_end_matches('.').to_owned())
        });
        let port = port.expect("chromedriver did not start");
        #[allow(clippy::disallowed_methods)] // A driver on this host.
        let config =
            ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(Duration::from_secs(120)));
        let agent = ureq::Agent::new_with_config(config.build());
        let directory = tempfile::tempdir().unwrap();
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-background-networking".to_owned(),
            format!("--window-size={width},900"),
            format!("--user-data-dir={}", directory.path().display()),
        ];
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "acceptInsecureCerts": true,
            "timeouts": {"script": TIMEOUT_MS + 30_000, "pageLoad": TIMEOUT_MS},
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let mut browser = Browser { driver, session: format!("http://127.0.0.1:{port}/session"), agent, directory };
        let created = browser.command("", &capabilities);
        browser.session = format!("{}/{}", browser.session, created["sessionId"].as_str().unwrap());
        browser
    }

    fn command(&self, path: &str, body: &Value) -> Value {
        let mut response = self
            .agent
            .post(format!("{}{path}", self.session))
            .header("content-type", "application/json")
            .send(serde_json::to_vec(body).unwrap())
            .unwrap();
        let text = response.body_mut().read_to_string().unwrap();
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert!(response.status().is_success(), "{path}: {text}");
        answer["value"].clone()
    }

    /// Opens an address.
    pub fn open(&self, url: &str) {
        self.command("/url", &json!({"url": url}));
    }

    /// Runs the body of an asynchronous function in the page and returns its result.
    pub fn run(&self, script: &str) -> Value {
        let whole = format!(
            "const done = arguments[0]; (async () => {{ {script} }})().then((value) => done({{value}}), (error) => \
             done({{error: `${{error}}\\n${{document.body.innerText.slice(0, 3000)}}`}}));"
        );
        let answer = self.command("/execute/async", &json!({"script": whole, "args": []}));
        assert!(answer["error"].is_null(), "{script}\n{}", answer["error"].as_str().unwrap_or_default());
        answer["value"].clone()
    }

    /// Waits until an expression holds in the page, and returns its value.
    pub fn until(&self, expression: &str) -> Value {
        self.run(&format!(
            "const end = performance.now() + {TIMEOUT_MS}; for (;;) {{ const value = {expression}; if (value) return value; \
             if (performance.now() > end) throw new Error('timed out waiting for the condition'); \
             await new Promise((resolve) => setTimeout(resolve, 20)); }}"
        ))
    }

    /// Presses keys, as a user does.
    pub fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})])
            .collect();
        self.command("/actions", &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}));
    }

    /// Returns the errors that the page has logged since the last call, such as violations of its policy.
    pub fn errors(&self) -> Vec<String> {
        let entries = self.command("/se/log", &json!({"type": "browser"}));
        let severe = entries.as_array().unwrap().iter().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Stores a screenshot of the page below this path without extension, if `BRINE_SHOTS` names a directory.
    pub fn screenshot(&self, name: &str) {
        use base64::Engine as _;
        let Ok(directory) = std::env::var("BRINE_SHOTS") else { return };
        let response = self.agent.get(format!("{}/screenshot", self.session)).call().unwrap();
        let answer: Value = serde_json::from_reader(response.into_body().into_reader()).unwrap();
        let picture = base64::engine::general_purpose::STANDARD.decode(answer["value"].as_str().unwrap()).unwrap();
        std::fs::write(std::path::Path::new(&directory).join(format!("{name}.png")), picture).unwrap();
    }

    /// Returns the findings of axe-core about the accessibility of the page.
    pub fn findings(&self) -> Vec<String> {
        let target = std::env::var("CARGO_TARGET_DIR")
            .map_or_else(|_| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), std::path::PathBuf::from);
        let program = target.join("test-node/node_modules/axe-core/axe.min.js");
        let program = std::fs::read_to_string(program).expect("axe-core is missing: tests/run installs it");
        if self.run("return Boolean(window.axe);") == false {
            self.command("/execute/sync", &json!({"script": program, "args": []}));
        }
        let violations = self.run(
            "await Promise.all(document.getAnimations().map(({ finished }) => finished.catch(() => {}))); \
             const { violations } = await axe.run(); return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3)\
             .map(({ target, any }) => `${target.join(' ')} ${any[0]?.message ?? ''}`).join(' | ')}`);",
        );
        violations.as_array().unwrap().iter().map(ToString::to_string).collect()
    }

    /// Shows the page as a window of this size would, also one that is smaller than windows of this browser can be.
    pub fn emulate(&self, width: u32, height: u32) {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let command = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": params});
        self.command("/goog/cdp/execute", &command);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        _ = self.agent.delete(&self.session).call();
        _ = self.driver.kill();
        _ = self.driver.wait();
        _ = self.directory.path();
    }
}

/// The password of the user admin.
pub const PASSWORD: &str = "0123456789abcdef";
/// The options of a master on whose console the users admin and guest log in; `PORT` is replaced by the port of the console.
pub const LOGIN: &str = "sharedsecret: 0123456789abcdef
external_auth:
  sharedsecret:
    admin: ['.*', '@runner', '@wheel', '@jobs']
    guest: ['test.*']
netapi_enable_clients: [local, local_async, runner, wheel]
rest_cherrypy: {port: PORT, host: 127.0.0.1, disable_ssl: True}
";

/// Logs in to the console as the user admin of sharedsecret.
pub fn log_in(browser: &Browser, password: &str) {
    log_in_as(browser, "admin", password);
}

/// Logs in to the console as a user of sharedsecret: admin, or guest, who may only call `test.*`.
pub fn log_in_as(browser: &Browser, user: &str, password: &str) {
    browser.until("document.querySelector('form.login')");
    browser.run(&format!(
        "const form = document.querySelector('form.login'); form.elements.eauth.value = 'sharedsecret'; \
         form.elements.username.value = '{user}'; form.elements.password.value = '{password}'; form.requestSubmit();"
    ));
}

/// Shows a view of the console.
pub fn show_view(browser: &Browser, view: &str) {
    browser.run(&format!("location.hash = '#/{view}';"));
    browser.until(&format!("document.querySelector('.view.{}')", view.split(['/', '?']).next().unwrap()));
}

/// Clicks on the first element of a selector with this text.
pub fn click(browser: &Browser, selector: &str, text: &str) {
    browser.until(&format!(
        "(() => {{ const found = [...document.querySelectorAll('{selector}')].find((one) => !one.disabled && !one.hidden \
         && one.innerText.includes({text:?})); found?.click(); return Boolean(found); }})()"
    ));
}

/// Opens the row of a list with this text, once it has been drawn.
pub fn open_row(browser: &Browser, text: &str) {
    click(browser, ".rows .row", text);
    browser.until("document.querySelector('.details:not([hidden])')");
}

/// Waits for a text in the page.
pub fn wait_for_text(browser: &Browser, text: &str) {
    browser.until(&format!("document.body.innerText.includes({text:?})"));
}

/// Sets the value of an input by its label.
pub fn enter(browser: &Browser, label: &str, value: &str) {
    browser.until(&format!(
        "(() => {{ const label = [...document.querySelectorAll('.field label')].find((one) => one.innerText === {label:?}); \
         const input = label && document.getElementById(label.htmlFor); if (!input) return false; input.value = {value:?}; \
         input.dispatchEvent(new Event('input', {{ bubbles: true }})); input.dispatchEvent(new Event('change', {{ bubbles: true }})); \
         return true; }})()"
    ));
}

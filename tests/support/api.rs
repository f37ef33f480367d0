//! The real salt-api with a master and minions, used with curl as in its documentation.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};

use brine_value::{Value, json};

use super::{BRINE, System, free_port, stdout, until, within_limit};

/// A master with minions and the API in front of it.
pub struct Api {
    pub system: System,
    pub child: Child,
    pub url: String,
}

/// The response to a request.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Response {
    pub fn data(&self) -> Value {
        json::from_json(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// Returns the first entry of `return`.
    pub fn first(&self) -> Value {
        self.data().get("return").unwrap().as_list().unwrap()[0].clone()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

impl Api {
    /// Starts a master with this configuration, in which `PORT` is replaced by the port of the API, its minions, and
    /// the API.
    pub async fn start(config: &str, files: &[(&str, &str)], minions: &[&str]) -> Self {
        let port = free_port();
        let scheme = if config.contains("disable_ssl") { "http" } else { "https" };
        let mut system = System::new(&format!("auto_accept: True\n{}", config.replace("PORT", &port.to_string())));
        for (path, text) in files {
            system.write(path, text);
        }
        system.start_master().await;
        for id in minions {
            system.start_minion(id).await;
        }
        let child = serve(&system).await;
        Api { system, child, url: format!("{scheme}://127.0.0.1:{port}") }
    }

    /// Returns the status of a response; `None` without a response.
    pub fn curl_status(&self, path: &str) -> Option<u16> {
        let words = ["-ks", "-o", "/dev/null", "-w", "%{http_code}", &format!("{}{path}", self.url)];
        let output = within_limit("curl").args(words).output().unwrap();
        stdout(&output).parse().ok()
    }

    pub fn curl(&self, path: &str, words: &[&str]) -> Response {
        self.curl_with_input(path, words, "")
    }

    pub fn curl_with_input(&self, path: &str, words: &[&str], input: &str) -> Response {
        let url = format!("{}{path}", self.url);
        let mut child = within_limit("curl")
            .args(["-ksS", "-i", "--path-as-is", &url])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // An interim response such as 100 Continue may come first.
        let text = text.split("\r\n\r\nHTTP/1.1 ").last().unwrap().trim_start_matches("HTTP/1.1 ").to_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no response to {path}: {text}"));
        let status = head.split(' ').next().unwrap().parse().unwrap();
        Response { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Logs in and returns the session.
    pub fn login(&self, user: &str, password: &str) -> String {
        let words = ["-d", &format!("username={user}"), "-d", &format!("password={password}"), "-d", "eauth=file"];
        let response = self.curl("/login", &words);
        assert_eq!(response.status, 200, "{response:?}");
        response.header("x-auth-token").unwrap().to_owned()
    }

    pub fn post(&self, path: &str, token: &str, body: &Value) -> Response {
        let header = format!("X-Auth-Token: {token}");
        let words = ["-H", &header, "-H", "Content-Type: application/json", "-d", &json::to_json(body)];
        self.curl(path, &words)
    }

    pub fn get(&self, path: &str, token: &str) -> Response {
        self.curl(path, &["-H", &format!("X-Auth-Token: {token}")])
    }
}

/// Starts salt-api and waits until it serves.
pub async fn serve(system: &System) -> Child {
    let log = std::fs::File::options().create(true).append(true).open(system.path("api.log")).unwrap();
    let mut child = Command::new(BRINE)
        .args(["salt-api", "-c", &system.etc(), "-l", "info"])
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    let file = system.path("api.pid");
    let log = system.path("api.log");
    let pid = child.id().to_string();
    until("the API serves", || {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none(), "{}", std::fs::read_to_string(&log).unwrap());
        std::fs::read_to_string(&file).is_ok_and(|text| text.trim() == pid)
    })
    .await;
    child
}

impl Drop for Api {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- api\n{}", std::fs::read_to_string(self.system.path("api.log")).unwrap_or_default());
        }
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Returns a list or mapping sorted by its items' text.
pub fn sorted(value: Value) -> Value {
    match value {
        Value::List(mut all) => {
            all.sort_by_key(ToString::to_string);
            all.into()
        }
        other => json::sorted(&other),
    }
}

/// Publishes an event with salt-run.
pub fn fire(api: &Api, tag: &str) {
    let sent = api.system.tool("salt-run", &["event.send", tag, "{a: 1}"]);
    assert!(sent.status.success(), "{}", super::stderr(&sent));
}

//! `brine lsp`: the real program, and a small client of the protocol.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::BRINE;

mod editors;

/// A client of one server.
struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    root: String,
    last_id: i64,
    /// What the server sent by itself.
    told: Vec<Value>,
    /// Dropped with the client: the watch over a server that does not answer ends.
    _watched: Sender<()>,
}

/// The time for a whole session: a server that is silent that long is killed, so that its test fails and does not wait.
const SESSION: Duration = Duration::from_secs(180);

/// Kills a process after the time for a session, unless the returned end is dropped before.
fn watch(process: u32) -> Sender<()> {
    let (watched, end) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        if end.recv_timeout(SESSION) == Err(RecvTimeoutError::Timeout) {
            _ = Command::new("kill").args(["-9", &process.to_string()]).status();
        }
    });
    watched
}

impl Client {
    /// Starts a server for a directory, and shakes hands with it.
    fn start(program: &str, directory: &Path) -> Self {
        let mut server = Command::new(program).arg("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (server.stdin.take(), BufReader::new(server.stdout.take().unwrap()));
        let root = format!("file://{}", directory.display());
        let watched = watch(server.id());
        let mut client = Client { server, input, output, root, last_id: 0, told: Vec::new(), _watched: watched };
        let folders = json!([{"uri": client.root, "name": "tree"}]);
        let capabilities = json!({"general": {"positionEncodings": ["utf-16"]}});
        let answer = client.ask("initialize", json!({"capabilities": capabilities, "workspaceFolders": folders}));
        assert_eq!(answer["serverInfo"]["name"], "brine", "{answer}");
        client.tell("initialized", json!({}));
        client
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let input = self.input.as_mut().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        input.flush().unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the server has gone");
            match line.trim().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Returns the result of a request, or its error.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.receive();
            if message["id"] == id && message.get("method").is_none() {
                return message.get("result").or(message.get("error")).cloned().unwrap_or_default();
            }
            self.told.push(message);
        }
    }

    fn uri(&self, path: &str) -> String {
        format!("{}/{path}", self.root)
    }

    /// Opens a file with a text.
    fn open(&mut self, path: &str, text: &str) {
        let document = json!({"uri": self.uri(path), "languageId": "sls", "version": 1, "text": text});
        self.tell("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Returns the codes of the next findings of a file.
    fn findings(&mut self, path: &str) -> Vec<String> {
        let uri = self.uri(path);
        loop {
            let is_it = |message: &Value| {
                message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri.as_str()
            };
            if let Some(at) = self.told.iter().position(is_it) {
                let message = self.told.remove(at);
                let diagnostics = message["params"]["diagnostics"].as_array().unwrap();
                return diagnostics.iter().map(|one| one["code"].as_str().unwrap().to_owned()).collect();
            }
            let message = self.receive();
            self.told.push(message);
        }
    }

    /// Asks something about a place of a file.
    fn at(&mut self, method: &str, path: &str, (line, character): (u32, u32), further: &Value) -> Value {
        let mut params = json!({"textDocument": {"uri": self.uri(path)},
            "position": {"line": line, "character": character}});
        params.as_object_mut().unwrap().extend(further.as_object().cloned().unwrap_or_default());
        self.ask(&format!("textDocument/{method}"), params)
    }

    /// Ends the session, and returns the exit status.
    fn end(mut self) -> Option<i32> {
        self.ask("shutdown", Value::Null);
        self.tell("exit", Value::Null);
        self.server.wait().unwrap().code()
    }
}

/// Writes files below a directory.
fn write(directory: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

const WEB: &str = "{% from 'web/map.jinja' import port %}\ninclude:\n  - db\nnginx:\n  pkg.installed: []\n/etc/web:\n  \
                   file.managed:\n    - source: salt://web/files/web.conf\n    - require:\n      - pkg: nginx\n      - service: \
                   database\n    - context:\n        port: {{ pillar['web']['port'] }}{{ port | upper }}\n";

const TREE: &[(&str, &str)] = &[
    ("salt/top.sls", "base:\n  '*':\n    - web\n"),
    ("salt/web/init.sls", WEB),
    ("salt/web/map.jinja", "{% set port = 80 %}\n"),
    ("salt/web/files/web.conf", "x"),
    ("salt/db.sls", "database:\n  service.running: []\n"),
    ("pillar/top.sls", "base:\n  '*':\n    - web\n"),
    ("pillar/web.sls", "web:\n  port: 8080\n"),
];

#[test]
fn an_editor_is_served_over_a_tree() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), TREE);
    let mut client = Client::start(BRINE, directory.path());
    let none = Value::Null;
    let web = "salt/web/init.sls";
    // Findings while typing, also of what another document changes.
    client.open(web, WEB);
    assert_eq!(client.findings(web), Vec::<String>::new());
    client.open("salt/db.sls", "database:\n  service.runing: []\n");
    assert_eq!(client.findings("salt/db.sls"), ["B201"]);
    let change = json!([{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 18}},
        "text": "base:\n  service.running: "}]);
    let uri = client.uri("salt/db.sls");
    client
        .tell("textDocument/didChange", json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": change}));
    assert_eq!(client.findings("salt/db.sls"), Vec::<String>::new());
    // Findings that a later change outdates may be left out, so their number is not known.
    while client.findings(web) != ["B301"] {}
    client.tell("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    while client.findings(web) != Vec::<String>::new() {}
    // Places.
    let defined = client.at("definition", web, (9, 14), &none);
    assert_eq!((&defined[0]["uri"], &defined[0]["range"]["start"]["line"]), (&json!(client.uri(web)), &json!(3)));
    let defined = client.at("definition", web, (7, 20), &none);
    assert_eq!(defined[0]["uri"], client.uri("salt/web/files/web.conf"));
    let with = json!({"context": {"includeDeclaration": true}});
    let used = client.at("references", "pillar/web.sls", (1, 3), &with);
    assert_eq!(used.as_array().unwrap().len(), 2, "{used}");
    let same = client.at("documentHighlight", web, (9, 14), &none);
    assert_eq!(same.as_array().unwrap().len(), 2, "{same}");
    // Documentation.
    for (place, expected) in [((6, 5), "file.managed("), ((12, 33), "8080"), ((12, 52), "upper"), ((8, 7), "succeeded")]
    {
        let hover = client.at("hover", web, place, &none);
        assert!(hover["contents"]["value"].as_str().unwrap_or_default().contains(expected), "{expected}: {hover}");
    }
    // Completion.
    client.open("salt/new.sls", "a:\n  file.man\n");
    let completions = client.at("completion", "salt/new.sls", (1, 10), &none);
    let item =
        completions["items"].as_array().unwrap().iter().find(|item| item["label"] == "file.managed").unwrap().clone();
    assert_eq!(item["textEdit"]["newText"], "file.managed:");
    let item = client.ask("completionItem/resolve", item);
    assert!(item["documentation"]["value"].as_str().unwrap().contains("file.managed("), "{item}");
    // The shape of files.
    let outline = client.at("documentSymbol", web, (0, 0), &none);
    assert_eq!((&outline[0]["name"], &outline[1]["name"]), (&json!("nginx"), &json!("/etc/web")));
    let folds = client.at("foldingRange", web, (0, 0), &none);
    assert!(folds.as_array().unwrap().iter().any(|fold| fold["startLine"] == 6 && fold["endLine"] == 12), "{folds}");
    let tokens = client.at("semanticTokens/full", web, (0, 0), &none);
    assert!(tokens["data"].as_array().unwrap().len() > 100, "{tokens}");
    let symbols = client.ask("workspace/symbol", json!({"query": "nginx"}));
    assert_eq!(symbols[0]["name"], "nginx");
    // Changes.
    client.open("salt/loose.sls", "a:\n  cmd.run:   []  \n");
    let options = json!({"options": {"tabSize": 2, "insertSpaces": true}});
    let edits = client.at("formatting", "salt/loose.sls", (0, 0), &options);
    assert_eq!(edits[0]["newText"], "  cmd.run: []\n", "{edits}");
    let range = json!({"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 20}});
    let context = json!({"range": range, "context": {"diagnostics": []}});
    let actions = client.at("codeAction", "salt/loose.sls", (0, 0), &context);
    assert!(actions.as_array().unwrap().iter().any(|action| action["kind"] == "quickfix"), "{actions}");
    let prepared = client.at("prepareRename", web, (3, 1), &none);
    assert_eq!(prepared["placeholder"], "nginx");
    let renamed = client.at("rename", web, (3, 1), &json!({"newName": "proxy"}));
    assert_eq!(renamed["changes"][client.uri(web)].as_array().unwrap().len(), 3, "{renamed}");
    let renamed = client.at("rename", "pillar/web.sls", (1, 3), &json!({"newName": "listen"}));
    assert_eq!(renamed["changes"].as_object().unwrap().len(), 2, "{renamed}");
    // What is asked wrongly.
    assert_eq!(client.ask("textDocument/moniker", json!({}))["code"], -32601);
    assert_eq!(client.ask("textDocument/hover", json!({}))["code"], -32602);
    assert_eq!(client.end(), Some(0));
    assert!(!directory.path().join("brine-was-here").exists());
}

#[test]
fn the_server_ends_with_its_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::start(BRINE, directory.path());
    drop(client.input.take());
    assert_eq!(client.server.wait().unwrap().code(), Some(0));
    // Something else than the protocol.
    let mut server = Command::new(BRINE)
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    server.stdin.take().unwrap().write_all(b"Content-Length: 99999999999\r\n\r\n").unwrap();
    let output = server.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("expected 16777216 bytes at most"), "{error}");
}

/// Writes a tree of this number of SLS files, each with includes, requisites, a template, pillar and a source.
fn large_tree(directory: &Path, count: usize) {
    let mut top = "base:\n  '*':\n".to_owned();
    for number in 0..count {
        top.push_str(&format!("    - app{number}\n"));
        let before = number.saturating_sub(1);
        let mut text = format!("{{% from 'app{number}/map.jinja' import settings with context %}}\n");
        if number % 10 != 0 {
            text.push_str(&format!("include:\n  - app{before}\n"));
        }
        for state in 0..6 {
            text.push_str(&format!(
                "app{number}-package-{state}:\n  pkg.installed:\n    - name: app{number}\n/etc/app{number}/{state}.conf:\n  \
                 file.managed:\n    - source: salt://app{number}/files/app.conf\n    - template: jinja\n    - mode: '0644'\n    - \
                 require:\n      - pkg: app{number}-package-{state}\n    - context:\n        port: {{{{ \
                 pillar['app{number}']['port'] }}}}\n        name: {{{{ salt['pillar.get']('app{number}:name', 'x') | upper }}}}\n"
            ));
        }
        let (sls, map) = (format!("salt/app{number}/init.sls"), format!("salt/app{number}/map.jinja"));
        let (file, pillar) = (format!("salt/app{number}/files/app.conf"), format!("pillar/app{number}.sls"));
        let values = format!("app{number}:\n  port: {number}\n  name: app\n");
        write(directory, &[(&sls, &text), (&map, "{% set settings = {'a': 1} %}\n"), (&file, "x"), (&pillar, &values)]);
    }
    write(directory, &[("salt/top.sls", &top), ("pillar/top.sls", &top)]);
}

/// Measures the answers over a tree of 1,000 SLS files: `BRINE_PROGRAM` names a program that was built for speed.
#[test]
#[ignore = "a measurement"]
fn latency_over_a_thousand_files() {
    let program = std::env::var("BRINE_PROGRAM").unwrap_or_else(|_| BRINE.to_owned());
    let directory = tempfile::tempdir().unwrap();
    large_tree(directory.path(), 1000);
    let started = Instant::now();
    let mut client = Client::start(&program, directory.path());
    let path = "salt/app501/init.sls";
    let text = std::fs::read_to_string(directory.path().join(path)).unwrap();
    client.open(path, &text);
    client.findings(path);
    println!("start until the first findings: {:?}", started.elapsed());
    let (uri, none, last) = (client.uri(path), Value::Null, text.matches('\n').count());
    let with = json!({"context": {"includeDeclaration": true}});
    let methods = [
        ("findings", (0, 0)),
        ("completion", (10, 8)),
        ("hover", (7, 5)),
        ("definition", (12, 18)),
        ("references", (3, 5)),
        ("documentSymbol", (0, 0)),
        ("foldingRange", (0, 0)),
        ("semanticTokens/full", (0, 0)),
        ("formatting", (0, 0)),
        ("rename", (3, 5)),
    ];
    for (method, place) in methods {
        let (mut times, mut work): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
        for round in 0..20 {
            // Each question follows a letter that is typed behind the last line, as in an editor.
            let (text, end) = if round % 2 == 0 { ("#", 0) } else { ("", 1) };
            let change = json!([{"range": {"start": {"line": last, "character": 0}, "end": {"line": last, "character": end}},
                "text": text}]);
            client.findings_if_any();
            let (started, before) = (Instant::now(), client.work());
            client.tell(
                "textDocument/didChange",
                json!({"textDocument": {"uri": uri, "version": round}, "contentChanges": change}),
            );
            let further = match method {
                "findings" => {
                    client.findings(path);
                    times.push(started.elapsed());
                    work.push(client.work().saturating_sub(before));
                    continue;
                }
                "references" => with.clone(),
                "rename" => json!({"newName": "other"}),
                "formatting" => json!({"options": {"tabSize": 2, "insertSpaces": true}}),
                _ => none.clone(),
            };
            let answer = client.at(method, path, place, &further);
            times.push(started.elapsed());
            work.push(client.work().saturating_sub(before));
            assert!(!answer.is_null() && answer.get("code").is_none(), "{method}: {answer}");
        }
        times.sort();
        work.sort();
        let middle = times.len() / 2;
        println!(
            "{method:<20} median {:?}, slowest {:?}; on the processor {:?}",
            times[middle],
            times[times.len() - 1],
            work[middle]
        );
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.server.id())).unwrap();
    let memory: Vec<&str> =
        status.lines().filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS")).collect();
    println!("{}", memory.join(", "));
    client.end();
}

impl Client {
    /// Returns the time of the server on a processor, without its threads for the pipes.
    fn work(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.server.id())).unwrap();
        Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
    }

    /// Forgets findings that were sent.
    fn findings_if_any(&mut self) {
        self.told.clear();
    }
}

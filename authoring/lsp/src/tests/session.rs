//! Sessions over pipes.

use std::io::{BufReader, Write};

use serde_json::{Value, json};

use super::{catalogue, write};
use crate::{End, serve};

/// Returns a message with its head.
fn framed(message: &Value) -> String {
    let text = message.to_string();
    format!("Content-Length: {}\r\n\r\n{text}", text.len())
}

/// Runs a session of these messages, and returns how it ended and what the server sent.
fn session(messages: &[Value]) -> (std::io::Result<End>, Vec<Value>) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let (answers, output) = std::io::pipe().unwrap();
    for message in messages {
        writer.write_all(framed(message).as_bytes()).unwrap();
    }
    drop(writer);
    let server = std::thread::spawn(move || serve(BufReader::new(reader), output, catalogue(), "1"));
    let mut answers = BufReader::new(answers);
    let mut responses = Vec::new();
    while let Ok(Some(message)) = lsp_server::Message::read(&mut answers) {
        responses.push(serde_json::to_value(message).unwrap());
    }
    (server.join().unwrap(), responses)
}

fn request(id: i32, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[test]
fn sessions_begin_and_end_as_the_protocol_says() {
    let exit = notification("exit", Value::Null);
    let initialize = request(1, "initialize", json!({"capabilities": {}}));
    let (end, sent) = session(&[request(7, "textDocument/hover", json!({})), exit.clone()]);
    assert_eq!((end.unwrap(), &sent[0]["error"]["code"]), (End::Exit, &json!(-32002)));
    let (end, sent) = session(&[initialize.clone(), request(2, "shutdown", Value::Null), exit.clone()]);
    assert_eq!(end.unwrap(), End::Shutdown);
    assert_eq!((&sent[0]["result"]["capabilities"]["positionEncoding"], &sent[1]["id"]), (&json!("utf-16"), &json!(2)));
    assert_eq!(session(&[initialize.clone(), exit]).0.unwrap(), End::Exit);
    assert_eq!(session(std::slice::from_ref(&initialize)).0.unwrap(), End::Closed);
    let (_, sent) = session(&[initialize, request(5, "what", Value::Null)]);
    assert_eq!(sent[1]["error"]["code"], json!(-32601));
    assert_eq!(session(&[]).0.unwrap(), End::Closed);
}

#[test]
fn findings_are_sent_in_the_units_of_the_client() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &[("salt/top.sls", ""), ("salt/a.sls", "")]);
    let root = crate::uri::of(directory.path()).unwrap();
    let uri = format!("{}/salt/a.sls", root.as_str());
    for (encoding, expected) in [("utf-16", 10), ("utf-8", 12)] {
        let capabilities = json!({"general": {"positionEncodings": [encoding]},
            "workspace": {"didChangeWatchedFiles": {"dynamicRegistration": true}}});
        let folders = json!([{"uri": root.as_str(), "name": "x"}]);
        let opened = json!({"textDocument": {"uri": uri, "languageId": "sls", "version": 3,
            "text": "\u{1F600}: {pkg.instaled: []}\n"}});
        let (_, sent) = session(&[
            request(1, "initialize", json!({"capabilities": capabilities, "workspaceFolders": folders})),
            notification("initialized", json!({})),
            notification("textDocument/didOpen", opened),
            request(
                2,
                "textDocument/hover",
                json!({"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}),
            ),
        ]);
        let registered = sent.iter().any(|message| message["method"] == "client/registerCapability");
        let notification = sent.iter().find(|message| message["method"] == "textDocument/publishDiagnostics").unwrap();
        assert!(registered, "{sent:?}");
        let params = &notification["params"];
        assert_eq!(
            (&params["version"], &params["diagnostics"][0]["code"]),
            (&json!(3), &json!("B201")),
            "{notification}"
        );
        // Four characters, the first of two or four units, stand before it.
        assert_eq!(params["diagnostics"][0]["range"]["start"]["character"], expected - 5, "{notification}");
    }
}

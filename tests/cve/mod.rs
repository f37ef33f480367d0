//! Salt's security history: a test for each CVE since 2019, of the same class of defect and named after it.
//!
//! One module for each area. `absent` lists the CVEs of features that Brine does not have, and fails when one is added
//! without a test of its own.

mod absent;
mod api;
mod clear;
mod content;
mod events;
mod identity;
mod local;
mod logins;
mod paths;
mod sessions;
mod ssh;
mod syndics;
mod tls;

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{BRINE, System, TIMEOUT, within_limit};
use brine_value::{Map, Value, msgpack};
use brine_wire::Envelope;
use brine_zmtp::{Limits, RequestClient};

/// The reply to a refused request.
const REFUSED: &str = "bad load";
const SECRET: &str = "S3CRET-of-web1";

/// Sends packed bytes as an unauthenticated peer. Returns the packed reply.
async fn send(system: &System, request: Vec<u8>) -> Vec<u8> {
    let client = RequestClient::new(system.request_endpoint(), Limits::default());
    client.request(request, TIMEOUT).await.unwrap().to_vec()
}

/// Sends an unencrypted command as an unauthenticated peer.
async fn ask(system: &System, load: Map) -> Value {
    msgpack::unpack(&send(system, Envelope::clear(load)).await).unwrap()
}

/// Whether a reply is a refusal.
fn is_refusal(answer: &Value) -> bool {
    !answer.is_truthy() || *answer == REFUSED.into()
}

/// Returns the name of the error in a reply to a client's command.
fn error_of(answer: &Value) -> String {
    // Commands without the field `async` are those of Salt's clients, whose replies have no envelope.
    let error = answer.get("load").unwrap_or(answer).get("error");
    error.and_then(|error| error.get("name")).map(ToString::to_string).unwrap_or_default()
}

/// Runs a function of the minion without a master. Programs are also found in `bin` of the system's directory.
fn salt_call(system: &System, words: &[&str]) -> Output {
    system.write("local/etc/minion", "id: local\nroot_dir: ROOT/local\nfile_client: local\nlog_level: error\nfile_roots: {base: ['ROOT/srv/salt']}\npillar_roots: {base: ['ROOT/srv/pillar']}\n");
    let etc = system.path("local/etc");
    let programs = format!("{}:{}", system.path("bin").display(), std::env::var("PATH").unwrap());
    within_limit(BRINE)
        .args(["salt-call", "--local", "-c"])
        .arg(etc)
        .args(words)
        .current_dir(system.path(""))
        .env("PATH", programs)
        .output()
        .unwrap()
}

/// Returns all files and directories below a directory.
fn walk(directory: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        paths.push(entry.path());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            paths.extend(walk(&entry.path()));
        }
    }
    paths
}

/// Asserts that no file with a name that attacks write to exists below the system's directory, or in its parent.
fn assert_nothing_escaped(system: &System) {
    let escaped: Vec<PathBuf> =
        walk(&system.path("")).into_iter().filter(|path| path.to_string_lossy().contains("escaped")).collect();
    assert_eq!(escaped, Vec::<PathBuf>::new());
    for name in ["escaped", "escaped.p", "escaped.pub"] {
        for directory in [system.path("..").join(name), Path::new("/").join(name)] {
            assert!(!directory.exists(), "{}", directory.display());
        }
    }
}

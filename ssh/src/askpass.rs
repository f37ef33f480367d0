//! Passwords for `ssh`, which runs the program in `SSH_ASKPASS`, a symbolic link to this one, and reads its output. That
//! program asks for the password through a socket, so the password is in no command line and no environment: programs
//! that `ssh` starts, such as `ProxyCommand`, do not inherit it.
//!
//! Each `ssh` process has a socket of its own, with a random name in a private directory. It answers only children of
//! that process, and disappears with it.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use brine_system::files::FileError;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixListener;
use tokio::net::unix::UCred;

use crate::temporary::Temporary;

/// The name of the link.
pub const NAME: &str = "brine-ssh-askpass";
/// The environment variable with the path of the socket.
const SOCKET: &str = "BRINE_SSH_ASKPASS";
/// The timeout of an exchange on the socket.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A directory with the link; removed on drop.
#[derive(Debug)]
pub struct AskPass(Temporary);

/// The socket of one `ssh` process. Dropping it closes and removes the socket.
pub(crate) struct Answering {
    path: PathBuf,
    /// The PID of the `ssh` process; 0 until it is known.
    parent: Arc<AtomicU32>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.task.abort();
        // The directory is removed with everything in it otherwise.
        _ = std::fs::remove_file(&self.path);
    }
}

impl AskPass {
    /// Creates the link to this program in a private temporary directory.
    ///
    /// # Errors
    /// The directory cannot be written to.
    pub fn new(program: &Path) -> Result<Self, FileError> {
        let failed = || FileError::at("write to", std::env::temp_dir());
        let directory = Temporary::new().map_err(failed())?;
        symlink(program, directory.path().join(NAME)).map_err(failed())?;
        Ok(AskPass(directory))
    }

    /// Opens the socket that answers an `ssh` process with this password.
    ///
    /// # Errors
    /// The socket cannot be created.
    pub(crate) fn answering(&self, password: &str) -> std::io::Result<Answering> {
        let path = self.0.path().join(format!("{:032x}", rand::random::<u128>()));
        let listener = UnixListener::bind(&path)?;
        let parent = Arc::new(AtomicU32::new(0));
        let task = tokio::spawn(answer_all(listener, password.to_owned(), Arc::clone(&parent)));
        Ok(Answering { path, parent, task })
    }
}

impl Answering {
    /// Returns the environment variables of the `ssh` process.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let link = self.path.with_file_name(NAME);
        vec![
            ("SSH_ASKPASS", link.into()),
            ("SSH_ASKPASS_REQUIRE", "force".into()),
            // Older releases of `ssh` use the askpass program only if `DISPLAY` is set and there is no terminal.
            ("DISPLAY", ":0".into()),
            (SOCKET, self.path.clone().into()),
        ]
    }

    /// Sets the PID of the `ssh` process, whose children are answered from then on.
    pub fn of_process(&self, pid: u32) {
        self.parent.store(pid, Ordering::Release);
    }
}

/// Answers children of the process with the password.
async fn answer_all(listener: UnixListener, password: String, parent: Arc<AtomicU32>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let peer = stream.peer_cred();
        if !peer.is_ok_and(|peer| is_child(&peer, parent.load(Ordering::Acquire))) {
            tracing::warn!("a program asked for the password of ssh that ssh has not started for it: refused");
            continue;
        }
        let written = async {
            stream.write_all(password.as_bytes()).await?;
            stream.shutdown().await
        };
        // The askpass program reports the failure to `ssh`.
        _ = tokio::time::timeout(TIMEOUT, written).await;
    }
}

/// Whether a peer has the own user, and is a child of this process.
fn is_child(peer: &UCred, parent: u32) -> bool {
    let Some(pid) = peer.pid().filter(|_| peer.uid() == nix::unistd::geteuid().as_raw() && parent != 0) else {
        return false;
    };
    // The fields after the name, which is in parentheses and may contain any character: state, parent, ...
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    fields.split_whitespace().nth(1).and_then(|field| field.parse().ok()) == Some(parent)
}

/// Prints the password if `ssh` prompts for one. Returns the exit status.
#[must_use]
pub fn answer(prompt: &str) -> u8 {
    // A prompt to confirm a host key must not receive the password.
    let is_password = ["password", "passphrase"].iter().any(|word| prompt.to_lowercase().contains(word));
    let Some(socket) = std::env::var_os(SOCKET).filter(|_| is_password) else { return 1 };
    let asked = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut line = Vec::new();
        stream.read_to_end(&mut line)?;
        if line.is_empty() {
            return Err(std::io::ErrorKind::PermissionDenied.into());
        }
        line.push(b'\n');
        std::io::stdout().write_all(&line)
    };
    u8::from(asked().is_err())
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::process::Command;

    use super::*;

    /// Reads the socket of the environment in a child of a shell, as the askpass program of `ssh` does.
    const ASK: &str = r#"python3 -c '
import os, socket
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["BRINE_SSH_ASKPASS"])
print(s.makefile().read(), end="")
'; true"#;

    async fn asked_by(answering: &Answering, script: &str, as_parent: bool) -> String {
        let mut command = Command::new("sh");
        // The shell waits until its PID is known.
        command.args(["-c", &format!("read line; {script}")]).envs(answering.environment());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        answering.of_process(if as_parent { child.id().unwrap() } else { std::process::id() });
        child.stdin.take().unwrap().write_all(b"\n").await.unwrap();
        String::from_utf8(child.wait_with_output().await.unwrap().stdout).unwrap()
    }

    #[tokio::test]
    async fn the_password_goes_to_children_of_ssh_and_to_no_environment() {
        let askpass = AskPass::new(Path::new("/bin/true")).unwrap();
        let answering = askpass.answering("MARKER-4711").unwrap();
        assert_eq!(asked_by(&answering, ASK, true).await, "MARKER-4711");
        assert_eq!(asked_by(&answering, ASK, true).await, "MARKER-4711", "ssh may ask again");
        assert_eq!(asked_by(&answering, ASK, false).await, "", "another process started the program");
        assert_eq!(asked_by(&answering, &format!("sh -c '{}'; true", ASK.replace('\'', "'\\''")), true).await, "");
        let environment = asked_by(&answering, "env; cat /proc/self/cmdline", true).await;
        assert!(environment.contains(SOCKET) && !environment.contains("MARKER-4711"), "{environment}");
        let path = answering.path.clone();
        assert!(path.exists());
        drop(answering);
        assert!(!path.exists());
    }
}

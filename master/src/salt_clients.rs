//! What Salt's own programs on the master's host look for before they talk to it.

use std::path::Path;

use brine_system::files;

/// The socket of Salt's workers. Salt's `salt-api` takes a master without it for one that is not running, and never
/// connects to it.
const WORKERS: &str = "workers.ipc";

/// Creates an empty file with the name of the socket of Salt's workers: nobody listens there. A socket that Salt's master
/// left behind is replaced.
pub(crate) fn announce(sock_dir: &Path) {
    if let Err(error) = files::write_soon(sock_dir.join(WORKERS), b"", 0o600) {
        tracing::warn!(%error, "creating a file for Salt's own salt-api failed: it takes the master for stopped");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn an_empty_file_stands_for_the_socket_of_salts_workers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(WORKERS);
        let _left_behind = UnixListener::bind(&path).unwrap();
        announce(directory.path());
        assert!(path.is_file());
        // A link is replaced and not followed.
        let other = directory.path().join("other");
        std::fs::write(&other, "text").unwrap();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        announce(directory.path());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "text");
    }
}

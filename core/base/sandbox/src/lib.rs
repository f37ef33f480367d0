//! Takes privileges from a process that it does not need: capabilities (from the bounding set, too, so that no program
//! that it starts can gain them), `no_new_privs` (set-user-ID programs run as their caller), and system calls.
//!
//! Threads inherit all of it: [`Profile::enter`] is called before the first one starts.

mod calls;

use std::io;

use caps::{CapSet, Capability, CapsHashSet};

/// What a process keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    name: &'static str,
    capabilities: &'static [Capability],
    calls: calls::Denied,
}

/// An error of the sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Capabilities cannot be dropped.
    #[error("dropping capabilities failed: {0}")]
    Capabilities(#[from] caps::errors::CapsError),
    /// The flag cannot be set.
    #[error("setting no_new_privs failed: {0}")]
    NoNewPrivs(#[source] io::Error),
    /// The filter of system calls cannot be installed.
    #[error("filtering system calls failed: {0}")]
    Calls(#[source] seccompiler::Error),
}

impl Profile {
    /// The master: files of any owner, programs of any user, PAM by `brine-pam`, `ping`.
    pub const MASTER: Profile = Profile {
        name: "master",
        capabilities: &[
            Capability::CAP_AUDIT_WRITE,
            Capability::CAP_CHOWN,
            Capability::CAP_DAC_OVERRIDE,
            Capability::CAP_DAC_READ_SEARCH,
            Capability::CAP_FOWNER,
            Capability::CAP_FSETID,
            Capability::CAP_KILL,
            Capability::CAP_NET_BIND_SERVICE,
            Capability::CAP_NET_RAW,
            Capability::CAP_SETGID,
            Capability::CAP_SETUID,
        ],
        calls: calls::Denied::Host,
    };
    /// A minion whose jobs change no mounts, networks, modules or clocks; other minions need all that root may do.
    pub const MINION: Profile = Profile { name: "minion", ..Profile::MASTER };
    /// The syndic: files and sockets of the master's user. It starts no programs.
    pub const SYNDIC: Profile = Profile {
        name: "syndic",
        capabilities: &[Capability::CAP_DAC_OVERRIDE, Capability::CAP_DAC_READ_SEARCH],
        calls: calls::Denied::HostAndPrograms,
    };
    /// The REST API: low ports, and reading certificates of other owners. It starts no programs.
    pub const API: Profile = Profile {
        name: "API",
        capabilities: &[Capability::CAP_DAC_READ_SEARCH, Capability::CAP_NET_BIND_SERVICE],
        calls: calls::Denied::HostAndPrograms,
    };
    /// `brine-pam`: modules of PAM read the password files, write logs of the audit system and act as the user.
    pub const PAM: Profile = Profile {
        name: "brine-pam",
        capabilities: &[
            Capability::CAP_AUDIT_WRITE,
            Capability::CAP_CHOWN,
            Capability::CAP_DAC_OVERRIDE,
            Capability::CAP_DAC_READ_SEARCH,
            Capability::CAP_FOWNER,
            Capability::CAP_NET_BIND_SERVICE,
            Capability::CAP_SETGID,
            Capability::CAP_SETUID,
        ],
        calls: calls::Denied::Host,
    };

    fn keeps(&self) -> CapsHashSet {
        self.capabilities.iter().copied().collect()
    }

    /// Takes capabilities from the bounding set, if this process may. Called before root changes to another user, after
    /// which it may not.
    ///
    /// # Errors
    /// A system call failed.
    pub fn bound(&self) -> Result<(), SandboxError> {
        if !caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
            return Ok(());
        }
        for dropped in caps::read(None, CapSet::Bounding)?.difference(&self.keeps()) {
            caps::drop(None, CapSet::Bounding, *dropped)?;
        }
        Ok(())
    }

    /// Enters the sandbox: drops all other capabilities, sets `no_new_privs`, and denies system calls. There is no way
    /// back, neither for this process nor for programs that it starts.
    ///
    /// # Errors
    /// A system call failed. What was taken before stays so.
    pub fn enter(&self) -> Result<(), SandboxError> {
        self.bound()?;
        let keeps = self.keeps();
        let permitted: CapsHashSet = caps::read(None, CapSet::Permitted)?.intersection(&keeps).copied().collect();
        caps::clear(None, CapSet::Ambient)?;
        caps::clear(None, CapSet::Inheritable)?;
        caps::set(None, CapSet::Effective, &permitted)?;
        caps::set(None, CapSet::Permitted, &permitted)?;
        nix::sys::prctl::set_no_new_privs().map_err(|error| SandboxError::NoNewPrivs(error.into()))?;
        self.calls.install().map_err(SandboxError::Calls)?;
        tracing::debug!(profile = self.name, capabilities = permitted.len(), "sandbox entered");
        Ok(())
    }
}

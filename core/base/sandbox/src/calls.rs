//! The filters of system calls. They are lists of what is denied, with EPERM: modules, hooks and libraries differ too
//! much for a list of what is allowed.

use std::collections::BTreeMap;

use nix::libc;
use seccompiler::{BackendError, BpfProgram, Error, SeccompAction, SeccompFilter, SeccompRule, TargetArch};

/// The denied system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    /// Those that change the host or look into other processes. Programs that the process starts inherit this.
    Host,
    /// Also the start of programs, and what only programs need.
    HostAndPrograms,
}

/// Calls that change the kernel, the clock or mounts, or read or write other processes.
const OF_HOST: &[libc::c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // The kernel.
    libc::SYS_bpf,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    // Mounts.
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_quotactl,
    // The clock and accounting.
    libc::SYS_acct,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_settimeofday,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
];

/// Calls of programs, namespaces, keyrings and asynchronous I/O by rings.
const OF_PROGRAMS: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
];

/// The flag of the numbers of system calls in the x32 ABI, which reach the same code.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;
/// Calls with numbers of their own in that ABI: execve, ptrace, kexec_load, process_vm_readv and _writev, execveat.
#[cfg(target_arch = "x86_64")]
const OF_X32: &[i64] = &[520, 521, 528, 539, 540, 545];

impl Denied {
    fn calls(self) -> impl Iterator<Item = i64> {
        let further = match self {
            Denied::Host => &[][..],
            Denied::HostAndPrograms => OF_PROGRAMS,
        };
        OF_HOST.iter().chain(further).copied()
    }

    fn program(self) -> Result<BpfProgram, BackendError> {
        let always = |call: i64| (call, Vec::<SeccompRule>::new());
        #[cfg(target_arch = "x86_64")]
        let rules: BTreeMap<i64, Vec<SeccompRule>> = {
            let of_x32 = self.calls().chain(OF_X32.iter().copied()).map(|call| call | X32);
            self.calls().chain(of_x32).map(always).collect()
        };
        #[cfg(not(target_arch = "x86_64"))]
        let rules: BTreeMap<i64, Vec<SeccompRule>> = self.calls().map(always).collect();
        let eperm = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, eperm, TargetArch::try_from(std::env::consts::ARCH)?)?
            .try_into()
    }

    /// Installs the filter for this thread, and for those that it starts.
    pub fn install(self) -> Result<(), Error> {
        seccompiler::apply_filter(&self.program().map_err(Error::Backend)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_compiles_to_a_program() {
        for denied in [Denied::Host, Denied::HostAndPrograms] {
            let program = denied.program().unwrap();
            assert!(program.len() > denied.calls().count(), "{denied:?}");
        }
    }
}

//! Facts about this host.

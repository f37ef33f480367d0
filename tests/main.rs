//! End-to-end tests: the real programs, real servers and, with the feature `interop`, real Salt.
//!
//! They are one program, because each program links all of Brine: a file here is a module, and `tests/run NAME` runs the
//! tests whose path contains NAME.
#![allow(clippy::disallowed_methods, reason = "tests write as they like in their own directories")]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod access;
mod api;
mod api_key;
mod api_limits;
mod api_load;
mod api_webhooks;
mod backup;
mod batches;
mod beacons;
mod blackout;
mod catch_up;
mod check;
mod cluster;
mod cluster_faults;
mod cluster_histories;
mod cluster_replays;
mod cluster_work;
mod command_lines;
mod completion;
mod console;
mod console_board;
mod console_load;
mod cp;
mod custom_modules;
mod cve;
mod damaged_publishes;
mod delivery;
mod docs_offline;
mod doctor;
mod doctor_disks;
mod doctor_roles;
mod doctor_safety;
mod downgrade;
mod drain;
mod engines;
mod event_sockets;
mod event_tags;
mod exit_codes;
mod faults;
mod follow;
mod forged;
mod formatting;
mod full_disk;
mod gitfs;
mod golden;
mod hostile;
mod hostile_minion;
#[cfg(feature = "interop")]
mod interop;
mod jobs;
mod known_minions;
#[cfg(feature = "interop")]
mod loaders;
mod logs;
mod lsp;
mod masters;
#[cfg(feature = "interop")]
mod migrating;
mod minion_data;
mod minion_options;
mod mistakes;
mod mysql;
mod netapi;
mod orchestrate;
mod output;
mod packages;
mod pages;
mod pam;
mod peers;
mod pepper;
mod pillar;
mod plan;
mod postgres;
mod privileges;
mod programs;
mod python_beacons;
#[cfg(feature = "interop")]
mod python_fallback;
mod python_master;
mod python_modules;
mod python_stores;
mod python_types;
mod rabbitmq;
mod reactor;
mod reactor_explain;
mod reactor_forms;
mod reactor_replay;
mod reconnect;
mod renderers;
mod replay;
mod returners;
mod rights;
mod rules;
mod runners;
#[cfg(feature = "interop")]
mod salt_api_daemon;
mod salt_call;
#[cfg(feature = "interop")]
mod salt_clients;
#[cfg(all(feature = "interop", feature = "messaging"))]
mod salt_cluster;
#[cfg(feature = "interop")]
mod salt_edges;
mod salt_key;
#[cfg(feature = "interop")]
mod salt_masters;
#[cfg(feature = "interop")]
mod salt_multi_master;
#[cfg(feature = "interop")]
mod salt_runner_clients;
#[cfg(feature = "interop")]
mod salt_syndic;
#[cfg(feature = "interop")]
mod salt_tcp;
#[cfg(feature = "interop")]
mod saltext;
mod saltgui;
mod sandbox;
mod schedule;
mod sdb;
mod secrets;
mod sessions;
mod ssh;
mod ssh_api;
mod ssh_hostile;
mod ssh_rosters;
mod startup;
mod state_options;
mod state_queue;
mod state_tests;
mod stops;
mod support;
mod swarm;
mod syndic;
mod systemd;
mod tcp;
mod template_limits;
mod tools;
mod up;
mod upgrade;
mod x509;

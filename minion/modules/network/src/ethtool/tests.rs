//! Transcripts of ethtool.

use super::*;

/// Function, device, settings, result and command.
type Case<'a> = (&'a str, &'a str, Map, Result<Value, String>, &'a str);
use crate::testing::{Scripted, context_with};

const TRANSCRIPT: &str = "$ ethtool -k eth0
        | Features for eth0:
        | rx-checksumming: on [fixed]
        | scatter-gather: on
        | tcp-segmentation-offload: off
        | generic-segmentation-offload: on
        $ ethtool -a eth0
        | Pause parameters for eth0:
        | Autonegotiate:  on
        | RX:             off
        $ ethtool -g eth0
        | Ring parameters for eth0:
        | Pre-set maximums:
        | RX:             4096
        | TX:             4096
        | RX Mini:        n/a
        | Current hardware settings:
        | RX:             256
        | TX:             512
        $ ethtool -c eth0
        | Coalesce parameters for eth0:
        | Adaptive RX: on  TX: off
        | stats-block-usecs: 0
        | rx-usecs: 3
        | tx-frames: n/a
        $ ethtool -i eth0
        | driver: virtio_net
        | version: 1.0.0
        | bus-info: 0000:00:03.0
        $ ethtool -g lo
        ! netlink error: Operation not supported
        = 75
        $ ethtool -a lo
        ! netlink error: Operation not supported
        = 75
        $ ethtool -A eth0 rx off
        $ ethtool -K eth0 tso on
        $ ethtool -G eth0 rx 1024
        $ ethtool -C eth0 adaptive-rx off rx-usecs 30
        ";

#[test]
fn settings_are_queried_and_set() {
    let offload = map! {
        "scatter_gather" => "on", "tcp_segmentation_offload" => "off", "udp_fragmentation_offload" => "not supported",
        "generic_segmentation_offload" => "on",
    };
    let ring = map! {"rx_max" => 4096, "tx_max" => 4096, "rx_mini_max" => "n/a", "rx" => 256, "tx" => 512};
    let coalesce =
        map! {"adaptive_rx" => 1, "adaptive_tx" => 0, "stats_block_usecs" => 0, "rx_usecs" => 3, "tx_frames" => "n/a"};
    let features = map! {
        "rx-checksumming" => map! {"on" => true, "fixed" => true},
        "scatter-gather" => map! {"on" => true, "fixed" => false},
        "tcp-segmentation-offload" => map! {"on" => false, "fixed" => false},
        "generic-segmentation-offload" => map! {"on" => true, "fixed" => false},
    };
    let unsupported = "netlink error: Operation not supported".to_owned();
    let none = "None of the valid parameters were provided: ['autoneg', 'rx', 'tx']".to_owned();
    let cases: Vec<Case<'_>> = vec![
        ("show_offload", "eth0", map! {}, Ok(offload.clone().into()), "ethtool -k eth0"),
        (
            "set_offload",
            "eth0",
            map! {"tcp_segmentation_offload" => "on"},
            Ok(offload.into()),
            "ethtool -K eth0 tso on",
        ),
        ("show_features", "eth0", map! {}, Ok(features.into()), "ethtool -k eth0"),
        ("show_ring", "eth0", map! {}, Ok(ring.clone().into()), "ethtool -g eth0"),
        ("show_ring", "lo", map! {}, Ok("Not supported".into()), "ethtool -g lo"),
        (
            "set_ring",
            "eth0",
            map! {"rx" => 1024, "tx" => 512, "rx_max" => 1, "x" => 1},
            Ok(ring.into()),
            "ethtool -G eth0 rx 1024",
        ),
        ("show_coalesce", "eth0", map! {}, Ok(coalesce.clone().into()), "ethtool -c eth0"),
        (
            "set_coalesce",
            "eth0",
            map! {"adaptive_rx" => false, "adaptive_tx" => "off", "rx_usecs" => 30},
            Ok(coalesce.into()),
            "ethtool -C eth0 adaptive-rx off rx-usecs 30",
        ),
        (
            "show_driver",
            "eth0",
            map! {},
            Ok(map! {"driver" => "virtio_net", "bus_info" => "0000:00:03.0"}.into()),
            "ethtool -i eth0",
        ),
        ("show_pause", "eth0", map! {}, Ok(map! {"Autonegotiate" => true, "RX" => false}.into()), "ethtool -a eth0"),
        ("show_pause", "lo", map! {}, Err(unsupported), "ethtool -a lo"),
        ("set_pause", "eth0", map! {"rx" => false}, Ok(true.into()), "ethtool -A eth0 rx off"),
        ("set_pause", "eth0", map! {"sg" => false}, Err(none), ""),
        ("set_pause", "eth0", map! {"rx" => "--x"}, Err("rx is invalid: expected on or off, got '--x'".into()), ""),
        ("show_ring", "-x", map! {}, Err("'-x' cannot be used: it starts with '-' or is empty".into()), ""),
    ];
    for (function, device, keyword, expected, command) in cases {
        let programs = Scripted::new(TRANSCRIPT);
        let args = brine_function::Args { positional: vec![device.into()], keyword };
        let result = context_with(map! {}, programs.clone()).call(&format!("ethtool.{function}"), args);
        assert_eq!(result.map_err(CallError::message), expected, "{function} {device}");
        let ran = programs.ran();
        assert!(command.is_empty() && ran.is_empty() || ran.lines().any(|line| line == command), "{function}: {ran}");
    }
}

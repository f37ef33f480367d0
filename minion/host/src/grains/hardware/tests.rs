use brine_value::list;

use super::*;

#[test]
fn processors_are_counted() {
    let info = "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu vme\n\nprocessor\t: 1\nmodel name\t: AMD EPYC\n";
    let expected = map! {"num_cpus" => 2, "cpu_model" => "AMD EPYC", "cpu_flags" => list!["fpu", "vme"]};
    assert_eq!(processors(info), expected);
    assert_eq!(processors("").get("num_cpus"), Some(&0.into()));
}

#[test]
fn memory_is_in_mebibytes() {
    let info = "MemTotal:       24684096 kB\nMemFree: 1 kB\nSwapTotal:      2047 kB\n";
    assert_eq!(memory(info), map! {"mem_total" => 24105, "swap_total" => 1});
    assert_eq!(memory("MemTotal: x"), map! {"mem_total" => 0, "swap_total" => 0});
}

#[test]
fn virtual_machines_are_detected() {
    let signs = VirtualizationSigns::default;
    for (signs, judged) in [
        (signs(), ("physical", None)),
        (VirtualizationSigns { docker: true, vendor: "QEMU".into(), ..signs() }, ("container", Some("Docker"))),
        (VirtualizationSigns { container: "lxc".into(), ..signs() }, ("container", Some("LXC"))),
        (VirtualizationSigns { vendor: "QEMU".into(), ..signs() }, ("kvm", None)),
        (VirtualizationSigns { cpu: "QEMU Virtual CPU".into(), ..signs() }, ("kvm", None)),
        (VirtualizationSigns { vendor: "VMware, Inc.".into(), ..signs() }, ("VMware", None)),
        (VirtualizationSigns { hypervisor: "xen".into(), ..signs() }, ("xen", None)),
        (
            VirtualizationSigns { vendor: "Microsoft Corporation".into(), product: "Surface".into(), ..signs() },
            ("physical", None),
        ),
    ] {
        assert_eq!(signs.virtual_type(), judged);
    }
}

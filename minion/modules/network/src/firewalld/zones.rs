//! `firewalld`: zones: ports, masquerading, ICMP types, interfaces, sources and rich rules.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Value, map};

use super::Command;

/// Execution functions of `firewalld`.
pub static FUNCTIONS: Functions<Context> = registry!(
    "firewalld",
    [
        new_zone,
        delete_zone,
        get_masquerade,
        add_masquerade,
        remove_masquerade,
        add_port,
        remove_port,
        list_ports,
        add_port_fwd,
        remove_port_fwd,
        list_port_fwd,
        block_icmp,
        allow_icmp,
        list_icmp_block,
        get_interfaces,
        add_interface,
        remove_interface,
        get_sources,
        add_source,
        remove_source,
        get_rich_rules,
        add_rich_rule,
        remove_rich_rule
    ]
);

/// Add a zone to the permanent configuration, and unless `restart` is False, load it.
///
/// CLI Example:
///
///     salt '*' firewalld.new_zone my_zone
#[function]
pub fn new_zone(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: String,
    /// Whether firewalld is reloaded afterwards.
    #[default(true)]
    restart: bool,
) -> CallResult {
    managed(context, "new", &zone, restart)
}

/// Delete a zone of the permanent configuration, and unless `restart` is False, load it.
///
/// CLI Example:
///
///     salt '*' firewalld.delete_zone my_zone
#[function]
pub fn delete_zone(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: String,
    /// Whether firewalld is reloaded afterwards.
    #[default(true)]
    restart: bool,
) -> CallResult {
    managed(context, "delete", &zone, restart)
}

/// Return whether masquerading is enabled in a zone, or in the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.get_masquerade zone
#[function]
pub fn get_masquerade(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: Option<String>,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    Ok(masquerades(context, zone.as_deref(), permanent)?.into())
}

/// Enable masquerading in a zone, or in the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.add_masquerade dmz
#[function]
pub fn add_masquerade(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: Option<String>,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    Command::new("--add-masquerade", zone.as_deref(), permanent).run(context)
}

/// Disable masquerading in a zone, or in the default zone.
///
/// CLI Example:
///
///     salt '*' firewalld.remove_masquerade dmz
#[function]
pub fn remove_masquerade(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: Option<String>,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    Command::new("--remove-masquerade", zone.as_deref(), permanent).run(context)
}

/// Allow a port in a zone. `force_masquerade` enables masquerading, too.
///
/// CLI Example:
///
///     salt '*' firewalld.add_port internal 443/tcp
#[function]
pub fn add_port(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: String,
    /// Port, or range of ports, such as `8080/tcp`.
    port: String,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
    /// Whether masquerading is enabled if the zone does not have it.
    #[default(false)]
    force_masquerade: bool,
) -> CallResult {
    if force_masquerade {
        masquerade(context, &zone)?;
    }
    Command::new(&format!("--add-port={port}"), Some(&zone), permanent).run(context)
}

/// The arguments that describe a port forwarding of a zone.
#[derive(Args)]
pub struct ForwardArgs {
    /// Name of the zone.
    zone: String,
    /// Port of this host.
    src: Value,
    /// Port to which it is forwarded.
    dest: Value,
    /// Protocol.
    #[default("tcp".into())]
    proto: String,
    /// Address to which it is forwarded; default: this host.
    #[default]
    dstaddr: String,
    /// Whether the permanent configuration is changed.
    #[default(true)]
    permanent: bool,
}

impl ForwardArgs {
    fn run(&self, context: &Context, option: &str) -> CallResult {
        let forwarding = forwarding(&self.src, &self.dest, &self.proto, &self.dstaddr);
        Command::new(&format!("{option}={forwarding}"), Some(&self.zone), self.permanent).run(context)
    }
}

/// Add a port forwarding to a zone. `force_masquerade` enables masquerading, too.
///
/// CLI Example:
///
///     salt '*' firewalld.add_port_fwd public 80 443 tcp
#[function]
pub fn add_port_fwd(
    context: &Context,
    #[args] forward: ForwardArgs,
    /// Whether masquerading is enabled if the zone does not have it.
    #[default(false)]
    force_masquerade: bool,
) -> CallResult {
    if force_masquerade {
        masquerade(context, &forward.zone)?;
    }
    forward.run(context, "--add-forward-port")
}

/// Remove a port forwarding from a zone.
///
/// CLI Example:
///
///     salt '*' firewalld.remove_port_fwd public 80 443 tcp
#[function]
pub fn remove_port_fwd(context: &Context, #[args] forward: ForwardArgs) -> CallResult {
    forward.run(context, "--remove-forward-port")
}

/// Return the port forwardings of a zone.
///
/// CLI Example:
///
///     salt '*' firewalld.list_port_fwd public
#[function]
pub fn list_port_fwd(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: String,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    let output = Command::new("--list-forward-ports", Some(&zone), permanent).output(context)?;
    Ok(output.lines().filter_map(forwarded).collect())
}

/// Block an ICMP type in a zone. The result is False for an unknown type.
///
/// CLI Example:
///
///     salt '*' firewalld.block_icmp zone echo-reply
#[function]
pub fn block_icmp(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: String,
    /// Type of ICMP messages, such as `echo-reply`.
    icmp: String,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    set_icmp_block(context, &zone, &icmp, permanent, "add")
}

/// Remove a block of an ICMP type from a zone. The result is False for an unknown type.
///
/// CLI Example:
///
///     salt '*' firewalld.allow_icmp zone echo-reply
#[function]
pub fn allow_icmp(
    context: &Context,
    /// Name of the zone; the default zone by default.
    zone: String,
    /// Type of ICMP messages, such as `echo-reply`.
    icmp: String,
    /// Whether the change is permanent; otherwise it lasts until the next reload.
    #[default(true)]
    permanent: bool,
) -> CallResult {
    set_icmp_block(context, &zone, &icmp, permanent, "remove")
}

/// Defines functions that return a part of a zone: each with its option of `firewall-cmd` and the parser of the output.
macro_rules! queries {
    ($($(#[$doc:meta])* $name:ident $option:literal $read:ident;)*) => {
        $(
            $(#[$doc])*
            #[function]
            pub fn $name(
                context: &Context,
                /// Name of the zone.
                zone: String,
                /// Whether the permanent configuration is read.
                #[default(true)]
                permanent: bool,
            ) -> CallResult {
                Command::new($option, Some(&zone), permanent).$read(context)
            }
        )*
    };
}

/// Defines functions that add an item to a zone or remove one: each with its option of `firewall-cmd`.
macro_rules! changes {
    ($($(#[$doc:meta])* $name:ident($item:ident) $option:literal;)*) => {
        $(
            $(#[$doc])*
            #[function]
            pub fn $name(
                context: &Context,
                /// Name of the zone.
                zone: String,
                /// What is added or removed.
                $item: String,
                /// Whether the change is permanent; otherwise it lasts until the next reload.
                #[default(true)]
                permanent: bool,
            ) -> CallResult {
                Command::new(&format!("{}={}", $option, $item), Some(&zone), permanent).run(context)
            }
        )*
    };
}

queries! {
    /// Return the allowed ports of a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.list_ports internal
    list_ports "--list-ports" words;
    /// Return the blocked ICMP types of a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.list_icmp_block zone
    list_icmp_block "--list-icmp-blocks" words;
    /// Return the interfaces of a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.get_interfaces zone
    get_interfaces "--list-interfaces" words;
    /// Return the sources of a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.get_sources zone
    get_sources "--list-sources" words;
    /// Return the rich rules of a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.get_rich_rules zone
    get_rich_rules "--list-rich-rules" lines;
}

changes! {
    /// Remove an allowed port from a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.remove_port internal 443/tcp
    remove_port(port) "--remove-port";
    /// Bind an interface to a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.add_interface zone eth0
    add_interface(interface) "--add-interface";
    /// Remove an interface from a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.remove_interface zone eth0
    remove_interface(interface) "--remove-interface";
    /// Bind a source to a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.add_source zone 192.168.122.0/24
    add_source(source) "--add-source";
    /// Remove a source from a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.remove_source zone 192.168.122.0/24
    remove_source(source) "--remove-source";
    /// Add a rich rule to a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.add_rich_rule zone 'rule'
    add_rich_rule(rule) "--add-rich-rule";
    /// Remove a rich rule from a zone.
    ///
    /// CLI Example:
    ///
    ///     salt '*' firewalld.remove_rich_rule zone 'rule'
    remove_rich_rule(rule) "--remove-rich-rule";
}

/// Adds or deletes a zone or a service in the permanent configuration; `restart` loads the configuration.
pub(super) fn change_permanent(context: &Context, option: &str, restart: bool) -> CallResult {
    let said = Command::new(option, None, true).output(context)?;
    if restart && said == "success" {
        return super::reload_rules(context);
    }
    Ok(said.into())
}

fn managed(context: &Context, action: &str, zone: &str, restart: bool) -> CallResult {
    change_permanent(context, &format!("--{action}-zone={zone}"), restart)
}

fn masquerades(context: &Context, zone: Option<&str>, permanent: bool) -> Result<bool, CallError> {
    let zones = super::settings(&Command::new("--list-all", zone, permanent).output(context)?);
    let setting = |about: &Value| about.get("masquerade")?.as_list()?.first().map(ToString::to_string);
    Ok(!zones.values().any(|about| setting(about).as_deref() == Some("no")))
}

/// Enables masquerading permanently, unless it is enabled.
fn masquerade(context: &Context, zone: &str) -> Result<(), CallError> {
    if !masquerades(context, Some(zone), true)? {
        Command::new("--add-masquerade", Some(zone), true).output(context)?;
    }
    Ok(())
}

fn forwarding(src: &Value, dest: &Value, proto: &str, dstaddr: &str) -> String {
    format!("port={src}:proto={proto}:toport={dest}:toaddr={dstaddr}")
}

/// Parses `port=80:proto=tcp:toport=443:toaddr=`.
fn forwarded(line: &str) -> Option<Value> {
    let mut parts = line.trim().splitn(4, ':').map(|part| part.split_once('=').map(|(_, value)| value));
    let mut next = || parts.next().flatten();
    let (source, protocol, destination, address) = (next()?, next()?, next()?, next().unwrap_or_default());
    let about = map! {
        "Source port" => source, "Protocol" => protocol, "Destination port" => destination,
        "Destination address" => address,
    };
    Some(about.into())
}

/// Adds or removes a block of an ICMP type, unless that is done already. Returns False for an unknown type.
fn set_icmp_block(context: &Context, zone: &str, icmp: &str, permanent: bool, action: &str) -> CallResult {
    let has = |list: Value| list.as_list().is_some_and(|list| list.contains(&icmp.into()));
    if !has(super::get_icmp_types(context, permanent)?) {
        tracing::error!(jid = context.job.jid, icmp, "an ICMP type is unknown");
        return Ok(false.into());
    }
    if has(list_icmp_block(context, zone.to_owned(), permanent)?) == (action == "add") {
        return Ok("success".into());
    }
    Command::new(&format!("--{action}-icmp-block={icmp}"), Some(zone), permanent).run(context)
}

//! `mine`: the ports of containers, from the mine data of `docker.ps`.

use brine_context::Context;
use brine_function::{Args, CallError, CallResult, Functions, function, registry};
use brine_value::{Map, Value};

/// Execution functions of `mine`.
pub static FUNCTIONS: Functions<Context> = registry!("mine", [get_docker]);

/// Return the published ports of the containers of all minions by image, from the mine data of `docker.ps`. Ports on all
/// addresses of a host are listed for its addresses: of all interfaces or of some, and in networks (`cidrs`).
///
/// CLI Example:
///
///     salt '*' mine.get_docker
///     salt '*' mine.get_docker interfaces='eth0' cidrs='107.170.147.0/24'
#[function]
pub fn get_docker(
    context: &Context,
    /// Names of interfaces; all by default.
    #[default]
    interfaces: Value,
    /// Networks; only addresses in them are returned.
    #[default]
    cidrs: Value,
    /// Whether containers are keyed by id, not name.
    #[default(false)]
    with_container_id: bool,
) -> CallResult {
    let hosts = context.call("mine.get", Args::positional(["*".into(), "docker.ps".into()]))?;
    let in_networks = |address: &str| -> Result<bool, CallError> {
        let networks = strings(&cidrs);
        for network in &networks {
            let args = Args::positional([address.into(), network.as_str().into()]);
            if context.call("network.ip_in_subnet", args)?.is_truthy() {
                return Ok(true);
            }
        }
        Ok(networks.is_empty())
    };
    let mut images = Map::new();
    for (_, containers) in hosts.as_map().into_iter().flatten() {
        let Some(containers) = containers.as_map() else { continue };
        let mut own = Vec::new();
        for address in addresses(containers.get("host"), &strings(&interfaces)) {
            if in_networks(&address)? {
                own.push(address);
            }
        }
        for (_, container) in containers.iter().filter(|(name, _)| name.as_str() != Some("host")) {
            add(&mut images, container, &own, with_container_id);
        }
    }
    Ok(images.into())
}

/// Returns a list of strings, or the only one.
fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::List(list) => list.iter().map(ToString::to_string).collect(),
        one if one.is_truthy() => vec![one.to_string()],
        _ => Vec::new(),
    }
}

/// Returns the IPv4 addresses of a host's interfaces: of all, or of those with these names.
fn addresses(host: Option<&Value>, names: &[String]) -> Vec<String> {
    let interfaces = host.and_then(|host| host.get("interfaces")).and_then(Value::as_map).into_iter().flatten();
    let interfaces = interfaces.filter(|(name, _)| names.is_empty() || names.contains(&name.to_string()));
    let of_interface = |about: &Value| -> Vec<String> {
        let entries = about.get("inet").and_then(Value::as_list).unwrap_or_default();
        entries.iter().filter_map(|entry| Some(entry.get("address")?.to_string())).collect()
    };
    let mut addresses: Vec<String> = interfaces.flat_map(|(_, about)| of_interface(about)).collect();
    addresses.sort();
    addresses.dedup();
    addresses
}

/// Adds the published ports of a container to those of its image.
fn add(images: &mut Map, container: &Value, host: &[String], with_container_id: bool) {
    let Some(image) = container.get("Image").cloned() else { return };
    let id = container.get("Info").and_then(|info| info.get("Id")).cloned().unwrap_or_default();
    let image = images.entry(image).or_insert_with(Value::map);
    for port in container.get("Ports").and_then(Value::as_list).unwrap_or_default() {
        // Ports that are not published have no address.
        let Some(address) = port.get("IP").filter(|address| address.is_truthy()).map(ToString::to_string) else {
            continue;
        };
        let (Some(public), Some(private)) = (port.get("PublicPort"), port.get("PrivatePort")) else { continue };
        let every = [address.clone()];
        let own = if address == "0.0.0.0" { host } else { &every };
        let Value::Map(image) = &mut *image else { return };
        let ports = image.entry("ipv4".into()).or_insert_with(Value::map);
        let Value::Map(ports) = ports else { return };
        let listed = ports.entry(private.clone()).or_insert_with(|| Value::List(Vec::new()));
        let Value::List(listed) = listed else { return };
        for address in own {
            let place = Value::from(format!("{address}:{public}"));
            let value = if with_container_id { Value::List(vec![place, id.clone()]) } else { place };
            if !listed.contains(&value) {
                listed.push(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_value::{list, map};

    use super::*;

    #[test]
    fn ports_on_all_addresses_are_listed_for_those_of_the_host() {
        let host = map! {"interfaces" => map! {
            "eth0" => map! {"inet" => list![map! {"address" => "10.0.0.1"}]},
            "lo" => map! {"inet" => list![map! {"address" => "127.0.0.1"}]},
            "down" => map! {},
        }}
        .into();
        assert_eq!(addresses(Some(&host), &[]), ["10.0.0.1", "127.0.0.1"]);
        assert_eq!(addresses(Some(&host), &["eth0".into(), "none".into()]), ["10.0.0.1"]);
        let port = |ip: Value, public: i64| map! {"IP" => ip, "PublicPort" => public, "PrivatePort" => 80};
        let ports = list![port("0.0.0.0".into(), 8080), port("192.0.2.1".into(), 81), port(Value::Nil, 1)];
        let container = map! {"Image" => "web", "Info" => map! {"Id" => "ab"}, "Ports" => ports}.into();
        let mut images = Map::new();
        add(&mut images, &container, &["10.0.0.1".into()], false);
        add(&mut images, &container, &["10.0.0.1".into()], false);
        let expected = map! {"web" => map! {"ipv4" => map! {80 => list!["10.0.0.1:8080", "192.0.2.1:81"]}}};
        assert_eq!(images, expected);
        let mut with_ids = Map::new();
        add(&mut with_ids, &container, &[], true);
        assert_eq!(with_ids, map! {"web" => map! {"ipv4" => map! {80 => list![list!["192.0.2.1:81", "ab"]]}}});
    }
}

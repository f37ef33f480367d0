//! The templates of documents.

use brine_context::Context;
use brine_function::{CallResult, function};
use brine_value::Map;

/// The descriptions of the states.
const BASIC: &str = "
{% for s in lowstates %}
`{{ s.id_full }}`
-----------------------------------------------------------------
 * state: {{ s.state_function }}
 * name: `{{ s.name }}`

{{ s.markdown.requisites }}
{{ s.markdown.details }}
{% endfor %}
";

/// A title and facts about the minion.
const HEAD: &str = "
Configuration management
===============================================================================

```
fqdn: {{ grains.get('fqdn') }}
os: {{ grains.get('os') }}
osfinger: {{ grains.get('osfinger') }}
mem_total: {{ grains.get('mem_total') }}MB
num_cpus: {{ grains.get('num_cpus') }}
ipv4: {{ grains.get('ipv4') }}
master: {{ opts.get('master') }}
```

Salt manages the parts of this system that the following sections describe, in the order in which it applies them.
";

/// Facts about the network and the mounts.
const TAIL: &str = "
Other information
===============================================================================

```
# grain ip_interfaces
{{ grains.get('ip_interfaces') }}

# grain hwaddr_interfaces
{{ grains.get('hwaddr_interfaces') }}
{% for command in ['ip address show', 'ip route list table all', 'iptables-save', 'firewall-cmd --list-all', 'mount'] %}
{%- if salt['cmd.has_exec'](command.split()[0]) %}
# {{ command }}
{{ salt['cmd.run'](command) }}
{% endif %}
{%- endfor %}
```
";

/// Return a template with the descriptions of the states alone.
///
/// CLI Example:
///
///     salt '*' highstate_doc.markdown_basic_jinja_template
#[function]
pub fn markdown_basic_jinja_template(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(BASIC.into())
}

/// Return a template with a title, facts about the minion, and the descriptions of the states.
///
/// CLI Example:
///
///     salt '*' highstate_doc.markdown_default_jinja_template
#[function]
pub fn markdown_default_jinja_template(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(format!("{HEAD}{BASIC}").into())
}

/// Return the default template with further facts about the network and the mounts.
///
/// CLI Example:
///
///     salt '*' highstate_doc.markdown_full_jinja_template
#[function]
pub fn markdown_full_jinja_template(_context: &Context, #[keywords] _kwargs: Map) -> CallResult {
    Ok(format!("{HEAD}{BASIC}{TAIL}").into())
}

//! A RabbitMQ server on a free port of the loopback interface.

use std::path::Path;
use std::process::Command;

use super::service::{Service, free_port};

/// The server's own programs: Debian's scripts in `PATH` change the account.
const PROGRAMS: &str = "/usr/lib/rabbitmq/bin";

/// A running server, with the port mapper of its Erlang system.
pub struct RabbitServer {
    server: Option<Service>,
    _mapper: Service,
    /// The environment in which `rabbitmqctl` and `rabbitmq-plugins` are the programs of this server.
    pub environment: Vec<(&'static str, String)>,
}

impl RabbitServer {
    /// Starts a server with further lines of configuration, and waits until it accepts connections to its port.
    pub fn start(directory: &Path, port: u16, options: &str) -> Self {
        let path = |name: &str| directory.join(name).display().to_string();
        let (mapper_port, distribution) = (free_port(), free_port());
        let mut mapper = Command::new("epmd");
        mapper.args(["-address", "127.0.0.1", "-port", &mapper_port.to_string()]);
        let mapper = Service::start(mapper, "erlang-base", directory, mapper_port);
        let config = format!("listeners.tcp.1 = 127.0.0.1:{port}\n{options}");
        std::fs::write(path("rabbitmq.conf"), config).unwrap();
        let search_path = std::env::var("PATH").unwrap_or_default();
        let environment = vec![
            ("PATH", format!("{PROGRAMS}:{search_path}")),
            ("HOME", directory.display().to_string()),
            ("ERL_EPMD_PORT", mapper_port.to_string()),
            ("RABBITMQ_NODENAME", format!("brine{port}@localhost")),
            ("RABBITMQ_DIST_PORT", distribution.to_string()),
            ("RABBITMQ_MNESIA_BASE", path("mnesia")),
            ("RABBITMQ_LOG_BASE", path("logs")),
            ("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf")),
            ("RABBITMQ_CONF_ENV_FILE", "/dev/null".to_owned()),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins")),
        ];
        let mut command = Command::new(format!("{PROGRAMS}/rabbitmq-server"));
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        // The script executes the server in its place, so that the server ends with the test.
        command.env("RUNNING_UNDER_SYSTEMD", "true");
        let server = Service::start(command, "rabbitmq-server", directory, port);
        RabbitServer { server: Some(server), _mapper: mapper, environment }
    }

    /// Stops the server and waits for its end. The port mapper stays: the programs would start another one.
    pub fn stop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}

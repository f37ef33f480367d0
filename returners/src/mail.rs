//! Sends mail through a mail server, for the returners `smtp` and `highstate`.

use lettre::message::header::ContentType;
use lettre::message::{Mailbox, MessageBuilder};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::{Message, SmtpTransport, Transport};

use crate::connection::TIMEOUT;
use crate::{Options, ReturnerError};

/// The names of the options, which differ between returners.
pub(crate) struct OptionNames {
    pub returner: &'static str,
    pub host: &'static str,
    pub port: &'static str,
    pub tls: &'static str,
    pub user: &'static str,
    pub password: &'static str,
    pub from: &'static str,
    pub to: &'static str,
}

/// A mail server, the sender and the recipients.
pub(crate) struct Mailer {
    returner: &'static str,
    /// The address of the server, for messages.
    address: String,
    transport: SmtpTransport,
    /// A message with its sender and recipients.
    builder: MessageBuilder,
}

impl Mailer {
    /// Reads the options. The connection is opened for each mail. With TLS (STARTTLS) the server's certificate is verified.
    pub fn new(options: &Options, names: &OptionNames) -> Result<Self, ReturnerError> {
        let returner = names.returner;
        let invalid =
            |name: &str, reason: String| ReturnerError::Option { option: format!("{returner}.{name}"), reason };
        let host: String = options.required(returner, names.host)?;
        let port = options.get(returner, names.port)?.unwrap_or(25u16);
        let mailbox = |name: &str, text: &str| {
            text.trim()
                .parse::<Mailbox>()
                .map_err(|error| invalid(name, format!("'{text}' is not a mail address: {error}")))
        };
        let from: String = options.required(returner, names.from)?;
        let to: String = options.required(returner, names.to)?;
        let mut builder = Message::builder().from(mailbox(names.from, &from)?);
        for one in to.split(',').filter(|one| !one.trim().is_empty()) {
            builder = builder.to(mailbox(names.to, one)?);
        }
        let mut transport = SmtpTransport::builder_dangerous(host.as_str()).port(port).timeout(Some(TIMEOUT));
        if options.get(returner, names.tls)?.unwrap_or(false) {
            let failed = |error: &dyn std::fmt::Display| invalid(names.tls, format!("TLS failed: {error}"));
            let mut tls = TlsParameters::builder(host.clone());
            if let Some(path) = options.ca_bundle()? {
                tls = tls.certificate_store(CertificateStore::None);
                for certificate in brine_tls::authorities(Some(&path)).map_err(|error| failed(&error))? {
                    let certificate = Certificate::from_der(certificate.to_vec()).map_err(|error| failed(&error))?;
                    tls = tls.add_root_certificate(certificate);
                }
            }
            transport = transport.tls(Tls::Required(tls.build_rustls().map_err(|error| failed(&error))?));
        }
        let user: Option<String> = options.get(returner, names.user)?;
        let password: Option<String> = options.get(returner, names.password)?;
        match (user, password) {
            (Some(user), Some(password)) => transport = transport.credentials(Credentials::new(user, password)),
            (None, None) => {}
            (Some(_), None) => return Err(invalid(names.password, format!("it is required with {}", names.user))),
            (None, Some(_)) => return Err(invalid(names.user, format!("it is required with {}", names.password))),
        }
        Ok(Mailer { returner, address: format!("mail server {host}:{port}"), transport: transport.build(), builder })
    }

    /// Sends a mail. Line breaks in the subject become spaces.
    pub fn send(&self, subject: &str, body: String, content_type: ContentType) -> Result<(), ReturnerError> {
        let refused = |error: &dyn std::fmt::Display| ReturnerError::Refused {
            returner: self.returner,
            reason: format!("the mail is invalid: {error}"),
        };
        let subject = subject.replace(['\r', '\n'], " ");
        let builder = self.builder.clone().subject(subject).header(content_type);
        let message = builder.body(body).map_err(|error| refused(&error))?;
        self.transport.send(&message).map(drop).map_err(|error| ReturnerError::Server {
            returner: self.returner,
            server: self.address.clone(),
            reason: reason(&error),
            is_outage: !error.is_permanent() && !error.is_client() && !error.is_tls(),
        })
    }
}

/// Returns the message of an error with its causes, which the error's own message omits.
fn reason(error: &lettre::transport::smtp::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

"""A mail server for tests: prints its port, and each mail as a line of JSON.

    mail_server.py [CERTIFICATE KEY]
"""
import email
import email.policy
import json
import ssl
import sys
import threading

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult


class Printer:
    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        print(json.dumps({
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "user": session.auth_data,
            "tls": session.ssl is not None,
            "subject": mail["subject"],
            "type": mail.get_content_type(),
            "body": mail.get_content(),
        }), flush=True)
        return "250 OK"


def authenticate(server, session, envelope, mechanism, data):
    is_right = (data.login, data.password) == (b"fred", b"s3cret")
    return AuthResult(success=is_right, handled=is_right, auth_data=data.login.decode() if is_right else None)


options = {}
if len(sys.argv) > 1:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*sys.argv[1:])
    options = {
        "tls_context": context, "require_starttls": True, "auth_required": True, "auth_require_tls": True,
        "authenticator": authenticate,
    }


class FreePort(Controller):
    def _trigger_server(self):
        # The port is chosen by the system.
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


controller = FreePort(Printer(), hostname="127.0.0.1", port=0, server_kwargs=options)
controller.start()
print(controller.port, flush=True)
threading.Event().wait()

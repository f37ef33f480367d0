"""HTTP clients for measurements of the REST API, on plain sockets, so that they use little processor time."""

import contextlib
import json
import multiprocessing
import re
import selectors
import socket
import ssl
import time

# The tag of the events for measurements of streams. The data of an event contains the tag in another form.
TAGS = re.compile(rb"tag: \S*/hook/(bench/\d+)\n")


def tls_context():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def connect(port, context=None):
    peer = socket.create_connection(("127.0.0.1", port), 60)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context.wrap_socket(peer) if context else peer


class Connection:
    """A connection that stays open, for requests one after the other."""

    def __init__(self, port, tls=False):
        self.peer, self.rest = connect(port, tls_context() if tls else None), b""

    @staticmethod
    def request(method, path, body, session=None):
        text = json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\nAccept: application/json\r\n"
        head += f"X-Auth-Token: {session}\r\n" if session else ""
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text

    def post(self, path, body, session=None):
        """Sends a request and returns the data of its response."""
        self.peer.sendall(self.request("POST", path, body, session))
        while (answer := response(self.rest)) is None:
            chunk = self.peer.recv(65536)
            if not chunk:
                raise ConnectionError(f"no response to {path}")
            self.rest += chunk
        body, self.rest = answer
        return json.loads(body)


def response(received):
    """Returns the body of a whole response and what follows it; `None` while it is incomplete."""
    head, end, rest = received.partition(b"\r\n\r\n")
    if not end:
        return None
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    return (rest[:length], rest[length:]) if len(rest) >= length else None


def rate(port, request, parallel, seconds, count=None):
    """Returns the requests/s over several connections with one open request each, for a time or a number of requests."""
    selector, received = selectors.DefaultSelector(), {}
    for _ in range(parallel):
        peer = connect(port)
        selector.register(peer, selectors.EVENT_READ)
        received[peer] = b""
        peer.sendall(request)
    began, done = time.monotonic(), 0
    while (time.monotonic() - began < seconds) if count is None else done < count:
        for key, _ in selector.select(60):
            peer = key.fileobj
            chunk = peer.recv(65536)
            if not chunk:
                raise SystemExit("the API closed a connection")
            received[peer] += chunk
            answer = response(received[peer])
            if answer is None:
                continue
            if b'"m1": true' not in answer[0]:
                raise SystemExit(f"the API answered {answer[0]}")
            received[peer], done = answer[1], done + 1
            peer.sendall(request)
    took = time.monotonic() - began
    for peer in received:
        peer.close()
    return done / took


class Held:
    """Connections that are held by a process of their own."""

    def __init__(self, target, *words):
        self.ours, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=target, args=(theirs, *words), daemon=True)
        self.process.start()
        self.expect(120)

    def expect(self, seconds):
        """Returns the next message of the process."""
        if not self.ours.poll(seconds):
            raise SystemExit("the connections are not served in time")
        return self.ours.recv()

    def last(self, tag):
        """Returns the time at which the last connection has received an event."""
        while True:
            found, at = self.expect(60)
            if found == tag:
                return at

    def closed(self, seconds):
        """Returns the number of connections that the server has closed within this time."""
        self.ours.send(seconds)
        return self.expect(seconds + 60)


@contextlib.contextmanager
def held(target, *words):
    one = Held(target, *words)
    try:
        yield one
    finally:
        one.process.kill()
        one.process.join()


def subscribed(port, session, count, tls=False):
    """Subscribes to /events on this number of connections."""
    return held(subscribe, port, session, count, tls)


def slow_peers(port, count):
    """Sends a byte of a request's head every second on this number of connections."""
    return held(trickle, port, count)


def subscribe(pipe, port, session, count, tls):
    selector, context = selectors.DefaultSelector(), tls_context() if tls else None
    head = f"GET /events HTTP/1.1\r\nHost: bench\r\nX-Auth-Token: {session}\r\n\r\n".encode()
    for _ in range(count):
        peer = connect(port, context)
        peer.sendall(head)
        begun = b""
        while b"retry: 400" not in begun:
            begun += peer.recv(4096)
        peer.setblocking(False)
        selector.register(peer, selectors.EVENT_READ)
    pipe.send("all are subscribed")
    seen = {}
    while True:
        for key, _ in selector.select():
            try:
                chunk = key.fileobj.recv(65536)
            except (BlockingIOError, ssl.SSLWantReadError):
                continue
            for tag in TAGS.findall(chunk):
                seen[tag] = seen.get(tag, 0) + 1
                if seen[tag] == count:
                    pipe.send((tag.decode(), time.monotonic()))


def trickle(pipe, port, count):
    peers = [connect(port) for _ in range(count)]
    head = b"POST /run HTTP/1.1\r\nHost: bench\r\nX-Slow: " + b"x" * 1000
    left, closed, until = {peer: 0 for peer in peers}, 0, None
    for peer in peers:
        peer.setblocking(False)
    pipe.send("all are connected")
    while until is None or time.monotonic() < until:
        began = time.monotonic()
        for peer in list(left):
            try:
                peer.send(head[left[peer] : left[peer] + 1])
                left[peer] += 1
            except OSError:
                closed += 1
                del left[peer]
        if until is None and pipe.poll(max(0, began + 1 - time.monotonic())):
            until = time.monotonic() + pipe.recv()
        time.sleep(max(0, began + 1 - time.monotonic()))
    pipe.send(closed)

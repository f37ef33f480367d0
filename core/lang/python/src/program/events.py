"""The event bus: what `salt.utils.event` has, and a subscriber by ZMTP 3.0 on a Unix socket, without a library."""

import collections
import fnmatch
import functools
import logging
import re
import socket
import struct
import time

import brine_wire as wire

# The signature, version 3.0, and the mechanism NULL.
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"
MORE, LONG, COMMAND = 1, 2, 4
# How long a read of the socket waits before a cancelled call can end.
SLICE = 1.0
MAX_BYTES = 64 << 20


class Subscriber:
    """A connection that receives all events from now on."""

    def __init__(self, path):
        self.connection = socket.socket(socket.AF_UNIX)
        self.buffer = bytearray()
        try:
            self.connection.settimeout(10)
            self.connection.connect(path)
            self.connection.sendall(GREETING)
            greeting = wire.read_exactly(self.connection, len(GREETING))
            if greeting is None or greeting[0] != 0xFF:
                raise OSError("the event bus has another protocol")
            self.connection.sendall(frame(READY, COMMAND) + frame(b"\x01", 0))
        except BaseException:
            self.connection.close()
            raise

    def close(self):
        """Closes the connection."""
        self.connection.close()

    def next(self, deadline):
        """Returns the tag and the data of the next event, or nothing if the deadline passes first."""
        while True:
            event = self.take()
            if event is not None:
                return event
            left = SLICE if deadline is None else min(SLICE, deadline - time.monotonic())
            if left <= 0:
                return None
            self.connection.settimeout(max(left, 0.001))
            try:
                received = self.connection.recv(1 << 16)
            except socket.timeout:
                continue
            if not received:
                raise EOFError("the event bus has ended")
            self.buffer += received

    def take(self):
        """Returns the next event of the buffer, if there is a whole one."""
        while len(self.buffer) >= 2:
            flags, head = self.buffer[0], 9 if self.buffer[0] & LONG else 2
            if len(self.buffer) < head:
                return None
            length = struct.unpack_from(">Q" if flags & LONG else ">B", self.buffer, 1)[0]
            if length > MAX_BYTES:
                raise OSError("an event takes %d bytes, more than %d" % (length, MAX_BYTES))
            if len(self.buffer) < head + length:
                return None
            body = bytes(self.buffer[head:head + length])
            del self.buffer[:head + length]
            if flags & COMMAND:
                continue
            tag, _, data = body.partition(b"\n\n")
            try:
                return tag.decode(errors="replace"), wire.unpack(data)
            except Exception as error:  # pylint: disable=broad-except
                # Minions choose what is in events: none of it ends the function that listens.
                logging.getLogger(__name__).warning("an event cannot be read and is skipped: %s: %s", tag, error)
        return None


def frame(body, flags):
    """Returns a message or command of ZMTP with fewer than 256 bytes."""
    return struct.pack(">BB", flags, len(body)) + body


_MATCHES = {
    "startswith": lambda tag, wanted: tag.startswith(wanted),
    "endswith": lambda tag, wanted: tag.endswith(wanted),
    "find": lambda tag, wanted: wanted in tag,
    "regex": lambda tag, wanted: re.search(wanted, tag) is not None,
    "fnmatch": fnmatch.fnmatchcase,
}


class Events:
    """What `salt.utils.event.get_event` returns: publishes and receives events of the bus of this process."""

    def __init__(self, ask, path):
        self.ask, self.path = ask, path
        self.subscriber = None
        # Events that arrived while another tag was waited for, the oldest first.
        self.kept = collections.deque(maxlen=10000)
        self.wanted = []

    def __enter__(self):
        self.connect_pub()
        return self

    def __exit__(self, *_):
        self.destroy()
        return False

    def connect_pub(self, timeout=None):  # pylint: disable=unused-argument
        """Receives all events from now on."""
        if self.subscriber is None:
            self.subscriber = Subscriber(self.path)
        return True

    def subscribe(self, tag=None, match_type=None):
        """Keeps the events of a tag that arrive while another one is waited for."""
        self.connect_pub()
        if tag is not None:
            self.wanted.append((_MATCHES[match_type or "startswith"], tag))

    def unsubscribe(self, tag, match_type=None):
        """Ends a subscription."""
        pair = (_MATCHES[match_type or "startswith"], tag)
        if pair in self.wanted:
            self.wanted.remove(pair)

    def get_event(self, wait=5, tag="", full=False, match_type=None, no_block=False, auto_reconnect=False):
        """Returns the data of the next event with a tag, or nothing after `wait` seconds."""
        self.connect_pub()
        matches = _MATCHES[match_type or "startswith"]
        for event in list(self.kept):
            if matches(event[0], tag or ""):
                self.kept.remove(event)
                return {"tag": event[0], "data": event[1]} if full else event[1]
        deadline = None if wait is None else time.monotonic() + (0 if no_block else wait)
        while True:
            try:
                event = self.subscriber.next(deadline)
            except (EOFError, OSError):
                self.destroy()
                if not auto_reconnect:
                    raise
                time.sleep(1)
                self.connect_pub()
                continue
            if event is None:
                return None
            if matches(event[0], tag or ""):
                return {"tag": event[0], "data": event[1]} if full else event[1]
            if any(wants(event[0], other) for wants, other in self.wanted):
                self.kept.append(event)

    def get_event_noblock(self):
        """Returns an event that is there, with its tag."""
        return self.get_event(wait=0, full=True, no_block=True)

    get_event_block = functools.partialmethod(get_event, wait=None, full=True)

    def iter_events(self, tag="", full=False, match_type=None, auto_reconnect=False):
        """Returns an endless iterator over the events with a tag."""
        while True:
            event = self.get_event(tag=tag, full=full, match_type=match_type, auto_reconnect=auto_reconnect)
            if event is not None:
                yield event

    def fire_event(self, data, tag, timeout=None):  # pylint: disable=unused-argument
        """Publishes an event."""
        return self.ask("events", "event.fire", [data, tag], {})

    def fire_master(self, data, tag, timeout=None):  # pylint: disable=unused-argument
        """Publishes an event on the master's bus."""
        return self.ask("modules", "event.fire_master", [data, tag], {})

    def destroy(self):
        """Closes the connection, if there is one."""
        if self.subscriber is not None:
            self.subscriber.close()
            self.subscriber = None

"""Frames between Brine and this program: a length of four bytes, big endian, and one msgpack value."""

import collections.abc
import datetime
import struct

MAX_BYTES = 64 << 20
MAX_DEPTH = 100


class Unpackable(TypeError):
    """A value that cannot be sent."""


def pack(value):
    """Returns a value as msgpack."""
    out = bytearray()
    _pack(out, value, 0)
    if len(out) > MAX_BYTES:
        raise Unpackable("the value takes %d bytes, at most %d can be sent" % (len(out), MAX_BYTES))
    return bytes(out)


def _head(out, length, fix, most_fix, sizes):
    if most_fix is not None and length <= most_fix:
        out.append(fix | length)
        return
    for marker, form, most in sizes:
        if length <= most:
            out.append(marker)
            out += struct.pack(form, length)
            return
    raise Unpackable("a value of %d entries cannot be sent" % length)


_TEXT = ((0xD9, ">B", 0xFF), (0xDA, ">H", 0xFFFF), (0xDB, ">I", 0xFFFFFFFF))
_BYTES = ((0xC4, ">B", 0xFF), (0xC5, ">H", 0xFFFF), (0xC6, ">I", 0xFFFFFFFF))
_LIST = ((0xDC, ">H", 0xFFFF), (0xDD, ">I", 0xFFFFFFFF))
_MAP = ((0xDE, ">H", 0xFFFF), (0xDF, ">I", 0xFFFFFFFF))


def _pack_int(out, value):
    if 0 <= value < 0x80:
        out.append(value)
    elif -32 <= value < 0:
        out.append(0x100 + value)
    elif -(1 << 63) <= value < 1 << 63:
        out.append(0xD3)
        out += struct.pack(">q", value)
    elif value < 1 << 64 and value > 0:
        out.append(0xCF)
        out += struct.pack(">Q", value)
    else:
        _pack(out, str(value), 0)


def _pack(out, value, depth):
    if depth > MAX_DEPTH:
        raise Unpackable("a value that nests deeper than %d levels cannot be sent" % MAX_DEPTH)
    if value is None:
        out.append(0xC0)
    elif value is True or value is False:
        out.append(0xC3 if value else 0xC2)
    elif isinstance(value, int):
        _pack_int(out, int(value))
    elif isinstance(value, float):
        out.append(0xCB)
        out += struct.pack(">d", value)
    elif isinstance(value, str):
        try:
            data = value.encode("utf-8")
        except UnicodeEncodeError:
            _pack(out, value.encode("utf-8", "surrogateescape"), depth)
            return
        _head(out, len(data), 0xA0, 31, _TEXT)
        out += data
    elif isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        _head(out, len(data), 0, None, _BYTES)
        out += data
    elif isinstance(value, collections.abc.Mapping):
        entries = list(value.items())
        _head(out, len(entries), 0x80, 15, _MAP)
        for key, entry in entries:
            _pack(out, key, depth + 1)
            _pack(out, entry, depth + 1)
    elif isinstance(
        value,
        (list, tuple, set, frozenset, collections.abc.KeysView, collections.abc.ValuesView, collections.abc.ItemsView),
    ):
        entries = list(value)
        _head(out, len(entries), 0x90, 15, _LIST)
        for entry in entries:
            _pack(out, entry, depth + 1)
    elif isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        _pack(out, value.isoformat(), depth)
    else:
        raise Unpackable("a value of the type '%s' cannot be sent" % type(value).__name__)
    if len(out) > MAX_BYTES:
        raise Unpackable("the value takes more than %d bytes, which cannot be sent" % MAX_BYTES)


def unpack(data):
    """Returns the value that fills these bytes."""
    value, at = _unpack(data, 0)
    if at != len(data):
        raise ValueError("bytes follow the value")
    return value


_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}
_SIZED = {
    0xD9: (">B", "text"), 0xDA: (">H", "text"), 0xDB: (">I", "text"),
    0xC4: (">B", "bytes"), 0xC5: (">H", "bytes"), 0xC6: (">I", "bytes"),
    0xDC: (">H", "list"), 0xDD: (">I", "list"), 0xDE: (">H", "map"), 0xDF: (">I", "map"),
}


def _unpack(data, at):
    marker = data[at]
    at += 1
    if marker < 0x80:
        return marker, at
    if marker >= 0xE0:
        return marker - 0x100, at
    if marker < 0x90:
        return _sized(data, at, "map", marker & 0x0F)
    if marker < 0xA0:
        return _sized(data, at, "list", marker & 0x0F)
    if marker < 0xC0:
        return _sized(data, at, "text", marker & 0x1F)
    if marker in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[marker], at
    if marker in _NUMBERS:
        form = _NUMBERS[marker]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    form, kind = _SIZED[marker]
    length = struct.unpack_from(form, data, at)[0]
    return _sized(data, at + struct.calcsize(form), kind, length)


def _sized(data, at, kind, length):
    if kind == "text":
        return str(data[at:at + length], "utf-8"), at + length
    if kind == "bytes":
        return bytes(data[at:at + length]), at + length
    if kind == "list":
        values = []
        for _ in range(length):
            value, at = _unpack(data, at)
            values.append(value)
        return values, at
    values = {}
    for _ in range(length):
        key, at = _unpack(data, at)
        if isinstance(key, list):
            key = tuple(key)
        value, at = _unpack(data, at)
        values[key] = value
    return values, at


def read_exactly(connection, length):
    """Returns so many bytes, or nothing at the end of the connection."""
    data = bytearray(length)
    view, at = memoryview(data), 0
    while at < length:
        count = connection.recv_into(view[at:])
        if count == 0:
            return None
        at += count
    return bytes(data)


def read_frame(connection):
    """Returns the next value, or nothing at the end of the connection."""
    head = read_exactly(connection, 4)
    if head is None:
        return None
    data = read_exactly(connection, struct.unpack(">I", head)[0])
    return None if data is None else unpack(data)

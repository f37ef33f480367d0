"""Functions in the data of rendered files, which `cmd.call` calls later: the data carries a token of each."""

import collections
import secrets
import threading
import types

import brine_shim as shim

MARK = "__python_function__"
MAX_FUNCTIONS = 1000
MAX_DEPTH = 100


class FunctionTokens:
    """The functions of the files that were rendered last, by token."""

    def __init__(self):
        self.lock = threading.Lock()
        self.functions = collections.OrderedDict()

    def replace(self, data, depth=0):
        """Returns the data with a mark in place of each function."""
        if depth > MAX_DEPTH:
            return data
        if isinstance(data, dict):
            return {key: self.replace(value, depth + 1) for key, value in data.items()}
        if isinstance(data, (list, tuple)):
            return [self.replace(value, depth + 1) for value in data]
        if not isinstance(data, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
            return data
        token = secrets.token_hex(16)
        with self.lock:
            self.functions[token] = data
            while len(self.functions) > MAX_FUNCTIONS:
                self.functions.popitem(last=False)
        return {MARK: token}

    def find(self, token):
        """Returns the function of a token."""
        with self.lock:
            function = self.functions.get(token)
        if function is None:
            raise shim.exceptions.CommandExecutionError(
                "the function no longer exists: Python was restarted after its file was rendered; "
                "apply the states again"
            )
        return function

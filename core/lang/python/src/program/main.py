"""The loop of the Python host: takes calls from Brine, runs each in a thread, and returns the results."""

import ctypes
import logging
import os
import struct
import sys
import threading
import traceback

import brine_fallback as fallback
import brine_loader as loader
import brine_wire as wire


class Call:
    """A call of Brine that runs here."""

    def __init__(self, frame, data):
        self.id = frame["id"]
        self.frame = frame
        self.data = data
        self.thread = None
        self.next_question = 0
        self.answers = {}
        self.changed = threading.Condition()
        self.is_cancelled = False
        self.retcode = 0


class Cancelled(BaseException):
    """Raised in the thread of a call that Brine has given up."""


class Program:
    """The connection to Brine, and the calls that run."""

    def __init__(self, connection):
        self.connection = connection
        self.sending = threading.Lock()
        self.calls = {}
        self.calls_lock = threading.Lock()
        self.data = {}
        self.pid = os.getpid()
        self.loader = None
        os.register_at_fork(after_in_child=self.leave)

    def leave(self):
        """A forked child has no part in the connection."""
        os.close(self.connection.detach())

    def send(self, frame):
        """Sends a frame. In a forked child it does nothing."""
        packed = wire.pack(frame)
        if os.getpid() != self.pid:
            return
        with self.sending:
            self.connection.sendall(struct.pack(">I", len(packed)) + packed)

    def ask(self, kind, function, args, kwargs):
        """Calls a function of Brine within the current call, and returns its result."""
        call = loader.current_call()
        if call is None or os.getpid() != self.pid:
            raise loader.exception("CommandExecutionError")("'%s' is called outside of a call of Brine" % function)
        with call.changed:
            question = call.next_question
            call.next_question += 1
            call.answers[question] = None
        self.send({
            "op": "ask", "id": call.id, "seq": question, "kind": kind, "fun": function,
            "args": list(args), "kwargs": kwargs,
        })
        with call.changed:
            while call.answers[question] is None:
                if call.is_cancelled:
                    raise Cancelled()
                # A cancelled thread sees the exception only between two instructions of Python.
                call.changed.wait(1)
            answer = call.answers.pop(question)
        if "error" in answer:
            raise loader.exception(answer["class"])(answer["error"])
        return answer["value"]

    def log(self, level, name, message):
        """Sends a line for Brine's log."""
        try:
            self.send({"op": "log", "level": level, "name": name, "message": message[:8192]})
        except (OSError, ValueError, TypeError):
            pass

    def run(self, call):
        """Runs one call to its end and sends its result."""
        loader.enter(call)
        try:
            value = self.loader.execute(call.frame)
            frame = {"op": "result", "id": call.id, "value": value, "retcode": loader.retcode(call)}
            try:
                self.finish(call, frame)
                return
            except wire.Unpackable as error:
                frame = {"op": "error", "id": call.id, "class": "TypeError", "message": str(error), "traceback": ""}
        except Cancelled:
            frame = {"op": "error", "id": call.id, "class": "Cancelled", "message": "cancelled", "traceback": ""}
        except BaseException as error:  # pylint: disable=broad-except
            frame = {"op": "error", "id": call.id}
            frame.update(loader.describe_error(error, names_place=True))
        finally:
            loader.leave()
        self.finish(call, frame)

    def finish(self, call, frame):
        if os.getpid() != self.pid:
            # A function forked and the child returned from it: its result is not the call's.
            os._exit(0)
        self.send(frame)
        with self.calls_lock:
            self.calls.pop(call.id, None)

    def handle(self, frame):
        operation = frame["op"]
        if operation == "call":
            references = frame.get("with", {})
            call = Call(frame, {name: self.data[number] for name, number in references.items()})
            with self.calls_lock:
                self.calls[call.id] = call
            call.thread = threading.Thread(target=self.run, args=(call,), name=str(frame.get("fun", "")), daemon=True)
            try:
                call.thread.start()
            except RuntimeError as error:
                self.finish(call, {
                    "op": "error", "id": call.id, "class": "RuntimeError", "message": str(error), "traceback": "",
                })
        elif operation == "answer":
            with self.calls_lock:
                call = self.calls.get(frame["id"])
            if call is not None:
                with call.changed:
                    if frame["seq"] in call.answers:
                        call.answers[frame["seq"]] = frame
                    call.changed.notify_all()
        elif operation == "data":
            self.data[frame["id"]] = frame["value"]
        elif operation == "drop":
            self.data.pop(frame["id"], None)
        elif operation == "cancel":
            with self.calls_lock:
                call = self.calls.get(frame["id"])
            if call is not None:
                call.is_cancelled = True
                with call.changed:
                    call.changed.notify_all()
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(call.thread.ident), ctypes.py_object(Cancelled))
        elif operation == "setup":
            self.loader = loader.Loader(frame, self.ask, fallback.Fallback)
            logging.getLogger().setLevel(1)


class Handler(logging.Handler):
    """Sends what modules log to Brine."""

    def __init__(self, program):
        super().__init__()
        self.program = program

    def emit(self, record):
        try:
            message = record.getMessage()
            if record.exc_info:
                message += "\n" + "".join(traceback.format_exception(*record.exc_info))
        except Exception as error:  # pylint: disable=broad-except
            message = "%s (the message is invalid: %s)" % (record.msg, error)
        self.program.log(record.levelname.lower(), record.name, message)


def main(connection):
    """Serves calls until Brine closes the connection."""
    program = Program(connection)
    logging.getLogger().addHandler(Handler(program))
    while True:
        frame = wire.read_frame(connection)
        if frame is None:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        program.handle(frame)

"""Salt's command line tools, without importing Salt for each call, which takes a second.

    tools.py SOCKET                     imports Salt, then forks for each call
    tools.py SOCKET TOOL [WORD ...]     calls a tool, as the command of that name would

A call passes its words, directory, environment and the three standard streams, and receives the exit status. When a
caller ends, its tool is terminated.
"""

import json
import os
import select
import signal
import socket
import sys


def call(path, words):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    request = json.dumps({"words": words, "directory": os.getcwd(), "environment": dict(os.environ)}).encode()
    socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
    connection.sendall(request)
    status = connection.recv(1)
    sys.exit(status[0] if status else 255)


def serve(path):
    import salt.scripts
    import salt.cli.call
    import salt.cli.cp
    import salt.cli.key
    import salt.cli.run
    import salt.cli.salt
    import salt.client
    import salt.minion
    import salt.output
    import salt.runner

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            attend(connection)
        connection.close()


def attend(connection):
    """Runs the tool of one call in a process of its own, and sends its exit status."""
    length, streams, _, _ = socket.recv_fds(connection, 4, 3)
    request = b""
    while len(request) < int.from_bytes(length, "big"):
        request += connection.recv(65536)
    request = json.loads(request)
    child = os.fork()
    if child == 0:
        connection.close()
        os.setsid()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(request["directory"])
        os.environ.clear()
        os.environ.update(request["environment"])
        run(request["words"])
    for stream in streams:
        os.close(stream)
    while True:
        ready, _, _ = select.select([connection], [], [], 0.01)
        if ready:
            os.killpg(child, signal.SIGTERM)
            os._exit(0)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
    code = os.waitstatus_to_exitcode(status)
    connection.sendall(bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def run(words):
    import salt.scripts

    sys.argv = words
    mains = {
        "salt": salt.scripts.salt_main,
        "salt-call": salt.scripts.salt_call,
        "salt-cp": salt.scripts.salt_cp,
        "salt-key": salt.scripts.salt_key,
        "salt-run": salt.scripts.salt_run,
    }
    status = 0
    try:
        mains[words[0]]()
    except SystemExit as end:
        status = end.code
        if status is not None and not isinstance(status, int):
            print(status, file=sys.stderr)
            status = 1
        status = status or 0
    except BaseException:
        import traceback

        traceback.print_exc()
        status = 1
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        status = 120
    os._exit(status)


if len(sys.argv) == 2:
    serve(sys.argv[1])
else:
    call(sys.argv[1], sys.argv[2:])

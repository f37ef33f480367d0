import os, socket, struct, sys, types
sys.dont_write_bytecode = True
connection = socket.socket(fileno=os.dup(0))
nothing = os.open(os.devnull, os.O_RDONLY)
os.dup2(nothing, 0)
os.close(nothing)
def read(length):
    data = b""
    while len(data) < length:
        part = connection.recv(length - len(data))
        if not part:
            os._exit(0)
        data += part
    return data
def text():
    return read(struct.unpack(">I", read(4))[0]).decode()
if sys.version_info < (3, 9):
    sys.exit("Python 3.9 or later is needed, this is %d.%d" % sys.version_info[:2])
for _ in range(struct.unpack(">I", read(4))[0]):
    name, source = text(), text()
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, "<" + name + ">", "exec"), module.__dict__)
sys.modules["brine_main"].main(connection)

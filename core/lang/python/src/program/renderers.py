"""Renderers of SLS files and templates: `py`, `pyobjects`, `pydsl`, those of Python packages, and custom ones."""

import io
import os
import types

import brine_shim as shim


def render(loader, name, args, path, source, variables, saltenv):
    """Renders a source, or the result of the renderer before, and returns text or data."""
    own = loader.find("renderers", "%s.render" % name)
    if own is not None:
        given = io.StringIO(source) if isinstance(source, str) else source
        return own(given, saltenv=saltenv, sls=variables.get("sls", ""), argline=args, tmplpath=path, context=variables)
    if name not in BUILT_IN:
        reason = loader.errors.get("renderers", {}).get(name, "it has no function render()")
        raise shim.exceptions.SaltRenderError("the renderer '%s' is not available: %s" % (name, reason))
    space = namespace(loader, path, variables, saltenv)
    return BUILT_IN[name](loader, source, space, path)


def namespace(loader, path, variables, saltenv):
    """Returns the variables of a file: those of its template, and what the loader gives."""
    space = dict(variables)
    space.update(loader.dunders("renderers"))
    sls = variables.get("sls", "")
    space.update({"__sls__": sls, "__env__": saltenv, "__file__": path, "saltenv": saltenv, "sls": sls})
    # Templates in Python take their variables from this mapping in Salt.
    space.setdefault("context", dict(variables))
    for name in ("salt", "grains", "pillar", "opts"):
        space[name] = space["__%s__" % name]
    return space


def run(source, path, space):
    """Executes a source as a module with these variables, and returns it."""
    module = types.ModuleType(os.path.basename(path))
    module.__dict__.update(space)
    exec(compile(source, path, "exec"), module.__dict__)
    return module


def read(loader, url, saltenv):
    """Returns the text of a file of the file server."""
    text = loader.spaces["modules"]["cp.get_file_str"](url, saltenv=saltenv)
    if text is False or text is None or text == "":
        raise ImportError("there is no file %s in the environment %s" % (url, saltenv))
    return text


def py(_loader, source, space, path):
    """Calls the function `run` of a file."""
    return run(source, path, space).run()


def pyobjects(loader, source, space, path):
    """Runs a file that declares states as objects."""
    import brine_pyobjects  # pylint: disable=import-outside-toplevel

    return brine_pyobjects.render(loader, source, space, path)


def pydsl(loader, source, space, path):
    """Runs a file that declares states by calls of `state`."""
    import brine_pydsl  # pylint: disable=import-outside-toplevel

    return brine_pydsl.render(loader, source, space, path)


def mako(loader, source, space, _path):
    """Renders a Mako template; `<%include>` and `<%namespace>` take files of the file server."""
    needs("mako", "Mako")
    from mako import exceptions  # pylint: disable=import-outside-toplevel
    from mako.template import Template  # pylint: disable=import-outside-toplevel

    class Lookup:
        """Finds other templates: below `salt://`, or relative to the one that names them."""

        def __init__(self):
            self.found = {}

        def adjust_uri(self, uri, relative_to):
            """Returns the full URL of a template."""
            if "://" in uri:
                return uri
            if uri.startswith("/"):
                return "salt:/" + uri
            base = os.path.dirname((relative_to or "").replace("salt://", "", 1))
            return "salt://" + os.path.normpath(os.path.join(base, uri))

        def get_template(self, uri, relativeto=None):
            """Returns the template of a URL."""
            url = self.adjust_uri(uri, relativeto)
            if url not in self.found:
                text = read(loader, url, space["saltenv"])
                self.found[url] = Template(text, strict_undefined=True, uri=url, lookup=self)
            return self.found[url]

    try:
        url = "salt://%s" % space.get("tplpath", space.get("sls", "").replace(".", "/"))
        template = Template(source, strict_undefined=True, uri=url, lookup=Lookup())
        return template.render(**usable(space))
    except Exception:
        raise shim.exceptions.SaltRenderError(exceptions.text_error_template().render()) from None


def usable(space):
    """Returns the variables whose names a template language does not use itself."""
    taken = {"context", "loop", "UNDEFINED", "__builtins__", "__name__", "self"}
    return {name: value for name, value in space.items() if name not in taken}


def genshi(_loader, source, space, _path):
    """Renders a Genshi template; the variable `method` says which kind it is, XML by default."""
    needs("genshi", "Genshi")
    from genshi import template  # pylint: disable=import-outside-toplevel

    method = space.get("method", "xml")
    kinds = {"text": "NewTextTemplate", "newtext": "NewTextTemplate", "oldtext": "OldTextTemplate"}
    kind = getattr(template, kinds.get(method, "MarkupTemplate"))
    return kind(source.lstrip("\n")).generate(**space).render("text" if method in kinds else method, encoding=None)


def cheetah(_loader, source, space, _path):
    """Renders a Cheetah template."""
    needs("Cheetah.Template", "CT3")
    from Cheetah.Template import Template  # pylint: disable=import-outside-toplevel,import-error

    return str(Template(source=source, searchList=[space]))


def wempy(_loader, source, space, _path):
    """Renders a Wempy template.

    The package's own `render` replaces `sys.stdout`, which all calls share; its code runs here with a writer of its own.
    """
    needs("wemplate.wemplate", "Wempy")
    from wemplate.wemplate import TemplateParser  # pylint: disable=import-outside-toplevel,import-error

    written = []
    space = dict(space, brine_write=lambda value: written.append(str(value)))
    exec(str(TemplateParser(source, writer="brine_write")), space)  # pylint: disable=exec-used
    return "".join(written)


def hjson(_loader, source, _space, _path):
    """Reads Hjson."""
    needs("hjson", "hjson")
    import hjson as package  # pylint: disable=import-outside-toplevel,import-error

    return package.loads(source) if source.strip() else {}


def needs(module, package):
    """Raises an error that names the package of a module which cannot be imported."""
    try:
        __import__(module)
    except ImportError as error:
        message = "the renderer needs the Python package %s: install it for the interpreter of python_host: %s"
        raise shim.exceptions.SaltRenderError(message % (package, error)) from None


BUILT_IN = {
    "py": py, "pyobjects": pyobjects, "pydsl": pydsl, "mako": mako, "genshi": genshi, "cheetah": cheetah,
    "wempy": wempy, "hjson": hjson,
}
# Their data may have functions, for `cmd.call`.
PROGRAMS = ("py", "pyobjects", "pydsl")

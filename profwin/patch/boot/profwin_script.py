"""Runs a script as ``python script.py`` does, with the targets of plans that it defines patched.

:mod:`profwin_boot` starts the interpreter again with this file before the script's path. The script runs in the true
``__main__``, and what it can ask (``sys.argv``, ``sys.path``, ``sys.orig_argv``, ``__file__``) is as without us.
Two frames of this file lie below it; a traceback that is printed does not show them.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType, TracebackType
    from typing import Any

__all__ = ["run"]


def _take_place() -> tuple[str, ModuleType]:
    """Remove the traces of this file from the process; return the script's path and ``__main__``."""
    del sys.argv[0]
    sys.orig_argv.remove(_FILE)
    script = sys.argv[0]
    if not getattr(sys.flags, "safe_path", False):  # Python 3.11
        del sys.path[0]
    main = sys.modules["__main__"]
    own = vars(main)
    loader: Any = type(main.__loader__)
    for name in [name for name in own if name == "__all__" or not (name.startswith("__") and name.endswith("__"))]:
        del own[name]
    path = script if os.path.isabs(script) else os.path.join(os.getcwd(), script)
    own["__doc__"] = None
    own["__file__"] = path
    own["__loader__"] = loader("__main__", path)
    if "__annotations__" in own:
        own["__annotations__"] = {}
    return script, main


def _code(path: str) -> CodeType:
    with open(path, "rb") as file:
        source = file.read()
    try:
        import profwin_boot  # type: ignore[import-not-found]  # it is on PYTHONPATH

        profwin_boot.package()
        from profwin.patch.main import script_code

        return script_code(source, path)
    except Exception as error:
        if type(error).__module__ == "profwin.errors":  # under strict only
            raise
        # Whatever else it is, Python's own compiler says it as it always does.
    return compile(source, path, "exec", dont_inherit=True)


def _hide() -> None:
    """Keep the frames of this file out of the traceback that ends the program."""
    hook = sys.excepthook

    def excepthook(kind: type[BaseException], value: BaseException, traceback: TracebackType | None) -> None:
        sys.excepthook = hook
        while traceback is not None and traceback.tb_frame.f_code.co_filename == _FILE:
            traceback = traceback.tb_next
        value.__traceback__ = traceback
        if hasattr(sys, "last_traceback"):
            sys.last_traceback = traceback
        hook(kind, value, traceback)

    sys.excepthook = excepthook


def run() -> None:
    """Run the script that the command line names after this file, in ``__main__``."""
    script, main = _take_place()
    path = main.__file__
    try:
        code = _code(str(path))
        if not getattr(sys.flags, "safe_path", False):
            sys.path.insert(0, os.path.dirname(os.path.realpath(script)))
        exec(code, vars(main))
    except SystemExit:
        raise
    except BaseException:
        _hide()
        raise


_FILE = __file__

if __name__ == "__main__":
    # A second copy of this file does it: this one's names make room for the script's.
    import profwin_script  # type: ignore[import-not-found]  # it is on PYTHONPATH

    profwin_script.run()

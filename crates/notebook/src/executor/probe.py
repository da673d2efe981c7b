"""What the kernel is asked about itself: facts of an exception, and what failed without stopping its cell.

It lives in a module of its own, so that the notebook's names stay the notebook's. Whatever it needs is bound here,
because a notebook may rebind anything later. Answers are JSON in hexadecimal, so that no `repr` can bend them.
"""

import builtins as _builtins
import json as _json
import faulthandler as _faulthandler
import fcntl as _fcntl
import linecache as _linecache
import os as _os
import subprocess as _subprocess
import sys as _sys
import termios as _termios
import time as _time
import traceback as _traceback

_str, _type, _len, _getattr, _isinstance = str, type, len, getattr, isinstance
_any, _BaseException, _int, _bytes, _set, _id, _list, _tuple = any, BaseException, int, bytes, set, id, list, tuple
_KEEP = 4000
_silent = []
_forked = [False]
_kernel = _os.getpid()
_streams = (_sys.stdout, _sys.stderr)
_shell = _sys.modules["IPython"].get_ipython()


def _text(value, keep=_KEEP):
    try:
        text = value.decode("utf-8", "replace") if _isinstance(value, _bytes) else _str(value)
    except _BaseException:
        text = "<%s that cannot be printed>" % _type(value).__name__
    return text[-keep:]


def _answer(value):
    return _json.dumps(value).encode("ascii").hex()


def _cell_files():
    return _getattr(_shell.compile, "_filename_map", {})


def _frames(error):
    cells = _cell_files()
    found = []
    for frame, line in _traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        count = cells.get(file)
        found.append({
            "file": file,
            "line": line,
            "text": _linecache.getline(file, line).rstrip("\n") if count is not None else None,
            "count": count,
        })
    return found[-200:]


def _message(error):
    if _isinstance(error, SyntaxError) and error.msg:
        return _text(error.msg)
    return _text(error)


def _process(error):
    if _isinstance(error, _subprocess.CalledProcessError):
        return {
            "command": _text(_command(error.cmd), 500),
            "status": error.returncode,
            "stdout": _text(error.stdout) if error.stdout else None,
            "stderr": _text(error.stderr) if error.stderr else None,
        }
    return None


def _command(arguments):
    if _isinstance(arguments, (_list, _tuple)):
        return " ".join(_text(argument) for argument in arguments)
    return arguments


def _facts(error, relation):
    syntax = None
    if _isinstance(error, SyntaxError):
        syntax = {"file": error.filename, "line": error.lineno, "text": _text(error.text or "").rstrip("\n"),
                  "count": _cell_files().get(error.filename)}
    exceptions = _getattr(error, "exceptions", None)
    return {
        "name": _type(error).__name__,
        "module": _type(error).__module__,
        "bases": [base.__name__ for base in _type(error).__mro__],
        "message": _message(error),
        "relation": relation,
        "frames": _frames(error),
        "syntax": syntax,
        "process": _process(error),
        "missing": _getattr(error, "name", None) if _isinstance(error, ModuleNotFoundError) else None,
        "group": [_facts(one, "member") for one in exceptions[:8]] if _isinstance(exceptions, _tuple) else [],
    }


def _chain(error):
    seen = _set()
    chain = []
    relation = "head"
    while error is not None and _id(error) not in seen and _len(chain) < 16:
        seen.add(_id(error))
        chain.append(_facts(error, relation))
        if error.__cause__ is not None:
            error, relation = error.__cause__, "cause"
        elif error.__context__ is not None and not error.__suppress_context__:
            error, relation = error.__context__, "context"
        else:
            error = None
    return chain


def explain():
    error = _getattr(_sys, "last_value", None)
    return _answer({"chain": _chain(error), "silent": _take_silent(), "forked": _forked[0]})


def after():
    return _answer({"chain": [], "silent": _take_silent(), "forked": _forked[0]})


def _take_silent():
    taken = _silent[:20]
    del _silent[:]
    return taken


def satisfied(requirements):
    """Returns for each requirement whether what is installed satisfies it."""
    from importlib import metadata

    def one(text):
        try:
            try:
                from packaging.requirements import Requirement
                wanted = Requirement(text)
                if wanted.url:
                    return False
                if wanted.marker is not None and not wanted.marker.evaluate():
                    return True
                return wanted.specifier.contains(metadata.version(wanted.name), prereleases=True)
            except ImportError:
                return metadata.version(text) is not None
        except Exception:
            return False

    return _answer([one(text) for text in requirements])


def _watch_shell():
    run = _shell.system

    def system(command):
        result = run(command)
        status = _shell.user_ns.get("_exit_code")
        if _isinstance(status, _int) and status != 0:
            _silent.append({"what": "shell", "command": _text(_shell.var_expand(command, depth=1), 500), "status": status})
        return result

    _shell.system = system


def _watch_children():
    handle = _subprocess.Popen._handle_exitstatus

    def handled(self, *arguments, **options):
        result = handle(self, *arguments, **options)
        if self.returncode and _started_by_cell():
            _silent.append({"what": "child", "command": _text(_command(self.args), 500), "status": self.returncode})
        return result

    _subprocess.Popen._handle_exitstatus = handled


def _started_by_cell():
    # Libraries try programs out and expect some to fail; only what a cell itself waits for is worth a word.
    frame = _sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == _subprocess.__file__:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename in _cell_files()


def _watch_starts():
    starts = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system")
    getpid = _os.getpid

    def heard(event, arguments):
        if event not in starts or getpid() != _kernel:
            return
        if event == "os.fork":
            _forked[0] = True
        # What was printed before a process starts is shown before what it writes.
        for stream in _streams:
            try:
                stream.flush()
            except Exception:
                pass

    _sys.addaudithook(heard)


def _after_written(flush, *pipes):
    """Returns the flush that first waits a moment until what processes wrote has been read, so that dates tell the order."""
    getpid, now, sleep, ioctl, ask = _os.getpid, _time.monotonic, _time.sleep, _fcntl.ioctl, _termios.FIONREAD
    nothing = bytes(4)

    def flushed(*arguments, **options):
        give_up = now() + 0.05
        while getpid() == _kernel and _any(ioctl(pipe, ask, nothing) != nothing for pipe in pipes) and now() < give_up:
            sleep(0.0002)
        return flush(*arguments, **options)

    return flushed


def leave_output():
    """Undoes ipykernel's capture of descriptors 1 and 2, which loses what comes right before a process dies."""
    for stream in _streams:
        if _getattr(stream, "_should_watch", False):
            # Its thread goes on waiting for a pipe into which nobody writes.
            stream._should_watch = False
            _os.dup2(stream._original_stdstream_copy, stream._original_stdstream_fd)
        stream._flush = _after_written(stream._flush, _os.dup(1), _os.dup(2))
    # A crash in compiled code names the line of Python that it came from.
    _faulthandler.enable(2, all_threads=False)
    return _answer(True)


for _watch in (_watch_shell, _watch_children, _watch_starts):
    try:
        _watch()
    except Exception:
        pass

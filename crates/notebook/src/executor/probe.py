"""What the kernel is asked about itself: facts of an exception, and what failed without stopping its cell.

It lives in a module of its own, so that the notebook's names stay the notebook's. Whatever it needs is bound here,
because a notebook may rebind anything later. Answers are JSON in hexadecimal, so that no `repr` can bend them.
"""

import ast as _ast
import atexit as _atexit
import json as _json
import faulthandler as _faulthandler
import gc as _gc
import fcntl as _fcntl
import linecache as _linecache
import os as _os
import reprlib as _reprlib
import subprocess as _subprocess
import sys as _sys
import termios as _termios
import time as _time
import traceback as _traceback
import weakref as _weakref

_str, _type, _len, _getattr, _isinstance = str, type, len, getattr, isinstance
_any, _callable, _sorted, _BaseException, _int, _bytes, _set, _id, _list, _tuple = any, callable, sorted, BaseException, int, bytes, set, id, list, tuple
_KEEP = 4000
_silent = []
_forked = [False]
_future = []
_getcwd, _realpath = _os.getcwd, _os.path.realpath
_started, _told, _signals = [], set(), {}
_waitid, _short = _os.waitid, _reprlib.Repr().repr
_WORKERS = ("multiprocessing.", "joblib.externals.loky.", "loky.")
_kernel = _os.getpid()
_streams = (_sys.stdout, _sys.stderr)
_shell = _sys.modules["IPython"].get_ipython()


def _text(value, keep=_KEEP):
    try:
        text = value.decode("utf-8", "replace") if _isinstance(value, _bytes) else _str(value)
    except _BaseException:
        text = "<%s that cannot be printed>" % _type(value).__name__
    if _len(text) <= keep:
        return text
    # The beginning says what, the end often why.
    head = keep // 2
    return "%s … %d characters left out … %s" % (text[:head], _len(text) - keep, text[head - keep:])


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
        is_own = _is_own(file)
        found.append({
            "file": file[_len(_root):] if is_own and count is None else file,
            "line": line,
            "text": _linecache.getline(file, line).rstrip("\n") if is_own else None,
            "count": count,
            "own": is_own and count is None,
            "function": frame.f_code.co_name,
        })
    return found[-200:]


def _message(error):
    if _isinstance(error, SyntaxError) and error.msg:
        return _text(error.msg)
    raised = _raised_by_text(error)
    if raised is not None:
        return "its text could not be had: __str__ raised %s" % raised
    return _text(error)


def _raised_by_text(error):
    """Returns the class of what an exception raises when it is asked what it says."""
    try:
        _str(error)
    except _BaseException as raised:
        return _type(raised).__name__
    return None


def _asked(error):
    """Returns the exception that IPython asked what it says, where this one is only what came of asking."""
    for frame, _ in _traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if code.co_name in ("__str__", "__repr__") and code.co_argcount:
            asked = frame.f_locals.get(code.co_varnames[0])
            return asked if _isinstance(asked, _BaseException) and asked is not error else None
        if _is_own(code.co_filename):
            # The notebook asked by itself.
            return None
    return None


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
        file = error.filename or ""
        is_own = _is_own(file) and file not in _cell_files()
        syntax = {"file": file[_len(_root):] if is_own else file, "own": is_own, "line": error.lineno, "text": _text(error.text or "").rstrip("\n"),
                  "count": _cell_files().get(error.filename)}
    exceptions = _getattr(error, "exceptions", None)
    return {
        "name": _type(error).__name__,
        "module": _type(error).__module__,
        "bases": [base.__name__ for base in _type(error).__mro__],
        "message": _message(error),
        "raises": _raised_by_text(error),
        "relation": relation,
        "frames": _frames(error),
        "syntax": syntax,
        "process": _process(error),
        "values": _values(error),
        "missing": _getattr(error, "name", None) if _isinstance(error, ModuleNotFoundError) else None,
        "group": [_facts(one, "member") for one in exceptions[:8]] if _isinstance(exceptions, _tuple) else [],
    }


def _values(error):
    """Returns what the names in an assertion stood for that says nothing itself."""
    if not _isinstance(error, AssertionError) or error.args or error.__traceback__ is None:
        return []
    try:
        frame, line = _list(_traceback.walk_tb(error.__traceback__))[-1]
        source = _linecache.getline(frame.f_code.co_filename, line)
        test = _ast.parse(source.strip()).body[0].test
        names = _sorted({node.id for node in _ast.walk(test) if _isinstance(node, _ast.Name)})
        found = [(name, frame.f_locals.get(name, frame.f_globals.get(name, _values))) for name in names]
        plain = [(name, value) for name, value in found if value is not _values and not _callable(value)]
        return ["%s = %s" % (name, _short(value)) for name, value in plain[:8] if not _isinstance(value, _type(_sys))]
    except Exception:
        return []


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


def _is_own(file):
    """Returns whether a file is a cell, or lies in the checkout and was not installed there."""
    return file in _cell_files() or (file.startswith(_root) and "/site-packages/" not in file)


def explain():
    _look_at_workers()
    error = _getattr(_sys, "last_value", None)
    error = error and (_asked(error) or error)
    return _answer({"chain": _chain(error), "silent": _take_silent(), "forked": _forked[0], "leaves": False})


def after_last():
    """As after(), and looks for exceptions that nothing asked for: nothing can ask for them any more."""
    _look_at_unasked()
    return after()


def after():
    _look_at_background()
    leaves = bool(_getattr(_shell, "exit_now", False))
    return _answer({"chain": [], "silent": _take_silent(), "forked": _forked[0], "leaves": leaves})


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
    popen = _subprocess.Popen
    execute, handle, communicate = popen._execute_child, popen._handle_exitstatus, popen.communicate

    def executed(self, *arguments, **options):
        by_notebook = _by_notebook(_sys._getframe(1))
        result = execute(self, *arguments, **options)
        if by_notebook:
            self._blueproof = None
            _started.append(_weakref.ref(self))
        return result

    def handled(self, *arguments, **options):
        result = handle(self, *arguments, **options)
        # A program that could not be executed has no such mark, and raises.
        if _getattr(self, "_blueproof", self) is None:
            self._blueproof = _child_ended("child", self, self.returncode)
        return result

    def communicated(self, *arguments, **options):
        result = communicate(self, *arguments, **options)
        record = _getattr(self, "_blueproof", None)
        if record:
            said = [_text(text) for text in (result[1], result[0]) if text]
            record["said"] = said[0] if said else None
        return result

    popen._execute_child, popen._handle_exitstatus, popen.communicate = executed, handled, communicated


def _watch_system():
    system, to_status = _os.system, _os.waitstatus_to_exitcode

    def ran(command):
        status = system(command)
        if status and _os.getpid() == _kernel and _is_own(_sys._getframe(1).f_code.co_filename):
            _silent.append({"what": "system", "command": _text(command, 500), "status": to_status(status)})
        return status

    _os.system = ran


def _watch_folder():
    """The magic `%cd` prints why it failed, and raises nothing."""
    magics = _shell.magics_manager.magics["line"]
    change, tried = [magics["cd"]], []

    def heard(event, arguments):
        if event == "os.chdir" and tried:
            tried.append(arguments[0])

    def cd(parameter_s=""):
        load = _getattr(change[0], "_resolve", None)
        if load is not None:
            # Newer versions of IPython load their magics when they are first used, and put them where this one is.
            magics["cd"] = change[0]
            change[0] = load()
            magics["cd"] = cd
        tried[:] = [None]
        result = change[0](parameter_s)
        wanted = tried[-1]
        del tried[:]
        if _isinstance(wanted, _str) and _realpath(wanted) != _realpath(_getcwd()):
            _silent.append({"what": "folder", "command": _text("%cd " + parameter_s, 500), "status": 0})
        return result

    magics["cd"] = cd
    _sys.addaudithook(heard)


def _watch_futures():
    """Marks the futures of threads and processes whose outcome somebody asked for. Tasks of asyncio know it themselves."""
    import concurrent.futures as futures
    future = futures.Future
    result, exception = future.result, future.exception

    def asked(method):
        def ask(self, *arguments, **options):
            self._blueproof_asked = True
            return method(self, *arguments, **options)
        return ask

    future.result, future.exception = asked(result), asked(exception)
    _future.append(future)


def _look_at_unasked():
    import asyncio
    import gc
    for one in gc.get_objects():
        try:
            if _isinstance(one, _future[0]):
                what, error, asked = "future", one._exception, _getattr(one, "_blueproof_asked", False)
            elif _isinstance(one, asyncio.Task) and one.done() and not one.cancelled():
                what, asked = "task", not one._log_traceback
                error = None if asked else one.exception()
            else:
                continue
            # What a library leaves unasked is its own business.
            if error is None or asked or not _any(frame["own"] or frame["count"] is not None for frame in _frames(error)):
                continue
            said = "%s: %s" % (_type(error).__name__, _message(error))
            _silent.append({"what": what, "command": "", "status": 0, "said": said})
        except Exception:
            pass


def _child_ended(what, child, status):
    if not status or _is_wanted(child.pid, status):
        return {}
    record = {"what": what, "command": _text(_command(child.args), 500), "status": status, "pid": child.pid}
    _silent.append(record)
    return record


def _is_wanted(pid, status):
    """Returns whether the notebook itself sent the signal that ended the process."""
    signals = _signals.get(pid, ())
    return -status in signals or status - 128 in signals


def _by_notebook(frame):
    # Libraries try programs out and expect some to fail; only what a notebook itself starts is worth a word.
    while frame is not None and frame.f_code.co_filename == _subprocess.__file__:
        frame = frame.f_back
    return frame is not None and _is_own(frame.f_code.co_filename)


def _look_at_background():
    """Finds processes that have ended and that nobody has waited for, and leaves them to be waited for."""
    for reference in _started[:]:
        child = reference()
        if child is None or child.returncode is not None:
            _started.remove(reference)
            continue
        status = _status_of(child.pid)
        if status is not None:
            _started.remove(reference)
            child._blueproof = _child_ended("background", child, status)


def _status_of(pid):
    try:
        found = _waitid(_os.P_PID, pid, _os.WEXITED | _os.WNOHANG | _os.WNOWAIT)
    except OSError:
        return None
    if found is None:
        return None
    return found.si_status if found.si_code == _os.CLD_EXITED else -found.si_status


def _watch_copies():
    waitpid, to_status = _os.waitpid, _os.waitstatus_to_exitcode

    def waited(pid, options):
        found, status = waitpid(pid, options)
        if found and _os.getpid() == _kernel:
            caller = _sys._getframe(1)
            name = caller.f_globals.get("__name__") or ""
            if name.startswith(_WORKERS) or _is_own(caller.f_code.co_filename):
                _worker_ended(found, to_status(status))
        return found, status

    _os.waitpid = waited


def _workers():
    module = _sys.modules.get("multiprocessing.process")
    return _list(_getattr(module, "_children", ()))


def _worker_ended(pid, status):
    if not status or pid in _told or _is_wanted(pid, status):
        return
    _told.add(pid)
    names = [worker.name for worker in _workers() if _getattr(worker._popen, "pid", None) == pid]
    _silent.append({"what": "worker" if names else "copy", "command": _text(names[0]) if names else "",
                    "status": status, "pid": pid})


def _watch_forkserver():
    """The children of multiprocessing's server are waited for by the server, which tells their status."""
    popen = _getattr(_sys.modules.get("multiprocessing.popen_forkserver"), "Popen", None)
    if popen is None:
        return False
    poll = popen.poll

    def polled(self, *arguments, **options):
        known, status = self.returncode, poll(self, *arguments, **options)
        if known is None and status:
            _worker_ended(self.pid, status)
        return status

    popen.poll = polled
    return True


def _look_at_workers():
    for worker in _workers():
        pid = _getattr(worker._popen, "pid", None)
        status = _status_of(pid) if pid else None
        if status:
            _worker_ended(pid, status)


def _watch_starts():
    starts = ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system")
    getpid, imported = _os.getpid, [False]

    def heard(event, arguments):
        if event == "import" and arguments[0] == "multiprocessing.popen_forkserver":
            imported[0] = True
        elif imported[0]:
            imported[0] = not _watch_forkserver()
        if event == "os.kill":
            _signals.setdefault(arguments[0], _set()).add(arguments[1])
            return
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
    nothing, patience = bytes(4), [2.0]

    def flushed(*arguments, **options):
        give_up = now() + patience[0]
        while getpid() == _kernel and _any(ioctl(pipe, ask, nothing) != nothing for pipe in pipes):
            if now() > give_up:
                # Somebody writes without end.
                patience[0] = 0.01
                break
            sleep(0.0002)
        return flush(*arguments, **options)

    return flushed


def _after_last_words(end, pipes):
    """Returns the end of the process that first writes what was printed and has not been published yet."""
    getpid, write = _os.getpid, _os.write

    def ended(*arguments, **options):
        if getpid() == _kernel:
            for stream, pipe in zip(_streams, pipes):
                try:
                    for _, text in stream._flush_buffers():
                        write(pipe, text.encode("utf-8", "replace"))
                except Exception:
                    pass
        end(*arguments, **options)

    return ended


def leave_output():
    """Undoes ipykernel's capture of descriptors 1 and 2, which loses what comes right before a process dies."""
    for stream in _streams:
        if _getattr(stream, "_should_watch", False):
            # Its thread goes on waiting for a pipe into which nobody writes.
            stream._should_watch = False
            _os.dup2(stream._original_stdstream_copy, stream._original_stdstream_fd)
    pipes = _os.dup(1), _os.dup(2)
    for stream in _streams:
        stream._flush = _after_written(stream._flush, *pipes)
    for name in ("_exit", "abort"):
        setattr(_os, name, _after_last_words(_getattr(_os, name), pipes))
    # A crash in compiled code names the line of Python that it came from.
    _faulthandler.enable(2, all_threads=False)
    return _answer(True)


def _hasten_end():
    """The interpreter's end looks through all objects, and ipykernel's through all processes, for what is rarely there."""
    kernel, find = _shell.kernel, _shell.kernel._process_children

    def is_alive(child):
        # ipykernel goes on for 14 seconds ending one that is dead, and that the notebook has not waited for.
        try:
            return child.status() != "zombie"
        except Exception:
            return False

    def process_children():
        try:
            _waitid(_os.P_ALL, 0, _os.WEXITED | _os.WNOHANG | _os.WNOWAIT)
        except ChildProcessError:
            return []
        return [child for child in find() if is_alive(child)]

    kernel._process_children = process_children
    # What is here before the notebook is no garbage of the notebook's. The notebook's own objects are collected as ever.
    _gc.freeze()


def _flush_at_exit():
    """Registered before the notebook can, this runs after what it registers, and before ipykernel ends its own threads."""
    if _os.getpid() != _kernel:
        return
    for stream in _streams:
        try:
            stream.flush()
            # ipykernel's thread of control flushes once it has answered, and would wait for ever for its thread of output, which
            # is ended meanwhile. Whoever has begun to wait is served by one more flush.
            flush, stream.flush = stream.flush, _nothing
            flush()
        except Exception:
            pass


def _nothing():
    pass


def _watch_exit():
    _atexit.register(_flush_at_exit)


for _watch in (_watch_shell, _watch_children, _watch_copies, _watch_starts, _watch_system, _watch_folder, _watch_futures, _hasten_end, _watch_exit):
    try:
        _watch()
    except Exception:
        pass

"""Starts the JVM of Spark's driver, and reports why it ended if it does not start.

The steps are those of `spark-submit` and of pyspark's `launch_gateway`, but we keep the exit status of each process:
  1. Spark's launcher, a short-lived JVM, prints the command of the driver's JVM.
  2. We run that command. The driver's JVM ends when its stdin, a pipe from this process, is closed.
  3. The JVM writes the port of its gateway to a file, and Python connects.
`spark-class` runs the launcher in a shell, which loses the exit status of a launcher that was killed, and then fails
with a message about its own array. pyspark waits forever for a JVM that ends with status 0.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from cdc_views.engine.spark.environment import changed_environment
from cdc_views.errors import DriverLost, ServiceFailed, StackError
from cdc_views.host.exit_status import signal_of
from cdc_views.host.waiting import wait_until

GONE: Final = (Py4JError, OSError)
"""What Python raises when the JVM at the other end is gone."""

START_LIMIT_S: Final = 120.0
_POLL_S: Final = 0.05
# A JVM that has closed its connections is about to end. Its exit status says why.
_END_LIMIT_S: Final = 10.0
_SHOWN_BYTES: Final = 2000
# The launcher prints this before the command. Each argument of the command ends with NUL.
_COMMAND_FOLLOWS: Final = b"\0\n"


class Jvm:
    """The JVM of a driver, connected through its `gateway`."""

    def __init__(self, process: subprocess.Popen[bytes], gateway: Any, output: IO[bytes]) -> None:
        self.gateway = gateway
        self._process = process
        self._output = output
        # The JVM stays until this process ends, and then nobody calls `end`.
        weakref.finalize(self, output.close)

    def failure(self, error: Exception) -> StackError:
        """What an error before the session was ready means: DriverLost if the JVM was killed, else ServiceFailed."""
        return _failure(self._process, self._output, error)

    def is_answering(self) -> bool:
        """Whether the JVM answers a call."""
        try:
            self.gateway.jvm.java.lang.System.nanoTime()
        except GONE:
            return False
        return True

    def end(self) -> None:
        """Kill the JVM and wait until it is gone."""
        with suppress(*GONE):
            self.gateway.shutdown()
        _kill(self._process)
        self._output.close()


def start_jvm(java: str, conf: Mapping[str, str]) -> Jvm:
    """Start a driver's JVM with this configuration and connect to its gateway. `java` is the command.

    Raises DriverLost if a process was killed before the gateway was ready, ServiceFailed if one ended by itself.
    """
    # Stdout is ours, so the JVM prints to a file, which is read only if the JVM does not start.
    output = tempfile.TemporaryFile()  # noqa: SIM115  # Jvm closes it
    try:
        process, gateway = _start(java, conf, output)
    except BaseException:
        output.close()
        raise
    return Jvm(process, gateway, output)


def _start(java: str, conf: Mapping[str, str], output: IO[bytes]) -> tuple[subprocess.Popen[bytes], Any]:
    command = _driver_command(java, conf, output)
    with tempfile.TemporaryDirectory() as folder:
        port_file = Path(folder) / "gateway"
        process = _spawn(command, output, {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(port_file)}, stdin=subprocess.PIPE)
        try:
            return process, _connect(process, port_file)
        except BaseException as error:
            failure = _failure(process, output, error) if isinstance(error, Exception) else error
            _kill(process)
            raise failure from error


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _failure(process: subprocess.Popen[bytes], output: IO[bytes], error: Exception) -> StackError:
    if isinstance(error, StackError):
        return error
    is_refusal = isinstance(error, Py4JJavaError) or not isinstance(error, (*GONE, _NoPort))
    try:
        status = process.wait(0 if is_refusal else _END_LIMIT_S)
    except subprocess.TimeoutExpired:
        return _not_started(output, error)
    return _ended(status, output)


class _NoPort(Exception):
    """The JVM ended before it wrote the port of its gateway."""


def _driver_command(java: str, conf: Mapping[str, str], output: IO[bytes]) -> list[str]:
    """Ask Spark's launcher for the command of the driver's JVM."""
    launcher = [java, "-Xmx128m", "-cp", f"{_home()}/jars/*", "org.apache.spark.launcher.Main"]
    settings = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
    command = [*launcher, "org.apache.spark.deploy.SparkSubmit", *settings, "pyspark-shell"]
    process = _spawn(command, output, {}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        printed, _ = process.communicate(timeout=START_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise ServiceFailed(f"the launcher of Spark did not end within {START_LIMIT_S:.0f} s") from None
    finally:
        process.kill()
        process.wait()
    text, follows, arguments = printed.partition(_COMMAND_FOLLOWS)
    if process.returncode != 0 or not follows:
        output.write(text)  # a JVM reports bad options on stdout
        raise _ended(process.returncode, output)
    return [os.fsdecode(argument) for argument in arguments.split(b"\0")[:-1]]


def _connect(process: subprocess.Popen[bytes], port_file: Path) -> Any:
    """Wait for the port and connect to it.

    Raises _NoPort, ServiceFailed, and the errors of py4j for a JVM that ends meanwhile.
    """
    if not wait_until(lambda: port_file.exists() or process.poll() is not None, START_LIMIT_S):
        raise ServiceFailed(
            f"the JVM of Spark has no gateway after {START_LIMIT_S:.0f} s",
            hint="is the machine short of memory or processors?",
        )
    if not port_file.exists():
        raise _NoPort
    with port_file.open("rb") as written:
        port: int = read_int(written)  # type: ignore[no-untyped-call]
        secret: str = UTF8Deserializer().loads(written)  # type: ignore[no-untyped-call]
    with changed_environment({"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}):
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    gateway.proc = process
    return gateway


def _spawn(
    command: Sequence[str], output: IO[bytes], environment: Mapping[str, str], **streams: Any
) -> subprocess.Popen[bytes]:
    # The variables that `spark-submit` sets.
    ours = {"SPARK_HOME": _home(), "SPARK_SCALA_VERSION": _scala_version(), "SPARK_CONNECT_MODE": "0",
            "PYTHONHASHSEED": "0"}  # fmt: skip
    inherited = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}
    try:
        return subprocess.Popen(
            command,
            env={**inherited, **ours, **environment},
            stderr=output,
            # Ctrl-C reaches only Python, which stops the JVM in order.
            preexec_fn=_ignore_interrupts,
            **{"stdout": output, **streams},
        )
    except OSError as error:
        raise ServiceFailed(
            f'"{command[0]}" cannot be run: {error.strerror}', hint="check JAVA_HOME and PATH"
        ) from error


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _ended(status: int, output: IO[bytes]) -> StackError:
    signal_name = signal_of(status)
    if signal_name is None:
        return _not_started(output, f"it ended with status {status}")
    return DriverLost(
        f"the JVM of Spark was ended by {signal_name} while it was starting",
        hint="find out who killed it, or whether memory ran out (engine.driver_memory sets its heap); start again",
    )


def _not_started(output: IO[bytes], reason: object) -> ServiceFailed:
    return ServiceFailed(
        f"the JVM of Spark did not start: {_end_of(output) or reason}",
        hint="check JAVA_HOME, engine.driver_memory and engine.spark_conf",
    )


def _end_of(output: IO[bytes]) -> str:
    output.seek(0, os.SEEK_END)
    output.seek(max(0, output.tell() - _SHOWN_BYTES))
    return output.read().decode(errors="replace").strip()


def _home() -> str:
    # SPARK_HOME of the machine would start another Spark than the one that is installed with us.
    return str(Path(pyspark.__file__).parent)


def _scala_version() -> str:
    core = next(Path(_home(), "jars").glob("spark-core_*.jar"))
    return core.name.removeprefix("spark-core_").partition("-")[0]

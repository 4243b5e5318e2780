"""Starts a fleet on this machine, or joins one on a Ray cluster; whatever is in the way is said in a sentence."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import secrets
import shlex
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from engine import ConfigError, EngineConfig, EngineStopped
from fleet.autoscaling import Size, size_of
from fleet.fleet_engine import FleetEngine
from fleet.membership import Transport

ROOT = Path(__file__).resolve().parent.parent
RAY = "2.60.0"
"""What requirements-fleet.txt installs, and what this is written for."""
APP = "voice-studio"
PLAN_KEY = b"voice-studio-plan"
"""Under which a cluster keeps what its fleet was asked to be."""
OBJECT_STORE_BYTES = 100 * 2**20
"""Nothing of ours passes through it; Ray itself wants some."""
DRAIN_SECONDS = 20.0
"""How long a replica that is replaced may speak on; takes that are longer are taken up by others."""
INSTALL = f"{shlex.quote(sys.executable)} -m pip install -r requirements-fleet.txt"
POLL_SECONDS = 0.25
INIT_TRIES = 3
"""Ray allows its own start seconds, which a busy machine exceeds now and then."""

ENVIRONMENT = {
    "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",  # gRPC, and a router in the event loop that asks it
    "RAY_SERVE_ENABLE_DIRECT_INGRESS": "0",
    "RAY_SERVE_REPLICA_GRPC_MAX_MESSAGE_LENGTH": str(2**29),  # a long clip at 192 kHz
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # it is 15 else, and on a busy machine engines would hardly get to start
    "RAY_gcs_rpc_server_reconnect_timeout_s": str(2**30),  # else a process ends itself when the head has gone
}
"""What Ray reads when it is imported, in every process of the fleet."""

Progress = Callable[[str, float], None]


def start_fleet(
    config: EngineConfig, engines: int | tuple[int, int] | None, address: str | None, progress: Progress
) -> FleetEngine:
    """``engines`` replicas of an engine, of two numbers as many as are needed between them, and with None one for each
    GPU; on this machine, or on the cluster at ``address``.

    Blocking. Raises ConfigError, EngineStopped; nothing that was not there before is left behind then.
    """
    _check_ray()
    if config.device not in (None, "cpu", "cuda"):
        raise ConfigError(
            f"a fleet gives each engine a GPU by itself: set STUDIO_DEVICE to cuda or cpu, not {config.device}"
        )
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(path)}
    os.environ.update(environment)
    config = replace(config, model=str(Path(config.model).resolve()) if Path(config.model).is_dir() else config.model)
    at_end = contextlib.ExitStack()
    with contextlib.ExitStack() as undo:
        undo.callback(at_end.close)
        progress("starting Ray" if address is None else f"joining Ray at {address}", 0.0)
        if address is None:
            gpus = torch.cuda.device_count() if config.device != "cpu" else 0
            size = size_of(engines, gpus, len(os.sched_getaffinity(0)), config, "this machine", may_grow=False)
            _start_ray(at_end, gpus)
        else:
            gpus, cores = _join_ray(at_end, address, environment)
            gpus = gpus if config.device != "cpu" else 0
            size = size_of(engines, gpus, cores, config, "the cluster", may_grow=True)
        if not gpus and config.threads is None:
            config = replace(config, threads=max(1, (os.cpu_count() or 1) // (2 * size.most)))
        plan = f"{size} × {config} of {_code()}"
        if address is None or not _is_running(plan):
            deploy(config, plan, size, bool(gpus), progress)
        engine = FleetEngine(connect, at_end.close, _head())
        undo.pop_all()
    progress("ready", 1.0)
    return engine


def _head() -> str:
    """The address of the head of the cluster that this process has joined."""
    import ray

    return str(ray.get_runtime_context().gcs_address)


def way_in() -> Callable[[EngineConfig, Progress], FleetEngine]:
    """What gives another process of this machine the fleet that this one has; it crosses processes."""
    return partial(join_fleet, _head())


def join_fleet(address: str, config: EngineConfig, progress: Progress) -> FleetEngine:
    """The fleet of the cluster at ``address``, as it is there. Blocking. Raises EngineStopped, ConfigError."""
    import ray

    progress("joining the fleet", 0.0)
    with contextlib.ExitStack() as undo:
        undo.callback(ray.shutdown)
        try:
            with _own_sigterm():
                ray.init(address, log_to_driver=False, logging_level="error")
        except (RuntimeError, OSError, ValueError, ray.exceptions.RayError) as error:
            raise EngineStopped(f"the fleet's Ray at {address} cannot be joined: {_first_line(error)}") from error
        engine = FleetEngine(connect, ray.shutdown)
        undo.pop_all()
    return engine


def deploy(config: EngineConfig, plan: str, size: Size, on_gpu: bool, progress: Progress) -> None:
    """Have Ray Serve run these replicas, and wait until they do; those of another plan are replaced one by one.

    Blocking. Raises ConfigError with what the engine said, if it could not start.
    """
    from ray import serve
    from ray.experimental.internal_kv import _internal_kv_put
    from ray.serve.config import RequestRouterConfig

    from fleet.deployment import application

    app = application(
        config,
        plan,
        name="engine",
        **size.options(config, on_gpu),
        max_ongoing_requests=100_000,  # the engine's line is the only line
        ray_actor_options={"num_cpus": 0, "num_gpus": int(on_gpu)},
        health_check_period_s=2.0,
        health_check_timeout_s=5.0,
        graceful_shutdown_timeout_s=DRAIN_SECONDS,
        graceful_shutdown_wait_loop_s=0.2,
        max_constructor_retry_count=1,
        request_router_config=RequestRouterConfig(request_router_class="fleet.router.NamedReplica"),
    )
    target = serve.RunTarget(target=app, name=APP, route_prefix=None)
    serve.run_many([target], wait_for_applications_running=False)  # its status is DEPLOYING from here on
    while True:
        now = serve.status().applications.get(APP)
        if now is not None:
            if now.status in ("DEPLOY_FAILED", "UNHEALTHY"):
                raise ConfigError(_reason(now))
            if now.status == "RUNNING":
                _internal_kv_put(PLAN_KEY, plan.encode(), overwrite=True)
                return
            states: Mapping[str, int] = next((deployment.replica_states for deployment in now.deployments.values()), {})
            up = states.get("RUNNING", 0)
            progress(f"starting engines: {up} of {size.least} ready", min(1.0, up / size.least))
        else:
            progress(f"starting {size.least} engines", 0.0)
        time.sleep(POLL_SECONDS)


async def connect() -> Transport:
    """The line to the replicas, for the running event loop; waits until it knows them all."""
    from ray import serve

    from fleet.ray_transport import RayTransport

    line = RayTransport(serve.get_app_handle(APP))
    await line.open_up()
    return line


def _check_ray() -> None:
    """Raises ConfigError unless the very version is installed."""
    if importlib.util.find_spec("ray") is None:
        raise ConfigError(f"a fleet needs Ray, which is not installed: use `make fleet`, or {INSTALL}")
    if (installed := importlib.metadata.version("ray")) != RAY:
        raise ConfigError(f"a fleet needs Ray {RAY}, and {installed} is installed: {INSTALL}")


def _start_ray(at_end: contextlib.ExitStack, gpus: int) -> None:
    """A Ray of this process's own, which ends with it. Raises EngineStopped."""
    os.environ["RAY_AUTH_MODE"] = "token"  # its ports listen on every interface
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray
    from ray import serve

    if ray.is_initialized():
        raise EngineStopped("Ray runs in this process already")
    folder = _own_folder(at_end)
    # Linux kills Ray's processes when the thread that started them ends: it has to last as long as they.
    thread = at_end.enter_context(ThreadPoolExecutor(1, "ray"))
    at_end.callback(ray.shutdown)
    for tries_left in reversed(range(INIT_TRIES)):
        try:
            with _own_sigterm():
                thread.submit(
                    ray.init,
                    "local",  # not a cluster that RAY_ADDRESS names: that is for those who use Ray themselves
                    num_gpus=gpus,
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE_BYTES,
                    log_to_driver=False,
                    logging_level="error",
                    _temp_dir=folder,
                ).result()
            break
        except Exception as error:  # a bare one says that a start took too long
            ray.shutdown()
            _kill_started(folder)
            if not tries_left or "timed out" not in str(error):
                raise EngineStopped(f"Ray could not start: {_first_line(error)}") from error
    serve.start(proxy_location="Disabled", logging_config={"log_level": "WARNING"})


@contextlib.contextmanager
def _own_sigterm() -> Iterator[None]:
    """Ray's C++ takes SIGTERM to itself and aborts the process at one; ours, which ends in order, is put back.

    In C as well, for Python's own call is only for the main thread.
    """
    libc = ctypes.CDLL(None)
    ours = ctypes.create_string_buffer(512)  # more than a struct sigaction has on any system
    libc.sigaction(signal.SIGTERM, None, ours)
    try:
        yield
    finally:
        libc.sigaction(signal.SIGTERM, ours, None)


def _own_folder(at_end: contextlib.ExitStack) -> str:
    """For Ray's logs and sockets, so a short path; those of studios that were killed go."""
    for left in Path(tempfile.gettempdir()).glob("fleet-*"):
        with contextlib.suppress(OSError):
            status = left.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                continue  # of another user, who could have put anything in the place of the file
            with open(os.open(left / "owner", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where its studio runs
                shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix="fleet-"))
    at_end.callback(shutil.rmtree, folder, ignore_errors=True)
    file = at_end.enter_context(folder.joinpath("new").open("w"))
    fcntl.flock(file, fcntl.LOCK_EX)
    folder.joinpath("new").rename(folder / "owner")  # nobody sees it without its lock
    # Ray gives every user of the machine access to the folder that it gets, so that lies in a private one.
    return str(folder / "r")


def _kill_started(folder: str) -> None:
    """End what a Ray that failed to start has left running: its processes have its folder in their arguments."""
    for arguments in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended by itself
            if folder.encode() in arguments.read_bytes() and int(arguments.parent.name) != os.getpid():
                os.kill(int(arguments.parent.name), signal.SIGKILL)


def _join_ray(at_end: contextlib.ExitStack, address: str, environment: dict[str, str]) -> tuple[int, int]:
    """Connect to the cluster; how many GPUs and cores it has. Raises ConfigError."""
    import ray
    from ray import serve

    at_end.callback(ray.shutdown)
    try:
        with _own_sigterm():
            ray.init(address, runtime_env={"env_vars": environment}, log_to_driver=False, logging_level="error")
        serve.start(proxy_location="Disabled", logging_config={"log_level": "WARNING"})
    except ConnectionError as error:
        raise ConfigError(
            f"STUDIO_RAY_ADDRESS={address}, but no Ray answers there: on this machine, run `ray start --head`, "
            "or `ray start --address=HEAD:6379` to join one"
        ) from error
    except (RuntimeError, OSError, ValueError, ray.exceptions.RayError) as error:
        versions = re.findall(r"(Ray|Python): (\S+)", str(error))
        if "Version mismatch" in str(error) and len(versions) == 4:
            (_, ray_there), (_, python_there), (_, ray_here), (_, python_here) = versions
            raise ConfigError(
                f"the cluster at {address} runs Ray {ray_there} on Python {python_there}, and this studio Ray "
                f"{ray_here} on Python {python_here}: start both from environments made alike"
            ) from error
        raise ConfigError(f"STUDIO_RAY_ADDRESS={address} cannot be joined: {_first_line(error)}") from error
    there = ray.cluster_resources()
    return int(there.get("GPU", 0)), int(there.get("CPU", 0))


def _is_running(plan: str) -> bool:
    """Whether the cluster runs a fleet of this very plan already, which then need not load again."""
    from ray import serve
    from ray.experimental.internal_kv import _internal_kv_get

    now = serve.status().applications.get(APP)
    return now is not None and now.status == "RUNNING" and _internal_kv_get(PLAN_KEY) == plan.encode()


def _code() -> str:
    """Sixteen hex digits of the code that replicas run: new code is another plan."""
    digest = hashlib.sha256()
    for path in sorted(path for package in ("engine", "fleet") for path in (ROOT / package).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _reason(now: Any) -> str:
    """Why replicas could not start: the engine's own words, from the traceback that Serve tells it in."""
    messages = "\n".join([now.message, *(deployment.message for deployment in now.deployments.values())])
    reasons = re.findall(r"engine\.engine_errors\.\w+: (.+)", messages)
    return reasons[-1] if reasons else f"Ray Serve could not start the engines: {messages.strip()}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__

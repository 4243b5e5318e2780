"""Starts a fleet on this machine, or joins one on a Ray cluster."""

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
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from engine import ConfigError, EngineConfig, EngineStopped, available_cores
from fleet.autoscaling import ReplicaRange, fleet_size
from fleet.fleet_engine import FleetEngine
from fleet.membership import Transport

ROOT = Path(__file__).resolve().parent.parent
RAY = "2.60.0"
"""The version in requirements-fleet.txt."""
APP = "voice-studio"
PLAN_KEY = b"voice-studio-plan"
"""The key under which a cluster stores the plan of its fleet."""
OBJECT_STORE_BYTES = 100 * 2**20
"""The fleet does not use the object store, but Ray requires one."""
DRAIN_SECONDS = 20.0
"""Seconds for a replaced replica to finish its takes; other replicas continue longer ones."""
INSTALL = f"{shlex.quote(sys.executable)} -m pip install -r requirements-fleet.txt"
POLL_SECONDS = 0.25
FOLDERS = "/tmp", "/dev/shm"  # noqa: S108  (the folder in it is private)
"""Folders for Ray's own, if that of temporary files (TMPDIR) has a longer path than LONGEST_FOLDER."""
LONGEST_FOLDER = 25
"""Bytes: Ray's sockets are 82 bytes below it, and a socket's path has at most 107."""
INIT_TRIES = 3
"""Attempts to start Ray, whose own timeout a busy machine sometimes exceeds."""

ENVIRONMENT = {
    "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",  # gRPC, and a router in the event loop that asks it
    "RAY_SERVE_ENABLE_DIRECT_INGRESS": "0",
    "RAY_SERVE_REPLICA_GRPC_MAX_MESSAGE_LENGTH": str(2**29),  # a long clip at 192 kHz
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",  # otherwise a late call, as by a router while Ray is ended, starts another Ray
    "RAY_worker_niceness": "0",  # the default of 15 starves engines on a busy machine
    "RAY_gcs_rpc_server_reconnect_timeout_s": str(2**30),  # otherwise processes exit when the head node is down
}
"""Variables that Ray reads on import, in every process of the fleet."""

Progress = Callable[[str, float], None]


def start_fleet(
    config: EngineConfig, engines: int | tuple[int, int] | None, address: str | None, progress: Progress
) -> FleetEngine:
    """Start a fleet on this machine, or on the cluster at ``address``.

    ``engines`` is the number of replicas, a range that follows the load, or None for one per GPU. Blocking. Raises
    ConfigError and EngineStopped, and then leaves nothing running.
    """
    _check_ray()
    if config.device not in (None, "cpu", "cuda"):
        raise ConfigError(
            f"a fleet assigns a GPU to each engine: set STUDIO_DEVICE to cuda or cpu, not {config.device}"
        )
    path = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(path)}
    os.environ.update(environment)
    config = replace(config, model=str(Path(config.model).resolve()) if Path(config.model).is_dir() else config.model)
    cleanup = contextlib.ExitStack()
    with contextlib.ExitStack() as undo:
        undo.callback(cleanup.close)
        progress("starting Ray" if address is None else f"joining Ray at {address}", 0.0)
        if address is None:
            gpus = torch.cuda.device_count() if config.device != "cpu" else 0
            size = fleet_size(engines, gpus, available_cores(), config, "this machine", may_grow=False)
            _start_ray(cleanup, gpus)
        else:
            gpus, cores = _join_ray(cleanup, address, environment)
            gpus = gpus if config.device != "cpu" else 0
            size = fleet_size(engines, gpus, cores, config, "the cluster", may_grow=True)
        if not gpus and config.threads is None:
            config = replace(config, threads=max(1, available_cores() // (2 * size.maximum)))
        plan = f"{size} × {config} of {_code_hash()}"
        if address is None or not _is_running(plan):
            deploy(config, plan, size, bool(gpus), progress)
        engine = FleetEngine(connect, cleanup.close, _head())
        undo.pop_all()
    progress("ready", 1.0)
    return engine


def _head() -> str:
    """The address of the head node of the cluster that this process has joined."""
    import ray

    return str(ray.get_runtime_context().gcs_address)


def fleet_joiner() -> Callable[[EngineConfig, Progress], FleetEngine]:
    """A picklable function with which other processes of this machine join the same fleet."""
    return partial(join_fleet, _head())


def join_fleet(address: str, config: EngineConfig, progress: Progress) -> FleetEngine:
    """The running fleet of the cluster at ``address``. Blocking. Raises EngineStopped, ConfigError."""
    import ray

    progress("joining the fleet", 0.0)
    with contextlib.ExitStack() as undo:
        undo.callback(ray.shutdown)
        try:
            _init_ray(address)
        except (RuntimeError, OSError, ValueError, ray.exceptions.RayError) as error:
            raise EngineStopped(f"the fleet's Ray at {address} cannot be joined: {_first_line(error)}") from error
        engine = FleetEngine(connect, ray.shutdown)
        undo.pop_all()
    return engine


def deploy(config: EngineConfig, plan: str, size: ReplicaRange, on_gpu: bool, progress: Progress) -> None:
    """Deploy these replicas with Ray Serve and wait until they run; those of another plan are replaced one by one.

    Blocking. Raises ConfigError with the engine's error if it could not start.
    """
    from ray import serve
    from ray.experimental.internal_kv import _internal_kv_put
    from ray.serve.config import RequestRouterConfig

    from fleet.ray_serve import EngineDeployment

    deployment = serve.deployment(
        EngineDeployment,
        name="engine",
        **size.options(config, on_gpu),
        max_ongoing_requests=100_000,  # only the engine queues requests
        ray_actor_options={"num_cpus": 0, "num_gpus": int(on_gpu)},
        health_check_period_s=2.0,
        health_check_timeout_s=5.0,
        graceful_shutdown_timeout_s=DRAIN_SECONDS,
        graceful_shutdown_wait_loop_s=0.2,
        max_constructor_retry_count=1,
        request_router_config=RequestRouterConfig(request_router_class="fleet.ray_serve.NamedReplica"),
    )
    target = serve.RunTarget(target=deployment.bind(config, plan), name=APP, route_prefix=None)
    serve.run_many([target], wait_for_applications_running=False)  # its status is DEPLOYING from here on
    while True:
        overview = serve.status().applications.get(APP)
        if overview is not None:
            if overview.status in ("DEPLOY_FAILED", "UNHEALTHY"):
                raise ConfigError(_reason(overview))
            if overview.status == "RUNNING":
                _internal_kv_put(PLAN_KEY, plan.encode(), overwrite=True)
                return
            states: Mapping[str, int] = next(
                (deployment.replica_states for deployment in overview.deployments.values()), {}
            )
            running = states.get("RUNNING", 0)
            progress(f"starting engines: {running} of {size.minimum} ready", min(1.0, running / size.minimum))
        else:
            progress(f"starting {size.minimum} engines", 0.0)
        time.sleep(POLL_SECONDS)


async def connect() -> Transport:
    """The transport to the replicas, for the running event loop."""
    from ray import serve

    from fleet.ray_serve import RayTransport

    transport = RayTransport(serve.get_app_handle(APP))
    await transport.discover()
    return transport


def _check_ray() -> None:
    """Raises ConfigError unless the required version is installed."""
    if importlib.util.find_spec("ray") is None:
        raise ConfigError(f"a fleet needs Ray, which is not installed: use `make fleet`, or {INSTALL}")
    if (installed := importlib.metadata.version("ray")) != RAY:
        raise ConfigError(f"a fleet needs Ray {RAY}, but {installed} is installed: {INSTALL}")


def _start_ray(cleanup: contextlib.ExitStack, gpus: int) -> None:
    """Start Ray for this process only; it stops with it. Raises EngineStopped."""
    os.environ["RAY_AUTH_MODE"] = "token"  # its ports listen on every interface
    os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray
    from ray import serve

    if ray.is_initialized():
        raise EngineStopped("Ray is already running in this process")
    folder = _make_folder(cleanup)
    # Linux kills Ray's processes when the thread that started them ends, so the thread must outlive them.
    thread = cleanup.enter_context(ThreadPoolExecutor(1, "ray"))
    cleanup.callback(ray.shutdown)
    for tries_left in reversed(range(INIT_TRIES)):
        try:
            thread.submit(
                _init_ray,
                "local",  # not the cluster of RAY_ADDRESS, which is for other programs
                num_gpus=gpus,
                include_dashboard=False,
                object_store_memory=OBJECT_STORE_BYTES,
                _temp_dir=folder,
            ).result()
            break
        except Exception as error:  # Ray raises a bare Exception on a timeout
            ray.shutdown()
            _kill_started(folder)
            if not tries_left or "timed out" not in str(error):
                raise EngineStopped(f"Ray could not start: {_first_line(error)}") from error
    serve.start(proxy_location="Disabled", logging_config={"log_level": "WARNING"})


def _init_ray(address: str, **options: Any) -> None:
    """Connect to Ray, and restore our handler of SIGTERM, as Ray installs one that aborts the process.

    This uses libc, as Python's own function works only on the main thread.
    """
    import ray

    libc = ctypes.CDLL(None)
    saved_handler = ctypes.create_string_buffer(512)  # more than a struct sigaction has on any system
    libc.sigaction(signal.SIGTERM, None, saved_handler)
    try:
        ray.init(address, log_to_driver=False, logging_level="error", **options)
    finally:
        libc.sigaction(signal.SIGTERM, saved_handler, None)


def _make_folder(cleanup: contextlib.ExitStack) -> str:
    """A folder with a short path for Ray's logs and sockets; deletes those of killed studios. Raises ConfigError."""
    if sys.platform == "win32":
        raise NotImplementedError("a fleet needs Linux")
    parents = [parent for parent in (tempfile.gettempdir(), *FOLDERS) if len(os.fsencode(parent)) <= LONGEST_FOLDER]
    parent = next((parent for parent in parents if os.access(parent, os.W_OK | os.X_OK)), None)
    if parent is None:
        limit = f"a folder with a path of at most {LONGEST_FOLDER} characters in which the studio may write"
        raise ConfigError(f"Ray needs {limit}: set TMPDIR to one, or allow writing in {' or '.join(FOLDERS)}")
    for leftover in Path(parent).glob("fleet-*"):
        with contextlib.suppress(OSError):
            status = leftover.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                continue  # of another user, who may have replaced the file
            with open(os.open(leftover / "owner", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if its studio is running
                shutil.rmtree(leftover, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix="fleet-", dir=parent))
    cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
    file = cleanup.enter_context(folder.joinpath("new").open("wb"))
    fcntl.flock(file, fcntl.LOCK_EX)
    folder.joinpath("new").rename(folder / "owner")  # it is never visible without its lock
    # Ray opens its folder to every user of the machine, so it is put into a private one.
    return str(folder / "r")


def _kill_started(folder: str) -> None:
    """Kill the processes left by a failed start of Ray: they have its folder in their arguments."""
    if sys.platform == "win32":
        raise NotImplementedError("a fleet needs Linux")
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has already exited
            if folder.encode() in cmdline.read_bytes() and int(cmdline.parent.name) != os.getpid():
                os.kill(int(cmdline.parent.name), signal.SIGKILL)


def _join_ray(cleanup: contextlib.ExitStack, address: str, environment: dict[str, str]) -> tuple[int, int]:
    """Connect to the cluster; returns its number of GPUs and cores. Raises ConfigError."""
    import ray
    from ray import serve

    cleanup.callback(ray.shutdown)
    try:
        _init_ray(address, runtime_env={"env_vars": environment})
        serve.start(proxy_location="Disabled", logging_config={"log_level": "WARNING"})
    except ConnectionError as error:
        raise ConfigError(
            f"STUDIO_RAY_ADDRESS={address}, but no Ray answers there: on this machine, run `ray start --head`, "
            "or `ray start --address=HEAD:6379` to join one"
        ) from error
    except (RuntimeError, OSError, ValueError, ray.exceptions.RayError) as error:
        versions = re.findall(r"(Ray|Python): (\S+)", str(error))
        if "Version mismatch" in str(error) and len(versions) == 4:
            (_, cluster_ray), (_, cluster_python), (_, local_ray), (_, local_python) = versions
            raise ConfigError(
                f"the cluster at {address} runs Ray {cluster_ray} on Python {cluster_python}, this studio runs Ray "
                f"{local_ray} on Python {local_python}: use the same versions for both"
            ) from error
        raise ConfigError(f"STUDIO_RAY_ADDRESS={address} cannot be joined: {_first_line(error)}") from error
    resources = ray.cluster_resources()
    return int(resources.get("GPU", 0)), int(resources.get("CPU", 0))


def _is_running(plan: str) -> bool:
    """Whether the cluster already runs a fleet with this plan."""
    from ray import serve
    from ray.experimental.internal_kv import _internal_kv_get

    overview = serve.status().applications.get(APP)
    return overview is not None and overview.status == "RUNNING" and _internal_kv_get(PLAN_KEY) == plan.encode()


def _code_hash() -> str:
    """A hash of the replicas' code (16 hex digits), as new code makes a new plan."""
    digest = hashlib.sha256()
    for path in sorted(path for package in ("engine", "fleet") for path in (ROOT / package).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _reason(overview: Any) -> str:
    """Why replicas could not start: the engine's own message, from Serve's traceback."""
    messages = "\n".join([overview.message, *(deployment.message for deployment in overview.deployments.values())])
    reasons = re.findall(r"engine\.engine_errors\.\w+: (.+)", messages)
    return reasons[-1] if reasons else f"Ray Serve could not start the engines: {messages.strip()}"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__

"""Shared fixtures, and the rule that nothing is skipped silently: with CI=true a skip is a failure."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.environment import clean, data_variables

clean()  # before any module reads a variable
gc.set_threshold(50_000, 50, 50)  # otherwise a tenth of the time of imports and tests

# torch is imported where it is used: a process that only distributes the tests does not need it.

BEGIN_FIRST = (
    {"test_models.py", "test_demo.py", "test_client_files.py", "test_journey.py", "test_looks.py"}  # of the browser's
    | {"test_longform.py", "test_new_voice.py", "test_voices.py"}
    | {"test_event_loop.py", "test_document_growth.py", "test_library.py", "test_codec.py"}
    | {"test_kernels.py", "test_switching.py", "test_document.py", "test_node.py", "test_cpu_frame.py"}
    | {"test_frame.py", "test_compilation.py", "test_soak.py", "test_command.py", "test_wheel.py"}
)
"""Slow files: if they began late, one worker would wait for another at the end."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark browser tests by their folder, and deselect tests that need a GPU, Ray or a teacher that is missing here."""
    import torch

    for item in items:
        if Path(__file__).parent / "browser" in item.path.parents:
            item.add_marker(pytest.mark.browser)
    missing = {"gpu": not torch.cuda.is_available(), "teacher": find_spec("hibari") is None}
    missing |= {"linux": sys.platform != "linux", "posix": sys.platform == "win32"}
    missing["ray"] = find_spec("ray") is None
    out = [item for item in items if any(missing[name] and item.get_closest_marker(name) for name in missing)]
    config.hook.pytest_deselected(items=out)
    items[:] = [item for item in items if item not in out]
    items.sort(key=lambda item: item.path.name not in BEGIN_FIRST)
    gc.freeze()  # imported objects stay, and need not be scanned repeatedly
    vars(gc)["unfreeze"] = lambda: None  # nor where an engine's memory is freed, since nothing else is frozen here


def pytest_sessionfinish() -> None:
    gc.freeze()  # otherwise the last garbage collections, pytest's and Python's, scan millions of objects, for seconds


def _fail_when_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") == "true" and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped, and a full run may skip nothing: {report.longrepr}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_when_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_when_skipped(report)
    return report


@pytest.fixture(scope="session", autouse=True)
def _shared_home(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Studios that live for a whole run keep their library here, never in the user's home folder."""
    import torch

    torch.set_num_threads(1)
    os.environ["HF_ENDPOINT"] = "http://127.0.0.1:9"  # no test fetches anything from the real one
    os.environ.update(data_variables(tmp_path_factory.mktemp("data")))


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test's own studios begin with an empty library."""
    for name, value in data_variables(tmp_path / "data").items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random checkpoint of the default tiny sizes."""
    from tests.tiny import write_checkpoint

    return write_checkpoint(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def quick_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with few layers and codebooks, for tests that do not concern the model itself."""
    from tests.tiny import FEW_CODEBOOKS, FEW_LAYERS, write_checkpoint

    return write_checkpoint(tmp_path_factory.mktemp("quick"), FEW_LAYERS, FEW_CODEBOOKS)

"""A developer's own settings, proxies and locale do not change what the tests find; nor does what Windows lacks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOREIGN = {
    "STUDIO_HOME": "/proc/nowhere",
    "STUDIO_MAX_ROWS": "3",
    "STUDIO_API_KEYS": "anna=secret",
    "MODEL": "somebody/else",
    "PORT": "1",
    "SPACE_ID": "somebody/studio",
    "HF_HUB_OFFLINE": "1",
    "http_proxy": "http://127.0.0.1:9",
    "ALL_PROXY": "socks5://127.0.0.1:9",
    "LANG": "de_DE.UTF-8",
    "LC_ALL": "tr_TR.UTF-8",
}
AFFECTED = (
    "tests/studio/test_settings.py::test_an_empty_environment_gives_the_defaults",
    "tests/launch/test_library_command.py::test_voice_is_added_listed_shown_moved_deleted_and_restored",
    "tests/launch/test_library_command.py::test_console_that_lacks_the_letters_of_a_name_prints_their_numbers",
    "tests/studio/api/test_sign_in.py::test_cookie_grants_the_access_of_its_key_until_sign_out",
)


DIFFERENT_ON_WINDOWS = (
    "tests/studio/work/test_child_process.py",
    "tests/studio/library/test_leftovers.py::test_client_files_expire_soon_and_are_removed_at_shutdown",
    "tests/studio/library/test_trash.py::test_audio_that_is_being_played_does_not_prevent_its_deletion",
    "tests/studio/models/test_downloads.py",
)
RESERVED = re.compile(r'(?i)[<>:"|?*\\\x00-\x1f]|[ .](/|$)|(^|/)(con|prn|aux|nul|com\d|lpt\d)(\.|/|$)')


def passes(*arguments: str, **environment: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:schemathesis", "-p", "no:cacheprovider", *arguments]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=inherited | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_tests_pass_with_foreign_settings_proxies_and_locale_and_without_what_windows_lacks() -> None:
    """Both at once, since starting the tests takes longer than running them."""
    passes("-p", "tests.windows_like", *AFFECTED, *DIFFERENT_ON_WINDOWS, **FOREIGN)


def test_windows_can_check_out_every_file() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    names = listed.split("\0")[:-1]
    assert not [name for name in names if RESERVED.search(name) or len(name) > 150]
    assert len({name.casefold() for name in names}) == len(names)
    assert (ROOT / ".gitattributes").read_text("utf-8").split() == ["*", "-text"], "else Git changes the ends of lines"

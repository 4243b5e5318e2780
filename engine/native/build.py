"""Builds the libraries of all platforms, byte for byte the same anywhere: python -m engine.native.build [FOLDER]

Needs ziglang from PyPI, whose clang compiles for every platform with the headers and libraries it brings.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).with_name("src")
LIBRARIES = Path(__file__).with_name("lib")
_COMPILE = (
    # Without errno, square roots are instructions; products and sums are contracted only where the sources say so.
    "-O3", "-fPIC", "-fno-math-errno", "-ffp-contract=off", "-fvisibility=hidden", "-g0", "-std=gnu11", "-Wall",
    "-Wextra", "-Werror", "-Wno-psabi", "-fno-sanitize=all", "-fno-stack-protector", "-fno-unwind-tables",
    "-fno-asynchronous-unwind-tables",
)  # fmt: skip
_ISAS: dict[str, dict[str, tuple[str, ...]]] = {
    "x86_64": {
        "base": (),
        "avx2": ("-mavx2", "-mfma"),
        "avxvnni": ("-mavx2", "-mfma", "-mavxvnni"),
        "avx512vnni": ("-mavx2", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512vnni"),
    },
    "aarch64": {"base": (), "dotprod": ("-mcpu=generic+dotprod",)},
}

_CODECS = ("base", "avx2", "avx512vnni")
"""The codec is all float32: AVX-512 adds wider vectors, the other instruction sets nothing."""


@dataclass(frozen=True)
class Platform:
    file: str
    target: str
    """The oldest system it runs on."""
    link: tuple[str, ...] = ()

    @property
    def isas(self) -> dict[str, tuple[str, ...]]:
        return _ISAS[self.target.partition("-")[0]]


PLATFORMS = (
    Platform("linux-x86_64.so", "x86_64-linux-gnu.2.17", ("-lpthread", "-Wl,--build-id=none")),
    Platform("linux-aarch64.so", "aarch64-linux-gnu.2.17", ("-lpthread", "-Wl,--build-id=none")),
    Platform("macos-x86_64.dylib", "x86_64-macos.12.0"),
    Platform("macos-arm64.dylib", "aarch64-macos.12.0"),
    Platform("windows-x86_64.dll", "x86_64-windows-gnu"),
)


def build(folder: Path, platforms: Sequence[Platform] = PLATFORMS) -> Iterator[Path]:
    """Build these platforms' libraries into a folder, one after the other. Raises CalledProcessError."""
    for platform in platforms:
        with tempfile.TemporaryDirectory() as temporary:
            objects = []
            for source, isa, options in _units(platform):
                objects.append(f"{source}-{isa}.o")
                defines = (f"-DISA={isa}",) if isa else ()
                _zig(platform, temporary, "-c", *_COMPILE, *options, *defines, source, "-o", objects[-1])
            # Linked under its own name, which some formats store.
            _zig(platform, temporary, "-shared", "-s", "-O3", *objects, *platform.link, "-o", platform.file)
            target = folder / platform.file
            target.write_bytes((Path(temporary) / platform.file).read_bytes())
        yield target


def _units(platform: Platform) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    yield "pool.c", "", ()
    for isa, options in platform.isas.items():
        yield "transformer.c", isa, options
        yield "frame.c", isa, options
        if isa in _CODECS:
            yield "codec.c", isa, options


def _zig(platform: Platform, folder: str, *arguments: str) -> None:
    for source in SOURCES.iterdir():
        if not (link := Path(folder) / source.name).exists():
            link.symlink_to(source)
    command = [sys.executable, "-m", "ziglang", "cc", "-target", platform.target, *arguments]
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "0"})


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else LIBRARIES
    folder.mkdir(parents=True, exist_ok=True)
    for library in build(folder):
        sys.stdout.write(f"{library}: {library.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()

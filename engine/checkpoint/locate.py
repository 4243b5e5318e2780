"""Finds a checkpoint: a folder, a file, or a hub repository, which is downloaded with a progress bar."""

from __future__ import annotations

from pathlib import Path

from engine.engine_errors import CheckpointError

GGUF = ".gguf"
_FILES = [
    "*.json", "*.safetensors", "model.pth", "tokenizer.tiktoken", "codec.pth", "codec.yaml", "README.md",
]  # fmt: skip
_BESIDE_GGUF = ["tokenizer.json", "config.json", "codec.pth", "codec.yaml", "README.md"]


def find(model: str) -> Path:
    """A checkpoint's folder, or its GGUF file. Raises CheckpointError.

    ``model``: a folder; a GGUF file, or another file of the folder such as model.pth; owner/name on the hub, or
    owner/name/file.gguf of a repository that holds several.
    """
    try:
        path = Path(model).expanduser()
        if path.is_dir():
            return _only_gguf(path) or _unambiguous(path)
        if path.is_file():
            return path if path.suffix.lower() == GGUF else _unambiguous(path.parent)
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: ~ of a user who does not exist
        reason = error.strerror if isinstance(error, OSError) else error
        raise CheckpointError(f"{model[:200]!r} cannot be looked up: {reason}") from error
    if not is_hub_id(model):
        raise CheckpointError(f"{model!r} is not a folder, a file, or a hub id such as fishaudio/s2-pro")
    parts = model.split("/")
    return _download("/".join(parts[:2]), "/".join(parts[2:]))


def is_hub_id(model: str) -> bool:
    """Whether a model that is not a path here may be owner/name on the hub, or owner/name/file.gguf."""
    parts = model.split("/")
    is_file = len(parts) > 2 and parts[-1].lower().endswith(GGUF)
    return (len(parts) == 2 or is_file) and not model.startswith((".", "/", "~"))


def _unambiguous(folder: Path) -> Path:
    """The folder, unless it has two sets of weights, as after merging a LoRA into the folder of its base model."""
    tensors = sorted(folder.glob("model*.safetensors"))
    if tensors and (folder / "model.pth").exists():
        raise CheckpointError(f"{folder} has both model.pth and {tensors[0].name}; move away the one not to be loaded")
    return folder


def _only_gguf(folder: Path) -> Path | None:
    """The only GGUF file of a folder without other weights; None without one."""
    if any(folder.glob("*.safetensors")) or (folder / "model.pth").exists():
        return None
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() == GGUF)
    if len(files) > 1:
        names = ", ".join(path.name for path in files[:5])
        raise CheckpointError(f"{folder} holds several GGUF files ({names}); name the one to load")
    return files[0] if files else None


def _download(repository: str, file: str) -> Path:
    # Imported here, because it takes a quarter of a second and is not needed to load a folder.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repository, allow_patterns=[file, *_BESIDE_GGUF] if file else _FILES))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise CheckpointError(
            f"{repository!r} is not a local folder and could not be downloaded from the hub: {error}"
        ) from error
    if file:
        if not (folder / file).is_file():
            raise CheckpointError(f"the hub's repository {repository} has no file {file}")
        return folder / file
    if not any((folder / name).exists() for name in ("config.json", "model.pth")):
        raise CheckpointError(
            f"the hub's repository {repository} has no config.json; name the file of a GGUF repository, "
            f"as in {repository}/NAME.gguf"
        )
    return folder

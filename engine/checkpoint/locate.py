"""Finds a checkpoint: a folder, a file of weights, or a hub repository, which is downloaded with a progress bar."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from engine.checkpoint.weight_files import INDEX, TORCH_SUFFIXES, shards
from engine.engine_errors import CheckpointError

GGUF = ".gguf"
_FILES = [
    "*.json", "*.safetensors", "model.pth", "tokenizer.tiktoken", "merges.txt", "codec.pth", "codec.yaml", "README.md",
]  # fmt: skip
_BESIDE_GGUF = ["tokenizer.json", "config.json", "codec.pth", "codec.yaml", "README.md"]


def find(model: str) -> Path:
    """A checkpoint's folder, or its file of weights. Raises CheckpointError.

    ``model``: a folder; a file of weights in one, which is loaded instead of the folder's own, or its config.json;
    owner/name on the hub, or owner/name/file.gguf of a repository that holds several.
    """
    try:
        path = Path(model).expanduser()
        str(path.resolve()).encode()  # a name that is not Unicode text could not be shown
        if model.strip() and path.is_dir():  # a blank name is not the working directory
            return _only_gguf(path) or _unambiguous(path)
        if path.is_file():
            return _named(path)
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
    return (len(parts) == 2 or is_file) and not model.startswith((".", "/", "~")) and not {":", "\\"} & set(model)


def offline_by() -> str:
    """The environment variable that forbids downloads from the hub, read as huggingface_hub does; blank if none."""
    name = next((name for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE") if os.environ.get(name)), "")
    return name if os.environ.get(name, "").lower() in ("1", "true", "yes", "on") else ""


def _named(file: Path) -> Path:
    """The file that a person named, or its folder if that is what its name means."""
    if file.name in ("config.json", INDEX) or (file.with_name(INDEX).is_file() and file in shards(file.parent)):
        return _unambiguous(file.parent)
    if file.name == "codec.pth" or file.suffix.lower() not in (GGUF, ".safetensors", *TORCH_SUFFIXES):
        raise CheckpointError(
            f"{file} holds no weights of a speech model: name its folder, or a file such as model.safetensors, "
            "model.pth or NAME.gguf"
        )
    return file


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
    try:
        # Imported here, because it takes a quarter of a second and is not needed to load a folder.
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(repository, allow_patterns=[file, *_BESIDE_GGUF] if file else _FILES))
    except Exception as error:
        is_bad_proxy = type(error).__name__ == "InvalidURL"  # the HTTP library of the hub's depends on its version
        if is_bad_proxy or isinstance(error, (ImportError, OSError, ValueError)):
            raise CheckpointError(
                f"{repository!r} is not a local folder and could not be downloaded from the hub: {_reason(error)}"
            ) from error
        raise
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


def _reason(error: Exception) -> str:
    """Why nothing was downloaded, in one line with the remedy."""
    if isinstance(error, ssl.SSLError) or type(error) is FileNotFoundError:
        return f"certificates cannot be read ({error.strerror or error}); check SSL_CERT_FILE and SSL_CERT_DIR"
    if isinstance(error, UnicodeEncodeError):
        return "the token of HF_TOKEN or “hf auth login” has characters that no token has; copy it again"
    if not isinstance(error, OSError) and type(error).__module__ != "huggingface_hub.errors":
        why = " ".join(f"{type(error).__name__}: {error}".split())
        return f"{why}; check the proxy in ALL_PROXY, HTTPS_PROXY or HTTP_PROXY, and variables that begin with HF_"
    from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

    if not isinstance(error, LocalEntryNotFoundError):
        return " ".join(str(error).split())
    if isinstance(error.__cause__, OfflineModeIsEnabled):  # whose text names the first of these in any case
        return f"{offline_by()} is set, so nothing is downloaded from the hub; remove it, or name a folder"
    why = " ".join(str(error.__cause__ or error).split())
    if "CERTIFICATE_VERIFY_FAILED" in why:
        return f"{why}; set SSL_CERT_FILE to a file with the certificate of your organisation's proxy"
    return f"{why}; check the connection, and HTTPS_PROXY if a proxy is needed"

#!/bin/sh
# Installs Fish Voice Studio for this user with uv, without root; removes it with --uninstall.
#   sh install.sh [SOURCE]      SOURCE: a wheel, a checkout or a version (fish-voice-studio==0.1.0); by default the latest published one
#   sh install.sh --uninstall
# TORCH_BACKEND: the build of PyTorch: auto (for this machine's GPU, else for the CPU; default), cpu, cu130 …
set -eu
name=fish-voice-studio
source="${1:-$name}"
usage="Usage: sh install.sh [SOURCE], or sh install.sh --uninstall. SOURCE: a wheel, a checkout or a version; by default the latest version.
TORCH_BACKEND, a variable: the build of PyTorch (auto, cpu, cu130 …)."

say() { printf '%s\n' "$*"; }
stop() { printf '\n%s\n' "$*" >&2; exit 1; }
find_uv() { command -v uv || { [ -x "$HOME/.local/bin/uv" ] && echo "$HOME/.local/bin/uv"; } || true; }

[ $# -le 1 ] || stop "More than one argument: $*. $usage"
case "$source" in
    -h|--help) say "$usage"; exit 0 ;;
    --uninstall)
        uv=$(find_uv)
        [ -n "$uv" ] || stop "uv was not found, so it did not install $name."
        "$uv" tool uninstall "$name" || stop "Nothing was removed. With make or pip, delete the checkout or use pip uninstall $name."
        data="${XDG_DATA_HOME:-$HOME/.local/share}"
        [ "$(uname)" != Darwin ] || data="$HOME/Library/Application Support"
        say "Removed. Your voices, takes and projects stay in ${STUDIO_HOME:-$data/$name}, and downloaded models in"
        say "${HF_HOME:-$HOME/.cache/huggingface}. Delete these folders yourself if you no longer want them."
        exit 0 ;;
    -*) stop "Unknown option $source. $usage" ;;
esac

say "This installs $source for the user $(id -un) alone:"
uv=$(find_uv)
[ -n "$uv" ] || say "  - uv, a package manager, in ~/.local/bin (from https://astral.sh/uv)"
say "  - Python 3.12, if this machine has none from 3.11 to 3.14"
say "  - the studio, PyTorch and Gradio in an environment of their own: 2 GB, and more with an NVIDIA GPU, for CUDA"
say "  - the command $name in ~/.local/bin"

if [ -z "$uv" ]; then
    script=$(mktemp)
    trap 'rm -f "$script"' EXIT
    if command -v curl >/dev/null 2>&1; then curl -LsSf https://astral.sh/uv/install.sh -o "$script"
    elif command -v wget >/dev/null 2>&1; then wget -qO "$script" https://astral.sh/uv/install.sh
    else stop "Neither curl nor wget was found. Install one of them, or uv (https://docs.astral.sh/uv), and run this again."
    fi || stop "uv could not be downloaded. Check the connection (HTTPS_PROXY names a proxy), or install uv yourself, and run this again."
    sh "$script"
    uv=$(find_uv)
    [ -n "$uv" ] || stop "uv was installed, but not in ~/.local/bin. Add its folder to PATH, and run this again."
fi

# The system's certificates, so that a company's own count. The name differs by uv's version.
export UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1
backend="${TORCH_BACKEND-auto}"
"$uv" tool install --python '>=3.11,<3.15' --upgrade ${backend:+--torch-backend "$backend"} "$source" || stop \
    "uv could not install $source; its last lines above say why. After a lost connection, run this again to continue."
folder=$("$uv" tool dir --bin)
[ -x "$folder/$name" ] || stop "$source was installed, but it has no command $name: it is another project. $uv tool list names it."
case ":$PATH:" in
    *":$folder:"*) command="$name" ;;
    *) "$uv" tool update-shell >/dev/null 2>&1 || true
       command="$folder/$name" ;;
esac
say ""
say "Installed. Start it, and open http://127.0.0.1:7860:"
say "  $command"

# Installs Fish Voice Studio for this user with uv, without administrator rights; removes it with -Uninstall.
#   powershell -ExecutionPolicy Bypass -File install.ps1 [-Source SOURCE] [-TorchBackend auto] [-Uninstall]
# Source: a wheel, a checkout or a version (fish-voice-studio==0.1.0); by default the latest published one.
# TorchBackend: the build of PyTorch: auto (for this machine's GPU, else for the CPU), cpu, cu130 ...
param(
    [string]$Source = "fish-voice-studio",
    [string]$TorchBackend = "auto",
    [switch]$Uninstall
)
$ErrorActionPreference = "Stop"
$Name = "fish-voice-studio"

function Find-Uv {
    $found = Get-Command uv -ErrorAction SilentlyContinue
    if ($found) { return $found.Source }
    $own = Join-Path $HOME ".local\bin\uv.exe"
    if (Test-Path $own) { return $own }
}

$uv = Find-Uv
if ($Uninstall) {
    if (-not $uv) { throw "uv was not found, so it did not install $Name." }
    & $uv tool uninstall $Name
    if ($LASTEXITCODE) { exit $LASTEXITCODE }
    Write-Host "Removed. Your voices, takes and projects, and downloaded models, stay; delete their folders yourself if you no longer want them."
    exit 0
}

Write-Host "This installs $Source for $env:USERNAME, without administrator rights:"
if (-not $uv) { Write-Host "  - uv, a package manager, in $HOME\.local\bin (from https://astral.sh/uv)" }
Write-Host "  - Python 3.12, if this machine has none from 3.11 to 3.14"
Write-Host "  - the studio, PyTorch and Gradio in an environment of their own: 2 GB, and more with an NVIDIA GPU, for CUDA"
Write-Host "  - the command $Name in $HOME\.local\bin"

if (-not $uv) {
    Invoke-RestMethod https://astral.sh/uv/install.ps1 | Invoke-Expression
    $uv = Find-Uv
    if (-not $uv) { throw "uv was installed, but not in $HOME\.local\bin. Add its folder to PATH, and run this again." }
}
# The system's certificates, so that a company's own count. The name differs by uv's version.
$env:UV_SYSTEM_CERTS = "1"; $env:UV_NATIVE_TLS = "1"
& $uv tool install --python ">=3.11,<3.15" --upgrade --torch-backend $TorchBackend $Source
if ($LASTEXITCODE) { throw "uv could not install $Source; its last lines above say why. Run this again to continue." }
& $uv tool update-shell | Out-Null
Write-Host ""
Write-Host "Installed. Open a new terminal, start it, and open http://127.0.0.1:7860:"
Write-Host "  $Name"

# The studio for a GPU workstation or a Docker Space. docs/hosting.md has the commands.
#   docker build -t fish-voice-studio .      PyTorch for NVIDIA GPUs; without one it runs on the CPU
#   --build-arg TORCH=cpu                    PyTorch without CUDA
#   --build-arg FLEET=1                      Ray, for STUDIO_ENGINES and STUDIO_RAY_ADDRESS
FROM python:3.12-slim-bookworm AS packages

ARG FLEET=
ARG TORCH=
COPY requirements.txt requirements-fleet.txt requirements-mcp.txt ./
# Of two builds of one version pip prefers the one with a local label: "2.13.0+cpu".
RUN pip install --no-cache-dir --prefix /packages --requirement requirements.txt --requirement requirements-mcp.txt ${FLEET:+--requirement requirements-fleet.txt} \
    ${TORCH:+--extra-index-url https://download.pytorch.org/whl/${TORCH}}


FROM python:3.12-slim-bookworm

ARG TORCH=
# gcc: Triton compiles its kernels' launchers where they run.
RUN [ "$TORCH" = cpu ] || { apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*; }

# Spaces run as user 1000.
RUN useradd --create-home --uid 1000 studio \
    && install --directory --owner studio /models /library
COPY --from=packages /packages /usr/local
WORKDIR /home/studio/app

COPY app.py pyproject.toml LICENSE ./
COPY audio audio
COPY engine engine
COPY fleet fleet
COPY longform longform
COPY manuscript manuscript
COPY launch launch
COPY protocols protocols
COPY speechtext speechtext
COPY studio studio
COPY assets assets

RUN python -m compileall -q .

USER studio
# Voices, takes and projects are in /library; what can be made again, downloaded models and compiled kernels, is in /models.
# Nothing else is written except in /tmp, so the root may be read-only: docker run --read-only --tmpfs /tmp. A Space mounts
# its own storage at /data.
ENV STUDIO_HOST=0.0.0.0 PORT=7860 STUDIO_HOME=/library HF_HOME=/models TRITON_CACHE_DIR=/models/kernels
VOLUME ["/models", "/library"]
EXPOSE 7860

# Not healthy before the model is loaded, which the first time is downloaded. Without the proxy that Docker may set for containers.
HEALTHCHECK --interval=30s --timeout=5s --start-period=15m \
    CMD ["python", "-c", "import os, urllib.request as web; web.build_opener(web.ProxyHandler({})).open(f'http://127.0.0.1:{os.environ.get(\"STUDIO_PORT\") or os.environ[\"PORT\"]}/health')"]

CMD ["python", "app.py"]

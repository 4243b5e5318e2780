# The studio for a GPU workstation or a Docker Space; without a GPU it runs on the CPU. README has the commands.
FROM python:3.12-slim-bookworm

# gcc: Triton compiles its kernels' launchers where they run.
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*

# Spaces run as user 1000.
RUN useradd --create-home --uid 1000 studio \
    && install --directory --owner studio /models /library
WORKDIR /home/studio/app

# --build-arg FLEET=1 for STUDIO_ENGINES and STUDIO_RAY_ADDRESS, which need Ray.
ARG FLEET=
COPY requirements.txt requirements-fleet.txt ./
RUN pip install --no-cache-dir --requirement requirements.txt ${FLEET:+--requirement requirements-fleet.txt}

COPY app.py pyproject.toml LICENSE ./
COPY engine engine
COPY fleet fleet
COPY studio studio
COPY assets assets

USER studio
# Compiled kernels are kept with the models, so that a new container finds them.
ENV STUDIO_HOST=0.0.0.0 PORT=7860 STUDIO_HOME=/library HF_HOME=/models TRITON_CACHE_DIR=/models/kernels
VOLUME ["/models", "/library"]
EXPOSE 7860

# Not healthy before the model is loaded, which the first time is downloaded.
HEALTHCHECK --interval=30s --timeout=5s --start-period=15m \
    CMD ["python", "-c", "import os, urllib.request as web; web.urlopen(f'http://127.0.0.1:{os.environ.get(\"STUDIO_PORT\") or os.environ[\"PORT\"]}/health')"]

CMD ["python", "app.py"]

# make run: starts the studio.  make fleet: with an engine on every GPU.  make test: all tests.  make: lint, types and tests.
# make bench, make bench-gpu: the figures of docs/benchmarks.md.  make soak: half an hour of callers.
# make release: wheel and source archive of a version.
# With another Python, in a separate environment: make test PYTHON=python3.13 VENV=.venv-3.13
VENV ?= .venv
PY := $(VENV)/bin/python
NODE := $(VENV)/bin/node
SHIPPED := audio engine fleet launch longform manuscript protocols speechtext studio app.py
export PYTHON VENV
unexport PYTHONDONTWRITEBYTECODE  # otherwise each start compiles every module, for seconds

.PHONY: all run fleet test lint types docs bench bench-gpu soak release clean
all: lint types test

run:
	@scripts/prepare $(if $(STUDIO_ENGINES)$(STUDIO_RAY_ADDRESS),fleet,run)
	@$(PY) app.py

fleet:
	@scripts/prepare fleet
	@STUDIO_ENGINES=$${STUDIO_ENGINES:-all} $(PY) app.py

lint:
	@scripts/prepare checks
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(NODE) node_modules/eslint/bin/eslint.js assets/page tests/page eslint.config.mjs pinokio.js

# The second run of mypy finds what Windows lacks. Page scripts that do not use the DOM are checked more strictly.
types:
	@scripts/prepare checks
	$(PY) -m mypy
	$(PY) -m mypy --platform win32 --cache-dir .mypy_cache/win32 $(SHIPPED)
	$(NODE) node_modules/typescript/bin/tsc
	$(NODE) node_modules/typescript/bin/tsc --project tsconfig.strict.json

# The documentation as a website in site/. A dead link fails it, and the tests; not with --quiet, because strict mode counts
# logged warnings. The variable silences an advertisement.
docs:
	@scripts/prepare docs
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build

test:
	@scripts/prepare test
	@scripts/programs
	@scripts/test

# Needs the test packages: if a browser is installed, the page is measured too.
bench:
	@scripts/prepare test
	@$(PY) -m benchmarks.bench

# Needs the test packages: fish-speech's own loop is measured too.
bench-gpu:
	@scripts/prepare test
	@$(PY) -m benchmarks.bench_gpu

soak:
	@scripts/prepare run
	@$(PY) -m benchmarks.soak

# Builds and checks the wheel and the source archive of a version, and prints the tag that publishes them.
release:
	@scripts/prepare test
	@scripts/release $(TAG)

clean:
	rm -rf $(VENV) node_modules site dist .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

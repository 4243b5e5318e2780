# make run: the studio.  make test: every test.  make: lint, types and tests.  make bench: README's figures.
# make bench-gpu: the figures of a GPU.
PY := .venv/bin/python

.PHONY: all run test lint types bench bench-gpu clean
all: lint types test

run:
	@scripts/prepare run
	@$(PY) app.py

lint:
	@scripts/prepare test
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types:
	@scripts/prepare test
	$(PY) -m mypy

# Two processes: a browser keeps threads and an event loop that the other tests should not meet.
test:
	@scripts/prepare test
	@scripts/chromium
	@status="passed"; \
	$(PY) -m pytest -m "not browser" || status="FAILED"; \
	$(PY) -m pytest -m browser || status="FAILED"; \
	echo "==> All tests, browser tests included: $$status"; [ "$$status" = passed ]

# The packages of the tests, for a browser presses Speak too, where there is one.
bench:
	@scripts/prepare test
	@$(PY) -m benchmarks.bench

# The packages of the tests, for upstream's loop is measured beside ours.
bench-gpu:
	@scripts/prepare test
	@$(PY) -m benchmarks.bench_gpu

clean:
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

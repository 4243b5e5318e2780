"""The studio's metrics for Prometheus: outcomes of takes, waiting times, load of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from studio.engine_host import EngineHost
from studio.library.take import Take
from studio.supervisor import HealthCheck

SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 30, 60)
_FIGURES: tuple[tuple[type[GaugeMetricFamily] | type[CounterMetricFamily], str, str], ...] = (
    (GaugeMetricFamily, "running", "Utterances being generated."),
    (GaugeMetricFamily, "waiting", "Utterances queued."),
    (CounterMetricFamily, "frames", "Frames generated."),
    (CounterMetricFamily, "busy_seconds", "Seconds spent computing."),
    (GaugeMetricFamily, "prefix_bytes", "Bytes in the prefix cache."),
    (CounterMetricFamily, "prefix_hits", "Takes whose voice was in the prefix cache."),
    (CounterMetricFamily, "prefix_misses", "Takes whose voice was not in the prefix cache."),
    (CounterMetricFamily, "book_errors", "Accounting errors corrected in the caches."),
)
"""Figures of EngineStats by metric name; several engines have one value each, without a sum."""

RATIOS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 1.5, 2, 5)


class Metrics:
    """One registry per studio; takes are added as they end, the engine is read on request."""

    def __init__(self, host: EngineHost, background: list[HealthCheck]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_EngineFigures(host))
        self._registry.register(_BackgroundFigures(background))
        counter, histogram = partial(Counter, registry=self._registry), partial(Histogram, registry=self._registry)
        self._takes = counter("studio_takes", "Takes, by final state.", ["state"])
        help_text = "Takes, by what was stored: all of it (kept), all but the audio (soundless), nothing (lost)."
        self._outcomes = counter("studio_takes_kept", help_text, ["outcome"])
        self._audio = counter("studio_audio_seconds", "Seconds of audio generated.")
        help_text = "Seconds from accepting a request to its first encoded bytes."
        self._first_audio = histogram("studio_first_audio_seconds", help_text, buckets=SECONDS)
        self._queue = histogram("studio_queue_seconds", "Seconds spent waiting for a row.", buckets=SECONDS)
        help_text = "Real-time factor: seconds of generation per second of audio."
        self._rtf = histogram("studio_rtf", help_text, buckets=RATIOS)

    def count_outcome(self, outcome: str) -> None:
        """Count a take by its outcome in the library. Any thread may call it."""
        self._outcomes.labels(outcome).inc()

    def count_take(self, take: Take) -> None:
        """Count an ended take, however it ended."""
        self._takes.labels(take.state).inc()
        self._audio.inc(take.audio_s)
        if take.first_audio_ms is not None:
            self._first_audio.observe(take.first_audio_ms / 1000)
        if take.queue_ms is not None:
            self._queue.observe(take.queue_ms / 1000)
        if take.state == "finished" and take.rtf is not None:
            self._rtf.observe(take.rtf)

    def text(self) -> bytes:
        """Prometheus' text format, version 0.0.4."""
        return generate_latest(self._registry)


class _EngineFigures(Collector):
    def __init__(self, host: EngineHost) -> None:
        self._host = host

    def collect(self) -> Iterator[Metric]:
        ready = self._host.status.state == "ready"
        yield GaugeMetricFamily("studio_ready", "1 if the engine is ready.", value=float(ready))
        if not ready:
            return
        engine = self._host.engine()
        yield GaugeMetricFamily("engine_rows", "Maximum number of concurrent utterances.", value=engine.info.max_rows)
        stats = engine.stats()
        labels = ["replica"] if stats.replicas else []
        for kind, name, help_text in _FIGURES:
            family = kind(f"engine_{name}", help_text, labels=labels)
            for replica, replica_stats in stats.replicas.items():
                family.add_metric([replica], getattr(replica_stats, name))
            if not stats.replicas:
                family.add_metric([], getattr(stats, name))
            yield family


class _BackgroundFigures(Collector):
    def __init__(self, background: list[HealthCheck]) -> None:
        self._background = background

    def collect(self) -> Iterator[Metric]:
        healthy = GaugeMetricFamily("studio_background_ok", "1 if this background task is healthy.", labels=["work"])
        help_text = "Failures of this background task."
        failures = CounterMetricFamily("studio_background_failures", help_text, labels=["work"])
        for check in self._background:
            healthy.add_metric([check.name], float(check.status.error is None))
            failures.add_metric([check.name], check.status.failures)
        yield from (healthy, failures)

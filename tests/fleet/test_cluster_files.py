"""The files of a cluster are valid for Ray, Kubernetes and the studio, and agree with each other."""

from __future__ import annotations

import copy
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from fleet import start
from studio.settings import Settings

FOLDER = start.ROOT / "docs" / "cluster"
RAY_YAML = yaml.safe_load((FOLDER / "ray.yaml").read_text("utf-8"))
KUBERAY_YAML = {
    (resource["kind"], resource["metadata"]["name"]): resource
    for resource in yaml.safe_load_all((FOLDER / "kuberay.yaml").read_text("utf-8"))
}
CLUSTER = KUBERAY_YAML["RayCluster", "voice-studio"]["spec"]
STUDIO = KUBERAY_YAML["Deployment", "voice-studio"]["spec"]["template"]


def pods() -> Iterator[dict[str, Any]]:
    yield STUDIO
    for group in (CLUSTER["headGroupSpec"], *CLUSTER["workerGroupSpecs"]):
        yield group["template"]


def parse_with_ray(command: str) -> dict[str, Any]:
    """A command's options as parsed by `ray start`. Raises click.UsageError for an unknown option."""
    from ray.scripts.scripts import start as ray_start

    words = shlex.split(command.partition("&&")[0])
    return dict(ray_start.make_context("start", words[words.index("start") + 1 :]).params)


@pytest.mark.ray
def test_ray_accepts_the_cluster_file() -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    whole = prepare_config(copy.deepcopy(RAY_YAML))
    validate_config(whole)
    machines = whole["available_node_types"]["local.cluster.node"]
    assert machines["min_workers"] == machines["max_workers"] == len(RAY_YAML["provider"]["worker_ips"])


@pytest.mark.ray
def test_ray_parses_the_commands_of_the_cluster_file() -> None:
    (head,) = (command for command in RAY_YAML["head_start_ray_commands"] if " start " in command)
    (worker,) = (command for command in RAY_YAML["worker_start_ray_commands"] if " start " in command)
    assert parse_with_ray(head)["head"] and parse_with_ray(head)["port"] == 6379
    assert parse_with_ray(worker)["address"] == "$RAY_HEAD_IP:6379"
    for command in (head, worker):
        assert "RAY_AUTH_MODE=token" in command, "anyone who reaches Ray's ports can run programs"
    assert RAY_YAML["file_mounts"]["~/.ray/auth_token"]
    folder = next(there for there, here in RAY_YAML["file_mounts"].items() if here == ".")
    commands = [*RAY_YAML["head_start_ray_commands"], *RAY_YAML["worker_start_ray_commands"]]
    assert all(f"{folder}/.venv/bin/ray" in command for command in commands)


@pytest.mark.ray
def test_ray_parses_the_start_parameters_of_kuberay() -> None:
    for group in (CLUSTER["headGroupSpec"], *CLUSTER["workerGroupSpecs"]):
        options = " ".join(f"--{name}={value}" for name, value in group["rayStartParams"].items())
        parse_with_ray(f"ray start --address=head:6379 {options}")
    (command,) = STUDIO["spec"]["containers"][0]["args"]
    assert parse_with_ray(command)["address"] == "voice-studio-head-svc:6379", "the name that KubeRay gives the head"
    assert command.endswith("&& exec python app.py")


def test_kuberay_uses_the_projects_ray_version_and_image() -> None:
    assert CLUSTER["rayVersion"] == start.RAY
    assert len({container["image"] for pod in pods() for container in pod["spec"]["containers"]}) == 1
    dockerfile = (start.ROOT / "Dockerfile").read_text("utf-8")
    assert "ARG FLEET" in dockerfile and "requirements-fleet.txt" in dockerfile and "COPY fleet fleet" in dockerfile


def test_studio_accepts_the_variables_of_the_kubernetes_file(monkeypatch: pytest.MonkeyPatch) -> None:
    (studio,) = STUDIO["spec"]["containers"]
    plain = {variable["name"]: variable["value"] for variable in studio["env"] if "value" in variable}
    for name, value in (plain | KUBERAY_YAML["Secret", "voice-studio-keys"]["stringData"]).items():
        monkeypatch.setenv(name, value)
    settings = Settings.load()
    assert settings.ray_address == "auto" and isinstance(settings.engines, tuple)
    (gpus,) = CLUSTER["workerGroupSpecs"]
    assert settings.engines == (gpus["minReplicas"], gpus["maxReplicas"]), "a machine for each engine"
    assert KUBERAY_YAML["Deployment", "voice-studio"]["spec"]["strategy"] == {"type": "Recreate"}
    (token,) = (
        variable["valueFrom"]["secretKeyRef"] for variable in studio["env"] if variable["name"] == "RAY_AUTH_TOKEN"
    )
    assert token == {"name": "voice-studio", "key": "auth_token"} and CLUSTER["authOptions"] == {"mode": "token"}


def test_mounts_and_selectors_of_pods_exist() -> None:
    labels = []
    for pod in pods():
        labels.append(pod["metadata"]["labels"]["app"])
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
        for container in pod["spec"]["containers"]:
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes.keys()
        claims = {
            volume["persistentVolumeClaim"]["claimName"]
            for volume in volumes.values()
            if "persistentVolumeClaim" in volume
        }
        assert all(("PersistentVolumeClaim", claim) in KUBERAY_YAML for claim in claims)
    assert KUBERAY_YAML["Service", "voice-studio"]["spec"]["selector"]["app"] in labels
    closed = KUBERAY_YAML["NetworkPolicy", "voice-studio-ray"]["spec"]
    among, public = closed["ingress"]
    (chosen,) = closed["podSelector"]["matchExpressions"]
    assert set(chosen["values"]) == set(labels)
    assert [peer["podSelector"]["matchExpressions"] for peer in among["from"]] == [[chosen]]
    assert public["ports"] == [{"port": 7860}], "nothing but the studio is open to others"

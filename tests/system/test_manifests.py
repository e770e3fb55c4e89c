"""The Kubernetes manifests: valid by the schemas of Kubernetes, and their command is one that exists."""

from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from optimist.cli.main import command_words, split

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
VERSION = "1.34"


def documents(name: str) -> list[dict]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def pod(spec: dict) -> dict:
    """A pod of this template alone: KubeRay's own kinds have no schema in Kubernetes."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


def test_the_job_is_valid_and_a_mistake_in_it_is_found():
    [job] = documents("study-job.yaml")
    kubernetes_validate.validate(job, VERSION, strict=True)
    job["spec"]["completionModes"] = job["spec"].pop("completionMode")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSION, strict=True)


def test_every_pod_of_the_ray_cluster_is_valid():
    cluster, claim = documents("ray-cluster.yaml")
    kubernetes_validate.validate(claim, VERSION, strict=True)
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    for group in groups:
        kubernetes_validate.validate(pod(group["template"]["spec"]), VERSION, strict=True)
        names = {
            volume["persistentVolumeClaim"]["claimName"] for volume in group["template"]["spec"]["volumes"]
        }
        assert names == {claim["metadata"]["name"]}


def test_the_command_of_the_job_is_one_of_ours():
    [job] = documents("study-job.yaml")
    [container] = job["spec"]["template"]["spec"]["containers"]
    program, *words = [*container["command"], *container["args"]]
    assert program == "optimist"
    typed = [word.replace("$(JOB_COMPLETION_INDEX)", "7") for word in words]
    values = command_words(*split(typed)).values()
    assert values.items() >= {"index": 7, "out": "s3://bucket/mine", "scratch": Path("/scratch")}.items()
    rule = job["spec"]["podFailurePolicy"]["rules"][1]["onExitCodes"]
    assert rule["containerName"] == container["name"]
    assert job["spec"]["completionMode"] == "Indexed"  # or there is no index

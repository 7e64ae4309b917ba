"""Renders the chart with Helm's own library into a folder, and sees it refuse what it has to.

    chart.py CHART FOLDER
"""

import pathlib
import sys

import helm_python as helm

IMAGE = {"image": {"repository": "registry.example/provost"}}

# What each rendering is given; together they take every branch of the templates.
RENDERED = {
    "one": IMAGE,
    "several": IMAGE
    | {
        "replicas": 3,
        "database": {"urlSecret": "database", "plaintext": True},
        "keys": {"existingClaim": "keys"},
        "data": {"size": "20Gi", "storageClassName": "fast"},
        "publicUrl": "https://provost.example",
        "trustedProxies": ["10.0.0.0/8", "192.0.2.7"],
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "host": "provost.example",
            "tlsSecret": "certificate",
            "annotations": {"example.com/size": "8m"},
        },
        "metrics": {"serviceMonitor": True},
        "environment": {"PROVOST_LOG": "debug"},
    },
    "own-tls": IMAGE
    | {"tls": {"secretName": "certificate"}, "keys": {"size": "1Gi", "storageClassName": "fast"}},
}

REFUSED = {
    "no image": {},
    "several replicas of SQLite": IMAGE | {"replicas": 2, "keys": {"existingClaim": "keys"}},
    "several replicas with keys of their own": IMAGE
    | {"replicas": 2, "database": {"urlSecret": "database"}},
    "an ingress without a host": IMAGE | {"ingress": {"enabled": True}},
}


def rendered(chart, values):
    with helm.Chart.load(chart) as loaded:
        return loaded.render(values, name="provost", namespace="provost")


def main(chart, folder):
    found = helm.lint(chart)
    worse = [message for message in found["messages"] if message["severity"] > 1]
    if found["errors"] or worse:
        sys.exit(f"helm lint: {found['errors']} {worse}")
    for name, values in RENDERED.items():
        for template, text in rendered(chart, values).items():
            if template.endswith(".yaml") and text.strip():
                kept = folder / f"{name}-{pathlib.PurePath(template).name}"
                kept.write_text(text)
                print(kept)
    for name, values in REFUSED.items():
        try:
            rendered(chart, values)
        except helm.HelmError:
            continue
        sys.exit(f"the chart takes {name}")


main(sys.argv[1], pathlib.Path(sys.argv[2]))

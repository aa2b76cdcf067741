#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The roles of an account in a test cluster, from a manifest, and less of them. NAME is that of the ClusterRole, its binding and its account.

roles.py apply MANIFEST NAME          the role and its binding as the manifest has them
roles.py verbs MANIFEST NAME          each VERB and RESOURCE of the role, a line each
roles.py take MANIFEST NAME VERB RESOURCE   all of the role but this verb"""

import copy
import json
import subprocess
import sys
import time

PATH = "/apis/rbac.authorization.k8s.io/v1"
SPACE = "kube-system"


def read(manifest, kinds=("Role", "ClusterRole")):
    """Objects of these kinds."""
    text = subprocess.run(["kubectl", "create", "--dry-run=client", "-o", "json", "-f", manifest], check=True, capture_output=True, text=True).stdout
    decoder, objects = json.JSONDecoder(), []
    while text.strip():
        one, end = decoder.raw_decode(text.strip())
        objects += one.get("items", [one])
        text = text.strip()[end:]
    return [one for one in objects if one["kind"] in kinds]


def without(role, at, verb):
    less = copy.deepcopy(role)
    less["rules"][at]["verbs"].remove(verb)
    less["rules"] = [rule for rule in less["rules"] if rule["verbs"]]
    return less


def is_allowed(api, account, role, rule, verb):
    resource, _, sub = rule["resources"][0].partition("/")
    attributes = {"verb": verb, "group": rule["apiGroups"][0], "resource": resource, "subresource": sub,
                  "name": rule.get("resourceNames", [""])[0], "namespace": role["metadata"].get("namespace", "")}
    return api.must("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": account, "resourceAttributes": attributes}})["status"]["allowed"]


def path_of(role):
    name, space = role["metadata"]["name"], role["metadata"].get("namespace")
    return f"{PATH}/namespaces/{space}/roles/{name}" if space else f"{PATH}/clusterroles/{name}"


def settle(api, account, role, rule, verb, is_wanted):
    """Until the API server has taken a change of the role up."""
    until = time.monotonic() + 60
    while is_allowed(api, account, role, rule, verb) != is_wanted:
        if time.monotonic() > until:
            raise AssertionError(f"{verb} {rule['resources']} does not become {is_wanted}")
        time.sleep(0.02)


def apply(api, one):
    kind = {"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings"}[one["kind"]]
    one["metadata"].pop("creationTimestamp", None)
    api.ask("DELETE", f"{PATH}/{kind}/{one['metadata']['name']}")
    api.must("POST", f"{PATH}/{kind}", one)


def main():
    from server import Api  # pylint: disable=import-outside-toplevel
    command, manifest, name = sys.argv[1:4]
    account = f"system:serviceaccount:{SPACE}:{name}"
    objects = [one for one in read(manifest, ("ClusterRole", "ClusterRoleBinding")) if one["metadata"]["name"] == name]
    role = next(one for one in objects if one["kind"] == "ClusterRole")
    places = [(at, rule, verb) for at, rule in enumerate(role["rules"]) for verb in rule["verbs"]]
    if command == "verbs":
        print("\n".join(f"{verb} {rule['resources'][0]}" for _, rule, verb in places))
        return
    api = Api()
    taken = sys.argv[4:6]
    for one in objects:
        apply(api, one)
    for at, rule, verb in places:
        is_wanted = [verb, rule["resources"][0]] != taken
        if not is_wanted:
            api.must("PUT", path_of(role), without(role, at, verb))
        settle(api, account, role, rule, verb, is_wanted)


if __name__ == "__main__":
    main()

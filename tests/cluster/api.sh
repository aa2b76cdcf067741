# SPDX-License-Identifier: Apache-2.0
# The API server by curl, which costs a tenth of what kubectl does; read by e2e.sh.
# shellcheck shell=bash disable=SC2154

# A command after whose success nothing else is waited for.
enough=()

# within SECONDS COMMAND...: until it is true.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        [ ${#enough[@]} -eq 0 ] || ! "${enough[@]}" || return 1
        sleep 0.1
    done
}

# api METHOD PATH [TYPE]: its answer. With TYPE there is a body: standard input.
api() {
    curl --silent --show-error --fail-with-body --max-time 30 --cacert "$CLUSTER_FOLDER/keys/ca.crt" \
        --cert "$CLUSTER_FOLDER/keys/admin.crt" --key "$CLUSTER_FOLDER/keys/admin.key" \
        --request "$1" ${3:+--header "Content-Type: $3" --data-binary @-} "https://$server_address:6443$2"
}

# merge PATH JSON
merge() {
    api PATCH "$1" application/merge-patch+json <<<"$2" >/dev/null
}

pod_path() {
    echo "/api/v1/namespaces/default/pods/$1"
}

# of_pod NAME EXPRESSION: nothing where it is not there.
of_pod() {
    api GET "$(pod_path "$1")" | jq -r "$2 // empty"
}

of_node() {
    api GET /api/v1/nodes/$node_name | jq -r "$1 // empty"
}

annotation() {
    of_pod "$1" ".metadata.annotations[\"hami.io/$2\"]"
}

# create: the objects of standard input.
create() {
    api POST /api/v1/namespaces/default/pods?fieldValidation=Strict application/yaml >/dev/null
}

# gone NAME...: nobody waits for it.
gone() {
    for name in "$@"; do
        api DELETE "$(pod_path "$name")" >/dev/null || return 1
    done
}

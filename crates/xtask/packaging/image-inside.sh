# The part of image.sh that runs beside buildah.
set -eu
port=$1 metrics=$2
cd /work
# Containers without namespaces, and images without an overlay where there can be none: that copies each layer.
export BUILDAH_ISOLATION=chroot
driver=overlay
if ! buildah --storage-driver overlay info >/dev/null 2>&1; then
    driver=vfs
    rm -rf /var/lib/containers/storage
fi
b() { buildah --storage-driver "$driver" "$@"; }
base=$(b from scratch)
b add --quiet "$base" base.tar / >&2
b commit --quiet "$base" docker.io/library/debian:bookworm-slim >&2
b rm "$base" >&2
# The format of Docker has the health check; that of OCI has none.
b bud --format docker --pull-never --network host --file Containerfile --tag provost:local dist >&2
image=$(b from --pull-never provost:local)
in_image() { b run --network host --env "PROVOST_URL=http://127.0.0.1:$port" "$image" -- "$@"; }
who=$(in_image id -u):$(in_image id -g)
[ "$who" = 10001:10001 ] || { echo "the image runs as $who" >&2; exit 1; }
for folder in /var/lib/provost /var/lib/provost-keys; do
    mode=$(in_image stat -c '%u %a' "$folder")
    [ "$mode" = '10001 700' ] || { echo "$folder: $mode" >&2; exit 1; }
done
# It is told to stop as by an engine once it was healthy, and has to end by itself. The shell in the image expands it.
# shellcheck disable=SC2016
b run --network host --env "PROVOST_HTTP_LISTEN=0.0.0.0:$port" --env "PROVOST_HTTP_METRICS_LISTEN=0.0.0.0:$metrics" "$image" -- \
    sh -c 'provost serve --config /etc/provost/provost.toml --behind-proxy & server=$!
        left=600
        while [ ! -e /tmp/stop ] && [ "$left" -gt 0 ]; do sleep 0.2; left=$((left - 1)); done
        kill -TERM "$server"
        wait "$server"' >serve.log 2>&1 &
server=$!
healthy=no
for _ in $(seq 300); do
    sleep 0.2
    # The health check of the image.
    if in_image provost status >said 2>&1; then
        healthy=yes
        break
    fi
done
in_image touch /tmp/stop
status=0
wait "$server" || status=$?
if [ "$healthy" = no ] || [ "$status" -ne 0 ]; then
    cat said serve.log >&2
    echo "healthy: $healthy; ended with $status" >&2
    exit 1
fi
in_image test -s /var/lib/provost/first-token

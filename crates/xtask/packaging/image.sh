# Builds the image of a package and starts it, without an engine and without a registry: buildah in a Debian of its own, and a fresh Debian
# under the name of the base image. What is mounted is seen by this process alone and goes with it.
#
#   unshare --mount sh image.sh TOOLS DIST PORT METRICS-PORT
set -eu
tools=$1 dist=$2 port=$3 metrics=$4
mount --make-rprivate /
if [ ! -f "$tools/base.tar" ]; then
    rm -rf "$tools/base"
    debootstrap --variant=minbase bookworm "$tools/base" >&2
    tar --create --file "$tools/base.tar.new" --directory "$tools/base" .
    rm -rf "$tools/base"
    mv "$tools/base.tar.new" "$tools/base.tar"
fi
host=$tools/host
inside() { chroot "$host" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"; }
if [ ! -f "$host/work/ready" ]; then
    rm -rf "$host"
    mkdir -p "$host"
    tar --extract --file "$tools/base.tar" --directory "$host"
fi
cp -L /etc/resolv.conf "$host/etc/resolv.conf"
# What takes the root of a container apart wants it to be mounted.
mount --bind "$host" "$host"
mount --bind /proc "$host/proc"
mount --rbind /dev "$host/dev"
mount --rbind /sys "$host/sys"
if [ ! -f "$host/work/ready" ]; then
    inside apt-get --quiet update >&2
    inside apt-get --quiet --yes install --no-install-recommends buildah crun ca-certificates >&2
    mkdir -p "$host/work"
    touch "$host/work/ready"
fi
rm -rf "$host/work/dist" "$host/var/lib/containers"
mkdir -p "$host/work/dist" "$host/var/lib/containers"
cp "$dist"/provost_*_"$(dpkg --print-architecture)".deb "$host/work/dist"
cp packaging/container/Containerfile crates/xtask/packaging/image-inside.sh "$host/work"
touch "$host/work/base.tar"
mount --bind "$tools/base.tar" "$host/work/base.tar"
status=0
inside sh /work/image-inside.sh "$port" "$metrics" || status=$?
rm -rf "$host/var/lib/containers"
exit "$status"

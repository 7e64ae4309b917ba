# Starts the program as the image does: another user, no capabilities, a root that can only be read, two folders and /tmp to write to.
# What is mounted is seen by this process alone and goes with it.
#
#   unshare --mount sh confined.sh PROGRAM FOLDER PORT METRICS-PORT
set -eu
program=$1 folder=$2 port=$3 metrics=$4
root=$folder/root
mount --make-rprivate /
mount -t tmpfs -o size=16m,mode=0755 tmpfs "$root"
for place in usr lib lib64 bin; do
    if [ -L "/$place" ]; then
        cp -P "/$place" "$root/$place"
    elif [ -d "/$place" ]; then
        mkdir "$root/$place"
        mount --bind "/$place" "$root/$place"
    fi
done
mkdir -p "$root/dev" "$root/proc" "$root/tmp" "$root/etc/provost" "$root/var/lib/provost" "$root/var/lib/provost-keys"
mount --bind /dev "$root/dev"
mount --bind /proc "$root/proc"
mount -t tmpfs -o size=64m,mode=1777 tmpfs "$root/tmp"
cp packaging/provost.toml "$root/etc/provost/provost.toml"
touch "$root/provost"
mount --bind "$program" "$root/provost"
chown 10001:10001 "$folder/data" "$folder/keys"
chmod 0700 "$folder/data" "$folder/keys"
mount --bind "$folder/data" "$root/var/lib/provost"
mount --bind "$folder/keys" "$root/var/lib/provost-keys"
mount -o remount,ro "$root"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ \
    "PROVOST_HTTP_LISTEN=0.0.0.0:$port" "PROVOST_HTTP_METRICS_LISTEN=0.0.0.0:$metrics" PROVOST_HTTP_TRUSTED_PROXIES=10.0.0.0/8 \
    chroot "$root" setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
    /provost serve --config /etc/provost/provost.toml --behind-proxy --public-url https://provost.example

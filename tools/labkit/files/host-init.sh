#!/bin/sh
# The first process of a lab host: makes one machine out of namespaces, then waits for ever.
#
#   host-init.sh NAME STATE PARTS
#
# It starts in a network namespace with the host's own address and in fresh mount, UTS and PID namespaces
# (tools/labkit/host.py). The root file system is shared with this machine; what makes a host its own is
# covered here: /run, /tmp, /root, /dev/shm, /etc, /usr/local/bin, /var/lib/docker. As PID 1 it takes every
# process of the host with it when it is killed, containers included.
set -eu
name=$1
state=$2
parts=$3

mount --make-rprivate /
hostname "$name"

# 1. STATE and PARTS may lie under a path that is covered below: reach them under /run.
mkdir -p /var/lib/docker
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/lock /run/sshd /run/host /run/parts /run/etc/upper /run/etc/work /run/cgroup
mount --bind "$state" /run/host
mount --bind "$parts" /run/parts

# 2. A sysfs of this network namespace, so that /sys/class/net is this host's. The cgroup mounts under the old
#    one must be kept: without them dockerd stops with "Devices cgroup isn't mounted".
mount --rbind /sys/fs/cgroup /run/cgroup
mount -t sysfs sysfs /sys
mount --rbind /run/cgroup /sys/fs/cgroup
umount -l /run/cgroup

# 3. /etc is an overlay on tmpfs (an overlay's upper layer cannot lie on another overlay, as in CI containers).
mount -t overlay -o lowerdir=/etc,upperdir=/run/etc/upper,workdir=/run/etc/work overlay /etc
cp -R --remove-destination /run/host/etc/. /etc/
chmod 600 /etc/ssh/lab_host_ed25519
# sshd without PAM refuses an account whose password is locked with "!".
sed -i 's/^root:[^:]*:/root:*:/' /etc/shadow

mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount --bind /run/host/docker /var/lib/docker
mount --bind /run/host/bin /usr/local/bin
mount --bind /run/host/tmp /tmp
mount --bind /run/host/root /root
touch /run/ready

# 4. Reap what loses its parent, until the end.
cd /
trap : CHLD TERM INT HUP
while :; do
    sleep 3600 &
    wait $! || :
done

#!/bin/sh
# Mounts control groups as a host of this layout has them: mount-layout.sh v2|v1|hybrid|mixed
set -e

mount_v1() { # CONTROLLERS OF EACH HIERARCHY...
    mount -t tmpfs -o mode=0755 cgroups /sys/fs/cgroup
    for controllers; do
        mkdir "/sys/fs/cgroup/$controllers"
        mount -t cgroup -o "$controllers" cgroup "/sys/fs/cgroup/$controllers"
    done
}

case $1 in
v2)
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    echo '+memory +cpu +pids' >/sys/fs/cgroup/cgroup.subtree_control
    ;;
v1)
    mount_v1 memory cpu,cpuacct pids devices
    ;;
hybrid)
    mount_v1 memory cpu,cpuacct pids devices
    mkdir /sys/fs/cgroup/unified
    mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
    ;;
mixed) # some controllers on version 2
    mount_v1 memory cpu,cpuacct devices
    mkdir /sys/fs/cgroup/unified
    mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
    echo +pids >/sys/fs/cgroup/unified/cgroup.subtree_control
    ;;
esac

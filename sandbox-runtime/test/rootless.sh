#!/bin/bash
# The launcher without root: an ordinary user with delegated control groups, with subordinate ids and without.
# shellcheck disable=SC2016 # what stands in single quotes is expanded inside the sandbox
. "$(dirname "$0")/expect.sh"
bad=$work/misbehave
plugin=(--plugin "$bad" --plugin-name bad)
user=54321 first_id=700000
digest=$("$launcher" syscalls | sed -n 's/^# digest //p')

# What the user may reach; root's own files stay root's.
cp "$build/launcher" "$work/launcher-program"
cp "$build/test/serve-run" "$work/serve-run"
mkdir "$work/build"
ln "$work/launcher-program" "$work/build/launcher" # where serve-run looks for it
program=$work/launcher-program
cp "$build/test/misbehave" "$bad"
touch "$work/result"
mkdir "$work/out" "$work/etc"
echo input >"$work/etc/input"
chown "$user:$user" "$work/out"
chmod 755 "$work" "$bad" "$work/launcher-program" "$work/serve-run" "$work/build"
chmod 666 "$work/result"

# A group of the user's in each hierarchy, beside the groups that this shell is in. On version 2 the launcher first gives the
# controllers on.
"$launcher" run --result /dev/null -- true
groups=()
hierarchies=$(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup.*/\1/p' /proc/self/mountinfo | grep -E '/(memory|cpu|pids|unified|cgroup)$')
make_groups() {
    local point own
    for point in $hierarchies; do
        case $point in
        */memory | */cpu | */pids) own=$(grep -E "[:,]${point##*/}[:,]" /proc/self/cgroup) ;;
        *) own=$(grep '^0::' /proc/self/cgroup) ;;
        esac
        own=${own#*:*:}
        own=${own%/sandbus-supervisor}
        [ ! -d "$point$own" ] || groups+=("$point${own%/}/sandbus-test-$$")
    done
    mkdir "${groups[@]}" && chown -R "$user:$user" "${groups[@]}"
}
remove_groups() {
    local group
    for group in "${groups[@]}"; do
        [ ! -d "$group/sandbus-supervisor" ] || rmdir "$group/sandbus-supervisor"
        rmdir "$group" || return 1
    done
}
make_groups

# From here on the launcher runs as the user, in a mount namespace of its own, after these commands of root. Where it has been
# in a group of version 2, the group gives its controllers on, and its leaf takes newcomers.
as_user() { # COMMANDS [PROGRAMS BEFORE]
    cat >"$work/as-user" <<END
#!/bin/bash
for group in ${groups[*]}; do
    [ ! -d \$group/sandbus-supervisor ] || group+=/sandbus-supervisor
    echo \$\$ >\$group/cgroup.procs || exit 1
done
export BUILD=$work/build
exec ${2:-} unshare -m bash -c '$1; exec setpriv --reuid $user --regid $user --clear-groups $program "\$@"' _ "\$@"
END
    chmod +x "$work/as-user"
    launcher=$work/as-user
}

jobs_of_a_user() { # WHOSE IDS, PATTERN OF THE JOB'S USER ID
    local mode=$1 uid=$2
    expect "$mode: a job runs" outcome=exited exit=0 stdout=hello sandbox.namespaces.0=user "sandbox.uid=$uid" "filterDigest=$digest" -- -- echo hello
    expect "$mode: what cannot be counted is said to be unavailable" syscalls.available=false 'syscalls.reason=?*' executions.available=false devices.available=false 'devices.reason=?*' -- -- true
    expect "$mode: no capability, no new privileges, a filter" 'stdout=0000000000000000 1 2' -- -- sh -c 'sed -n "s/^\(CapEff\|NoNewPrivs\|Seccomp\):\t*//p" /proc/self/status | tr "\n" " " | sed "s/ $//"'
    expect "$mode: its name is job" "stdout=job" -- -- id -un
    expect "$mode: only three places can be written" 'stdout=/dev/shm /job /tmp ' -- -- sh -c "awk '\$4 ~ /^rw/ { print \$2 }' /proc/mounts | sort -u | tr '\n' ' '"
    expect "$mode: the plugin cannot be written or replaced" outcome=exited stdout=refused -- "${plugin[@]}" -- sh -c '{ chmod u+w /plugin/bad || echo x >>/plugin/bad || rm /plugin/bad; } 2>/dev/null || echo refused'
    expect "$mode: files of the user are not there" exitCode=1 -- -- [ -e "$work" ]
    expect "$mode: PID 1 is out of reach" 'stdout=here' exitCode=0 -- -- sh -c 'kill -9 1; cat /proc/1/mem 2>/dev/null || echo here'
    expect "$mode: the devices" 'stdout=fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ' -- -- sh -c 'ls /dev | tr "\n" " "'
    expect "$mode: they work" outcome=exited exitCode=0 'stdout=4 0 ptmx' -- -- sh -c 'exec 3<>/dev/ptmx; echo x >/dev/null; echo $(head -c 4 /dev/urandom | wc -c) $(ls /dev/pts)'
    expect "$mode: a granted device" outcome=exited stdout=1 -- --device /dev/full -- sh -c 'head -c 1 /dev/full | wc -c'
    expect "$mode: a grant that nobody would enforce" outcome=setup-failed error.step=devices 'error.mend=*rw*' -- --device /dev/full:r -- true
    expect "$mode: a chosen user id" outcome=setup-failed error.step=user error.errno=EPERM -- --uid 1234567 -- true
    expect "$mode: a memory hog" outcome=memory-exceeded 'usage.peakMemoryBytes<33554433' -- "${plugin[@]}" --memory 32M -- /plugin/bad hog
    expect "$mode: a fork bomb" outcome=wall-time-exceeded usage.peakProcesses=16 -- "${plugin[@]}" --pids 16 --wall 0.5 -- /plugin/bad fork-bomb
    expect "$mode: CPU time" outcome=cpu-time-exceeded -- "${plugin[@]}" --cpu-time 0.2 -- /plugin/bad spin 1
    expect "$mode: a denial is recorded" outcome=exited denials.0.syscall=unshare denials.0.program=/usr/bin/unshare -- -- unshare -r true
    expect "$mode: inputs belong to the job" outcome=exited exitCode=0 -- --input deep/b.txt="$work/etc/input" -- sh -c 'echo more >>deep/b.txt && rm -r deep'
    rm -rf "${work:?}/out/"*
    expect "$mode: outputs are collected, those without mode bits too" outcome=exited outputs.files.#=2 outputs.files.1.name=secret -- --collect "$work/out" -- sh -c 'echo x >out/plain; echo y >out/secret; chmod 0 out/secret; mkdir out/locked; chmod 0 out/locked'
    check "$mode: with their contents" [ "$(cat "$work/out/plain" "$work/out/secret")" = $'x\ny' ]
}

as_user true
jobs_of_a_user 'one id' $user
program=$work/serve-run
as_user true
jobs_of_a_user 'one id, served' $user
program=$work/launcher-program

identities="cp /etc/passwd $work/etc/passwd; echo sandbus-test:x:$user:$user::/:/bin/sh >>$work/etc/passwd
echo sandbus-test:$first_id:1000 >$work/etc/ids
mount --bind $work/etc/passwd /etc/passwd && mount --bind $work/etc/ids /etc/subuid && mount --bind $work/etc/ids /etc/subgid || exit 1"
if command -v newuidmap >/dev/null && [ -e /etc/subuid ] && [ -e /etc/subgid ]; then
    as_user "$identities"
    jobs_of_a_user 'subordinate ids' '700???'
    program=$work/serve-run
    as_user "$identities"
    jobs_of_a_user 'subordinate ids, served' '700???'
    program=$work/launcher-program
    as_user "$identities"
    expect 'subordinate ids: no group of the user is left' 'stdout=700???' -- -- id -G
    expect 'subordinate ids: the plugin is root'\''s' 'stdout=0' -- "${plugin[@]}" -- stat -c %u /plugin/bad
    as_user "$identities; mount --bind /bin/false \$(command -v newgidmap)"
    expect 'ids that cannot be mapped' outcome=setup-failed error.step=id-map 'error.mend=*newuidmap*' -- -- true
else
    echo 'subordinate ids: skipped, they need newuidmap (apt-get install uidmap)'
fi

# Hosts that give no user namespaces. The failure is a real one: the launcher runs in a user namespace, with the same ids, in which
# no further one may be made. The settings beside it are those of other hosts.
cat >"$work/in-namespace" <<'END'
#!/bin/bash
(until echo '0 0 1000000' >/proc/$$/uid_map && echo '0 0 1000000' >/proc/$$/gid_map; do sleep 0.01; done) 2>/dev/null &
exec unshare -U bash -c 'until grep -q . /proc/self/gid_map; do sleep 0.01; done; exec "$@"' _ "$@"
END
chmod +x "$work/in-namespace"
while IFS='|' read -r setting commands mend; do
    as_user "echo 0 >/proc/sys/user/max_user_namespaces; $commands" "$work/in-namespace"
    expect "$setting" outcome=setup-failed exit=125 error.step=namespaces error.errno=ENOSPC "error.mend=$mend" -- -- true
    "$launcher" check-host --json >"$work/result" 2>/dev/null
    check "$setting, says check-host too" grep -q '"name":"namespaces","ok":false,"required":true' "$work/result"
done <<END
user.max_user_namespaces=0|true|*sysctl -w user.max_user_namespaces=*
kernel.unprivileged_userns_clone=0|mount -t tmpfs none /proc/sys/kernel; echo 0 >/proc/sys/kernel/unprivileged_userns_clone|*sysctl -w kernel.unprivileged_userns_clone=1*
Ubuntu 24.04|mount -t tmpfs none /proc/sys/kernel; echo 1 >/proc/sys/kernel/apparmor_restrict_unprivileged_userns; mount -t tmpfs none /proc/sys/user|*profile sandbus-launcher $work/launcher-program *userns*apparmor_parser*sysctl -w kernel.apparmor_restrict_unprivileged_userns=0*
END

# Groups that are not the user's.
chown 0:0 "${groups[@]}"
as_user true
expect 'groups that are not delegated' outcome=setup-failed exit=125 error.step=cgroup-delegation error.errno=EACCES 'error.mend=?*' -- -- true

check 'no group is left of all this' remove_groups
launcher=$build/launcher
finish

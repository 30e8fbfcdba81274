#!/bin/bash
# What a job sees: an identity, files, devices and processes of its own, and nothing of its launcher's.
# shellcheck disable=SC2016 # what stands in single quotes is expanded inside the sandbox
. "$(dirname "$0")/expect.sh"
bad=$build/test/misbehave
plugin=(--plugin "$bad" --plugin-name bad)
status() { printf 'sed -n "s/^%s:\\t*//p" /proc/self/status' "$1"; }

expect 'a user of its own' "stdout=uid=*(job) gid=*(job) groups=*(job)" -- -- id
expect 'no capability' stdout=0000000000000000 -- -- sh -c "$(status CapBnd)"
expect 'no new privileges' stdout=1 -- -- sh -c "$(status NoNewPrivs)"
expect 'one filter' stdout=2 -- -- sh -c "$(status Seccomp)"
SECRET=leak expect 'the environment is what was given' 'stdout=A=b c?HOME=/job?LANG=C.UTF-8?PATH=/usr/local/bin:/usr/bin:/bin' -- --env 'A=b c' -- sh -c 'env -u PWD -u OLDPWD -u _ -u SHLVL | sort'
expect 'a default can be replaced' stdout=/elsewhere -- --env HOME=/elsewhere -- sh -c 'echo $HOME'
expect 'no inherited descriptor' 'stdout=0 1 2 ' -- "${plugin[@]}" -- /plugin/bad descriptors 5<"$0" 6<"$0" 20<"$0" 3>&1
expect 'ten thousand descriptors' outcome=exited 'stdout=[0-9]*' -- "${plugin[@]}" -- sh -c 'ulimit -n $(ulimit -Hn); exec /plugin/bad many-descriptors 10000'
expect 'PID 1 tells nothing of the launcher' stdout=init -- -- sh -c 'tr -d "\0" </proc/1/cmdline'
expect 'PID 1 cannot be read' 'stdout=' exitCode=1 -- -- sh -c 'cat /proc/1/environ /proc/1/mem 2>/dev/null; ls /proc/1/fd >/dev/null 2>&1 || exit 1'
expect 'PID 1 cannot be killed' outcome=exited stdout=here -- -- sh -c 'kill -9 1; kill -TERM 1; echo here'
expect 'only its own processes' 'stdout=1 2 [0-9]*' -- -- sh -c 'echo /proc/[0-9]* | sed "s,/proc/,,g"'
expect 'the files at the top' 'stdout=bin dev etc job lib* mnt proc sbin tmp usr' -- -- sh -c 'ls / | tr "\n" " " | sed "s/ $//"'
expect 'nothing of the host in /etc/passwd' 'stdout=root job nobody ' -- -- sh -c 'cut -d: -f1 /etc/passwd | tr "\n" " "'
expect 'a host name of its own' stdout=sandbox -- -- hostname
expect 'loopback and nothing else' 'stdout=lo ' -- -- sh -c 'sed -n "s/^ *\([^:|]*\):.*/\1/p" /proc/net/dev | tr "\n" " "'
expect 'loopback is up' outcome=exited stdout=pong -- -- python3 -c '
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
server.accept()[0].sendall(b"pong\n")
print(client.recv(9).decode().strip())'
expect 'the devices' 'stdout=fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ' -- -- sh -c 'ls /dev | tr "\n" " "'
expect 'no device can be made' exitCode=1 -- -- mknod /tmp/null c 1 3
expect 'set-user-id has no effect' 'stdout=*nosuid*' -- -- sh -c 'grep " /usr " /proc/mounts'
expect 'no mount is writable but the job'"'"'s' 'stdout=/dev/shm /job /tmp ' -- -- sh -c "awk '\$4 ~ /^rw/ { print \$2 }' /proc/mounts | sort -u | tr '\n' ' '"
expect '/proc is masked' 'stdout=0 0' -- -- sh -c 'echo $(cat /proc/keys /proc/interrupts | wc -c) $(ls -A /proc/fs | wc -l)'
expect 'no setting of the kernel can be written' exitCode=2 -- -- sh -c 'echo 1 >/proc/sys/vm/drop_caches'
expect 'no core dumps' stdout=0 -- -- sh -c 'ulimit -c'
expect 'no address-space limit' stdout=unlimited -- -- sh -c 'ulimit -v'
expect 'its cgroup is the root of what it sees' 'stdout=/' -- -- sh -c 'sed -n "s/^0:://p" /proc/self/cgroup'
expect 'no controlling terminal' exitCode=2 -- -- sh -c 'exec 3<>/dev/tty'
expect 'terminals of its own' outcome=exited 'stdout=/dev/pts/0 ok?32' denials.#=0 -- -- python3 -c '
import os, pty
first, second = pty.openpty()
os.write(second, b"ok")
print(os.ttyname(second), os.read(first, 2).decode())
made = 1
try:
    while True: pty.openpty(); made += 1
except OSError: print(made)'
expect 'script makes a terminal' outcome=exited 'stdout=/dev/pts/0' -- -- sh -c 'script -qc tty /dev/null </dev/null | tr -d "\r"'
expect 'input cannot be pushed into a terminal' 'stdout=EPERM' denials.0.syscall=ioctl -- -- python3 -c '
import errno, fcntl, pty, termios
try: fcntl.ioctl(pty.openpty()[1], termios.TIOCSTI, b"x")
except OSError as error: print(errno.errorcode[error.errno])'
expect 'ignored signals of the parent are not passed on' stdout=0000000000000000 -- -- sh -c "$(status SigIgn)"
expect 'a granted device' outcome=exited 'stdout=1' devices.granted.0=/dev/full -- --device /dev/full -- sh -c 'head -c 1 /dev/full | wc -c'
expect 'a device that is not there' outcome=setup-failed error.step=devices error.errno=ENOENT 'error.message=*/dev/nope*' -- --device /dev/nope -- true
expect 'the host network, where given' 'sandbox.network=host' exitCode=0 -- --network host -- sh -c '[ $(wc -l </proc/net/dev) -ge 3 ]'

# Landlock holds where mounts do not: a read-only mount lets whoever may write a fifo in it, and a shared network reaches every
# abstract socket.
"$launcher" check-host --json >"$work/result"
abi=$(member landlockAbi)
expect "Landlock is recorded (ABI $abi)" "sandbox.landlockAbi=$abi" -- -- true
mkdir "$work/shared"
mkfifo -m 666 "$work/shared/fifo"
chmod 755 "$work/shared"
try_fifo='
import errno, os
try: print(os.open("/opt/shared/fifo", os.O_WRONLY | os.O_NONBLOCK))
except OSError as error: print(errno.errorcode[error.errno])'
try_abstract='
import errno, socket
try: print(socket.socket(socket.AF_UNIX).connect("\0sandbus-host"))
except OSError as error: print(errno.errorcode[error.errno])'
if [ "$abi" -ge 2 ]; then
    expect 'a fifo of the host cannot be written' outcome=exited stdout=EACCES -- --ro-bind "$work/shared:/opt/shared" -- python3 -c "$try_fifo"
    expect 'files move between directories' outcome=exited stdout=x -- -- sh -c 'mkdir a b && echo x >a/f && mv a/f b/g && ln b/g a/h && mv a/h /job/h && mv /job/h out/h && cat out/h'
fi
if [ "$abi" -ge 6 ]; then
    coproc python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind("\0sandbus-host"); s.listen(); print("ready", flush=True); input()'
    read -r _ <&"${COPROC[0]}"
    expect 'nor an abstract socket of the host be reached, with its network' outcome=exited stdout=EPERM -- --network host -- python3 -c "$try_abstract"
    echo >&"${COPROC[1]}"
    wait "$COPROC_PID"
fi

# SysV and POSIX shared memory, and abstract sockets, of two jobs at once.
mkfifo "$work/first"
"$launcher" run --result "$work/result-first" -- python3 -c '
import socket, time
s = socket.socket(socket.AF_UNIX); s.bind("\0sandbus-test"); s.listen()
open("/dev/shm/mine", "w").close(); open("/tmp/mine", "w").close()
print("ready", flush=True); time.sleep(60)' >"$work/first" 2>/dev/null &
first=$!
exec 7<"$work/first"
read -r _ <&7
expect 'nothing is shared between jobs' outcome=exited 'stdout=ConnectionRefusedError False False' -- -- python3 -c '
import os, socket
try:
    socket.socket(socket.AF_UNIX).connect("\0sandbus-test"); found = "connected"
except OSError as error:
    found = type(error).__name__
print(found, os.path.exists("/dev/shm/mine"), os.path.exists("/tmp/mine"))'
uid_second=$(member sandbox.uid)
kill -TERM "$first"
wait "$first"
mv "$work/result-first" "$work/result"
check 'two jobs have two users' [ "$(member sandbox.uid)" != "$uid_second" ]

finish

# Does what its arguments say: act VERB ARGS [, VERB ARGS]... and prints what came of each, a line each (test/languages.sh).
# shellcheck shell=bash

# The name of the error that a message ends with.
error_name() {
    case $1 in
    *'Operation not permitted'*) echo EPERM ;;
    *'Permission denied'*) echo EACCES ;;
    *'No such file'*) echo ENOENT ;;
    *'No such process'*) echo ESRCH ;;
    *'Read-only file system'*) echo EROFS ;;
    *'cross-device link'*) echo EXDEV ;;
    *'No space left'*) echo ENOSPC ;;
    *'Too many open files'*) echo EMFILE ;;
    *) echo "$1" ;;
    esac
}

try() {
    local message
    if message=$("$@" 2>&1 >/dev/null); then echo ok; else error_name "$message"; fi
}

foreign() {
    local fd target count=0
    for fd in /proc/self/fd/*; do
        target=$(readlink "$fd")
        case $target in /dev/* | /proc/* | /plugin/* | /usr/*) ;; /*) count=$((count + 1)) ;; esac
    done
    echo "$count"
}

open_many() {
    local i fd
    for ((i = 0; i < $1; i++)); do exec {fd}</dev/null || return; done
}

hog() {
    local block
    printf -v block '%1000000s' x
    while :; do block+=$block; done
}

bomb() {
    while :; do sleep 1000 & done 2>/dev/null
}

act() {
    local verb=$1
    shift
    case $verb in
    read) try head -c 1 "$1" ;;
    write) try dd if=/dev/null of="$1" conv=nocreat,notrunc status=none ;;
    create) try dd if=/dev/null of="$1" conv=excl status=none ;;
    chmod) try chmod 777 "$1" ;;
    remove) try rm -f "$1" ;;
    rename) try mv -T "$1" "$2" ;;
    link) try ln "$1" "$2" ;;
    symlink) try ln -s "$1" "$2" ;;
    fifo) try mkfifo "$1" ;;
    sparse) try truncate -s 1T "$1" ;;
    kill) try kill -"$2" "$1" ;;
    limit) try prlimit --pid "$1" --nofile=0:0 ;;
    spawn) "$@" 2>/dev/null ;;
    environment) printf '%s\n' "${!1-unset}" ;;
    foreign) foreign ;;
    open-many) try open_many "$1" ;;
    fill) try dd if=/dev/zero of="$1" bs=64K status=none ;;
    exit) exit "$1" ;;
    die) kill -"$1" $$ ;;
    sleep) sleep 1000 ;;
    spin) while :; do :; done ;;
    hog) hog ;;
    flood) yes ;;
    bomb) bomb ;;
    daemon) setsid sleep 1000 & ;;
    esac
}

action=()
for word in "$@" ','; do
    if [ "$word" = , ]; then
        act "${action[@]}"
        action=()
    else
        action+=("$word")
    fi
done

# shellcheck shell=bash
# Sourced by the tests. One check serves all of them:
#
#   expect NAME MEMBER=PATTERN... -- OPTIONS -- PROGRAM ARGS
#
# runs the job and compares members of the result: = with a shell pattern, < and > as numbers. `exit` is the launcher's exit
# code, `stdout` and `stderr` are what came out (the result's own stdout and stderr members are stdout.bytes and so on).
# After each job no group and no process of it may be left.

here=$(cd "$(dirname "$0")" && pwd)
build=${BUILD:-$here/../build}
launcher=${LAUNCHER:-$build/launcher} # or test/serve-run, for the same tests by way of serve
work=$(mktemp -d)
passed=0 failed=0
trap 'rm -rf "$work"' EXIT

pass() { passed=$((passed + 1)); }

fail() {
    failed=$((failed + 1))
    printf 'not ok: %s\n' "$*"
}

# Whether a condition holds; the words after it say what it is.
check() {
    local name=$1
    shift
    if "$@"; then pass; else fail "$name"; fi
}

member() { "$build/test/json-field" "$work/result" "$1" 2>/dev/null; }

value_of() {
    case $1 in
    exit) printf '%s\n' "$code" ;;
    stdout) cat "$work/stdout" ;;
    stderr) cat "$work/stderr" ;;
    *) member "$1" ;;
    esac
}

compare() { # ACTUAL OPERATOR WANTED
    case $2 in
    '=')
        # shellcheck disable=SC2254 # the wanted value is a pattern
        case $1 in $3) ;; *) return 1 ;; esac
        ;;
    *) awk -v a="$1" -v b="$3" -v o="$2" 'BEGIN { exit !(a != "" && (o == "<" ? a + 0 < b + 0 : a + 0 > b + 0)) }' ;;
    esac
}

# Runs the launcher with the result in a file; sets `code`. Standard input is the caller's.
run_job() {
    "$launcher" run --result "$work/result" "$@" >"$work/stdout" 2>"$work/stderr" <&0 &
    launcher_pid=$!
    wait "$launcher_pid"
    code=$?
}

left_over() {
    local uid
    uid=$(member sandbox.uid)
    find /sys/fs/cgroup -maxdepth 6 -name "sandbus-job-$launcher_pid-*" 2>/dev/null
    [ "${uid:-0}" = 0 ] || find /proc -maxdepth 1 -user "$uid" 2>/dev/null
}

expect() {
    local name=$1 wanted=() condition operator wrong='' actual
    shift
    while [ "$1" != -- ]; do
        wanted+=("$1")
        shift
    done
    shift
    : >"$work/result"
    run_job "$@"
    for condition in "${wanted[@]}"; do
        operator=${condition#"${condition%%[=<>]*}"}
        operator=${operator:0:1}
        actual=$(value_of "${condition%%[=<>]*}")
        compare "$actual" "$operator" "${condition#*[=<>]}" || wrong="$wrong; $condition but it is '${actual:0:300}'"
    done
    [ -z "$(left_over)" ] || wrong="$wrong; left over: $(left_over)"
    if [ -z "$wrong" ]; then pass; else fail "$name: ${wrong#; }"; fi
}

finish() {
    printf '%s: %d passed, %d failed\n' "$(basename "$0" .sh)" "$passed" "$failed"
    [ "$failed" = 0 ]
}

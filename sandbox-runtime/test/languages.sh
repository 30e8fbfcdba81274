#!/bin/bash
# The same attacks, limits and outcomes for a C binary, a Go binary, Python, Node, Ruby and Bash (languages/*.tsv), under one filter.
. "$(dirname "$0")/expect.sh"
folder=$here/languages
digest=$("$launcher" syscalls | sed -n 's/^# digest //p')
node=${NODE:-$(realpath -m "$here/../../node_modules/node-linux-$(uname -m | sed 's/x86_64/x64/;s/aarch64/arm64/')/bin/node")}
[ "$(uname -m)" = x86_64 ] || { echo 'skipped: languages/attacks.tsv has the numbers of x86-64'; finish; exit; }

# The program of a language and what runs it; nothing where the language is missing.
declare -A interpreter=([c]=/bin/sh [go]=/bin/sh [python]=/usr/bin/python3 [ruby]=/usr/bin/ruby [node]=$node [bash]=/bin/bash)
declare -A source=([c]=$build/test/act [go]=$work/act-go [python]=$folder/act.py [ruby]=$folder/act.rb [node]=$folder/act.mjs [bash]=$folder/act.bash)
if go=$(command -v go); then (cd "$folder" && GO111MODULE=off CGO_ENABLED=0 "$go" build -o "$work/act-go" act.go) || fail 'act.go cannot be built'; fi
languages=()
for language in c go python ruby node bash; do
    if [ -e "${source[$language]}" ] && [ -x "${interpreter[$language]}" ]; then
        languages+=("$language")
    else
        echo "skipped: $language is not here"
    fi
done

# Sets `job` to what comes after the options of a job in this language.
choose() {
    local name=${source[$1]##*/}
    plugin=/plugin/$name
    options=(--plugin "${source[$1]}" --plugin-name "$name")
    case ${interpreter[$1]} in /usr/* | /bin/*) ;; *) options+=(--ro-bind "$(dirname "$(dirname "${interpreter[$1]}")")") ;; esac
    case $1 in c | go) job=("$plugin") ;; *) job=("${interpreter[$1]}" "$plugin") ;; esac
}

# A set-user-id program of root, and an abstract socket of the host.
mkdir -m 755 "$work/suid"
install -m 4755 /usr/bin/id "$work/suid/id"
abstract=sandbus-host-$$
coproc python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind("\0" + sys.argv[1]); s.listen(); print("ready", flush=True); input()' "$abstract"
read -r _ <&"${COPROC[0]}"

matches() { [[ "|$2|" == *"|$1|"* ]]; }

# All attacks of a language in one job, in the order of the table; then line by line.
attack() {
    local language=$1 who action result actions=() rows=() row i=0
    choose "$language"
    while IFS=$'\t' read -r who action result _; do
        case $who in '#'*) continue ;; esac
        [[ $who == all || " $who " == *" $language "* ]] || continue
        action=${action//'{plugin}'/$plugin}
        action=${action//'{interpreter}'/${interpreter[$language]}}
        action=${action//'{outside}'/$$}
        action=${action//'{abstract}'/$abstract}
        # shellcheck disable=SC2206 # an action is words
        actions+=($action ',')
        rows+=("$action"$'\t'"$result")
    done <"$folder/attacks.tsv"
    unset 'actions[-1]'
    SECRET=leak run_job --wall 60 --memory 512M --tmp-size 8M "${options[@]}" --ro-bind "$work/suid:/opt/suid" -- "${job[@]}" "${actions[@]}" 5<"$0" 7<"$folder" </dev/null
    check "$language: the filter is the same" [ "$(member filterDigest)" = "$digest" ]
    check "$language: the job lives through all attacks" [ "$(member outcome) $code" = 'exited 0' ]
    mapfile -t lines <"$work/stdout"
    for row in "${rows[@]}"; do
        result=${row#*$'\t'}
        result=${result//'{uid}'/$(member sandbox.uid)}
        check "$language: ${row%%$'\t'*} should be $result and is ${lines[i]-nothing}" matches "${lines[i]-nothing}" "$result"
        i=$((i + 1))
    done
    [ "$code" = 0 ] || head -5 "$work/stderr"
    check "$language: nothing is left of it" [ -z "$(left_over)" ]
}

limits() {
    local language=$1 more action wanted
    choose "$language"
    while IFS=$'\t' read -r more action wanted; do
        case $more in '#'*) continue ;; -) more= ;; esac
        # shellcheck disable=SC2086 # options, actions and conditions are words
        expect "$language: $action" $wanted "filterDigest=$digest" -- "${options[@]}" $more -- "${job[@]}" $action </dev/null
    done <"$folder/limits.tsv"
}

outputs() {
    choose "$1"
    rm -rf "$work/out"
    mkdir "$work/out"
    expect "$1: outputs that are no files" outcome=exited 'outputs.files.#=0' 'outputs.skipped.#=3' outputs.skipped.0.reason=fifo outputs.skipped.1.reason=symlink outputs.skipped.2.reason=too-large \
        -- "${options[@]}" --collect "$work/out" -- "${job[@]}" fifo out/a , symlink /etc/passwd out/b , sparse out/c </dev/null
}

for language in "${languages[@]}"; do
    attack "$language"
    limits "$language"
    outputs "$language"
done
echo >&"${COPROC[1]}"
wait "$COPROC_PID"
finish

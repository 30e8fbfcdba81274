#!/bin/bash
# The other commands, and what the launcher says to options that it does not like.
. "$(dirname "$0")/expect.sh"

"$launcher" syscalls >"$work/syscalls"
check '215 names and the digest' [ "$(grep -vc '^#' "$work/syscalls") $(tail -1 "$work/syscalls" | cut -d' ' -f1,2)" = '215 # digest' ]
check 'sorted, each once' [ "$(grep -v '^#' "$work/syscalls" | LC_ALL=C sort -u | wc -l)" = 215 ]
"$launcher" syscalls --json >"$work/result"
check 'as JSON' [ "$(member 'names.#') $(member digest)" = "215 $(tail -1 "$work/syscalls" | cut -d' ' -f3)" ]
"$launcher" check-host >"$work/stdout"
check 'check-host is content' [ $? = 0 ]
"$launcher" check-host --json >"$work/result"
check 'and says so' [ "$(member ok) $(member filterDigest)" = "true $(tail -1 "$work/syscalls" | cut -d' ' -f3)" ]
check 'version' compare "$("$launcher" --version)" = 'launcher [0-9]*'
check 'help names every default' [ "$("$launcher" run --help | grep -c '\[256M\]\|\[10\]\|\[1M\]')" = 3 ]
tables() { grep -E '^  (--| *[0-9]+ [A-Z_]+ +(->|<-))'; }
{ "$launcher" run --help; "$launcher" serve --help; } | tables >"$work/help"
check 'the manual has options and frames as --help has them' diff "$work/help" <(tables <"$here/../README.md")
"$launcher" nonsense 2>/dev/null
check 'an unknown command' [ $? = 125 ]

# Each row: what is wrong, and a word of the sentence that says so.
while IFS='|' read -r name words says; do
    # shellcheck disable=SC2086 # the words are options
    expect "$name" outcome=setup-failed error.step=options "error.message=*$says*" exit=125 -- $words
done <<'ROWS'
an unknown option|--memmory 1M -- true|no option --memmory
a size without a number|--memory M -- true|--memory M
a size of nothing|--memory 0 -- true|above 0
a size beyond all|--memory 99999999999999999999 -- true|size
a negative time|--wall -1 -- true|time
a time with a unit|--wall 10s -- true|time
no processor|--cpus 0 -- true|cores
no process|--pids 0 -- true|count
an option without its value|--wall|needs a value
no program|--wall 1 --|no PROGRAM
a word before --|true|not an option
a plugin name with a slash|--plugin /bin/true --plugin-name a/b -- true|file name
a digest that is none|--plugin /bin/true --plugin-sha256 abc -- true|digest
a digest without a plugin|--plugin-sha256 abc -- true|digest
an input that leads out|--input ../x=/bin/true -- true|input
an input at an absolute path|--input /x=/bin/true -- true|input
a relative bind|--ro-bind usr -- true|bind
a bind that leads out|--ro-bind /usr:/a/../b -- true|bind
a device elsewhere|--device /etc/passwd -- true|device
an access that is none|--device /dev/null:x -- true|device
a variable without a name|--env =x -- true|variable
a network that is none|--network some -- true|neither none nor host
a job of root|--uid 0 -- true|root
ROWS

mkfifo "$work/hold"
"$launcher" run --result "$work/result" --env SECRET=hidden -- sh -c 'echo ready; read line' hidden <"$work/hold" >"$work/stdout" &
exec 8>"$work/hold"
until grep -q ready "$work/stdout"; do sleep 0.01; done
check 'arguments and variables of a job are not in its launcher'"'"'s command line' \
    [ "$(tr -d '\0' <"/proc/$!/cmdline")" = "$(printf '%s' "$launcher" run)" ]
exec 8>&-
wait $!

"$launcher" run --result /nowhere/x -- true 2>"$work/result"
check 'a result that cannot be written' [ "$(member error.step)" = options ]
"$launcher" run --result fd:77 -- true 2>"$work/result"
check 'a result descriptor that is not open' [ "$(member error.step)" = options ]

finish

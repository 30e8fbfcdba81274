#!/bin/bash
# The bytes that were checked are the bytes that run, and inputs arrive where they should.
# shellcheck disable=SC2016 # what stands in single quotes is expanded inside the sandbox
. "$(dirname "$0")/expect.sh"
sha() { sha256sum "$1" | cut -d' ' -f1; }

printf '#!/bin/sh\necho genuine\n' >"$work/plugin.sh"
genuine=$(sha "$work/plugin.sh")
expect 'a plugin that is what it should be' outcome=exited stdout=genuine -- --plugin "$work/plugin.sh" --plugin-sha256 "$genuine" -- /plugin/plugin.sh
printf '#!/bin/sh\necho swapped\n' >"$work/plugin.sh"
expect 'a swapped plugin never runs' outcome=setup-failed error.step=plugin-digest "error.message=*$genuine*" stdout= exit=125 -- --plugin "$work/plugin.sh" --plugin-sha256 "$genuine" -- /plugin/plugin.sh

# The file changes while jobs copy it: each job runs the genuine bytes or fails, whatever it read.
printf '#!/bin/sh\necho genuine\n#%s\n' "$(head -c 400000 /dev/zero | tr '\0' a)" >"$work/one"
sed 's/genuine/swapped/; s/a$/b/' "$work/one" >"$work/two"
one=$(sha "$work/one")
cp "$work/one" "$work/changing"
(until [ -e "$work/enough" ]; do cat "$work/two" >"$work/changing.new" && cat "$work/changing.new" >"$work/changing"; cat "$work/one" >"$work/changing"; done) 2>/dev/null &
changer=$!
honest=yes
for _ in 1 2 3 4 5 6 7 8 9 10; do
    run_job --plugin "$work/changing" --plugin-name p --plugin-sha256 "$one" -- /plugin/p </dev/null
    case "$(member outcome) $(cat "$work/stdout")" in 'exited genuine' | 'setup-failed ') ;; *) honest="$(member outcome) $(cat "$work/stdout")" ;; esac
done
touch "$work/enough"
wait "$changer"
check "a plugin that changes while it is copied: $honest" [ "$honest" = yes ]

printf 'writable?' >"$work/data"
write='cd /plugin && { chmod u+w p || echo x >>p || rm p || echo x >q || mv p r || ln p r; } 2>/dev/null; cat p'
expect 'a plugin cannot be written, replaced or removed' 'stdout=writable?' -- --plugin "$work/data" --plugin-name p -- sh -c "$write"
expect 'nor anything of the host' outcome=exited 'stdout=no no no no' -- -- sh -c 'for f in /usr/x /etc/x /x /usr/bin/sh; do (echo >>$f) 2>/dev/null && printf yes || printf "no"; [ $f = /usr/bin/sh ] || printf " "; done'
expect 'a missing plugin' outcome=setup-failed error.step=plugin-open error.errno=ENOENT "error.message=*$work/none*" -- --plugin "$work/none" -- true
mkfifo "$work/fifo"
expect 'a plugin that is a fifo' outcome=setup-failed error.step=plugin-open 'usage.wallMs<1000' -- --plugin "$work/fifo" -- true
expect 'a plugin from /proc/self/fd' outcome=exited 'stdout=writable?' -- --plugin /proc/self/fd/6 --plugin-name p -- cat /plugin/p 6<"$work/data"
cd "$work" || exit 1
expect 'a relative plugin path' outcome=exited 'stdout=writable?' -- --plugin data --plugin-name p -- cat /plugin/p
expect 'a relative input path' outcome=exited 'stdout=writable?' -- --input a=./data -- cat a
expect 'an input path is one of the host, not of the sandbox' outcome=setup-failed error.step=inputs error.errno=ENOENT -- --input a=etc/passwd -- cat a
expect 'inputs' outcome=exited 'stdout=writable?writable?' -- --input a.txt="$work/data" --input deep/er/b.txt="$work/data" -- cat a.txt deep/er/b.txt
expect 'inputs belong to the job' outcome=exited exitCode=0 -- --input deep/b.txt="$work/data" -- sh -c 'echo more >>deep/b.txt && rm -r deep'
expect 'two inputs of one name' outcome=setup-failed error.step=inputs error.errno=EEXIST -- --input a="$work/data" --input a="$work/data" -- true
mkdir "$work/tree"
echo below >"$work/tree/file"
expect 'a bind' outcome=exited 'stdout=below' -- --ro-bind "$work/tree:/opt/some/where" -- cat /opt/some/where/file
expect 'a bind at its own path' outcome=exited 'stdout=below' -- --ro-bind "$work/tree" -- cat "$work/tree/file"
expect 'a bind of one file' outcome=exited 'stdout=below' -- --ro-bind "$work/tree/file:/opt/one" -- cat /opt/one
expect 'a bind is read-only' outcome=exited exitCode=1 -- --ro-bind "$work/tree:/opt/t" -- sh -c 'chmod 777 /opt/t/file || echo x >/opt/t/file || exit 1'
expect 'a bind may not cover the sandbox' outcome=setup-failed error.step=ro-binds -- --ro-bind "$work/tree:/proc/sys" -- true
ln -s / "$work/tree/escape"
expect 'a destination stays inside' outcome=exited -- --ro-bind "$work/tree:/opt/t" --ro-bind "$work/tree:/opt/t/escape/etc/x" -- true
check 'and nothing was made outside' [ ! -e /etc/x ]

finish

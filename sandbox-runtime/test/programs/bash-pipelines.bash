# Pipelines, process substitution, here-documents, background jobs, traps, coprocesses and arithmetic over file descriptors.
set -euo pipefail
sum=$(seq 1 100 | awk '{ total += $1 } END { print total }')
difference=$(diff <(printf 'a\nb\n') <(printf 'a\nc\n') | grep -c '^[<>]' || true)
tee >(wc -c | tr -d ' ' > counted) > copy <<< 'to two places'
wait $!
(exit 3) & first=$!
(exit 4) & second=$!
wait $first || codes=$?
wait $second || codes+=$?
trap 'caught=yes' USR1
kill -USR1 $$
coproc adder { while read -r a b; do echo $((a + b)); done; }
echo '20 22' >&"${adder[1]}"
read -r answer <&"${adder[0]}"
echo "$sum $difference $(< counted) $(< copy) ${codes} ${caught:-no} $answer $(printf '%s' {a..e} | rev | xargs -n 1 echo)"

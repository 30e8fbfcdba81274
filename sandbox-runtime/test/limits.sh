#!/bin/bash
# A limit that the kernel does not take: the group that the launcher is in has less of a processor than the job asks for, which
# version 1 of the cpu controller refuses to promise. (Version 2 takes it, and gives no more than there is.)
. "$(dirname "$0")/expect.sh"
point=$(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup [^ ]* .*\<cpu\>.*/\1/p' /proc/self/mountinfo | head -1)
own=$(sed -n 's/^[0-9]*:\([^:]*,\)\?cpu\(,[^:]*\)\?:\(.*\)/\3/p' /proc/self/cgroup)
group=$point${own%/}/sandbus-test-$$
if [ -z "$point" ] || ! mkdir "$group" 2>/dev/null; then
    echo 'the version 1 cpu controller is not here'
    exit 77
fi
echo 20000 >"$group/cpu.cfs_quota_us"
printf '#!/bin/bash\necho $$ >%s/tasks && exec %s "$@"\n' "$group" "$launcher" >"$work/within"
chmod +x "$work/within"
launcher=$work/within
expect 'more than there is' outcome=setup-failed exit=125 error.step=cpu-limit error.errno=EINVAL 'error.message=*cpu.cfs_quota_us*' -- --cpus 1 -- touch /job/out/ran
expect 'as much as there is' outcome=exited exit=0 -- --cpus 0.2 -- true
check 'the group can be removed' rmdir "$group"

finish

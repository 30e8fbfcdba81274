# A repository in /job: commits, a branch, a merge, a tag, packing, a clone and its history.
set -euo pipefail
export GIT_AUTHOR_NAME=job GIT_AUTHOR_EMAIL=job@sandbox GIT_COMMITTER_NAME=job GIT_COMMITTER_EMAIL=job@sandbox
git init -q -b main repository
cd repository
echo one > file && git add file && git commit -qm 'first'
git switch -qc side && echo two > other && git add other && git commit -qm 'second'
git switch -q main && echo three >> file && git commit -qam 'third'
git merge -q --no-edit side
git tag -am 'released' v1
git gc -q
git fsck --no-progress
git clone -q . ../clone
cd ../clone
echo "$(git log --oneline | wc -l) $(git log --format=%s --no-merges | sort | paste -sd' ') $(git describe) $(git status --porcelain | wc -l)"

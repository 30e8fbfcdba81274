# Packs and unpacks files with modes, links, times and a sparse file; fchmodat2 and openat2 must be answered so that tar falls back.
set -euo pipefail
umask 022
mkdir -p tree/folder
echo content > tree/plain && chmod 640 tree/plain
echo run > tree/script && chmod 755 tree/script
chmod 2750 tree/folder
ln -s plain tree/soft && ln tree/plain tree/hard
truncate -s 10M tree/sparse
touch -d @86400 tree/plain
tar -cSzf out/tree.tar.gz tree
mkdir unpacked
tar -xpzf out/tree.tar.gz -C unpacked
diff -r tree unpacked/tree
# The old format has room for user ids up to 2097151, and a job's is above.
if tar --format=ustar -cf old.tar tree/plain 2>refused; then echo 'ustar took the job as owner'; fi
tar --format=ustar --owner=job:1000 --group=job:1000 -cf old.tar tree/plain && tar -tf old.tar >/dev/null
(cd unpacked/tree && stat -c '%n=%a' folder plain script && stat -c '%h %Y' hard && readlink soft && stat -c %s sparse) | paste -sd' '

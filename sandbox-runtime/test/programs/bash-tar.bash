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
(cd unpacked/tree && stat -c '%n=%a' folder plain script && stat -c '%h %Y' hard && readlink soft && stat -c %s sparse) | paste -sd' '

#include "inside.h"

#include "descriptor.h"
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool inside_private_mounts(struct inside *inside, struct fault *fault)
{
    if (kernel_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fault_set(fault, errno, inside->rootless->active ? rootless_mend() : ROOT_MEND,
                         "cannot make the mounts private");
    inside->mounts = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return inside->mounts >= 0 || fault_set(fault, errno, "mount /proc", "cannot open the mount namespace");
}

/* The new root is mounted over the old one. Absolute paths go on to lead into the old root, from which the sources are taken,
 * so nothing of the host is hidden; the working directory is the new root, and relative paths are the sandbox's. */
bool inside_root(struct inside *inside, struct fault *fault)
{
    (void)inside;
    OWNED_FD int root = kernel_detached_tmpfs("0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    if (root < 0 || kernel_move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0 || fchdir(root) < 0)
        return fault_set(fault, errno, ROOT_MEND, "cannot mount the new root");
    return true;
}

/* Opens the longest part of the path that there is, and makes the rest below it. */
int inside_make_point(const char *path, bool directory)
{
    int found = kernel_openat2(AT_FDCWD, path, O_PATH | O_CLOEXEC, RESOLVE_IN_ROOT);
    if (found >= 0 || errno != ENOENT)
        return found;
    OWNED_FD int parent = open(".", O_PATH | O_CLOEXEC);
    bool missing = false; /* and all behind it */
    for (size_t end = 0; path[end];) {
        char prefix[4096];
        size_t start = end + (path[end] == '/');
        end = start + strcspn(path + start, "/");
        if (end >= sizeof prefix) {
            errno = ENAMETOOLONG;
            return -1;
        }
        snprintf(prefix, sizeof prefix, "%.*s", (int)end, path);
        int next = missing ? -1 : kernel_openat2(AT_FDCWD, prefix, O_PATH | O_CLOEXEC, RESOLVE_IN_ROOT);
        if (missing || (next < 0 && errno == ENOENT)) {
            missing = true;
            int made = directory || path[end] ? mkdirat(parent, prefix + start, 0755)
                                              : mknodat(parent, prefix + start, S_IFREG | 0444, 0);
            next = made < 0 ? -1 : openat(parent, prefix + start, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        }
        descriptor_close(&parent);
        parent = next;
        if (parent < 0)
            return -1;
    }
    int result = parent;
    parent = -1;
    return result;
}

/* A copy of a piece of the host's mount tree, not attached anywhere, with the attributes set on all of it. */
static int clone_tree(const char *source, uint64_t attributes, bool *directory)
{
    struct mount_attr set = {.attr_set = attributes};
    struct stat status;
    OWNED_FD int tree = kernel_open_tree(AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (tree < 0 || fstat(tree, &status) < 0 || kernel_mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &set) < 0)
        return -1;
    *directory = S_ISDIR(status.st_mode);
    int result = tree;
    tree = -1;
    return result;
}

/* `source` is for the message. */
static bool attach_tree(int tree, const char *source, const char *path, struct fault *fault)
{
    struct stat status;
    OWNED_FD int point = fstat(tree, &status) < 0 ? -1 : inside_make_point(path, S_ISDIR(status.st_mode));
    if (point < 0)
        return fault_set(fault, errno, "choose a place that exists or can be made", "cannot make /%s in the sandbox",
                         path);
    if (kernel_move_mount(tree, "", point, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
        return fault_set(fault, errno, "bind a directory on a directory and a file on a file", "cannot show %s at /%s",
                         source, path);
    return true;
}

bool inside_bind(const char *source, const char *path, uint64_t attributes, struct fault *fault)
{
    bool directory = false;
    OWNED_FD int tree = clone_tree(source, attributes, &directory);
    if (tree < 0)
        return fault_set(fault, errno, "check that it exists on this host", "cannot take %s for the sandbox", source);
    return attach_tree(tree, source, path, fault);
}

/* The parents of `path` are of the set-up's own making, so that nothing of it can be a link. Protected all at once by the step
 * "protect-binds". */
bool inside_bind_new(const char *source, const char *path, struct fault *fault)
{
    struct stat status;
    if (stat(source, &status) < 0)
        return errno == ENOENT || fault_set(fault, errno, ROOT_MEND, "cannot look at %s", source);
    int made = S_ISDIR(status.st_mode) ? mkdir(path, 0755) : mknod(path, S_IFREG | 0444, 0);
    if (made < 0 || kernel_mount(source, path, NULL, MS_BIND | MS_REC, NULL) < 0)
        return fault_set(fault, errno, ROOT_MEND, "cannot show %s at /%s", source, path);
    return true;
}

/* All that has been shown so far, with everything below it. The root itself is written to until the step "read-only". */
bool inside_protect_binds(struct inside *inside, struct fault *fault)
{
    (void)inside;
    struct mount_attr all = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    struct mount_attr root = {.attr_clr = MOUNT_ATTR_RDONLY};
    if (kernel_mount_setattr(AT_FDCWD, ".", AT_RECURSIVE, &all) < 0 ||
        kernel_mount_setattr(AT_FDCWD, ".", 0, &root) < 0)
        return fault_set(fault, errno, ROOT_MEND, "cannot make what is shown of the host read-only");
    return true;
}

/* On merged hosts /bin and the like are links into /usr, and become the same links inside. */
bool inside_system_binds(struct inside *inside, struct fault *fault)
{
    (void)inside;
    static const char *const directories[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; i++) {
        char link[256];
        ssize_t length = readlink(directories[i], link, sizeof link - 1);
        if (length < 0) {
            if (!inside_bind_new(directories[i], directories[i] + 1, fault))
                return false;
            continue;
        }
        link[length] = 0;
        if (symlink(link, directories[i] + 1) < 0)
            return fault_set(fault, errno, ROOT_MEND, "cannot make the link %s", directories[i]);
    }
    return true;
}

/* Makes one directory of the job's tmpfs (mounted at tmp for now) and shows it at `path`. */
static bool part_of_tmpfs(const char *part, mode_t mode, const char *path)
{
    if (mkdir(part, mode) < 0)
        return false;
    OWNED_FD int tree = kernel_open_tree(AT_FDCWD, part, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    return tree >= 0 && kernel_move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

static void write_tmpfs_size(char *data, size_t size, uint64_t bytes)
{
    snprintf(data, size, "mode=0755,size=%" PRIu64 ",nr_inodes=%" PRIu64, bytes, bytes / 4096 + 1024);
}

/* One file system of limited size is /tmp, /job and /dev/shm. It is mounted at /tmp, and its own part covers it last. */
bool inside_job_tmpfs(struct inside *inside, struct fault *fault)
{
    char data[96];
    write_tmpfs_size(data, sizeof data, inside->tmp_size_bytes);
    if (mkdir("tmp", 0755) < 0 || mkdir("job", 0755) < 0 ||
        kernel_mount("sandbus", "tmp", "tmpfs", MS_NOSUID | MS_NODEV, data) < 0)
        return fault_set(fault, errno, ROOT_MEND, "cannot mount the job's file system");
    if (!part_of_tmpfs("tmp/job", 0755, "job") || !part_of_tmpfs("tmp/shm", 01777, "dev/shm") ||
        !part_of_tmpfs("tmp/tmp", 01777, "tmp") || mkdir("job/out", 0755) < 0 ||
        chown("job", inside->uid, inside->gid) < 0 || chown("job/out", inside->uid, inside->gid) < 0)
        return fault_set(fault, errno, ROOT_MEND, "cannot lay out /tmp, /job and /dev/shm");
    return true;
}

/* What of it depends on the job: its size, where a prepared child was made with another, and whether its outputs are wanted. */
bool inside_job_directory(struct inside *inside, struct fault *fault)
{
    const struct job_spec *spec = inside->spec;
    char data[96];
    write_tmpfs_size(data, sizeof data, spec->tmp_size_bytes);
    if (spec->tmp_size_bytes != inside->tmp_size_bytes &&
        kernel_mount(NULL, "tmp", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV, data) < 0)
        return fault_set(fault, errno, ROOT_MEND, "cannot give the job's file system its size");
    if (spec->collect_dir)
        inside->job_dir = open("job", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (spec->collect_dir && inside->job_dir < 0)
        return fault_set(fault, errno, ROOT_MEND, "cannot open /job");
    return true;
}

int inside_open_tree(const char *source, struct fault *fault)
{
    bool directory;
    int tree = clone_tree(source, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &directory);
    if (tree < 0)
        fault_set(fault, errno, "check that it exists on this host", "cannot take %s for the sandbox", source);
    return tree;
}

bool inside_ro_binds(struct inside *inside, struct fault *fault)
{
    static const char *const own[] = {"/proc", "/dev", "/plugin", "/sys", "/job", "/tmp"};
    const struct spec_list *binds = &inside->spec->binds;
    for (size_t i = 0; i < binds->count; i++) {
        const char *path = binds->items[i].value;
        for (size_t k = 0; k < sizeof own / sizeof own[0]; k++) {
            size_t length = strlen(own[k]);
            bool below = strncmp(path, own[k], length) == 0 && path[length] == '/';
            if (strcmp(path, own[k]) == 0 || (below && k < 4))
                return fault_set(fault, 0, "choose another place, SRC:DST",
                                 "a bind at %s would cover the sandbox's own %s", path, own[k]);
        }
        OWNED_FD int tree = inside->sources ? *inside->sources++ : inside_open_tree(binds->items[i].name, fault);
        if (tree < 0 || !attach_tree(tree, binds->items[i].name, path + 1, fault))
            return false;
    }
    return true;
}

static bool make_read_only(const char *path)
{
    struct mount_attr set = {.attr_set = MOUNT_ATTR_RDONLY};
    return kernel_mount_setattr(AT_FDCWD, path, 0, &set) == 0;
}

bool inside_read_only(struct inside *inside, struct fault *fault)
{
    (void)inside;
    if (!make_read_only("dev") || !make_read_only("."))
        return fault_set(fault, errno, ROOT_MEND, "cannot make the new root read-only");
    return true;
}

static bool pivot(struct fault *fault)
{
    /* Old root and new root change places in one spot; what lies under it, the host's root, is then let go. */
    if (kernel_pivot_root(".", ".") < 0 || kernel_umount(".", MNT_DETACH) < 0 || chdir("/") < 0)
        return fault_set(fault, errno,
                         "the host's root must be an ordinary mount, not an initramfs: see launcher check-host",
                         "cannot change to the new root");
    return true;
}

/* It gets what it needs of the host as descriptors. */
bool inside_prepared_pivot(struct inside *inside, struct fault *fault)
{
    return inside->spec || pivot(fault);
}

bool inside_pivot(struct inside *inside, struct fault *fault)
{
    return inside->ordered_us || pivot(fault);
}

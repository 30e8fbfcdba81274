/* The job's /dev: what every program may count on, terminals of its own, and the nodes that it was granted. */
#include "inside.h"

#include "descriptor.h"
#include "kernel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Makes a node, or shows the host's where a user namespace forbids to make any. `path` begins below /dev. */
static bool make_node(struct inside *inside, const char *path, mode_t type, dev_t number, struct fault *fault)
{
    char name[256];
    if (inside->rootless->active) {
        snprintf(name, sizeof name, "/dev%s", path);
        return inside_bind(name, name + 1, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, fault);
    }
    const char *slash = strrchr(path, '/');
    snprintf(name, sizeof name, "dev%s", path);
    if (slash == path && (mknod(name, type | 0666, number) == 0 || errno == EEXIST))
        return true;
    snprintf(name, sizeof name, "dev%.*s", (int)(slash - path), path);
    OWNED_FD int parent = inside_make_point(name, true);
    if (parent < 0 || (mknodat(parent, slash + 1, type | 0666, number) < 0 && errno != EEXIST))
        return fault_set(fault, errno, ROOT_MEND, "cannot make /dev%s", path);
    return true;
}

/* The nodes that the job was granted. What they allow is the device controller's business, not the mode's, so that a
 * refused open is counted. */
static bool granted_devices(struct inside *inside, struct fault *fault)
{
    for (size_t i = 0; i < inside->grant_count; i++) {
        const struct device_grant *grant = &inside->grants[i];
        mode_t type = grant->type == 'b' ? S_IFBLK : S_IFCHR;
        if (!make_node(inside, grant->path + strlen("/dev"), type, makedev(grant->major, grant->minor), fault))
            return false;
    }
    return true;
}

/* Terminals of the job's own. No other instance can be reached from this one, and none of the host's terminals is in it; the
 * filter refuses to push input into any. The kernel has one number of terminals for the whole host, hence the limit. */
static bool mount_terminals(struct fault *fault)
{
    if (mkdir("dev/pts", 0755) < 0 || kernel_mount("devpts", "dev/pts", "devpts", MS_RDONLY | MS_NOSUID | MS_NOEXEC,
                                                   "newinstance,ptmxmode=0666,mode=0620,max=32") < 0)
        return fault_set(fault, errno, "use a kernel with CONFIG_UNIX98_PTYS", "cannot mount /dev/pts");
    return symlink("pts/ptmx", "dev/ptmx") == 0 || fault_set(fault, errno, ROOT_MEND, "cannot make /dev/ptmx");
}

bool inside_dev(struct inside *inside, struct fault *fault)
{
    static const struct {
        const char *path;
        unsigned minor;
    } memory_nodes[] = {{"/null", 3}, {"/zero", 5}, {"/full", 7}, {"/random", 8}, {"/urandom", 9}};
    static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},
                                           {"/proc/self/fd/0", "dev/stdin"},
                                           {"/proc/self/fd/1", "dev/stdout"},
                                           {"/proc/self/fd/2", "dev/stderr"}};
    if (mkdir("dev", 0755) < 0 ||
        kernel_mount("sandbus", "dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k") < 0)
        return fault_set(fault, errno, ROOT_MEND, "cannot mount /dev");
    for (size_t i = 0; i < sizeof memory_nodes / sizeof memory_nodes[0]; i++)
        if (!make_node(inside, memory_nodes[i].path, S_IFCHR, makedev(1, memory_nodes[i].minor), fault))
            return false;
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        if (symlink(links[i][0], links[i][1]) < 0)
            return fault_set(fault, errno, ROOT_MEND, "cannot make /%s", links[i][1]);
    if (mkdir("dev/shm", 0755) < 0 || !make_node(inside, "/tty", S_IFCHR, makedev(5, 0), fault))
        return fault_set(fault, errno, ROOT_MEND, "cannot make /dev/shm and /dev/tty");
    return mount_terminals(fault) && granted_devices(inside, fault);
}

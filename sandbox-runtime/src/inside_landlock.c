/*
 * Landlock: a second lock behind the mounts. Whatever a mount, a mode bit or a descriptor would permit, the job writes only in
 * its own three places and to devices, makes no device node anywhere, and signals nobody outside (ABI 6). ABI 1 is not used,
 * because it forbids every rename from one directory to another.
 */
#include "inside.h"

#include "descriptor.h"
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define LANDLOCK_MEND "boot without landlock in lsm=, or see: launcher check-host"

/* Rights of files, as bits; the kernel's headers may be older than the kernel. */
enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIRECTORY = 1 << 3,
    MAKE_CHARACTER_DEVICE = 1 << 6,
    MAKE_BLOCK_DEVICE = 1 << 11,
    REFER = 1 << 13,        /* ABI 2: the highest right of it */
    TRUNCATE = 1 << 14,     /* ABI 3 */
    IOCTL_DEVICE = 1 << 15, /* ABI 5 */

    READ = EXECUTE | READ_FILE | READ_DIRECTORY,
    USE_DEVICE = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEVICE,
    MAKE_DEVICE = MAKE_CHARACTER_DEVICE | MAKE_BLOCK_DEVICE,
};

enum { SCOPE_ABSTRACT_SOCKETS = 1 << 0, SCOPE_SIGNALS = 1 << 1 }; /* ABI 6 */

int inside_landlock_abi(void)
{
    int abi = kernel_landlock_abi();
    return abi >= 2 ? abi : 0;
}

static uint64_t known_rights(int abi)
{
    uint64_t highest = abi >= 5 ? IOCTL_DEVICE : abi >= 3 ? TRUNCATE : REFER;
    return 2 * highest - 1;
}

/* Paths are those of the new root, which is the working directory. */
static bool allow(int rules, const char *path, uint64_t rights)
{
    OWNED_FD int place = open(path, O_PATH | O_CLOEXEC);
    return place >= 0 && kernel_landlock_allow(rules, place, rights) == 0;
}

/* A job with the host's network can reach the host's abstract sockets only where the kernel cannot scope them. */
bool inside_landlock_rules(struct inside *inside, struct fault *fault)
{
    int abi = inside_landlock_abi();
    if (!abi)
        return true;
    uint64_t known = known_rights(abi);
    OWNED_FD int rules = kernel_landlock_rules(known, abi >= 6 ? SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS : 0);
    uint64_t own = known & ~(uint64_t)MAKE_DEVICE;
    if (rules < 0 || !allow(rules, ".", READ) || !allow(rules, "dev", READ | (USE_DEVICE & known)) ||
        !allow(rules, "job", own) || !allow(rules, "tmp", own) || !allow(rules, "dev/shm", own))
        return fault_set(fault, errno, LANDLOCK_MEND, "cannot make the job's Landlock rules (ABI %d)", abi);
    inside->landlock = rules;
    rules = -1;
    return true;
}

bool inside_landlock(struct inside *inside, struct fault *fault)
{
    if (inside->landlock >= 0 && kernel_landlock_restrict(inside->landlock) < 0)
        return fault_set(fault, errno, LANDLOCK_MEND, "cannot confine the job by Landlock");
    descriptor_close(&inside->landlock);
    return true;
}

/* What the kernel tells about itself: /proc of the job's own, /sys for jobs with devices, and what of both is about the host covered. */
#include "inside.h"

#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

bool inside_proc(struct inside *inside, struct fault *fault)
{
    (void)inside;
    if (mkdir("proc", 0755) < 0 ||
        kernel_mount("proc", "proc", "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return fault_set(fault, errno, "in a container: give it an unmasked /proc", "cannot mount /proc");
    return true;
}

/* Only jobs with devices have /sys: GPU libraries look there for their cards. */
bool inside_sys(struct inside *inside, struct fault *fault)
{
    if (!inside->grant_count)
        return true;
    if (mkdir("sys", 0755) < 0 ||
        kernel_mount("sysfs", "sys", "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        return fault_set(fault, errno, ROOT_MEND, "cannot mount /sys");
    return true;
}

/* What /proc and /sys tell about the host is covered: a directory by the empty /mnt, a file by /dev/null. */
bool inside_masks(struct inside *inside, struct fault *fault)
{
    struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
    static const char *const masked[] = {"proc/acpi/",
                                         "proc/asound/",
                                         "proc/bus/",
                                         "proc/fs/",
                                         "proc/irq/",
                                         "proc/scsi/",
                                         "proc/kcore",
                                         "proc/keys",
                                         "proc/key-users",
                                         "proc/kmsg",
                                         "proc/interrupts",
                                         "proc/latency_stats",
                                         "proc/sched_debug",
                                         "proc/sysrq-trigger",
                                         "proc/timer_list",
                                         "proc/timer_stats",
                                         "sys/firmware/",
                                         "sys/kernel/",
                                         "sys/fs/",
                                         "sys/power/",
                                         "sys/hypervisor/",
                                         "sys/block/",
                                         "sys/devices/virtual/powercap/"};
    if (mkdir("mnt", 0555) < 0)
        return fault_set(fault, errno, ROOT_MEND, "cannot make /mnt");
    for (size_t i = 0; i < sizeof masked / sizeof masked[0]; i++) {
        bool directory = masked[i][strlen(masked[i]) - 1] == '/';
        if (kernel_mount(directory ? "mnt" : "dev/null", masked[i], NULL, MS_BIND, NULL) < 0 && errno != ENOENT)
            return fault_set(fault, errno, ROOT_MEND, "cannot cover /%s", masked[i]);
    }
    /* What covers is as read-only as what it covers. */
    if (kernel_mount_setattr(AT_FDCWD, "proc", AT_RECURSIVE, &read_only) < 0 ||
        (inside->grant_count && kernel_mount_setattr(AT_FDCWD, "sys", AT_RECURSIVE, &read_only) < 0))
        return fault_set(fault, errno, ROOT_MEND, "cannot make what covers /proc and /sys read-only");
    return true;
}

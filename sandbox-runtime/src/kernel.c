#include "kernel.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Numbers newer than some libc headers. From 424 on all architectures share them. */
#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif
#ifndef SYS_fsopen
#define SYS_fsopen   430
#define SYS_fsconfig 431
#define SYS_fsmount  432
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

pid_t kernel_clone3(struct clone_args *args)
{
    return (pid_t)syscall(SYS_clone3, args, sizeof *args);
}

pid_t kernel_fork(void)
{
    return (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);
}

int kernel_mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data)
{
    return (int)syscall(SYS_mount, source, target, type, flags, data);
}

int kernel_umount(const char *target, int flags)
{
    return (int)syscall(SYS_umount2, target, flags);
}

int kernel_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

int kernel_open_tree(int dir, const char *path, unsigned flags)
{
    return (int)syscall(SYS_open_tree, dir, path, flags);
}

int kernel_move_mount(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return (int)syscall(SYS_move_mount, from_dir, from, to_dir, to, flags);
}

int kernel_mount_setattr(int dir, const char *path, unsigned flags, struct mount_attr *attributes)
{
    return (int)syscall(SYS_mount_setattr, dir, path, flags, attributes, sizeof *attributes);
}

int kernel_detached_tmpfs(const char *mode, unsigned attributes)
{
    int context = (int)syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    if (context < 0)
        return -1;
    int mount = -1;
    if (syscall(SYS_fsconfig, context, FSCONFIG_SET_STRING, "mode", mode, 0) == 0 &&
        syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, attributes);
    int saved = errno;
    close(context);
    errno = saved;
    return mount;
}

int kernel_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .resolve = resolve};
    return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

int kernel_landlock_abi(void)
{
    enum { VERSION = 1 << 0 };
    return (int)syscall(SYS_landlock_create_ruleset, NULL, 0UL, (unsigned long)VERSION);
}

int kernel_landlock_rules(uint64_t rights, uint64_t scopes)
{
    /* struct landlock_ruleset_attr. A kernel without the later members takes the first alone, and these if they are 0. */
    struct {
        uint64_t file_rights, network_rights, scopes;
    } attributes = {rights, 0, scopes};
    return (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0UL);
}

int kernel_landlock_allow(int rules, int place, uint64_t rights)
{
    enum { PATH_BENEATH = 1 };
    struct {
        uint64_t rights;
        int32_t place;
    } __attribute__((packed)) beneath = {rights, place};
    return (int)syscall(SYS_landlock_add_rule, rules, (unsigned long)PATH_BENEATH, &beneath, 0UL);
}

int kernel_landlock_restrict(int rules)
{
    return (int)syscall(SYS_landlock_restrict_self, rules, 0UL);
}

int kernel_seccomp_filter(const struct sock_fprog *program, unsigned flags)
{
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, program);
}

ssize_t kernel_read_now(int fd, void *bytes, size_t size)
{
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    ssize_t got = syscall(SYS_preadv2, fd, &part, 1UL, -1L, -1L, RWF_NOWAIT);
    if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL))
        return read(fd, bytes, size);
    return got;
}

int kernel_close_range(unsigned first, unsigned last, unsigned flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

int kernel_pidfd_kill(int pidfd, int signal)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

void kernel_default_signal(int number)
{
    unsigned long action[4] = {0}; /* struct sigaction of the kernel: SIG_DFL, no flags, no mask */
    syscall(SYS_rt_sigaction, number, action, NULL, sizeof action[0]);
}

int kernel_raise_loopback(void)
{
    struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int result = socket_fd < 0 ? -1 : ioctl(socket_fd, SIOCSIFFLAGS, &loopback);
    int saved = errno;
    if (socket_fd >= 0)
        close(socket_fd);
    errno = saved;
    return result;
}

int kernel_new_network_namespace(void)
{
    return (int)syscall(SYS_unshare, CLONE_NEWNET);
}

int kernel_enter_network_namespace(int namespace)
{
    return (int)syscall(SYS_setns, namespace, CLONE_NEWNET);
}

int kernel_enter_user_namespace(int namespace)
{
    return (int)syscall(SYS_setns, namespace, CLONE_NEWUSER);
}

int kernel_sethostname(const char *name)
{
    return (int)syscall(SYS_sethostname, name, strlen(name));
}

int kernel_join_new_keyring(void)
{
    return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) < 0 ? -1 : 0;
}

int kernel_drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    return (int)syscall(SYS_capset, &header, none);
}

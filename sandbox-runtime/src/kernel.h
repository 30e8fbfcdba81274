/*
 * System calls that not every libc wraps, and the constants that its headers lack or define differently. The kernel's own
 * headers are the source; <sched.h> and <sys/mount.h> clash with them and are therefore included nowhere.
 */
#ifndef SANDBUS_KERNEL_H
#define SANDBUS_KERNEL_H

#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

struct clone_args;
struct sock_fprog;

/* Like fork: the child runs on in a copy of this process. Returns 0 in the child, its pid in the parent, -1 with errno. */
pid_t kernel_clone3(struct clone_args *args);
/* A plain fork that runs none of libc's handlers. */
pid_t kernel_fork(void);

int kernel_mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data);
int kernel_umount(const char *target, int flags);
int kernel_pivot_root(const char *new_root, const char *put_old);
int kernel_open_tree(int dir, const char *path, unsigned flags);
int kernel_move_mount(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int kernel_mount_setattr(int dir, const char *path, unsigned flags, struct mount_attr *attributes);
/* A new tmpfs that is mounted nowhere yet, with the mode of its root (octal) and mount attributes. */
int kernel_detached_tmpfs(const char *mode, unsigned attributes);
int kernel_openat2(int dir, const char *path, uint64_t flags, uint64_t resolve);

/* The Landlock ABI, or -1. */
int kernel_landlock_abi(void);
/* A ruleset that handles these rights of files and scopes, as a descriptor. */
int kernel_landlock_rules(uint64_t rights, uint64_t scopes);
int kernel_landlock_allow(int rules, int place, uint64_t rights);
int kernel_landlock_restrict(int rules);
/* Installs the filter for this thread. Returns the descriptor of its listener, or -1 with errno. */
int kernel_seccomp_filter(const struct sock_fprog *program, unsigned flags);
/* Reads what is there now: EAGAIN rather than waiting, whatever the flags of the file. */
ssize_t kernel_read_now(int fd, void *bytes, size_t size);
int kernel_close_range(unsigned first, unsigned last, unsigned flags);
int kernel_pidfd_kill(int pidfd, int signal);
/* Gives a signal its default action, also those that libc keeps for itself and refuses to touch. */
void kernel_default_signal(int number);
/* Brings the loopback device of the caller's network namespace up: in a new one it is down. */
int kernel_raise_loopback(void);
int kernel_new_network_namespace(void);
int kernel_enter_network_namespace(int namespace);
int kernel_enter_user_namespace(int namespace);
int kernel_sethostname(const char *name);
/* A session keyring of this process's own, so that nothing reaches the launcher's. */
int kernel_join_new_keyring(void);
/* Empties the effective, permitted and inheritable capability sets. */
int kernel_drop_capabilities(void);

#endif

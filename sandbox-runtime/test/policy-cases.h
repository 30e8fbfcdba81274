/* Both sides of each argument rule, as data: policy-filter.c asks the program, policy-attack.c asks the kernel. */
#ifndef SANDBUS_POLICY_CASES_H
#define SANDBUS_POLICY_CASES_H

#include <linux/fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>

/* One side of an argument rule: the value of one argument, the others zero. */
struct rule_case {
    long number;
    int argument;
    uint32_t value;
    int allowed;
};

#define NEWNS                             0x20000u
#define PAIR(number, argument, good, bad) {number, argument, good, 1}, {number, argument, bad, 0}

/* clang-format off */
static const struct rule_case rule_cases[] = {
    {SYS_clone, 0, 17, 1}, {SYS_clone, 0, 0x3d0f00, 1}, {SYS_clone, 0, 0x80, 1}, {SYS_clone, 0, NEWNS, 0},
    {SYS_clone, 0, 0x02000000, 0}, {SYS_clone, 0, 0x04000000, 0}, {SYS_clone, 0, 0x08000000, 0}, {SYS_clone, 0, 0x10000000 | 17, 0},
    {SYS_clone, 0, 0x20000000, 0}, {SYS_clone, 0, 0x40000000, 0}, {SYS_clone, 0, 0x7e020000, 0}, {SYS_clone, 0, 0x80000000, 1},
    {SYS_fcntl, 1, F_NOTIFY - 1, 1}, {SYS_fcntl, 1, F_NOTIFY + 1, 1}, {SYS_fcntl, 1, F_NOTIFY, 0},
    {SYS_inotify_add_watch, 2, 0x2, 1}, {SYS_inotify_add_watch, 2, 0xfce, 1}, {SYS_inotify_add_watch, 2, 0x1, 0},
    {SYS_inotify_add_watch, 2, 0x10, 0}, {SYS_inotify_add_watch, 2, 0x20, 0}, {SYS_inotify_add_watch, 2, 0xfff, 0},
    {SYS_ioctl, 1, 0x5401, 1}, {SYS_ioctl, 1, 0x5411, 1}, {SYS_ioctl, 1, 0x5413, 1}, {SYS_ioctl, 1, 0x5412, 0},
    {SYS_ioctl, 1, 0x541b, 1}, {SYS_ioctl, 1, 0x541d, 1}, {SYS_ioctl, 1, 0x541c, 0}, {SYS_ioctl, 1, 0xc0104642, 1},
    {SYS_mknodat, 2, 0100644, 1}, {SYS_mknodat, 2, 0010644, 1}, {SYS_mknodat, 2, 0140644, 1}, {SYS_mknodat, 2, 0644, 1},
    {SYS_mknodat, 2, 0020666, 0}, {SYS_mknodat, 2, 0060600, 0}, {SYS_mknodat, 2, 0x10000 | 0020666, 0},
    {SYS_personality, 0, 0, 1}, {SYS_personality, 0, 8, 1}, {SYS_personality, 0, 0x20000, 1}, {SYS_personality, 0, 0x20008, 1},
    {SYS_personality, 0, 0x40000, 1}, {SYS_personality, 0, 0xffffffff, 1}, {SYS_personality, 0, 0x60000, 0},
    {SYS_personality, 0, 1, 0}, {SYS_personality, 0, 0x400000, 0}, {SYS_personality, 0, 0xfffffffe, 0},
    PAIR(SYS_prctl, 0, 1, 0), PAIR(SYS_prctl, 0, 4, 5), PAIR(SYS_prctl, 0, 7, 6), PAIR(SYS_prctl, 0, 8, 9),
    PAIR(SYS_prctl, 0, 15, 14), PAIR(SYS_prctl, 0, 16, 17), PAIR(SYS_prctl, 0, 21, 22), PAIR(SYS_prctl, 0, 23, 24),
    PAIR(SYS_prctl, 0, 27, 28), PAIR(SYS_prctl, 0, 29, 26), PAIR(SYS_prctl, 0, 30, 31), PAIR(SYS_prctl, 0, 36, 35),
    PAIR(SYS_prctl, 0, 42, 43), PAIR(SYS_prctl, 0, 47, 46), PAIR(SYS_prctl, 0, 52, 51), PAIR(SYS_prctl, 0, 53, 54),
    PAIR(SYS_prctl, 0, 65, 64), PAIR(SYS_prctl, 0, 66, 67), PAIR(SYS_prctl, 0, 0x53564d41, 0x53564d42),
    PAIR(SYS_prctl, 0, 0x59616d61, 0x59616d60), {SYS_prctl, 0, 2, 1}, {SYS_prctl, 0, 3, 1}, {SYS_prctl, 0, 37, 1},
    {SYS_prctl, 0, 38, 1}, {SYS_prctl, 0, 39, 1}, {SYS_prctl, 0, 40, 1}, {SYS_prctl, 0, 41, 1}, {SYS_prctl, 0, 0xffffffff, 0},
    {SYS_prlimit64, 0, 0, 1}, {SYS_prlimit64, 0, 1, 0}, {SYS_prlimit64, 0, 0xffffffff, 0}, {SYS_prlimit64, 0, 0x80000000, 0},
    {SYS_socket, 0, 1, 1}, {SYS_socket, 0, 2, 1}, {SYS_socket, 0, 10, 1}, {SYS_socket, 0, 16, 1}, {SYS_socket, 0, 0, 0},
    {SYS_socket, 0, 3, 0}, {SYS_socket, 0, 9, 0}, {SYS_socket, 0, 11, 0}, {SYS_socket, 0, 15, 0}, {SYS_socket, 0, 17, 0},
    {SYS_socket, 0, 38, 0}, {SYS_socket, 0, 40, 0}, {SYS_socket, 0, 0xffffffff, 0},
    {SYS_socketpair, 0, 1, 1}, {SYS_socketpair, 0, 0, 0}, {SYS_socketpair, 0, 2, 0}, {SYS_socketpair, 0, 16, 0},
#ifdef SYS_mknod
    {SYS_mknod, 1, 0100644, 1}, {SYS_mknod, 1, 0010644, 1}, {SYS_mknod, 1, 0140644, 1}, {SYS_mknod, 1, 0020666, 0},
    {SYS_mknod, 1, 0060600, 0}, {SYS_mknod, 1, 0x20000 | 0060600, 0},
#endif
};
/* clang-format on */

/* The kernel reads these arguments as int, so the upper half must change nothing. */
static const uint32_t upper_halves[] = {0, 1, 0x80000000, 0xffffffff};

#endif

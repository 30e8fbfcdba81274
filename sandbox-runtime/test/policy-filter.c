/* Runs the filter's program in a small interpreter and says what it does with every call: which numbers it allows, both sides
 * of each argument rule with clean and dirty upper halves, other architectures, x32, and that each refusal has its row.
 *
 * The expectations are written here by hand, not read from policy/, so that a slip there shows. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "policy-cases.h"
#include "policy.h"

enum { ALLOW = SECCOMP_RET_ALLOW, NOTIFY = SECCOMP_RET_USER_NOTIF, STATIC_ENOSYS = SECCOMP_RET_ERRNO | ENOSYS };

static int failures;

static void check(int holds, const char *what, long detail)
{
    if (holds)
        return;
    failures++;
    printf("not ok: %s (%ld, 0x%lx)\n", what, detail, (unsigned long)detail);
}

/* Classic BPF as seccomp uses it. Anything that the kernel would refuse ends the test. */
static uint32_t run_filter(const struct seccomp_data *data)
{
    uint32_t a = 0;
    for (unsigned at = 0; at < policy_program_len; at++) {
        const struct sock_filter *i = &policy_program[at];
        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            memcpy(&a, (const char *)data + i->k, sizeof a);
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= i->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            at += a == i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            at += a >= i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            at += a > i->k ? i->jt : i->jf;
            break;
        case BPF_RET | BPF_K:
            return i->k;
        default:
            printf("not ok: instruction %u has code 0x%x\n", at, i->code);
            exit(1);
        }
    }
    printf("not ok: the program runs past its end\n");
    exit(1);
}

static uint32_t decide(uint32_t arch, long number, const uint64_t args[6])
{
    struct seccomp_data data = {.nr = (int)number, .arch = arch};
    memcpy(data.args, args, sizeof data.args);
    return run_filter(&data);
}

static uint32_t decide_native(long number, uint64_t a0, uint64_t a1, uint64_t a2)
{
    return decide(policy_arch, number, (uint64_t[6]){a0, a1, a2, 0, 0, 0});
}

static void test_argument_rules(void)
{
    for (size_t i = 0; i < sizeof rule_cases / sizeof *rule_cases; i++)
        for (size_t j = 0; j < sizeof upper_halves / sizeof *upper_halves; j++) {
            const struct rule_case *at = &rule_cases[i];
            uint64_t args[6] = {0};
            args[at->argument] = (uint64_t)upper_halves[j] << 32 | at->value;
            uint32_t want = at->allowed ? ALLOW : NOTIFY;
            check(decide(policy_arch, at->number, args) == want, policy_syscall_name((int)at->number),
                  (long)args[at->argument]);
        }
}

static void test_netlink_is_route_only(void)
{
    for (uint64_t upper = 0; upper <= 1; upper++) {
        check(decide_native(SYS_socket, upper << 32 | 16, 3, upper << 32 | 0) == ALLOW, "route netlink", (long)upper);
        for (uint64_t protocol = 1; protocol < 32; protocol++)
            check(decide_native(SYS_socket, upper << 32 | 16, 3, upper << 32 | protocol) == NOTIFY, "netlink",
                  (long)protocol);
        check(decide_native(SYS_socket, 2, 1, upper << 32 | 6) == ALLOW, "a protocol matters to netlink only", 6);
    }
}

/* Arguments for which each ruled call is allowed, to count names; other calls take any. */
static void permitted_arguments(long number, uint64_t args[6])
{
    memset(args, 0, 6 * sizeof *args);
    if (number == SYS_prctl || number == SYS_socket || number == SYS_socketpair)
        args[0] = 1;
}

static void test_allowed_names_are_exactly_those_listed(void)
{
    size_t allowed = 0, listed = 0;
    for (long number = 0; number < 4096; number++) {
        uint64_t args[6];
        permitted_arguments(number, args);
        uint32_t action = decide(policy_arch, number, args);
        const char *name = policy_syscall_name((int)number);
        int is_listed = 0;
        for (size_t i = 0; name && i < policy_allowed_count(); i++)
            is_listed |= !strcmp(policy_allowed_name(i), name);
        listed += (size_t)is_listed;
        allowed += action == ALLOW;
        check((action == ALLOW) == is_listed, "allowed and listed must agree", number);
        check(action == ALLOW || action == NOTIFY || (action == STATIC_ENOSYS && number == SYS_clone3), "action",
              number);
    }
    check(policy_allowed_count() == 215, "there are 215 names", (long)policy_allowed_count());
#ifdef __x86_64__
    check(allowed == 215, "215 numbers are allowed", (long)allowed);
#endif
    check(allowed == listed, "each listed name that has a number is allowed", (long)listed);
    check(decide_native(SYS_clone3, 0, 0, 0) == STATIC_ENOSYS, "clone3 is a static ENOSYS", SYS_clone3);
    for (size_t i = 1; i < policy_allowed_count(); i++)
        check(strcmp(policy_allowed_name(i - 1), policy_allowed_name(i)) < 0, "names are sorted and unique", (long)i);
}

static void test_other_abis_are_notified(void)
{
    static const uint32_t archs[] = {AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_X86_64 ^ 1, 0, 0xffffffff};
    const uint64_t none[6] = {0};
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        for (long number = 0; number < 600; number++) {
            check(decide(archs[i], number, none) == NOTIFY, "another architecture", number);
            check(policy_row(policy_row_of(archs[i], (int)number))->kind == POLICY_ABI, "its row", number);
        }
    for (long number = 0; number < 600; number++) {
        check(decide_native(0x40000000 | number, 0, 0, 0) == NOTIFY, "x32", number);
        check(policy_row(policy_row_of(policy_arch, (int)(0x40000000 | number)))->kind == POLICY_ABI, "x32 row",
              number);
    }
    check(decide_native(-1, 0, 0, 0) == NOTIFY && policy_row_of(policy_arch, -1) == policy_unknown_row(), "number -1",
          -1);
}

static void test_each_refusal_has_its_row(void)
{
    for (int number = 0; number < 4096; number++) {
        if (decide_native(number, UINT32_MAX - 1, 1026, 0x31) != NOTIFY) /* mostly forbidden arguments */
            continue;
        const struct policy_row *row = policy_row(policy_row_of(policy_arch, number));
        const char *name = policy_syscall_name(number);
        check(name ? row->number == number && !strcmp(row->syscall, name) : row->number == -1, "row of a number",
              number);
        check(row->kind == POLICY_DENIAL || row->answer == -ENOSYS || row->answer == 0, "probes are ENOSYS or 0",
              number);
    }
    static const struct {
        int number, answer, kind;
    } samples[] = {
        {SYS_ptrace, -EPERM, POLICY_DENIAL},
        {SYS_clone, -EPERM, POLICY_DENIAL},
        {SYS_prctl, -EINVAL, POLICY_DENIAL},
        {SYS_socket, -EAFNOSUPPORT, POLICY_DENIAL},
        {SYS_socketpair, -EAFNOSUPPORT, POLICY_DENIAL},
        {SYS_sync, 0, POLICY_PROBE},
        {SYS_io_uring_setup, -ENOSYS, POLICY_PROBE},
        {452, -ENOSYS, POLICY_PROBE},
        {599, -ENOSYS, POLICY_PROBE},
        {SYS_seccomp, -EPERM, POLICY_DENIAL},
        {SYS_unshare, -EPERM, POLICY_DENIAL},
        {SYS_shmget, -ENOSYS, POLICY_PROBE},
    };
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct policy_row *row = policy_row(policy_row_of(policy_arch, samples[i].number));
        check(row->answer == samples[i].answer && (int)row->kind == samples[i].kind, "answer", samples[i].number);
    }
}

int main(void)
{
    test_allowed_names_are_exactly_those_listed();
    test_argument_rules();
    test_netlink_is_route_only();
    test_other_abis_are_notified();
    test_each_refusal_has_its_row();
    printf(failures ? "policy-filter: %d failures\n" : "policy-filter: ok\n", failures);
    return failures != 0;
}

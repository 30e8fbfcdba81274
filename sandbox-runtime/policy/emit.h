/* Host program: turns decisions (number -> action) into a classic BPF program for seccomp. */
#ifndef SANDBUS_POLICY_EMIT_H
#define SANDBUS_POLICY_EMIT_H

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#include "table.h"

enum { EMIT_CODE = 4096 }; /* BPF_MAXINSNS: the kernel takes no more */

struct program {
    size_t length;
    struct sock_filter code[EMIT_CODE];
};

/* A call that has a rule: allowed where the rule holds, notified where it does not. */
struct emit_ruled {
    uint32_t number;
    const struct rule *rule;
};

/* `actions[n]` is the SECCOMP_RET value for number n where no rule speaks; numbers from `action_count` on, x32 and other
 * architectures are notified. Returns NULL, or what is too large for a program. */
const char *emit_program(struct program *program, uint32_t arch, const struct emit_ruled *ruled, size_t ruled_count,
                         const uint32_t *actions, size_t action_count);

#endif

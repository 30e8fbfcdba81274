/*
 * The device program. The kernel runs it for each open (and mknod, and access(2)) of a device node by a process of the group,
 * with the node's numbers and the access that is wanted, and refuses with EPERM where it returns 0.
 *
 *   rule = rules[group, type, major, minor], else rules[group, type, major, any minor]
 *   no rule:                 rules[group, other].denied++ (and the node, if it is the first); return 0
 *   wanted beyond the rule:  rule.denied++; return 0
 *   otherwise:               rule.allowed++, unless it is a mknod; return 1
 */
#include "devices_program.h"

#include "bpf.h"
#include "bpf_code.h"
#include "devices.h"

#include <stddef.h>

#define KEY(member)    ((int)offsetof(struct device_key, member) - (int)sizeof(struct device_key))
#define RULE(member)   ((int)offsetof(struct device_rule, member))
#define WANTED(member) ((int)offsetof(struct bpf_cgroup_dev_ctx, member))

/* r0 = the rule of the key on the stack, or 0 */
#define LOOK_UP(map)                                                                     \
    BPF_CODE_MAP(1, map), BPF_CODE_MOV_REG(2, 10), BPF_CODE_ALU(BPF_ADD, 2, KEY(group)), \
        BPF_CODE_CALL(BPF_FUNC_map_lookup_elem)

int devices_program_load(int rules_map)
{
    enum { COUNT_OTHER, REFUSE, DECIDE, ALLOW, ALLOW_UNCOUNTED };
    /* r6 context, r7 wanted access, r8 type */
    const struct bpf_insn code[] = {
        BPF_CODE_MOV_REG(6, 1),
        BPF_CODE_CALL(BPF_FUNC_get_current_cgroup_id),
        BPF_CODE_STORE(BPF_DW, 10, KEY(group), 0),
        BPF_CODE_LOAD(BPF_W, 7, 6, WANTED(access_type)),
        BPF_CODE_MOV_REG(8, 7),
        BPF_CODE_ALU(BPF_AND, 8, 0xffff),
        BPF_CODE_ALU(BPF_RSH, 7, 16),
        BPF_CODE_STORE(BPF_W, 10, KEY(type), 8),
        BPF_CODE_LOAD(BPF_W, 1, 6, WANTED(major)),
        BPF_CODE_STORE(BPF_W, 10, KEY(major), 1),
        BPF_CODE_LOAD(BPF_W, 1, 6, WANTED(minor)),
        BPF_CODE_STORE(BPF_W, 10, KEY(minor), 1),
        BPF_CODE_STORE_VALUE(BPF_W, 10, KEY(zero), 0),
        LOOK_UP(rules_map),
        BPF_CODE_IF(BPF_JNE, 0, 0, DECIDE),
        BPF_CODE_STORE_VALUE(BPF_W, 10, KEY(minor), -1),
        LOOK_UP(rules_map),
        BPF_CODE_IF(BPF_JNE, 0, 0, DECIDE),

        BPF_CODE_STORE_VALUE(BPF_W, 10, KEY(type), DEVICE_TYPE_OTHER),
        BPF_CODE_STORE_VALUE(BPF_W, 10, KEY(major), 0),
        BPF_CODE_STORE_VALUE(BPF_W, 10, KEY(minor), 0),
        LOOK_UP(rules_map),
        BPF_CODE_IF(BPF_JEQ, 0, 0, REFUSE), /* not a group of ours */
        BPF_CODE_LOAD(BPF_DW, 1, 0, RULE(denied)),
        BPF_CODE_IF(BPF_JNE, 1, 0, COUNT_OTHER),
        BPF_CODE_LOAD(BPF_W, 1, 6, WANTED(major)),
        BPF_CODE_STORE(BPF_W, 0, RULE(major), 1),
        BPF_CODE_LOAD(BPF_W, 1, 6, WANTED(minor)),
        BPF_CODE_STORE(BPF_W, 0, RULE(minor), 1),
        BPF_CODE_STORE(BPF_W, 0, RULE(type), 8),
        BPF_CODE_LABEL(COUNT_OTHER),
        BPF_CODE_MOV(1, 1),
        BPF_CODE_ATOMIC_ADD(BPF_DW, 0, RULE(denied), 1),
        BPF_CODE_LABEL(REFUSE),
        BPF_CODE_MOV(0, 0),
        BPF_CODE_EXIT,

        BPF_CODE_LABEL(DECIDE),
        BPF_CODE_MOV(2, 1),
        BPF_CODE_LOAD(BPF_W, 1, 0, RULE(access)),
        BPF_CODE_ALU(BPF_XOR, 1, -1),
        BPF_CODE_ALU_REG(BPF_AND, 1, 7), /* what is wanted and not granted */
        BPF_CODE_IF(BPF_JEQ, 1, 0, ALLOW),
        BPF_CODE_ATOMIC_ADD(BPF_DW, 0, RULE(denied), 2),
        BPF_CODE_GOTO(REFUSE),

        BPF_CODE_LABEL(ALLOW),
        BPF_CODE_IF(BPF_JEQ, 7, DEVICE_MKNOD, ALLOW_UNCOUNTED),
        BPF_CODE_ATOMIC_ADD(BPF_DW, 0, RULE(allowed), 2),
        BPF_CODE_LABEL(ALLOW_UNCOUNTED),
        BPF_CODE_MOV(0, 1),
        BPF_CODE_EXIT,
    };
    return bpf_program_load(BPF_PROG_TYPE_CGROUP_DEVICE, "sandbus_devices", "Apache-2.0", code,
                            sizeof code / sizeof *code);
}

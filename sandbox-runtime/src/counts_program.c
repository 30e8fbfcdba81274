/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The counting program. It reads kernel memory, which the kernel grants to GPL-compatible programs only; hence the choice of
 * licence for this file.
 *
 * It is one program on both tracepoints, since loading and verifying one costs about as much as the whole of its code. The first
 * argument tells where it is: sched_process_exec gives the current task, sys_enter that task's registers.
 */
#include "counts_program.h"

#include "bpf.h"
#include "bpf_code.h"

#include <stddef.h>
#include <sys/syscall.h>

#define SLOT(member)  ((int)offsetof(struct counts_slot, member))
#define ENTRY(member) ((int)offsetof(struct counts_execution, member))

enum { DONE, COUNT, KNOWN_NUMBER, EXECUTION, STARTED };

enum { GROUP = -8, INDEX = -12, POINTER = -8 }; /* on the stack */

/* The context of sys_enter is {registers, number}, that of sched_process_exec {task, old pid, binprm}. */
enum { TASK = 0, NUMBER = 8, BINPRM = 16 };

#define LOOK_UP(map, key)                                                         \
    BPF_CODE_MAP(1, map), BPF_CODE_MOV_REG(2, 10), BPF_CODE_ALU(BPF_ADD, 2, key), \
        BPF_CODE_CALL(BPF_FUNC_map_lookup_elem), BPF_CODE_IF(BPF_JEQ, 0, 0, DONE)

/* r7 = the slot of the caller's job, or the end */
#define FIND_SLOT(jobs, slots)                                                                                 \
    BPF_CODE_CALL(BPF_FUNC_get_current_cgroup_id), BPF_CODE_STORE(BPF_DW, 10, GROUP, 0), LOOK_UP(jobs, GROUP), \
        BPF_CODE_LOAD(BPF_W, 1, 0, 0), BPF_CODE_STORE(BPF_W, 10, INDEX, 1), LOOK_UP(slots, INDEX),             \
        BPF_CODE_MOV_REG(7, 0)

/* *(stack + POINTER) = the pointer at r6 + offset */
#define READ_POINTER(offset)                                                                                \
    BPF_CODE_MOV_REG(1, 10), BPF_CODE_ALU(BPF_ADD, 1, POINTER), BPF_CODE_MOV(2, 8), BPF_CODE_MOV_REG(3, 6), \
        BPF_CODE_ALU(BPF_ADD, 3, offset), BPF_CODE_CALL(BPF_FUNC_probe_read_kernel)

/* entry.member = the string that binprm's member points to */
#define COPY_STRING(member, binprm_offset)                                                                        \
    READ_POINTER(binprm_offset), BPF_CODE_MOV_REG(1, 8), BPF_CODE_ALU(BPF_ADD, 1, ENTRY(member)),                 \
        BPF_CODE_MOV(2, COUNTS_PATH_SIZE), BPF_CODE_LOAD(BPF_DW, 3, 10, POINTER),                                 \
        BPF_CODE_CALL(BPF_FUNC_probe_read_kernel_str)

/* A call: slot.tallies[this CPU's stripe][number]++, unless it is init's or the plugin has not started. The first process that
 * makes a call in the group is init.
 *
 * An execution: the first of a group is the plugin's. It starts the counting, and its own execve is counted here, since it
 * entered the kernel before. */
int counts_program_load(int jobs, int slots, int filename_offset, int interp_offset)
{
    /* r6 context, then number or binprm; r7 slot; r8 entry */
    const struct bpf_insn code[] = {
        BPF_CODE_MOV_REG(6, 1),
        FIND_SLOT(jobs, slots),
        BPF_CODE_CALL(BPF_FUNC_get_current_task),
        BPF_CODE_LOAD(BPF_DW, 1, 6, TASK),
        BPF_CODE_IF_REG(BPF_JEQ, 1, 0, EXECUTION),
        BPF_CODE_LOAD(BPF_DW, 6, 6, NUMBER),
        BPF_CODE_CALL(BPF_FUNC_get_current_pid_tgid),
        BPF_CODE_ALU(BPF_RSH, 0, 32),
        BPF_CODE_LOAD(BPF_DW, 1, 7, SLOT(init)),
        BPF_CODE_IF(BPF_JNE, 1, 0, COUNT),
        BPF_CODE_STORE(BPF_DW, 7, SLOT(init), 0),
        BPF_CODE_GOTO(DONE),

        BPF_CODE_LABEL(COUNT),
        BPF_CODE_IF_REG(BPF_JEQ, 1, 0, DONE),
        BPF_CODE_LOAD(BPF_DW, 1, 7, SLOT(started)),
        BPF_CODE_IF(BPF_JEQ, 1, 0, DONE),
        BPF_CODE_IF(BPF_JLT, 6, COUNTS_NUMBERS, KNOWN_NUMBER),
        BPF_CODE_MOV(6, COUNTS_NUMBERS - 1),
        BPF_CODE_LABEL(KNOWN_NUMBER),
        BPF_CODE_CALL(BPF_FUNC_get_smp_processor_id),
        BPF_CODE_ALU(BPF_AND, 0, COUNTS_STRIPES - 1),
        BPF_CODE_ALU(BPF_MUL, 0, COUNTS_NUMBERS * 8),
        BPF_CODE_ALU(BPF_MUL, 6, 8),
        BPF_CODE_ALU_REG(BPF_ADD, 7, 0),
        BPF_CODE_ALU_REG(BPF_ADD, 7, 6),
        BPF_CODE_MOV(1, 1),
        BPF_CODE_ATOMIC_ADD(BPF_DW, 7, SLOT(tallies), 1),
        BPF_CODE_GOTO(DONE),

        /* The third argument is read as memory: a program that takes it from its context is refused on sys_enter, which has two. */
        BPF_CODE_LABEL(EXECUTION),
        READ_POINTER(BINPRM),
        BPF_CODE_LOAD(BPF_DW, 6, 10, POINTER),
        BPF_CODE_MOV(1, 1),
        BPF_CODE_LOAD(BPF_DW, 2, 7, SLOT(started)),
        BPF_CODE_IF(BPF_JNE, 2, 0, STARTED),
        BPF_CODE_STORE(BPF_DW, 7, SLOT(started), 1),
        BPF_CODE_ATOMIC_ADD(BPF_DW, 7, SLOT(tallies[0][SYS_execve]), 1),

        BPF_CODE_LABEL(STARTED),
        BPF_CODE_FETCH_ADD(BPF_DW, 7, SLOT(executions), 1),
        BPF_CODE_IF(BPF_JGE, 1, COUNTS_EXECUTIONS, DONE),
        BPF_CODE_ALU(BPF_MUL, 1, sizeof(struct counts_execution)),
        BPF_CODE_MOV_REG(8, 7),
        BPF_CODE_ALU_REG(BPF_ADD, 8, 1),
        BPF_CODE_ALU(BPF_ADD, 8, SLOT(entries)),
        BPF_CODE_CALL(BPF_FUNC_ktime_get_ns),
        BPF_CODE_STORE(BPF_DW, 8, ENTRY(at_ns), 0),
        COPY_STRING(path, filename_offset),
        COPY_STRING(interpreter, interp_offset),

        BPF_CODE_LABEL(DONE),
        BPF_CODE_MOV(0, 0),
        BPF_CODE_EXIT,
    };
    return bpf_program_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "sandbus_counts", "GPL", code, sizeof code / sizeof *code);
}

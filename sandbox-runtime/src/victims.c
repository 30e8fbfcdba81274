/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * The program reads kernel memory, which the kernel grants to GPL-compatible programs only; hence the choice of licence for this
 * file. It writes into a ring that this process maps; the ring is that of the whole launcher, since a victim is rare. */
#include "victims.h"

#include "bpf.h"
#include "bpf_code.h"
#include "btf.h"
#include "descriptor.h"
#include "json.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RING = 256, NAME_SIZE = 16, WRITTEN_MOST = 16, DEEPEST_NAMESPACE = 32, UPID_SIZE = 16 };

struct victim {
    uint64_t group;
    uint64_t pid;
    char name[NAME_SIZE];
};

struct ring {
    uint64_t count; /* of all; the last RING are kept */
    struct victim victims[RING];
};

struct victims {
    int map, program, attachment;
    struct ring *ring; /* the kernel's own memory, mapped */
};

/* Where the kernel has what it tells. */
struct offsets {
    int name, pid, level, numbers;
};

#define VICTIM(member) ((int)offsetof(struct ring, victims) + (int)offsetof(struct victim, member))

enum { INDEX = -4, VALUE = -16 }; /* on the stack */

/* *(stack + VALUE) = size bytes at r6 + offset */
#define READ(offset, size)                                                                                          \
    BPF_CODE_MOV_REG(1, 10), BPF_CODE_ALU(BPF_ADD, 1, VALUE), BPF_CODE_MOV(2, size), BPF_CODE_MOV_REG(3, 6),         \
        BPF_CODE_ALU(BPF_ADD, 3, offset), BPF_CODE_CALL(BPF_FUNC_probe_read_kernel)

static int load_program(int map, const struct offsets *offsets)
{
    enum { DONE };
    /* The context is {task}, a number before Linux 6.8. r6 task, then its struct pid; r7 ring, r8 entry */
    const struct bpf_insn code[] = {
        BPF_CODE_LOAD(BPF_DW, 6, 1, 0),
        BPF_CODE_MOV_REG(1, 6),
        BPF_CODE_ALU(BPF_RSH, 1, 32),
        BPF_CODE_IF(BPF_JEQ, 1, 0, DONE), /* no address */
        BPF_CODE_STORE_VALUE(BPF_W, 10, INDEX, 0),
        BPF_CODE_MAP(1, map),
        BPF_CODE_MOV_REG(2, 10),
        BPF_CODE_ALU(BPF_ADD, 2, INDEX),
        BPF_CODE_CALL(BPF_FUNC_map_lookup_elem),
        BPF_CODE_IF(BPF_JEQ, 0, 0, DONE),
        BPF_CODE_MOV_REG(7, 0),

        BPF_CODE_MOV(1, 1),
        BPF_CODE_FETCH_ADD(BPF_DW, 7, 0, 1),
        BPF_CODE_ALU(BPF_AND, 1, RING - 1),
        BPF_CODE_ALU(BPF_MUL, 1, sizeof(struct victim)),
        BPF_CODE_MOV_REG(8, 7),
        BPF_CODE_ALU_REG(BPF_ADD, 8, 1),
        BPF_CODE_CALL(BPF_FUNC_get_current_cgroup_id),
        BPF_CODE_STORE(BPF_DW, 8, VICTIM(group), 0),
        BPF_CODE_MOV_REG(1, 8),
        BPF_CODE_ALU(BPF_ADD, 1, VICTIM(name)),
        BPF_CODE_MOV(2, NAME_SIZE),
        BPF_CODE_MOV_REG(3, 6),
        BPF_CODE_ALU(BPF_ADD, 3, offsets->name),
        BPF_CODE_CALL(BPF_FUNC_probe_read_kernel_str),

        /* task->thread_pid->numbers[level].nr: the number in the innermost namespace */
        READ(offsets->pid, 8),
        BPF_CODE_LOAD(BPF_DW, 6, 10, VALUE),
        BPF_CODE_STORE_VALUE(BPF_DW, 10, VALUE, 0),
        READ(offsets->level, 4),
        BPF_CODE_LOAD(BPF_W, 1, 10, VALUE),
        BPF_CODE_IF(BPF_JGT, 1, DEEPEST_NAMESPACE, DONE),
        BPF_CODE_ALU(BPF_MUL, 1, UPID_SIZE),
        BPF_CODE_ALU_REG(BPF_ADD, 6, 1),
        READ(offsets->numbers, 4),
        BPF_CODE_LOAD(BPF_W, 1, 10, VALUE),
        BPF_CODE_STORE(BPF_DW, 8, VICTIM(pid), 1),

        BPF_CODE_LABEL(DONE),
        BPF_CODE_MOV(0, 0),
        BPF_CODE_EXIT,
    };
    return bpf_program_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "sandbus_victims", "GPL", code, sizeof code / sizeof *code);
}

static bool find_offsets(struct offsets *offsets)
{
    struct btf btf;
    if (!btf_open(&btf))
        return false;
    const struct btf_type *task = btf_structure(&btf, "task_struct"), *pid = btf_structure(&btf, "pid");
    *offsets = (struct offsets){
        .name = btf_member_offset(&btf, task, "comm"),
        .pid = btf_member_offset(&btf, task, "thread_pid"),
        .level = btf_member_offset(&btf, pid, "level"),
        .numbers = btf_member_offset(&btf, pid, "numbers"),
    };
    btf_close(&btf);
    return offsets->name >= 0 && offsets->pid >= 0 && offsets->level >= 0 && offsets->numbers >= 0;
}

static size_t ring_size(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (sizeof(struct ring) + page - 1) / page * page;
}

static bool open_all(struct victims *victims)
{
    struct offsets offsets;
    if (!find_offsets(&offsets))
        return false;
    victims->map =
        bpf_map_create(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(struct ring), 1, BPF_F_MMAPABLE);
    if (victims->map < 0)
        return false;
    void *ring = mmap(NULL, ring_size(), PROT_READ, MAP_SHARED, victims->map, 0);
    if (ring == MAP_FAILED)
        return false;
    victims->ring = ring;
    victims->program = load_program(victims->map, &offsets);
    if (victims->program >= 0)
        victims->attachment = bpf_attach_raw_tracepoint("mark_victim", victims->program);
    return victims->attachment >= 0;
}

struct victims *victims_load(void)
{
    struct victims *victims = malloc(sizeof *victims);
    if (!victims)
        return NULL;
    *victims = (struct victims){.map = -1, .program = -1, .attachment = -1};
    if (open_all(victims))
        return victims;
    victims_unload(victims);
    return NULL;
}

void victims_unload(struct victims *victims)
{
    if (!victims)
        return;
    descriptor_close(&victims->attachment);
    descriptor_close(&victims->program);
    if (victims->ring)
        munmap(victims->ring, ring_size());
    descriptor_close(&victims->map);
    free(victims);
}

static void write_victim(const struct victim *victim, struct json_writer *json)
{
    char name[NAME_SIZE];
    memcpy(name, victim->name, sizeof name);
    name[sizeof name - 1] = 0;
    json_begin_object(json);
    json_key(json, "program");
    json_string(json, name);
    json_key(json, "pid");
    json_u64(json, victim->pid);
    json_end_object(json);
}

void victims_write_json(const struct victims *victims, uint64_t group, struct json_writer *json)
{
    uint64_t count = victims && group ? victims->ring->count : 0, first = count > RING ? count - RING : 0;
    unsigned written = 0;
    json_begin_array(json);
    for (uint64_t i = first; i < count && written < WRITTEN_MOST; i++) {
        const struct victim *victim = &victims->ring->victims[i % RING];
        if (victim->group != group)
            continue;
        write_victim(victim, json);
        written++;
    }
    json_end_array(json);
}

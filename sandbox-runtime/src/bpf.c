#include "bpf.h"

#include "bpf_code.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_INSTRUCTIONS = 256 };

/* The kernel refuses attributes that it does not know unless they are zero, so each call starts from zeroes. */
static int call(int command, union bpf_attr *attributes)
{
    return (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static uint64_t address(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

int bpf_map_create(enum bpf_map_type type, unsigned key_size, unsigned value_size, unsigned entries, unsigned flags)
{
    union bpf_attr attributes = {0};
    attributes.map_type = type;
    attributes.key_size = key_size;
    attributes.value_size = value_size;
    attributes.max_entries = entries;
    attributes.map_flags = flags;
    return call(BPF_MAP_CREATE, &attributes);
}

static bool on_element(int command, int map, const void *key, const void *value, unsigned long long flags)
{
    union bpf_attr attributes = {0};
    attributes.map_fd = (uint32_t)map;
    attributes.key = address(key);
    attributes.value = address(value);
    attributes.flags = flags;
    return call(command, &attributes) == 0;
}

bool bpf_map_get(int map, const void *key, void *value)
{
    return on_element(BPF_MAP_LOOKUP_ELEM, map, key, value, 0);
}

bool bpf_map_put(int map, const void *key, const void *value, unsigned long long flags)
{
    return on_element(BPF_MAP_UPDATE_ELEM, map, key, value, flags);
}

bool bpf_map_remove(int map, const void *key)
{
    return on_element(BPF_MAP_DELETE_ELEM, map, key, NULL, 0);
}

static bool is_jump(const struct bpf_insn *instruction)
{
    unsigned operation = BPF_OP(instruction->code);
    return BPF_CLASS(instruction->code) == BPF_JMP && operation != BPF_CALL && operation != BPF_EXIT;
}

/* Copies the code without its label marks, and turns labels into distances from the next instruction. Returns the length. */
static size_t resolve_labels(struct bpf_insn *resolved, const struct bpf_insn *code, size_t count)
{
    int positions[BPF_CODE_LABELS] = {0};
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (code[i].code == BPF_CODE_LABEL_MARK)
            positions[code[i].off] = (int)length;
        else
            resolved[length++] = code[i];
    }
    for (size_t at = 0; at < length; at++)
        if (is_jump(&resolved[at]))
            resolved[at].off = (int16_t)(positions[resolved[at].off] - (int)at - 1);
    return length;
}

int bpf_program_load(enum bpf_prog_type type, const char *name, const char *license, const struct bpf_insn *code,
                     size_t count)
{
    struct bpf_insn resolved[MOST_INSTRUCTIONS];
    if (count > MOST_INSTRUCTIONS) {
        errno = E2BIG;
        return -1;
    }
    union bpf_attr attributes = {0};
    attributes.prog_type = type;
    attributes.insns = address(resolved);
    attributes.insn_cnt = (uint32_t)resolve_labels(resolved, code, count);
    attributes.license = address(license);
    snprintf(attributes.prog_name, sizeof attributes.prog_name, "%s", name);
    return call(BPF_PROG_LOAD, &attributes);
}

bool bpf_attach_cgroup(int cgroup_dir, int program, enum bpf_attach_type type)
{
    union bpf_attr attributes = {0};
    attributes.target_fd = (uint32_t)cgroup_dir;
    attributes.attach_bpf_fd = (uint32_t)program;
    attributes.attach_type = type;
    attributes.attach_flags = BPF_F_ALLOW_MULTI;
    return call(BPF_PROG_ATTACH, &attributes) == 0;
}

int bpf_attach_raw_tracepoint(const char *tracepoint, int program)
{
    union bpf_attr attributes = {0};
    attributes.raw_tracepoint.name = address(tracepoint);
    attributes.raw_tracepoint.prog_fd = (uint32_t)program;
    return call(BPF_RAW_TRACEPOINT_OPEN, &attributes);
}

const char *bpf_unavailable(int error)
{
    switch (error) {
    case EACCES:
        return "this kernel's verifier refuses the program";
    case EPERM:
        return "bpf() is not permitted: it needs CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN, outside a user namespace";
    case ENOSYS:
        return "this kernel has no bpf()";
    case EINVAL:
        return "this kernel does not know a feature of BPF that is needed here (EINVAL)";
    default:
        return strerror(error);
    }
}

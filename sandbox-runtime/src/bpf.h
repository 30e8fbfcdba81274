/* The bpf() system call, as far as the launcher needs it. Descriptors come closed on exec; -1 comes with errno. */
#ifndef SANDBUS_BPF_H
#define SANDBUS_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>

int bpf_map_create(enum bpf_map_type type, unsigned key_size, unsigned value_size, unsigned entries, unsigned flags);
bool bpf_map_get(int map, const void *key, void *value);
/* flags: BPF_ANY, BPF_NOEXIST or BPF_EXIST */
bool bpf_map_put(int map, const void *key, const void *value, unsigned long long flags);
bool bpf_map_remove(int map, const void *key);

/* Loads what bpf_code.h describes. `name` is what bpftool shows, at most 15 characters; `license` says which helpers may be
 * called. */
int bpf_program_load(enum bpf_prog_type type, const char *name, const char *license, const struct bpf_insn *code,
                     size_t count);

/* Attaches beside what outer groups have: all programs must agree. The kernel detaches it when the group is removed. */
bool bpf_attach_cgroup(int cgroup_dir, int program, enum bpf_attach_type type);
/* Attached as long as the descriptor that it returns is open. */
int bpf_attach_raw_tracepoint(const char *tracepoint, int program);

/* Why bpf() gave this error, in words for a record: a missing capability, a kernel without BPF, or the error itself. */
const char *bpf_unavailable(int error);

#endif

#include "counts.h"

#include "bpf.h"
#include "btf.h"
#include "counts_program.h"
#include "descriptor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct counts {
    const char *reason;  /* why nothing can be counted, or NULL */
    struct btf btf;      /* until counts_settle */
    int jobs, slots_map; /* maps */
    int program;
    int calls_attachment, executions_attachment; /* -1 while no job runs */
    unsigned most_jobs, running;
    struct counts_slot *slots; /* the kernel's own memory, mapped */
    bool taken[];
};

static const char no_btf[] = "the kernel has no type information (/sys/kernel/btf/vmlinux), or struct linux_binprm is "
                             "unknown";

static size_t slots_size(const struct counts *counts)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (counts->most_jobs * sizeof(struct counts_slot) + page - 1) / page * page;
}

static const char *make_maps(struct counts *counts)
{
    counts->jobs = bpf_map_create(BPF_MAP_TYPE_HASH, sizeof(uint64_t), sizeof(uint32_t), counts->most_jobs, 0);
    if (counts->jobs < 0)
        return bpf_unavailable(errno);
    counts->slots_map = bpf_map_create(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(struct counts_slot),
                                       counts->most_jobs, BPF_F_MMAPABLE);
    if (counts->slots_map < 0)
        return bpf_unavailable(errno);
    void *slots = mmap(NULL, slots_size(counts), PROT_READ | PROT_WRITE, MAP_SHARED, counts->slots_map, 0);
    if (slots == MAP_FAILED)
        return bpf_unavailable(errno);
    counts->slots = slots;
    madvise(slots, slots_size(counts), MADV_DONTFORK); /* no job's child has it */
    return NULL;
}

static const char *load_program(struct counts *counts)
{
    if (!btf_open(&counts->btf))
        return no_btf;
    const struct btf_type *binprm = btf_structure(&counts->btf, "linux_binprm");
    int filename = btf_member_offset(&counts->btf, binprm, "filename");
    int interp = btf_member_offset(&counts->btf, binprm, "interp");
    if (filename < 0 || interp < 0)
        return no_btf;
    counts->program = counts_program_load(counts->jobs, counts->slots_map, filename, interp);
    return counts->program < 0 ? bpf_unavailable(errno) : NULL;
}

struct counts *counts_load(unsigned most_jobs)
{
    struct counts *counts = calloc(1, sizeof *counts + most_jobs * sizeof counts->taken[0]);
    if (!counts)
        return NULL;
    counts->jobs = counts->slots_map = counts->program = -1;
    counts->calls_attachment = counts->executions_attachment = -1;
    counts->most_jobs = most_jobs;
    counts->reason = make_maps(counts);
    if (!counts->reason)
        counts->reason = load_program(counts);
    return counts;
}

void counts_unload(struct counts *counts)
{
    if (!counts)
        return;
    counts_settle(counts);
    descriptor_close(&counts->calls_attachment);
    descriptor_close(&counts->executions_attachment);
    descriptor_close(&counts->program);
    if (counts->slots)
        munmap(counts->slots, slots_size(counts));
    descriptor_close(&counts->slots_map);
    descriptor_close(&counts->jobs);
    free(counts);
}

void counts_settle(struct counts *counts)
{
    if (counts)
        btf_close(&counts->btf);
}

const char *counts_unavailable(const struct counts *counts)
{
    return counts ? counts->reason : "no memory for the counters";
}

/* Executions first: no call is counted before the plugin's is seen. */
static bool attach(struct counts *counts)
{
    if (counts->executions_attachment < 0)
        counts->executions_attachment = bpf_attach_raw_tracepoint("sched_process_exec", counts->program);
    if (counts->executions_attachment >= 0 && counts->calls_attachment < 0)
        counts->calls_attachment = bpf_attach_raw_tracepoint("sys_enter", counts->program);
    return counts->calls_attachment >= 0;
}

static int take_slot(struct counts *counts)
{
    for (unsigned slot = 0; slot < counts->most_jobs; slot++)
        if (!counts->taken[slot]) {
            counts->taken[slot] = true;
            counts->running++;
            memset(&counts->slots[slot], 0, offsetof(struct counts_slot, entries));
            return (int)slot;
        }
    return -1;
}

void counts_begin(struct counts *counts, struct counts_job *job, int cgroup2_dir)
{
    struct stat status;
    *job = (struct counts_job){.slot = -1, .reason = counts_unavailable(counts)};
    if (job->reason)
        return;
    if (cgroup2_dir < 0 || fstat(cgroup2_dir, &status) != 0) {
        job->reason = "the job has no cgroup2 group: mount cgroup2";
        return;
    }
    job->group = status.st_ino; /* the id of a group is its inode number */
    if (!attach(counts)) {
        job->reason = bpf_unavailable(errno);
        return;
    }
    job->slot = take_slot(counts);
    uint32_t slot = (uint32_t)job->slot;
    if (job->slot < 0)
        job->reason = "more jobs at once than are counted";
    else if (!bpf_map_put(counts->jobs, &job->group, &slot, BPF_NOEXIST)) {
        job->reason = bpf_unavailable(errno);
        counts_end(counts, job);
    }
}

const struct counts_slot *counts_slot_of(const struct counts *counts, const struct counts_job *job)
{
    return &counts->slots[job->slot];
}

void counts_end(struct counts *counts, struct counts_job *job)
{
    if (job->slot < 0)
        return;
    bpf_map_remove(counts->jobs, &job->group);
    counts->taken[job->slot] = false;
    counts->running--;
    job->slot = -1;
}

void counts_rest(struct counts *counts)
{
    if (!counts || counts->running)
        return;
    descriptor_close(&counts->calls_attachment);
    descriptor_close(&counts->executions_attachment);
}

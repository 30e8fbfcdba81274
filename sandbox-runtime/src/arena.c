#include "arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { CHUNK_SIZE = 64 * 1024 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t size;
    size_t used;
};

static struct arena_chunk *add_chunk(struct arena *arena, size_t size)
{
    size_t wanted = size + sizeof(struct arena_chunk) + alignof(max_align_t);
    if (wanted < size)
        return NULL;
    size_t rounded = (wanted + CHUNK_SIZE - 1) / CHUNK_SIZE * CHUNK_SIZE;
    struct arena_chunk *chunk = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED)
        return NULL;
    madvise(chunk, rounded, MADV_DONTFORK);
    chunk->size = rounded;
    chunk->used = sizeof *chunk;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

void *arena_allocate(struct arena *arena, size_t size)
{
    struct arena_chunk *chunk = arena->chunks;
    size_t start = 0;
    if (chunk)
        start = (chunk->used + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    if (!chunk || start > chunk->size || size > chunk->size - start) {
        chunk = add_chunk(arena, size);
        if (!chunk)
            return NULL;
        start = (chunk->used + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    }
    chunk->used = start + size;
    return (char *)chunk + start;
}

char *arena_copy(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_allocate(arena, length + 1);
    if (copy)
        memcpy(copy, text, length);
    return copy;
}

void arena_free(struct arena *arena)
{
    while (arena->chunks) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        munmap(chunk, chunk->size);
    }
}

void arena_share_with_children(struct arena *arena, bool shared)
{
    for (struct arena_chunk *chunk = arena->chunks; chunk; chunk = chunk->next)
        madvise(chunk, chunk->size, shared ? MADV_DOFORK : MADV_DONTFORK);
}

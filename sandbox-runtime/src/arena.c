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
    bool shared;
};

static struct arena_chunk *map_chunk(struct arena *arena, size_t size, int flags)
{
    struct arena_chunk *chunk = mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED)
        return NULL;
    madvise(chunk, size, MADV_DONTFORK);
    chunk->size = size;
    chunk->used = sizeof *chunk;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

static struct arena_chunk *add_chunk(struct arena *arena, size_t size)
{
    size_t wanted = size + sizeof(struct arena_chunk) + alignof(max_align_t);
    if (wanted < size)
        return NULL;
    size_t rounded = (wanted + CHUNK_SIZE - 1) / CHUNK_SIZE * CHUNK_SIZE;
    return map_chunk(arena, rounded, MAP_PRIVATE);
}

bool arena_open_shared(struct arena *arena, size_t size)
{
    struct arena_chunk *chunk = map_chunk(arena, size, MAP_SHARED);
    if (chunk)
        chunk->shared = true;
    return chunk != NULL;
}

bool arena_is_shared(const struct arena *arena)
{
    return arena->chunks && arena->chunks->shared && !arena->chunks->next;
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

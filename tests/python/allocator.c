// SPDX-License-Identifier: BSD-3-Clause
//
// An allocator to preload, for test_heap.py. It ends the process at a block that is not its own.
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static char blocks[(size_t)1 << 30] __attribute__((aligned(4096)));
static atomic_size_t used;

// The 16 bytes before a block hold its size.
static size_t* size_before(void* block) {
  if ((uintptr_t)block - (uintptr_t)blocks >= sizeof(blocks)) abort();
  return (size_t*)((char*)block - 16);
}

void* memalign(size_t alignment, size_t size) {
  if (size > sizeof(blocks) / 2) return errno = ENOMEM, NULL;
  const size_t from = atomic_fetch_add(&used, (size + alignment + 47) / 16 * 16);
  if (from > sizeof(blocks) / 2) abort();
  char* const block = blocks + (from + 16 + alignment - 1) / alignment * alignment;
  *size_before(block) = size;
  return block;
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
void* malloc(size_t size) { return memalign(16, size); }
// Memory is given once, and so is still zero.
void* calloc(size_t count, size_t size) {
  return size != 0 && count > SIZE_MAX / size ? NULL : malloc(count * size);
}
size_t malloc_usable_size(void* block) { return block == NULL ? 0 : *size_before(block); }

void free(void* block) {
  if (block != NULL) size_before(block);
}

int posix_memalign(void** block, size_t alignment, size_t size) {
  *block = memalign(alignment, size);
  return *block == NULL ? ENOMEM : 0;
}

void* realloc(void* block, size_t size) {
  void* const made = malloc(size);
  const size_t before = malloc_usable_size(block);
  if (made != NULL && block != NULL) memcpy(made, block, before < size ? before : size);
  return made;
}

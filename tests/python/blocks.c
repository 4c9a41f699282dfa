// SPDX-License-Identifier: BSD-3-Clause
//
// A library that allocates, for test_heap.py. Where TABLE is defined it calls by way of addresses in its data.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef TABLE
struct functions {
  void* (*allocate)(size_t);
  void* (*resize)(void*, size_t);
  void (*release)(void*);
};
struct functions functions = {malloc, realloc, free};
#define malloc functions.allocate
#define realloc functions.resize
#define free functions.release
#endif

char* make(size_t size) {
  char* const made = malloc(size);
  if (made != NULL) memset(made, 'm', size);
  return made;
}

char* make_zeros(size_t size) { return calloc(1, size); }

char* make_aligned(size_t alignment, size_t size) {
  void* made = NULL;
  return posix_memalign(&made, alignment, size) == 0 ? made : NULL;
}

char* make_by_memalign(size_t alignment, size_t size) { return memalign(alignment, size); }

char* make_by_aligned_alloc(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

char* grow(char* block, size_t size) { return realloc(block, size); }

char* grow_array(char* block, size_t count, size_t size) { return reallocarray(block, count, size); }

size_t usable(char* block) { return malloc_usable_size(block); }

int discard(char* block, size_t size) { return madvise(block, size, MADV_DONTNEED); }

void drop(char* block) { free(block); }

// The C library resizes the block, which is `size` bytes, to hold the file's first line; how long that is.
long read_line(const char* path, size_t size) {
  char* line = malloc(size);
  FILE* const file = fopen(path, "r");
  const long length = getline(&line, &size, file);
  fclose(file);
  free(line);
  return length;
}

// Whether there is such a library where this one looks.
int has(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL) != NULL; }

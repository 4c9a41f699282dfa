/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes an embedded file to standard output, without a C library: Linux's system calls alone. Exits with 1 if its
 * symbols disagree, or if it does not lie at a multiple of ALIGNMENT. */
#include "model.h"

#if defined(__x86_64__)
#define WRITE 1
#define EXIT 60
#elif defined(__arm__)
#define WRITE 4
#define EXIT 1
#else /* AArch64 and RISC-V */
#define WRITE 64
#define EXIT 93
#endif

static long call(long number, long a, long b, long c) {
#if defined(__x86_64__)
  register long result __asm__("rax") = number;
  __asm__ volatile("syscall" : "+r"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
#elif defined(__arm__)
  register long n __asm__("r7") = number;
  register long x __asm__("r0") = a;
  register long y __asm__("r1") = b;
  register long z __asm__("r2") = c;
  __asm__ volatile("svc 0" : "+r"(x) : "r"(y), "r"(z), "r"(n) : "memory");
  return x;
#elif defined(__aarch64__)
  register long n __asm__("x8") = number;
  register long x __asm__("x0") = a;
  register long y __asm__("x1") = b;
  register long z __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x) : "r"(y), "r"(z), "r"(n) : "memory");
  return x;
#elif defined(__riscv)
  register long n __asm__("a7") = number;
  register long x __asm__("a0") = a;
  register long y __asm__("a1") = b;
  register long z __asm__("a2") = c;
  __asm__ volatile("ecall" : "+r"(x) : "r"(y), "r"(z), "r"(n) : "memory");
  return x;
#endif
}

/* A float in a function's interface makes a linker compare the ABI of this object with that of others. */
float same(float x) { return x; }

void _start(void) {
  const unsigned char* at = model;
  const unsigned char* end = model_end;
  int wrong = sizeof(model) != model_size || (size_t)(end - at) != model_size || (size_t)at % ALIGNMENT != 0;
  while (!wrong && at != end) {
    long n = call(WRITE, 1, (long)at, end - at);
    if (n <= 0) wrong = 1;
    at += n;
  }
  call(EXIT, wrong, 0, 0);
}

// SPDX-License-Identifier: BSD-3-Clause
//
// Marks what a shared library exports; everything else in it is hidden.
#pragma once

#if defined(__GNUC__)
#define ETSTREAM_EXPORT __attribute__((visibility("default")))
/// Hides a member of an exported class.
#define ETSTREAM_HIDDEN __attribute__((visibility("hidden")))
#else
#define ETSTREAM_EXPORT
#define ETSTREAM_HIDDEN
#endif

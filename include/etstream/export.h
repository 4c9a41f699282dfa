// SPDX-License-Identifier: BSD-3-Clause
//
// What the library offers to others when it is a shared one; all else in it is hidden.
#pragma once

#if defined(__GNUC__)
#define ETSTREAM_EXPORT __attribute__((visibility("default")))
/// For what is inside a class that is exported.
#define ETSTREAM_HIDDEN __attribute__((visibility("hidden")))
#else
#define ETSTREAM_EXPORT
#define ETSTREAM_HIDDEN
#endif

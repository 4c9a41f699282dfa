// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/result.h"

#include <cstdio>
#include <cstdlib>

namespace etstream {

void ResultBase::move_error(Error* to, Error&& from) noexcept { std::construct_at(to, std::move(from)); }
void ResultBase::copy_error(Error* to, const Error& from) { std::construct_at(to, from); }
void ResultBase::destroy_error(Error* error) noexcept { std::destroy_at(error); }

void ResultBase::end_without_value(const Error& error) noexcept {
  std::fprintf(stderr, "etstream: value() of a failed Result: %s\n", error.message.c_str());
  std::abort();
}

void ResultBase::end_without_error() noexcept {
  std::fputs("etstream: error() of a Result that holds a value\n", stderr);
  std::abort();
}

}  // namespace etstream

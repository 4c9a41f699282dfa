// SPDX-License-Identifier: BSD-3-Clause
//
// A page for a browser: one file that needs no other, nor a network.
#pragma once

#include <string>
#include <string_view>

namespace etstream {

/// `page`, one of pages.h, with `json` as its data. Whatever texts are in `json`, they stay data.
[[nodiscard]] std::string filled_page(std::string_view page, std::string_view json);

}  // namespace etstream

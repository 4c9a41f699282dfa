// SPDX-License-Identifier: BSD-3-Clause
#include "report/page.h"

#include <algorithm>
#include <cstddef>

namespace etstream {

std::string filled_page(std::string_view page, std::string_view json) {
  constexpr std::string_view kPlace = "PAGE DATA";
  const std::size_t place = page.find(kPlace);
  std::string out(page.substr(0, place));
  out.reserve(page.size() + json.size());
  for (std::size_t at = 0; at < json.size();) {
    const std::size_t end = std::min(json.find('<', at), json.size());
    out += json.substr(at, end - at);
    // It is in strings alone; as it is it could end the script that has the data.
    if (end < json.size()) out += "\\u003c";
    at = end + 1;
  }
  return out += page.substr(place + kPlace.size());
}

}  // namespace etstream

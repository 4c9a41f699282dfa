// SPDX-License-Identifier: BSD-3-Clause
#include "profile/phase_log.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace etstream {
namespace {

/// The words of a line, one after another.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  std::string_view next() {
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(std::min(word.size() + 1, rest_.size()));
    return word;
  }
  template <class Number>
  Words& operator>>(Number& number) {
    const std::string_view word = next();
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
    if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size()) good_ = false;
    return *this;
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool good() const { return good_; }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::optional<PhaseEvent> event_of(std::string_view line) {
  Words words(line);
  const std::string_view kind = words.next();
  if (kind != "B" && kind != "E") return std::nullopt;
  PhaseEvent event;
  event.begins = kind == "B";
  int was_reset = 0;
  words >> event.process >> event.thread >> event.time >> event.memory.high_water >> event.memory.resident >>
      event.memory.anonymous >> event.memory.file >> event.cpu >> event.read >> event.written >> was_reset;
  if (!words.good()) return std::nullopt;
  event.was_reset = was_reset != 0;
  event.name = words.rest();
  return event;
}

}  // namespace

std::string line_of(const PhaseEvent& event) {
  std::string name = event.name;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text("{} {} {} {} {} {} {} {} {} {} {} {} {}\n", event.begins ? "B" : "E", event.process,
              event.thread, event.time, event.memory.high_water, event.memory.resident,
              event.memory.anonymous, event.memory.file, event.cpu, event.read, event.written,
              event.was_reset ? 1 : 0, name);
}

std::vector<PhaseEvent> read_phase_log(std::string_view lines) {
  std::vector<PhaseEvent> events;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    if (end == std::string_view::npos) break;  // a process was ended as it wrote
    if (auto event = event_of(lines.substr(0, end))) events.push_back(std::move(*event));
    lines.remove_prefix(end + 1);
  }
  return events;
}

}  // namespace etstream

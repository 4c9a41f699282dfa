// SPDX-License-Identifier: BSD-3-Clause
#include "etstream/file_contents.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include "core/base/text.h"
#include "core/base/try.h"
#include "core/io/file_budget.h"
#include "core/io/read_pieces.h"
#include "etstream/delegate_payloads.h"
#include "etstream/program_graph.h"
#include "files/any_file.h"
#include "formats/pte/program_model.h"

namespace etstream {
namespace {

/// Collects the parts of a file that its format names, in any order.
class Collector {
 public:
  /// `whole` is the file in which offsets count.
  explicit Collector(ByteSource whole) : whole_(std::move(whole)), budget_(whole_) {
    found_.push_back({.kind = ContentKind::kContainer, .name = whole_.name(), .size = whole_.size()});
  }

  /// Adds the part at `data`, if it is in the file and not empty.
  void add(const ByteSource& data, FileContent content) {
    const auto offset = data.offset_in(whole_);
    if (!offset || data.size() == 0) return;
    content.offset = *offset;
    content.size = data.size();
    found_.push_back(std::move(content));
  }
  /// Counts `bytes` of a file within the file that is entered.
  Result<void> enter(std::uint64_t bytes) { return budget_.spend(bytes); }

  [[nodiscard]] std::vector<FileContent> take() { return std::move(found_); }

 private:
  ByteSource whole_;
  FileBudget budget_;
  std::vector<FileContent> found_;
};

FileContent tensor_content(ContentKind kind, std::string name, const TensorLayout& layout) {
  return {.kind = kind,
          .name = std::move(name),
          .detail = describe(layout),
          .element_size = static_cast<std::uint32_t>(item_size(layout.scalar_type))};
}

void add_tensors(const std::vector<CheckpointTensor>& tensors, Collector& out) {
  for (const CheckpointTensor& tensor : tensors) {
    FileContent content{.kind = ContentKind::kTensor, .name = tensor.name, .detail = type_text(tensor)};
    if (tensor.layout) {
      content.element_size = static_cast<std::uint32_t>(item_size(tensor.layout->scalar_type));
    }
    out.add(tensor.data, std::move(content));
  }
}

/// Adds the parts of programs and tensor data: a flatbuffer, and segments.
template <class File>
Result<void> add_segments(const File& file, Collector& out) {
  const auto flatbuffer = file.file().slice(0, file.flatbuffer_size());
  if (flatbuffer) out.add(*flatbuffer, {.kind = ContentKind::kTables, .name = "flatbuffer"});
  ETSTREAM_ASSIGN(const auto segments, file.segments());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    ETSTREAM_ASSIGN(const ByteSource data, file.file().slice(segments[i].offset, segments[i].size));
    // The use of a segment of tensor data is the tensor in it, which is named too.
    const bool is_program = std::is_same_v<File, ProgramFile>;
    out.add(data, {.name = text("segment {}", i), .detail = is_program ? segments[i].use : ""});
  }
  return {};
}

void add_graph_contents(const ProgramGraph& graph, Collector& out) {
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const GraphValue& value = graph.values[i];
    const auto* tensor = std::get_if<TensorInfo>(&value.info);
    if (!tensor) continue;
    const bool is_constant = value.storage == TensorStorage::kConstant;
    std::string name = value.name.empty() ? text("{} / value {}", printable(graph.method), i) : value.name;
    out.add(value.data, tensor_content(is_constant ? ContentKind::kTensor : ContentKind::kInitial,
                                       std::move(name), {tensor->scalar_type, tensor->sizes, {}}));
  }
  for (std::size_t i = 0; i < graph.delegates.size(); ++i) {
    const GraphDelegate& delegate = graph.delegates[i];
    out.add(delegate.data, {.kind = ContentKind::kDelegate,
                            .name = text("{} / delegate {}", printable(graph.method), i),
                            .detail = printable(delegate.backend)});
  }
}

Result<void> add_contents(const ProgramFile& program, Collector& out) {
  ETSTREAM_TRY(add_segments(program, out));
  ETSTREAM_ASSIGN(const auto methods, program.methods());
  for (std::uint32_t i = 0; i < methods.size(); ++i) {
    ETSTREAM_ASSIGN(const ProgramGraph graph, ProgramGraph::read(program, i));
    add_graph_contents(graph, out);
  }
  ETSTREAM_ASSIGN(const auto payloads, read_delegate_payloads(program));
  for (const DelegatePayload& payload : payloads) {
    for (const PayloadPart& part : payload.parts) {
      ETSTREAM_ASSIGN(const ByteSource data, payload.data.slice(part.offset, part.size));
      out.add(data, {.kind = ContentKind::kDelegate,
                     .name = text("{} / delegate {} / {}", printable(payload.method), payload.delegate,
                                  printable(part.name)),
                     .detail = payload.format});
    }
  }
  ETSTREAM_ASSIGN(auto named_data, pte::read_named_data(program.model()));
  for (pte::NamedPayload& named : named_data) {
    out.add(named.data, {.kind = ContentKind::kNamedData, .name = std::move(named.key)});
  }
  return {};
}

void add_values(const std::vector<Value>& values, const std::string& where, Collector& out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto* tensor = std::get_if<Tensor>(&values[i]);
    if (!tensor) continue;
    out.add(tensor->data, tensor_content(ContentKind::kTestData, text("{}{}", where, i),
                                         {tensor->scalar_type, tensor->sizes, {}}));
  }
}

Result<void> add_contents(const BundledProgramFile& bundle, Collector& out) {
  out.add(bundle.program(), {.name = "program"});
  if (const auto program = bundle.open_program()) ETSTREAM_TRY(add_contents(*program, out));
  for (const auto& suite : bundle.suites()) {
    for (std::uint32_t i = 0; i < suite.test_cases; ++i) {
      ETSTREAM_ASSIGN(const MethodTestCase test_case, bundle.test_case(suite, i));
      const std::string where = text("{} / case {}", printable(suite.method_name), i);
      add_values(test_case.inputs, where + " / input ", out);
      add_values(test_case.expected_outputs, where + " / expected output ", out);
    }
  }
  return {};
}

Result<void> add_contents(const TensorDataFile& weights, Collector& out) {
  ETSTREAM_TRY(add_segments(weights, out));
  ETSTREAM_ASSIGN(const auto entries, weights.entries());
  for (const NamedTensorData& entry : entries) {
    out.add(entry.data, entry.layout ? tensor_content(ContentKind::kTensor, entry.key, *entry.layout)
                                     : FileContent{.kind = ContentKind::kNamedData, .name = entry.key});
  }
  return {};
}

Result<void> add_contents(const CheckpointFile& checkpoint, Collector& out) {
  add_tensors(checkpoint.tensors, out);
  return {};
}

Result<void> add_contents(const NativePackageFile& package, Collector& out) {
  for (const PackageMember& member : package.members()) {
    if (member.data.place() != package.graph().place()) out.add(member.data, {.name = member.name});
  }
  out.add(package.graph(), {.kind = ContentKind::kTables, .name = "graph"});
  add_tensors(package.tensors(), out);
  return {};
}

Result<void> add_contents(const FatContainerFile& container, Collector& out) {
  std::set<SourcePlace> seen;
  for (const FatPayload& payload : container.payloads()) {
    out.add(payload.data, {.name = payload.name});
    if (!seen.insert(payload.data.place()).second) continue;
    ETSTREAM_ASSIGN(const auto kind, kind_of(payload));
    // Like verify(), this does not enter a container in a container: it has no use, and nests could have no
    // end.
    if (!kind || *kind == FileKind::kFatContainer) continue;
    ETSTREAM_TRY(out.enter(payload.data.size()));
    const auto opened = open_any(payload.data);
    // verify() reports the problems of a payload that can't be opened.
    if (!opened) continue;
    ETSTREAM_TRY(match(*opened, [&](const auto& file) { return add_contents(file, out); }));
  }
  return {};
}

/// Nests ranges by their places.
class Nesting {
 public:
  explicit Nesting(const ByteSource& whole) : whole_(whole) {}

  Result<std::vector<FileContent>> run(std::vector<FileContent> found) {
    // The whole file stays first. Of equal ranges, the one that was found first comes first.
    std::stable_sort(found.begin() + 1, found.end(), [](const FileContent& a, const FileContent& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.size > b.size;
    });
    open(std::move(found.front()), 0);
    for (auto each = found.begin() + 1; each != found.end(); ++each) ETSTREAM_TRY(place(std::move(*each)));
    while (!open_.empty()) ETSTREAM_TRY(close());
    return std::move(out_);
  }

 private:
  struct Open {
    std::uint32_t index = 0;
    std::uint64_t filled = 0;  // up to where its children reach
    bool has_children = false;
  };

  [[nodiscard]] static std::uint64_t end_of(const FileContent& content) {
    return content.offset + content.size;
  }

  void open(FileContent content, std::uint32_t parent) {
    content.parent = parent;
    open_.push_back({static_cast<std::uint32_t>(out_.size()), content.offset});
    out_.push_back(std::move(content));
  }

  Result<void> place(FileContent content) {
    while (end_of(out_[open_.back().index]) <= content.offset) ETSTREAM_TRY(close());
    FileContent& within = out_[open_.back().index];
    if (content.offset == within.offset && content.size == within.size && open_.back().index != 0) {
      merge(within, std::move(content));
      return {};
    }
    // Only the part of a range that lies inside its parent, and behind its last sibling, counts.
    const std::uint64_t end = std::min(end_of(content), end_of(within));
    content.offset = std::max(content.offset, open_.back().filled);
    if (content.offset >= end) return {};
    content.size = end - content.offset;
    ETSTREAM_TRY(fill(open_.back(), content.offset));
    const std::uint32_t parent = open_.back().index;
    open_.back().filled = end;
    open_.back().has_children = true;
    open(std::move(content), parent);
    return {};
  }

  /// Merges two contents of one range. The content of a segment says more than the segment; names for one
  /// tensor are counted.
  static void merge(FileContent& into, FileContent content) {
    if (into.kind == ContentKind::kContainer && content.kind != ContentKind::kContainer) {
      content.parent = into.parent;
      content.detail += (content.detail.empty() ? "" : ", ") + into.name;
      into = std::move(content);
    } else {
      ++into.others;
    }
  }

  /// Fills the gap between the children of a parent, up to `end`: it holds tables, or padding.
  Result<void> fill(const Open& parent, std::uint64_t end) {
    if (parent.filled >= end) return {};
    FileContent gap{.kind = ContentKind::kTables, .offset = parent.filled, .size = end - parent.filled};
    gap.parent = parent.index;
    if (out_[parent.index].kind != ContentKind::kTables) {
      ETSTREAM_ASSIGN(const auto nonzero, find_nonzero(whole_, gap.offset, end));
      if (!nonzero) gap.kind = ContentKind::kPadding;
    }
    out_.push_back(std::move(gap));
    return {};
  }

  Result<void> close() {
    const Open closed = open_.back();
    open_.pop_back();
    FileContent& content = out_[closed.index];
    if (closed.has_children) return fill(closed, end_of(content));
    // A container without known contents holds data.
    if (content.kind == ContentKind::kContainer && closed.index != 0) content.kind = ContentKind::kOther;
    return {};
  }

  const ByteSource& whole_;
  std::vector<Open> open_;
  std::vector<FileContent> out_;
};

}  // namespace

std::string_view name_of(ContentKind kind) noexcept {
  static constexpr std::string_view kNames[] = {"container",  "tables",        "padding",
                                                "tensor",     "initial state", "delegate",
                                                "named data", "test data",     "data"};
  return kNames[static_cast<std::size_t>(kind)];
}

Result<std::vector<FileContent>> read_contents(const AnyFile& file) {
  Collector collector(source_of(file));
  ETSTREAM_TRY(match(file, [&](const auto& opened) { return add_contents(opened, collector); }));
  return Nesting(source_of(file)).run(collector.take());
}

Result<std::vector<FileContent>> read_contents(const ByteSource& file) {
  return without_exceptions([&]() -> Result<std::vector<FileContent>> {
    ETSTREAM_ASSIGN(const AnyFile opened, open_any(file));
    ETSTREAM_ASSIGN(auto contents, read_contents(opened));
    ETSTREAM_TRY(file.check_unchanged());
    return contents;
  });
}

}  // namespace etstream

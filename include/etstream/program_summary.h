// SPDX-License-Identifier: BSD-3-Clause
//
// Summarizes a program for people: its methods, what they call and use, and where its bytes go.
//
//   const auto program = etstream::ProgramFile::open(etstream::ByteSource::file("model.pte").value());
//   if (!program) return program.error();
//   const auto summary = etstream::summarize(*program);
//   if (!summary) return summary.error();
//   for (const auto& method : summary->methods) std::printf("%s\n", method.name.c_str());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "etstream/export.h"
#include "etstream/program.h"
#include "etstream/program_graph.h"
#include "etstream/result.h"

namespace etstream {

/// A method. Sizes are in bytes.
struct MethodSummary {
  /// An operator that the method calls.
  struct Operator {
    std::string name;  // with its overload: "aten::add.out"
    std::uint32_t calls = 0;
  };
  /// A delegate of the method.
  struct Delegate {
    std::string backend;
    std::uint64_t size = 0;
    bool in_segment = false;  // otherwise in the flatbuffer
    std::uint32_t index = 0;  // in the segments, or in the flatbuffer
    std::uint32_t calls = 0;
  };
  /// A tensor among the method's values; see GraphValue.
  struct Tensor {
    std::uint32_t value = 0;  // its index
    std::string name;         // if the program has it
    TensorInfo info;
    TensorStorage storage = TensorStorage::kNone;
    std::uint64_t size = 0;
    std::uint32_t data_index = 0;
    std::uint32_t memory_id = 0;
    std::uint64_t memory_offset = 0;
  };
  /// An area of planned memory.
  struct Memory {
    std::uint32_t id = 0;            // from 1 on
    std::uint64_t size = 0;          // what the method needs
    std::uint32_t tensors = 0;       // how many are planned in it
    std::uint64_t tensor_bytes = 0;  // their total, as if none shared its place with another
  };
  std::string name;
  std::uint32_t instructions = 0;
  std::vector<Operator> operators;  // the most called first
  std::vector<Delegate> delegates;  // in the method's order
  std::vector<Tensor> tensors;      // the largest first
  std::vector<Memory> memories;
};

/// A program's methods and segments. Sizes are in bytes.
struct ProgramSummary {
  /// A segment, and the gap before it.
  struct Segment {
    SegmentInfo segment;
    std::uint64_t padding = 0;  // zeros between it and what comes before it
  };
  std::vector<MethodSummary> methods;
  std::uint64_t flatbuffer_size = 0;
  std::uint64_t padding = 0;    // the total before segments
  std::uint32_t constants = 0;  // those of tensors of any method, each once
  std::uint64_t constant_bytes = 0;
  std::vector<Segment> segments;
};

/// Reads the metadata and no payload. Memory: that of one ProgramGraph at a time, and 150 bytes per tensor.
/// Errors: those of ProgramGraph::read.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramSummary> summarize(const ProgramFile& program);

}  // namespace etstream

// SPDX-License-Identifier: BSD-3-Clause
//
// What a person wants to know of a program: what its methods do and with what, and where its bytes go.
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

/// Of a method. Sizes are in bytes.
struct MethodSummary {
  struct Operator {
    std::string name;  // with its overload: "aten::add.out"
    std::uint32_t calls = 0;
  };
  struct Delegate {
    std::string backend;
    std::uint64_t size = 0;
    bool in_segment = false;  // or in the flatbuffer
    std::uint32_t index = 0;  // of either
    std::uint32_t calls = 0;
  };
  struct Tensor {
    std::uint32_t value = 0;  // its index
    std::string name;         // where the program says it
    TensorInfo info;
    TensorStorage storage = TensorStorage::kNone;
    std::uint64_t size = 0;
    std::uint32_t data_index = 0;
    std::uint32_t memory_id = 0;
    std::uint64_t memory_offset = 0;
  };
  struct Memory {
    std::uint32_t id = 0;            // from 1 on
    std::uint64_t size = 0;          // that the method needs
    std::uint32_t tensors = 0;       // that are planned in it
    std::uint64_t tensor_bytes = 0;  // of them all, as if none shared its place with another
  };
  std::string name;
  std::uint32_t instructions = 0;
  std::vector<Operator> operators;  // those called most first
  std::vector<Delegate> delegates;  // as the method lists them
  std::vector<Tensor> tensors;      // the largest first
  std::vector<Memory> memories;
};

struct ProgramSummary {
  struct Segment {
    SegmentInfo segment;
    std::uint64_t padding = 0;  // zeros between it and what comes before it
  };
  std::vector<MethodSummary> methods;
  std::uint64_t flatbuffer_size = 0;
  std::uint64_t padding = 0;    // before all segments
  std::uint32_t constants = 0;  // that tensors of any method have, each once
  std::uint64_t constant_bytes = 0;
  std::vector<Segment> segments;
};

/// Reads the metadata, no payload. Memory: see ProgramGraph, of one method at a time, and 150 bytes a tensor.
/// Errors: those of ProgramGraph::read.
[[nodiscard]] ETSTREAM_EXPORT Result<ProgramSummary> summarize(const ProgramFile& program);

}  // namespace etstream

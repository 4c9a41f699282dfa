// SPDX-License-Identifier: BSD-3-Clause
//
// The control of the memory test: bundles a program in the ordinary way, all of it in memory. The test that
// etstream passes must fail for this.
//
//   holding_writer bundle MODEL.pte --cases CASES.json -o OUT.bpte      (CASES.json is not read)
#include <flatbuffers/flatbuffers.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <new>
#include <vector>

int main(int argc, char** argv) try {
  if (argc != 7) return 2;
  std::ifstream model(argv[2], std::ios::binary);
  const std::vector<char> program(std::istreambuf_iterator<char>(model), {});
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceVectorAlignment(program.size(), 1, 32);
  const auto bytes =
      builder.CreateVector(reinterpret_cast<const std::uint8_t*>(program.data()), program.size());
  const auto table = builder.StartTable();
  builder.AddElement<std::uint32_t>(4, 2, 0);
  builder.AddOffset(8, bytes);
  builder.Finish(flatbuffers::Offset<flatbuffers::Table>(builder.EndTable(table)), "BP08");
  std::ofstream out(argv[6], std::ios::binary);
  out.write(reinterpret_cast<const char*>(builder.GetBufferPointer()),
            static_cast<std::streamsize>(builder.GetSize()));
  return out.flush() ? 0 : 1;
} catch (const std::bad_alloc&) {
  std::fputs("out of memory\n", stderr);
  return 1;
}

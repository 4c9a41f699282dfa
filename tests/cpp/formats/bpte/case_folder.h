// SPDX-License-Identifier: BSD-3-Clause
//
// A folder with tensors in files of every kind, and a JSON file of test cases that refers to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "etstream/bundled_program.h"
#include "test_files.h"
#include "test_tensor_files.h"

namespace etstream {

class CasesFolder {
 public:
  CasesFolder() {
    put_file(folder_ / "x.npy", npy_file(npy_dict("<i2", "(2, 1)"), "abcd"));
    put_file(folder_ / "big.npy", npy_file(npy_dict(">i2", "(2,)"), "abcd"));
    put_file(folder_ / "x.bin", "123456");
    put_file(folder_ / "f.safetensors",
             safetensors_file(R"({"x":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},
                                  "wide":{"dtype":"U8","shape":[0,2147483648],"data_offsets":[4,4]},
                                  "scale":{"dtype":"F8_E8M0","shape":[8],"data_offsets":[4,12]}})",
                              "wxyz........"));
    put_file(folder_ / "bad.safetensors", safetensors_file("{", ""));
  }

  /// Reads test cases from `json`, as a file in the folder.
  [[nodiscard]] Result<std::vector<MethodTestSuite>> read(std::string_view json) const {
    put_file(path(), json);
    return read_test_cases(path());
  }

  /// Returns the path of the JSON file.
  [[nodiscard]] std::string path() const { return folder_ / "cases.json"; }
  [[nodiscard]] const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

}  // namespace etstream

// SPDX-License-Identifier: BSD-3-Clause
//
// The control of the fault tests: copies a file as programs often do. Each FLAW loses data or leaves a mess.
// The tests that etstream passes must find every one of them.
//
//   careless_writer FLAW MODEL OUT
//
//   none               writes beside the destination, syncs, renames, syncs the folder, cleans up: no flaw
//   in-place           truncates the destination and writes into it
//   ignores-writes     does not look at what write() returns
//   ignores-sync       does not look at what fsync() returns
//   never-asks         neither fsync nor close before the rename
//   forgets-folder     does not sync the folder after the rename
//   leaves-temporary   does not remove its temporary file after an error
//   strange-name       has a temporary file that nobody can recognise
//   says-nothing       has no message
//   exits-with-zero    has a message, but not the exit code
//   cleans-too-much    removes a neighbour
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

class Copy {
 public:
  Copy(std::string flaw, std::string out) : flaw_(std::move(flaw)), out_(std::move(out)) {
    const auto slash = out_.rfind('/') + 1;
    folder_ = out_.substr(0, slash);
    const char* const end = has("strange-name") ? "~" : ".etstream-00112233445566aa.tmp";
    temporary_ = has("in-place") ? out_ : folder_ + "." + out_.substr(slash) + end;
  }

  int run(const std::string& model) {
    std::ifstream in(model, std::ios::binary);
    const std::vector<char> bytes(std::istreambuf_iterator<char>(in), {});
    if (has("cleans-too-much")) ::unlink((folder_ + "neighbour").c_str());
    remove_temporary();
    const int fd = again([&] { return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666); });
    if (fd < 0) return fail();
    if (!keep_mode(fd)) return fail();
    if (!write_all(fd, bytes) && !has("ignores-writes")) return fail();
    if (!has("never-asks") && !sync(fd) && !has("ignores-sync")) return fail();
    if (!has("in-place") && again([&] { return ::rename(temporary_.c_str(), out_.c_str()); }) != 0)
      return fail();
    if (!has("in-place") && !has("forgets-folder") && !sync_folder()) return fail(", though it is complete");
    return 0;
  }

 private:
  template <class Call>
  static int again(Call call) {
    int result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
  }

  [[nodiscard]] bool has(const char* flaw) const { return flaw_ == flaw; }

  [[nodiscard]] bool keep_mode(int fd) const {
    struct stat before {};
    if (has("in-place") || ::stat(out_.c_str(), &before) != 0) return true;
    return again([&] { return ::fchmod(fd, before.st_mode & 0777); }) == 0;
  }

  /// Continues if the file system has no fsync.
  static bool sync(int fd) {
    if (again([&] { return ::fsync(fd); }) == 0) return true;
    return errno == EINVAL || errno == EROFS || errno == EOPNOTSUPP || errno == ENOSYS;
  }

  [[nodiscard]] bool sync_folder() const {
    const int fd = again([&] { return ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY); });
    return fd >= 0 && sync(fd);
  }

  [[nodiscard]] bool write_all(int fd, const std::vector<char>& bytes) const {
    constexpr std::size_t kMost = std::size_t{1} << 20;
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t n = ::write(fd, bytes.data() + done, std::min(kMost, bytes.size() - done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && !has("ignores-writes")) return false;
      done += n < 0 ? kMost : static_cast<std::size_t>(n);
    }
    return true;
  }

  int fail(const char* state = "") {
    const int reason = errno;
    remove_temporary();
    if (!has("says-nothing"))
      std::fprintf(stderr, "cannot write %s%s: %s\n", out_.c_str(), state, std::strerror(reason));
    return has("exits-with-zero") ? 0 : 1;
  }

  void remove_temporary() const {
    if (!has("in-place") && !has("leaves-temporary")) ::unlink(temporary_.c_str());
  }

  std::string flaw_, out_, folder_, temporary_;
};

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGINT, SIG_IGN);  // has no order to stop in
  return argc == 4 ? Copy(argv[1], argv[3]).run(argv[2]) : 2;
}

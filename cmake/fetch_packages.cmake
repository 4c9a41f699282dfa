# SPDX-License-Identifier: BSD-3-Clause
#
# Packages for ETSTREAM_FETCH_PACKAGES: downloads of their releases, in the versions of Debian 12, if they are not
# found. FETCHCONTENT_SOURCE_DIR_<NAME> uses a copy instead. Only their sources are used, and none of their own builds,
# whose options, tests and installed files would become ours.
#
# Each hash is that of the archive that `git archive` makes of the release's tag; those of nlohmann-json and xxHash are
# also those of Debian's orig.tar.gz.
include(FetchContent)

# Sets etstream_fetched to the folder of the sources.   etstream_download(NAME URL SHA256)
macro(etstream_download name url hash)
  message(STATUS "etstream fetches ${name}, which is not found")
  # The archive has no folder of this name, so that no build of theirs is added.
  FetchContent_Declare(${name} URL ${url} URL_HASH SHA256=${hash}
                       DOWNLOAD_EXTRACT_TIMESTAMP ON SOURCE_SUBDIR none)
  FetchContent_MakeAvailable(${name})
  string(TOLOWER ${name} etstream_fetched)
  set(etstream_fetched ${${etstream_fetched}_SOURCE_DIR})
endmacro()

# A package of headers.   etstream_headers(TARGET FOLDER)
macro(etstream_headers target folder)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${folder})
endmacro()

# Provides what find_package gives, from a download; PACKAGE_FOUND stays as it is for all others.
# etstream_fetch(PACKAGE)
macro(etstream_fetch package)
  if("${package}" STREQUAL "FlatBuffers")
    etstream_download(FlatBuffers https://github.com/google/flatbuffers/archive/refs/tags/v2.0.8.tar.gz
                      f97965a727d26386afaefff950badef2db3ab6af9afe23ed6d94bfb65f95f37e)
    # This library is for shared libraries too. It is installed with ours, as its users may have no FlatBuffers.
    add_library(etstream_flatbuffers STATIC
      ${etstream_fetched}/src/idl_gen_text.cpp
      ${etstream_fetched}/src/idl_parser.cpp
      ${etstream_fetched}/src/reflection.cpp
      ${etstream_fetched}/src/util.cpp)
    add_library(flatbuffers::flatbuffers ALIAS etstream_flatbuffers)
    set_target_properties(etstream_flatbuffers PROPERTIES
      CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
    target_include_directories(etstream_flatbuffers SYSTEM PUBLIC $<BUILD_INTERFACE:${etstream_fetched}/include>)
    set(FlatBuffers_FOUND TRUE)
    # Tests compile schemas with the same version's compiler, which runs here.
    if(ETSTREAM_BUILD_TESTS)
      find_program(ETSTREAM_FLATC flatc)
      mark_as_advanced(ETSTREAM_FLATC)
      if(ETSTREAM_FLATC)
        add_executable(flatbuffers::flatc IMPORTED GLOBAL)
        set_target_properties(flatbuffers::flatc PROPERTIES IMPORTED_LOCATION ${ETSTREAM_FLATC})
      endif()
    endif()
  elseif("${package}" STREQUAL "fmt")
    etstream_download(fmt https://github.com/fmtlib/fmt/archive/refs/tags/9.1.0.tar.gz
                      5dea48d1fcddc3ec571ce2058e13910a0d4a6bab4cc09a809d8b1dd1c88ae6f2)
    etstream_headers(fmt::fmt-header-only ${etstream_fetched}/include)
    set(fmt_FOUND TRUE)
  elseif("${package}" STREQUAL "nlohmann_json")
    etstream_download(nlohmann_json https://github.com/nlohmann/json/archive/refs/tags/v3.11.2.tar.gz
                      d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273)
    etstream_headers(nlohmann_json::nlohmann_json ${etstream_fetched}/single_include)
    set(nlohmann_json_FOUND TRUE)
  elseif("${package}" STREQUAL "CLI11")
    etstream_download(CLI11 https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.1.2.tar.gz
                      26291377e892ba0e5b4972cdfd4a2ab3bf53af8dac1f4ea8fe0d1376b625c8cb)
    etstream_headers(CLI11::CLI11 ${etstream_fetched}/include)
    set(CLI11_FOUND TRUE)
  elseif("${package}" STREQUAL "xxHash")
    etstream_download(xxHash https://github.com/Cyan4973/xxHash/archive/refs/tags/v0.8.1.tar.gz
                      3bb6b7d6f30c591dd65aaaff1c8b7a5b94d81687998ca9400082c739a690436c)
    set(XXHASH_INCLUDE_DIR ${etstream_fetched})
  elseif("${package}" STREQUAL "ZLIB")
    etstream_download(ZLIB https://github.com/madler/zlib/archive/refs/tags/v1.2.13.tar.gz
                      1525952a0a567581792613a9723333d7f8cc20b87a81f920fb8bc7e3f2251428)
    set(ETSTREAM_ZLIB_FOLDER ${etstream_fetched})
    set(ZLIB_FOUND TRUE)
  elseif("${package}" STREQUAL "zstd")
    etstream_download(zstd https://github.com/facebook/zstd/archive/refs/tags/v1.5.4.tar.gz
                      35ad983197f8f8eb0c963877bf8be50490a0b3df54b4edeb8399ba8a8b2f60a4)
    set(ETSTREAM_ZSTD_FOLDER ${etstream_fetched})
    set(zstd_FOUND TRUE)
  endif()
endmacro()

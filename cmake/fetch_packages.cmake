# SPDX-License-Identifier: BSD-3-Clause
#
# Fetches packages that are not found from their releases, in the versions of Debian 12, for ETSTREAM_FETCH_PACKAGES.
# FETCHCONTENT_SOURCE_DIR_<NAME> takes a copy instead. Only the sources of each package are taken, not its own build,
# whose options, tests and installed files would become ours.
#
# Each hash is that of the archive that `git archive` makes of the release's tag; those of nlohmann-json and xxHash are
# also the hashes of Debian's orig.tar.gz.
include(FetchContent)

# Sets etstream_fetched to the folder of the sources.   etstream_download(NAME URL SHA256)
macro(etstream_download name url hash)
  message(STATUS "etstream fetches ${name}, which is not found")
  # The sources have no folder "none", so that their own build is not added.
  FetchContent_Declare(${name} URL ${url} URL_HASH SHA256=${hash}
                       DOWNLOAD_EXTRACT_TIMESTAMP ON SOURCE_SUBDIR none)
  FetchContent_MakeAvailable(${name})
  string(TOLOWER ${name} etstream_fetched)
  set(etstream_fetched ${${etstream_fetched}_SOURCE_DIR})
endmacro()

# Adds a package of headers.   etstream_headers(TARGET FOLDER)
macro(etstream_headers target folder)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${folder})
endmacro()

# Gives the targets of find_package from a download; PACKAGE_FOUND stays as it is for all other packages.
# etstream_fetch(PACKAGE)
macro(etstream_fetch package)
  if("${package}" STREQUAL "FlatBuffers")
    etstream_download(FlatBuffers https://github.com/google/flatbuffers/archive/refs/tags/v2.0.8.tar.gz
                      f97965a727d26386afaefff950badef2db3ab6af9afe23ed6d94bfb65f95f37e)
    # This library serves shared libraries too. It is installed with ours, whose users may have no FlatBuffers.
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
  endif()
endmacro()

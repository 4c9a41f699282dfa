# SPDX-License-Identifier: BSD-3-Clause
#
# Finds every package that the options need, for all folders, and says how to install all missing ones at once. GLOBAL,
# as a project that has etstream in a folder of its own links them too.
set(missing)
if(ETSTREAM_FETCH_PACKAGES)
  include(${CMAKE_CURRENT_LIST_DIR}/fetch_packages.cmake)
endif()

# etstream_find(PACKAGE "sentence" ARGUMENT...) with the arguments of find_package.
macro(etstream_find package advice)
  find_package(${package} ${ARGN} QUIET GLOBAL)
  if(ETSTREAM_FETCH_PACKAGES AND NOT ${package}_FOUND)
    etstream_fetch(${package})
  endif()
  if(NOT ${package}_FOUND)
    list(APPEND missing "${package}: ${advice}")
  endif()
endmacro()

set(or_name_it "or let CMAKE_PREFIX_PATH name where it is")
set(or_no_tests "or give -DETSTREAM_BUILD_TESTS=OFF")
set(or_no_python "or give -DETSTREAM_BUILD_PYTHON=OFF")

if(ETSTREAM_BUILD_TESTS)
  etstream_find(Python3 "install python3, ${or_no_tests}" COMPONENTS Interpreter)
  if(Python3_FOUND)
    # Python runs on this machine even if the tests run on another.
    set_target_properties(Python3::Interpreter PROPERTIES CROSSCOMPILING_EMULATOR "")
  endif()
endif()
if(ETSTREAM_BUILD_PYTHON)
  etstream_find(Python "install Python 3.10 or newer with its headers, python3-dev, ${or_no_python}"
                3.10 COMPONENTS Interpreter Development.Module ${SKBUILD_SABI_COMPONENT})
  if(Python_FOUND)
    if(NOT nanobind_DIR)
      execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
                      OUTPUT_VARIABLE nanobind_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    endif()
    etstream_find(nanobind "pip install nanobind for ${Python_EXECUTABLE}, ${or_no_python}" CONFIG)
  endif()
endif()

# Other packages are not found by the PATH: an activated Python environment, whose bin/ is in it, may have a FlatBuffers
# of its own.
set(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH OFF)

etstream_find(FlatBuffers "install libflatbuffers-dev, ${or_name_it}")
# Only its headers are used: Debian has no static library of it, and users should not need the shared one.
etstream_find(fmt "install libfmt-dev, ${or_name_it}")
etstream_find(nlohmann_json "install nlohmann-json3-dev, ${or_name_it}")
find_path(XXHASH_INCLUDE_DIR xxhash.h)
mark_as_advanced(XXHASH_INCLUDE_DIR)
if(ETSTREAM_FETCH_PACKAGES AND NOT XXHASH_INCLUDE_DIR)
  etstream_fetch(xxHash)
endif()
if(NOT XXHASH_INCLUDE_DIR)
  list(APPEND missing "xxHash: install libxxhash-dev, ${or_name_it}")
endif()
etstream_find(ZLIB "install zlib1g-dev, ${or_name_it}")
etstream_find(zstd "install libzstd-dev, ${or_name_it}" CONFIG)
# The library that src/core/base/hashes.cpp calls: macOS has these functions in its C library.
set(ETSTREAM_SHA256)
if(NOT APPLE)
  include(${CMAKE_CURRENT_LIST_DIR}/find_libcrypto.cmake)
  if(NOT TARGET etstream::libcrypto)
    list(APPEND missing "OpenSSL: install libssl-dev, ${or_name_it}")
  endif()
  set(ETSTREAM_SHA256 etstream::libcrypto)
endif()
if(ETSTREAM_BUILD_COMMAND)
  etstream_find(CLI11 "install libcli11-dev, ${or_name_it}, or give -DETSTREAM_BUILD_COMMAND=OFF")
endif()
if(ETSTREAM_BUILD_EXECUTORCH)
  # The files that its wheel has for C++.
  etstream_find(executorch "pip install executorch==1.5.1 and let CMAKE_PREFIX_PATH name <site-packages>/executorch, \
or give -DETSTREAM_BUILD_EXECUTORCH=OFF" 1.5)
endif()
if(ETSTREAM_BUILD_TESTS)
  etstream_find(doctest "install doctest-dev, ${or_name_it}, ${or_no_tests}")
  etstream_find(Threads "install libc6-dev, ${or_no_tests}")
  if(FlatBuffers_FOUND AND NOT TARGET flatbuffers::flatc)
    list(APPEND missing "flatc of the same FlatBuffers: install flatbuffers-compiler-dev, ${or_no_tests}")
  endif()
endif()
if(FlatBuffers_FOUND AND NOT TARGET flatbuffers::flatbuffers)
  list(APPEND missing "FlatBuffers' static library: install libflatbuffers-dev, ${or_name_it}")
endif()
# The FlatBuffers that shared libraries link. Debian's static one can't be part of them. The shared one is given by its
# file, so that users who link ours need not find it. A fetched one is static, and can be part of them.
set(ETSTREAM_FLATBUFFERS_FOR_SHARED flatbuffers::flatbuffers)
if(NOT TARGET etstream_flatbuffers)
  set(ETSTREAM_FLATBUFFERS_FOR_SHARED $<TARGET_FILE:flatbuffers::flatbuffers_shared>)
  if(FlatBuffers_FOUND AND (BUILD_SHARED_LIBS OR ETSTREAM_BUILD_PYTHON) AND NOT TARGET flatbuffers::flatbuffers_shared)
    list(APPEND missing "FlatBuffers' shared library: install libflatbuffers-dev, ${or_name_it}")
  endif()
endif()

unset(CMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH)
if(missing)
  list(JOIN missing "\n  " missing)
  message(FATAL_ERROR "etstream lacks these (packages have Debian's names):\n  ${missing}\n")
endif()

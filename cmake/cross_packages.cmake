# SPDX-License-Identifier: BSD-3-Clause
#
# The packages that etstream is built with, for another system than the one that compiles: headers in
# ETSTREAM_CROSS_PACKAGES/include, and the sources of FlatBuffers, zlib and zstd in folders beside it. Other packages are
# looked for as usual.
set(ETSTREAM_CROSS_PACKAGES "" CACHE PATH "The folder that packaging/cross makes")

# Provides a package when it is asked for, so that nothing is built that nobody needs.
macro(etstream_provide method package)
  if("${package}" STREQUAL "FlatBuffers")
    etstream_provide_flatbuffers()
    set(FlatBuffers_FOUND TRUE)
  elseif("${package}" STREQUAL "fmt")
    etstream_provide_headers(fmt::fmt-header-only)
    set(fmt_FOUND TRUE)
  elseif("${package}" STREQUAL "nlohmann_json")
    etstream_provide_headers(nlohmann_json::nlohmann_json)
    set(nlohmann_json_FOUND TRUE)
  elseif("${package}" STREQUAL "CLI11")
    etstream_provide_headers(CLI11::CLI11)
    set(CLI11_FOUND TRUE)
  elseif("${package}" STREQUAL "doctest")
    etstream_provide_headers(doctest::doctest)
    # Its macros use __COUNTER__, which all compilers have, but which zig's Clang calls an extension.
    target_compile_options(doctest::doctest INTERFACE -Wno-c2y-extensions)
    set(doctest_FOUND TRUE)
  elseif("${package}" STREQUAL "ZLIB")
    set(ETSTREAM_ZLIB_FOLDER ${ETSTREAM_CROSS_PACKAGES}/zlib)
    set(ZLIB_FOUND TRUE)
  elseif("${package}" STREQUAL "zstd")
    set(ETSTREAM_ZSTD_FOLDER ${ETSTREAM_CROSS_PACKAGES}/libzstd)
    set(zstd_FOUND TRUE)
  endif()
endmacro()

function(etstream_provide_headers target)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} INTERFACE ${ETSTREAM_CROSS_PACKAGES}/include)
endfunction()

function(etstream_provide_flatbuffers)
  set(sources ${ETSTREAM_CROSS_PACKAGES}/flatbuffers/src)
  add_library(etstream_flatbuffers STATIC EXCLUDE_FROM_ALL
    ${sources}/idl_gen_text.cpp ${sources}/idl_parser.cpp ${sources}/reflection.cpp ${sources}/util.cpp)
  target_include_directories(etstream_flatbuffers SYSTEM PUBLIC ${ETSTREAM_CROSS_PACKAGES}/include)
  target_compile_options(etstream_flatbuffers PRIVATE -w)
  add_library(flatbuffers::flatbuffers ALIAS etstream_flatbuffers)
  # This program runs on the machine that compiles.
  find_program(ETSTREAM_FLATC flatc NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  add_executable(flatbuffers::flatc IMPORTED GLOBAL)
  set_target_properties(flatbuffers::flatc PROPERTIES IMPORTED_LOCATION ${ETSTREAM_FLATC})
endfunction()

cmake_language(SET_DEPENDENCY_PROVIDER etstream_provide SUPPORTED_METHODS FIND_PACKAGE)

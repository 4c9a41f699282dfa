# SPDX-License-Identifier: BSD-3-Clause
#
# A toolchain of zig's C++ compiler (ziglang on PyPI), which has the headers and the libraries of other systems, for
# ETSTREAM_CROSS_TARGET: macos-arm64 or macos-x86_64. ETSTREAM_ZIG is the zig program. The packages come from
# ETSTREAM_CROSS_PACKAGES, see cross_packages.cmake. packaging/cross sets all three.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ETSTREAM_CROSS_TARGET ETSTREAM_ZIG)
string(REGEX MATCH "^macos-(arm64|x86_64)$" known "${ETSTREAM_CROSS_TARGET}")
if(NOT known)
  message(FATAL_ERROR "ETSTREAM_CROSS_TARGET is ${ETSTREAM_CROSS_TARGET}, expected macos-arm64 or macos-x86_64")
endif()
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
string(REPLACE arm64 aarch64 processor ${CMAKE_MATCH_1})
set(CMAKE_SYSTEM_NAME Darwin)
# This is the oldest macOS whose libc++ can print floating-point numbers exactly (std::to_chars).
set(triple ${processor}-macos.13.3)

# By default zig puts the sanitizer of undefined behaviour into all code that is not optimized.
set(options -target ${triple} -fno-sanitize=undefined)
set(CMAKE_C_COMPILER ${ETSTREAM_ZIG} cc ${options})
set(CMAKE_CXX_COMPILER ${ETSTREAM_ZIG} c++ ${options})

# The zig program is the archiver too.
set(CMAKE_AR ${ETSTREAM_ZIG} CACHE FILEPATH "")
set(CMAKE_RANLIB ${ETSTREAM_ZIG} CACHE FILEPATH "")
set(CMAKE_USER_MAKE_RULES_OVERRIDE ${CMAKE_CURRENT_LIST_DIR}/zig_archives.cmake)

# The target uses nothing of the machine that compiles.
set(CMAKE_FIND_ROOT_PATH ${ETSTREAM_CROSS_PACKAGES})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_PROJECT_TOP_LEVEL_INCLUDES ${CMAKE_CURRENT_LIST_DIR}/cross_packages.cmake)

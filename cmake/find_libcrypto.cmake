# SPDX-License-Identifier: BSD-3-Clause
#
# Finds OpenSSL's libcrypto, of which src/core/base/hashes.cpp calls one hash, for this build and for users who link the
# installed static library: the target etstream::libcrypto, unless there is none. It is the static one if there is one
# (not every system has it), as one hash of it takes almost no space. Other parts of it would link zlib and zstd, which
# may be missing.
if(NOT TARGET etstream::libcrypto)
  set(OPENSSL_USE_STATIC_LIBS ON)
  find_package(OpenSSL QUIET COMPONENTS Crypto)
  unset(OPENSSL_USE_STATIC_LIBS)
  if(NOT OpenSSL_FOUND)
    find_package(OpenSSL QUIET COMPONENTS Crypto)
  endif()
  if(OpenSSL_FOUND)
    add_library(etstream::libcrypto UNKNOWN IMPORTED GLOBAL)
    set_target_properties(etstream::libcrypto PROPERTIES
      IMPORTED_LOCATION ${OPENSSL_CRYPTO_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${OPENSSL_INCLUDE_DIR})
  endif()
endif()

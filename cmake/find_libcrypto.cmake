# SPDX-License-Identifier: BSD-3-Clause
#
# Finds OpenSSL's libcrypto, of which src/core/base/sha256.cpp calls one hash, for this build and for users who link the
# installed static library. It makes the target etstream::libcrypto if the system has one. The static libcrypto is taken
# if the system has it, as one hash of it takes next to no room. Other parts of libcrypto would link zlib and zstd,
# which need not be there.
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

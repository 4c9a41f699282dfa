# SPDX-License-Identifier: BSD-3-Clause
#
# Debian packages, by `cpack -G DEB` in the build's folder: libetstream-dev, the static library and its headers, and
# etstream, the command. dpkg-shlibdeps finds the libraries that the command links.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME etstream)
set(CPACK_PACKAGE_VENDOR etstream)
set(CPACK_PACKAGE_CONTACT "the authors of etstream <etstream@localhost>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

# Files that Debian alone wants are in components of their own, which `cmake --install` leaves out.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL command development debian_command debian_development)
set(CPACK_COMPONENT_DEBIAN_COMMAND_GROUP command_package)
set(CPACK_COMPONENT_COMMAND_GROUP command_package)
set(CPACK_COMPONENT_DEBIAN_DEVELOPMENT_GROUP development_package)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP development_package)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/etstream RENAME copyright
        COMPONENT debian_command EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/libetstream-dev RENAME copyright
        COMPONENT debian_development EXCLUDE_FROM_ALL)

set(CPACK_DEBIAN_COMMAND_PACKAGE_PACKAGE_NAME etstream)
set(CPACK_DEBIAN_COMMAND_PACKAGE_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_COMMAND_PACKAGE_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_COMMAND_PACKAGE_DESCRIPTION "This is the command, with its manual page and completions for shells.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_PACKAGE_NAME libetstream-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_PACKAGE_DEPENDS "libflatbuffers-dev, libssl-dev, libzstd-dev, zlib1g-dev")
if(TARGET etstream_flatbuffers)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_PACKAGE_DEPENDS "libssl-dev, libzstd-dev, zlib1g-dev")
endif()
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DESCRIPTION "This is the static C++ library with its headers, for CMake and pkg-config.")

include(CPack)

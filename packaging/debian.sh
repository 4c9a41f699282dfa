# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Puts Debian's packages, of any release and processor, in folders without installing them. To be sourced.

# Prints Debian's mirror from apt's sources here; prints nothing if they have none of Debian 12.
debian_mirror() {
  apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    awk '$1 == "bookworm" && $2 == "main" { print $3; exit }'
}

# Runs apt-get with a state of its own, which knows one release and processor, and no installed package. Its lists are
# fetched at the first call.   debian_apt FOLDER SUITE ARCHITECTURE ARGUMENT...
debian_apt() {
  local folder=$1 suite=$2 architecture=$3 url
  shift 3
  if [ ! -e "$folder/ready" ]; then
    url=$(debian_mirror)
    [ -n "$url" ] || { echo "apt has no mirror of Debian 12 in its sources" >&2; return 1; }
    mkdir -p "$folder/state/lists/partial" "$folder/cache/archives/partial"
    : >"$folder/status"
    for kind in deb deb-src; do
      echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $url $suite main"
    done >"$folder/sources.list"
    cat >"$folder/conf" <<CONF
Dir::State "$folder/state";
Dir::State::status "$folder/status";
Dir::Cache "$folder/cache";
Dir::Etc::sourcelist "$folder/sources.list";
Dir::Etc::sourceparts "/dev/null";
APT::Architecture "$architecture";
APT::Architectures { "$architecture"; };
APT::Sandbox::User "root";
CONF
    APT_CONFIG=$folder/conf apt-get update --quiet=2
    touch "$folder/ready"
  fi
  APT_CONFIG=$folder/conf apt-get --quiet=2 "$@" >/dev/null
}

# Unpacks the files of packages into a folder laid out as a system.   debian_unpack FOLDER FILE.deb...
debian_unpack() {
  local folder=$1 file
  shift
  mkdir -p "$folder"/usr/{bin,lib,lib64,sbin}
  for file in bin lib lib64 sbin; do ln -sfn "usr/$file" "$folder/$file"; done
  for file in "$@"; do
    dpkg-deb --fsys-tarfile "$file" | tar --extract --directory="$folder" --keep-directory-symlink --no-same-owner
  done
}

# Prints the variables that pip and apt use here, one in each line.
package_environment() {
  env | grep -E '^(PIP_|https?_proxy=|HTTPS?_PROXY=|no_proxy=|NO_PROXY=|SSL_CERT_FILE=)' || true
}

# Makes a system of only these packages and their dependencies; none of their scripts is run. debian_root APT_FOLDER
# SUITE ARCHITECTURE FOLDER PACKAGE...
debian_root() {
  local apt=$1 suite=$2 architecture=$3 folder=$4
  [ "$(cat "$folder/ready" 2>/dev/null)" != "${*:5}" ] || return 0
  debian_apt "$apt" "$suite" "$architecture" install --download-only --yes --no-install-recommends "${@:5}"
  debian_unpack "$folder" "$apt"/cache/archives/*.deb
  mkdir -p "$folder"/{dev,etc,proc,root,sys,tmp,var/tmp}
  echo "${*:5}" >"$folder/ready"
}

# Unpacks the files of packages themselves, without their dependencies. debian_files APT_FOLDER SUITE ARCHITECTURE
# FOLDER PACKAGE...
debian_files() {
  local apt=$1 suite=$2 architecture=$3 folder=$4
  shift 4
  mkdir -p "$apt/files"
  (cd "$apt/files" && debian_apt "$apt" "$suite" "$architecture" download "$@")
  debian_unpack "$folder" "$apt"/files/*.deb
}

# Runs a command as root of a namespace that ends with its mounts and processes. Only there does the kernel know of
# QEMU, which runs programs for aarch64. The command is not the namespace's first process, which has to wait for
# processes whose parents are gone, and does not get all signals.   debian_namespace COMMAND...
debian_namespace() {
  # This is the pattern of a 64-bit ELF file for aarch64, an executable or one in the form of a library; with F, QEMU
  # may lie outside the folder. shellcheck disable=SC2016
  unshare --user --map-root-user --mount --pid --fork --kill-child bash -euo pipefail -c '
    mount --types binfmt_misc none /proc/sys/fs/binfmt_misc
    head="\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    mask="\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    qemu=$(command -v qemu-aarch64-static || true)
    [ -z "$qemu" ] || echo ":etstream-aarch64:M::$head:$mask:$qemu:F" >/proc/sys/fs/binfmt_misc/register
    mount --types proc proc /proc
    "$@"
    exit' -- "$@"
}

# Runs a command in such a folder, in such a namespace, with an environment of its own.   debian_enter FOLDER COMMAND...
debian_enter() {
  # shellcheck disable=SC2016
  debian_namespace bash -euo pipefail -c '
    root=$1
    shift
    mount --rbind /dev "$root/dev"
    mount --types proc proc "$root/proc"
    exec env -i PATH=/usr/sbin:/usr/bin HOME=/root LANG=C.UTF-8 chroot "$root" "$@"' -- "$@"
}

#!/usr/bin/env bash
# What scripts/setup says and runs on systems that are not this one: setup_test.sh SOURCE SCRATCH
# dpkg-query, apt-cache, apt-get, sudo and python3 are small programs made here; nothing is installed and no network is used.
set -euo pipefail
source=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch/project/scripts" "$scratch/bin"
cp "$source/scripts/setup" "$scratch/project/scripts/"
cp -r "$source/cmake" "$scratch/project/"
cd "$scratch/project"
failed=0

program() { printf '#!/bin/bash\n%s\n' "$2" > "$scratch/bin/$1"; chmod +x "$scratch/bin/$1"; }
os() { printf '%s\n' "$@" > "$scratch/os-release"; }

# run EXPECTED_STATUS ARGUMENTS...: output in $output
run() {
  local wanted=$1 status=0
  shift
  output=$(env -u LIBTORCH_ROOT -u VIRTUAL_ENV -u CONDA_PREFIX "${environment[@]}" SPT_OS_RELEASE="$scratch/os-release" PATH="$scratch/bin:$PATH" \
    bash scripts/setup "$@" < /dev/null 2>&1) || status=$?
  [[ $status == "$wanted" ]] || { echo "FAILED: exit status $status instead of $wanted for '$*':"; echo "$output"; failed=1; }
}
says() { [[ $output == *"$1"* ]] || { echo "FAILED: expected '$1' in:"; echo "$output"; failed=1; }; }
says_not() { [[ $output != *"$1"* ]] || { echo "FAILED: did not expect '$1' in:"; echo "$output"; failed=1; }; }

environment=()
every_package_installed='case "$*" in *libboost1.\**) echo "install ok installed libboost1.81-dev" ;; *) echo "install ok installed" ;; esac'
program dpkg-query "$every_package_installed"
program apt-cache 'printf "libboost1.74-dev\nlibboost1.81-dev\nlibboost1.81-all-dev\n"'
program apt-get 'echo "apt-get $*"; exit 1'
program python3 'exit 1'  # no torch, and no venv either
program nvidia-smi 'exit 9'

os ID=debian VERSION_ID=11 'PRETTY_NAME="Debian GNU/Linux 11 (bullseye)"'
run 1 --check
says "Debian GNU/Linux 11 (bullseye) is too old"
says "Use Debian 12 or newer"
os ID=ubuntu VERSION_ID=22.04 'PRETTY_NAME="Ubuntu 22.04.4 LTS"'
run 1
says "Ubuntu 22.04.4 LTS is too old"
says "Ubuntu 24.04"
says_not "apt-get"

os ID=ubuntu VERSION_ID=24.04 'PRETTY_NAME="Ubuntu 24.04 LTS"'
run 1 --frobnicate
says "unknown argument '--frobnicate'; known:"

run 1 --check
says "system packages: all there"
says ".venv would be made with torch=="
says "(cpu)"
program nvidia-smi 'echo "GPU 0: some card"'
run 1 --check
says "(cuda)"
program nvidia-smi 'exit 9'

# A missing library and the Boost package of this system are named, with the command to run by hand; others are not.
program dpkg-query 'case "$*" in *libboost*) exit 1 ;; *libcli11-dev*) echo "deinstall ok config-files" ;; *) echo "install ok installed" ;; esac'
program apt-cache 'printf "libboost1.74-dev\nlibboost1.88-dev\nlibboost1.83-dev\nlibboost1.83-all-dev\n"'
run 1 --check
says "packages missing: libcli11-dev libboost1.83-dev"
run 1 --deps
says "could not install the missing packages"
says "apt-get update && apt-get install --no-install-recommends libcli11-dev libboost1.83-dev"
says_not "libspdlog-dev"
if ((EUID == 0)); then
  says "apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends --no-remove libcli11-dev libboost1.83-dev"
else
  program sudo 'echo "sudo $*"; exit 1'
  run 1 --deps
  says "sudo -n apt-get"
fi
program dpkg-query "$every_package_installed"

# An interrupted .venv is made again, one that the user made is kept aside, LIBTORCH_ROOT is never replaced.
mkdir -p .venv/lib
touch .venv/.spt-incomplete .venv/lib/half
run 1 --deps
says "installation was interrupted"
says "python3 -m venv failed"
[[ ! -e .venv/lib/half && -e .venv/.spt-incomplete ]] || { echo "FAILED: the interrupted .venv was not emptied"; failed=1; }
rm -r .venv
mkdir .venv
touch .venv/mine
run 1 --deps
says "was not made by scripts/setup and holds no LibTorch that fits; moved to .venv."
[[ -e $(echo .venv.*/mine) ]] || { echo "FAILED: the user's .venv is gone"; failed=1; }
rm -r .venv
environment=(LIBTORCH_ROOT="$scratch/nowhere")
run 1 --deps
says "LIBTORCH_ROOT=$scratch/nowhere (no lib/libc10.so)"
[[ ! -e .venv ]] || { echo "FAILED: .venv was made although LIBTORCH_ROOT is given"; failed=1; }

rm -rf "$scratch"
((failed == 0)) && echo "scripts/setup: all as expected"
exit $failed

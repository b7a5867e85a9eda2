# Debian's kernels, and an emulated machine that boots one of them. Sourced by tests/older-kernel
# and tests/real-boot, in the project's folder. BIN names the folder of the built programs.

# shellcheck shell=bash
BIN=${BIN:-${CARGO_TARGET_DIR:-target}/release}

# use_kernel RELEASE - selects the kernel for the following functions
use_kernel() {
	RELEASE=$1
	kernel=$(dirname "$BIN")/linux-$RELEASE
}
use_kernel 6.12

refuse() {
	echo "$*" >&2
	exit 1
}

# fetch_kernel - unpacks Debian's package into $kernel. The package is not installed, so this
# machine's boot loader does not see it. Exits with the reason if that fails.
fetch_kernel() {
	[ "$(uname -m)" = x86_64 ] || refuse \
		"the emulated machine is x86-64, and this one is $(uname -m)"
	command -v qemu-system-x86_64 >/dev/null || refuse "no qemu-system-x86_64 here"
	local package
	[ ! -d "$kernel/lib/modules" ] || return 0
	package=$(apt-cache search --names-only \
		"^linux-image-${RELEASE//./\\.}\\.[^ ]*-cloud-amd64\$" 2>/dev/null |
		sort -V | awk 'END { print $1 }') || true
	[ -n "$package" ] || refuse "this distribution has no Linux $RELEASE for clouds"
	rm -rf "$kernel.new"
	mkdir -p "$kernel.new"
	(cd "$kernel.new" && apt-get -qq -o APT::Sandbox::User=root download "$package" &&
		dpkg -x ./*.deb . &&
		mv boot/vmlinuz-* vmlinuz &&
		if [ -d usr/lib/modules ]; then rm -rf lib && mv usr/lib .; fi &&
		rm -rf ./*.deb boot usr) || refuse "$package could not be fetched"
	rm -rf "$kernel"
	mv "$kernel.new" "$kernel"
}

# kernel_module NAME - prints a module of the kernel, decompressed
kernel_module() {
	local file=("$kernel"/lib/modules/*/kernel/"$1".ko*)
	case ${file[0]} in
	*.xz) xz -dc "${file[0]}" ;;
	*) cat "${file[0]}" ;;
	esac
}

# emulate SECONDS ARGUMENT... - boots the kernel in a machine without disk and network, unless the
# arguments of qemu add them. The machine ends with the shell that started it.
emulate() {
	local limit=$1
	shift
	setpriv --pdeathsig TERM timeout --foreground "$limit" \
		qemu-system-x86_64 -accel tcg,thread=single -cpu max,-erms -smp 1 \
		-nodefaults -no-user-config -display none -no-reboot \
		-kernel "$kernel/vmlinuz" "$@" ||
		echo "the machine was stopped after $limit seconds" >&2
}

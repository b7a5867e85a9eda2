# skipstep: a packet filter for Linux. `make help` says what there is.

# What Debian calls what is needed. `make demo`, `make test` and the like install what is missing.
PACKAGES_BUILD := gcc libc6-dev linux-libc-dev make pkg-config libelf-dev zlib1g-dev
PACKAGES_LAB   := iproute2 iputils-ping util-linux procps curl busybox-static iperf3 tcpdump netcat-openbsd python3 iptables nftables lftp tnftp tmux
PACKAGES_CHECK := shellcheck
# For `make deb` and `make tarball`.
PACKAGES_DEB   := debhelper fakeroot python3 binutils xz-utils
# For `make test-full`: another kernel, and a Debian, in an emulated machine, readers of files and of metrics, libFuzzer.
PACKAGES_FULL  := tshark prometheus chromium chromium-driver python3-selenium g++ wireguard-tools $(PACKAGES_DEB) lintian debootstrap $(if $(filter x86_64,$(shell uname -m)),qemu-system-x86 xz-utils e2fsprogs kmod)
PACKAGES_DOCS  := mandoc
# The BPF compiler: the first of these that the distribution has; 16 is the oldest that will do.
CLANGS         := clang-19 clang-20 clang-18 clang-17 clang-16

PREFIX  ?= /usr/local
DESTDIR ?=
VECTORS ?= ../shared/vectors
REGRESS ?= ../shared/pf-regress
PACKETS ?= 10000000
# For each target of fuzz/.
FUZZ_SECONDS ?= 60
# Of the random sequence of `make fuzz`: a new one each time unless given.
SEED    ?= $(shell date +%s)

SBIN        := $(DESTDIR)$(PREFIX)/sbin
BINDIR      := $(DESTDIR)$(PREFIX)/bin
MAN         := $(DESTDIR)$(PREFIX)/share/man
DATA        := $(DESTDIR)$(PREFIX)/share/skipstep
EXAMPLES    := $(DESTDIR)$(PREFIX)/share/doc/skipstep/examples
BASH        := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSH         := $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISH        := $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
VIM         := $(DESTDIR)$(PREFIX)/share/vim/vimfiles
SYSUSERS    := $(DESTDIR)$(if $(filter /usr,$(PREFIX)),/usr/lib/sysusers.d,/etc/sysusers.d)
UNITS       := $(DESTDIR)$(if $(filter /usr,$(PREFIX)),/usr/lib/systemd/system,/etc/systemd/system)

# The packages to install, all of packaging/programs unless given, and what belongs to them.
ENTRIES     := $(shell sed -n '/^\#/!s/  */:/gp' packaging/programs)
column       = $(word $(2),$(subst :, ,$(1)))
PACKAGE     ?= $(sort $(foreach entry,$(ENTRIES),$(call column,$(entry),2)))
in           = $(strip $(foreach entry,$(ENTRIES),$(if $(and $(filter $(1),$(call column,$(entry),3)),\
		$(filter $(PACKAGE),$(call column,$(entry),2))),$(call column,$(entry),1))))
IN_SBIN     := $(call in,sbin)
IN_BIN      := $(call in,bin)
OF_SKIPSTEP := $(if $(filter skipstep,$(PACKAGE)),skipstep)
PAGES       := $(notdir $(foreach name,$(IN_SBIN) $(IN_BIN),$(wildcard man/$(name).[158] man/$(name).conf.5)) \
		$(OF_SKIPSTEP:skipstep=man/pf.conf.5))
OF_PROGRAMS := $(foreach entry,$(ENTRIES),packaging/$(call column,$(entry),1).service)
SERVICES    := $(notdir $(wildcard $(IN_SBIN:%=packaging/%.service)) \
		$(filter-out $(OF_PROGRAMS),$(wildcard $(OF_SKIPSTEP:%=packaging/%-*.service))))

CARGO  := cargo
BIN    := $(or $(CARGO_TARGET_DIR),target)/release
XTASK  := $(BIN)/xtask
RUN    := VECTORS=$(VECTORS) REGRESS=$(REGRESS) tests/run
SAY    := @printf '\n\033[1m%s\033[0m\n'
ifeq ($(shell test -t 1 && echo tty),)
SAY    := @printf '\n%s\n'
endif

.DEFAULT_GOAL := help
.PHONY: help packages packages-check packages-lab packages-full packages-deb kernel root build demo check test test-full bench docs conformance regress fuzz install uninstall deb tarball clean

help: ## this text
	@printf 'skipstep: OpenBSD'"'"'s packet filter for Linux\n\n'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'
	@printf '\nVariables: PREFIX=%s DESTDIR= VECTORS=%s PACKETS=%s SEED= FUZZ_SECONDS=%s\n' '$(PREFIX)' '$(VECTORS)' '$(PACKETS)' '$(FUZZ_SECONDS)'

packages: # what a build needs
	@packaging/prepare cargo
	@packaging/prepare packages '$(CLANGS)' $(PACKAGES_BUILD)

packages-lab: packages # what the demonstration and the tests need besides
	@packaging/prepare packages '' $(PACKAGES_LAB)

packages-check: packages # what `make check` needs besides
	@packaging/prepare packages '' $(PACKAGES_CHECK)

packages-deb: packages # what `make deb` and `make tarball` need besides
	@packaging/prepare packages '' $(PACKAGES_DEB)

packages-full: packages-lab # what `make test-full` needs besides
	@packaging/prepare packages '' $(PACKAGES_FULL)

kernel: root # refuses where the programs cannot run
	@packaging/prepare kernel

root:
	@packaging/prepare root

build: packages ## build pfctl, pftop, skipstepd and the rest (release)
	$(SAY) "Building"
	@$(CARGO) build --release --locked --workspace

demo: kernel packages-lab build ## three hosts, a rule set, real programs: what passes and what it costs
	@BIN=$(abspath $(BIN)) tests/netns/demo.sh

check: packages-check ## format, lints, documentation, dependencies; warnings are errors
	@tests/run check

test: packages-lab ## what a change needs; says what it skipped and why
	@$(RUN) test

test-full: packages-full ## all tests there are, and FUZZ_SECONDS of fuzzing a target; says what it skipped and why
	@FUZZ_SECONDS=$(FUZZ_SECONDS) $(RUN) full

bench: kernel packages-lab build ## ns a packet by evaluator and number of rules, the time to load rules, FTP by each front; worst cases, in instructions too
	@$(XTASK) bench
	@BIN=$(BIN) tests/older-kernel --worst || echo "without instructions: make packages-full installs the emulator"

docs: packages ## build the pages of docs/ and the manual pages as a site in target/docs
	@packaging/prepare packages '' $(PACKAGES_DOCS)
	@packaging/prepare mdbook
	@docs/build target/docs
	@echo "target/docs/index.html"

conformance: build ## replay every vector of VECTORS on the model and, as root, on the BPF programs
	@$(XTASK) conformance --vectors $(VECTORS)

regress: kernel build ## run the cases of OpenBSD's and FreeBSD's own pfctl tests in REGRESS
	@$(XTASK) regress --cases $(REGRESS)

fuzz: kernel build ## PACKETS random packets must fare the same everywhere; each reader of bytes gets random ones for FUZZ_SECONDS
	@$(XTASK) differential --packets $(PACKETS) --seed $(SEED)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) fuzz/run

install: build ## install programs, man pages, completions, vim files, systemd units and examples under PREFIX
	install -d $(BINDIR) $(SBIN) $(MAN)/man1 $(MAN)/man5 $(MAN)/man8 $(UNITS)
	$(if $(IN_SBIN),install -m 755 $(IN_SBIN:%=$(BIN)/%) $(SBIN))
	$(if $(IN_BIN),install -m 755 $(IN_BIN:%=$(BIN)/%) $(BINDIR))
	for page in $(PAGES); do \
		install -m 644 man/$$page $(MAN)/man$${page##*.} || exit 1; \
	done
	for unit in $(SERVICES); do \
		sed 's|@sbin@|$(PREFIX)/sbin|g; s|@data@|$(PREFIX)/share/skipstep|g' packaging/$$unit >$(UNITS)/$$unit && \
		chmod 644 $(UNITS)/$$unit || exit 1; \
	done
ifneq ($(filter fwlab,$(PACKAGE)),)
	install -d $(BASH) $(ZSH) $(FISH)
	$(BIN)/fwlab completions bash >$(BASH)/fwlab
	$(BIN)/fwlab completions zsh >$(ZSH)/_fwlab
	$(BIN)/fwlab completions fish >$(FISH)/fwlab.fish
endif
ifneq ($(filter skipstep,$(PACKAGE)),)
	[ -e $(DESTDIR)/etc/pf.os ] || install -D -m 644 packaging/pf.os $(DESTDIR)/etc/pf.os
	for program in pfctl pftop; do \
		install -D -m 644 man/completions/$$program.bash $(BASH)/$$program && \
		install -D -m 644 man/completions/_$$program $(ZSH)/_$$program && \
		install -D -m 644 man/completions/$$program.fish $(FISH)/$$program.fish || exit 1; \
	done
	for folder in syntax ftdetect indent; do \
		install -d $(VIM)/$$folder && install -m 644 editors/vim/$$folder/*.vim $(VIM)/$$folder || exit 1; \
	done
	install -d $(DATA) $(EXAMPLES)
	install -m 644 packaging/boot.conf packaging/dev-pf.conf packaging/grafana/skipstep.json \
		packaging/prometheus/skipstep.rules.yml $(DATA)
	install -m 755 packaging/unpin $(DATA)
	install -m 644 examples/*.conf examples/pf.failsafe $(EXAMPLES)
	install -D -m 644 packaging/sysusers.conf $(SYSUSERS)/skipstep.conf
ifeq ($(DESTDIR),)
	packaging/prepare user
endif
endif

uninstall: ## stop filtering, unpin everything and remove what install installed; /etc/pf.conf, logs and the user stay
ifeq ($(DESTDIR),)
	packaging/unpin $(SBIN)/pfctl
endif
	rm -f $(IN_SBIN:%=$(SBIN)/%) $(IN_BIN:%=$(BINDIR)/%)
	rm -f $(SYSUSERS)/skipstep.conf
	rm -f $(SERVICES:%=$(UNITS)/%)
	rm -f $(foreach page,$(PAGES),$(MAN)/man$(subst .,,$(suffix $(page)))/$(page))
	rm -f $(addprefix $(BASH)/,pfctl pftop fwlab) $(addprefix $(ZSH)/_,pfctl pftop fwlab) \
		$(patsubst %,$(FISH)/%.fish,pfctl pftop fwlab)
	rm -f $(VIM)/*/skipstep.vim $(VIM)/*/skipstep-*.vim
	if cmp -s packaging/pf.os $(DESTDIR)/etc/pf.os; then rm -f $(DESTDIR)/etc/pf.os; fi
	rm -rf $(DATA) $(DESTDIR)$(PREFIX)/share/doc/skipstep

deb: packages-deb build ## build the Debian packages of packaging/programs in target/deb
	@BIN=$(abspath $(BIN)) packaging/deb $(or $(CARGO_TARGET_DIR),target)/deb

tarball: packages-deb ## build an archive of static programs in target/tarball, for other distributions
	@packaging/tarball $(or $(CARGO_TARGET_DIR),target)/tarball

clean: ## remove what was built
	$(CARGO) clean

# skipstep: a packet filter for Linux. `make help` says what there is.

# What Debian calls what is needed. `make demo`, `make test` and the like install what is missing.
PACKAGES_BUILD := gcc libc6-dev linux-libc-dev make pkg-config libelf-dev zlib1g-dev
PACKAGES_LAB   := iproute2 iputils-ping util-linux procps curl busybox-static iperf3 tcpdump netcat-openbsd python3 iptables nftables lftp tnftp
PACKAGES_CHECK := shellcheck
# For `make test-full`: another kernel, and a Debian, in an emulated machine, readers of files and of metrics, libFuzzer.
PACKAGES_FULL  := tshark prometheus chromium chromium-driver python3-selenium g++ wireguard-tools $(if $(filter x86_64,$(shell uname -m)),qemu-system-x86 xz-utils debootstrap e2fsprogs kmod)
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
COMPLETIONS := $(DESTDIR)$(PREFIX)/share
VIM         := $(DESTDIR)$(PREFIX)/share/vim/vimfiles
SYSUSERS    := $(DESTDIR)$(if $(filter /usr,$(PREFIX)),/usr/lib/sysusers.d,/etc/sysusers.d)
UNITS       := $(DESTDIR)$(if $(filter /usr,$(PREFIX)),/usr/lib/systemd/system,/etc/systemd/system)

CARGO  := cargo
BIN    := $(or $(CARGO_TARGET_DIR),target)/release
XTASK  := $(BIN)/xtask
RUN    := VECTORS=$(VECTORS) REGRESS=$(REGRESS) tests/run
SAY    := @printf '\n\033[1m%s\033[0m\n'
ifeq ($(shell test -t 1 && echo tty),)
SAY    := @printf '\n%s\n'
endif

.DEFAULT_GOAL := help
.PHONY: help packages packages-check packages-lab packages-full kernel root build demo check test test-full bench docs conformance regress fuzz install uninstall clean

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

packages-full: packages-lab # what `make test-full` needs besides
	@packaging/prepare packages '' $(PACKAGES_FULL)

kernel: root # refuses where the programs cannot run
	@packaging/prepare kernel

root:
	@packaging/prepare root

build: packages ## build pfctl, skipstepd and the rest (release)
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
	install -d $(SBIN) $(BINDIR) $(MAN)/man1 $(MAN)/man5 $(MAN)/man8 $(DATA) $(EXAMPLES) $(UNITS)
	install -m 755 $(BIN)/pfctl $(BIN)/skipstepd $(BIN)/ftp-proxy $(BIN)/ftpsesame $(BIN)/ftp-gw $(SBIN)
	install -m 755 $(BIN)/skipstep-web $(BIN)/skipstep-broker $(SBIN)
	install -m 755 $(BIN)/fwlab $(BINDIR)
	[ -e $(DESTDIR)/etc/pf.os ] || install -D -m 644 packaging/pf.os $(DESTDIR)/etc/pf.os
	install -m 644 man/*.1 $(MAN)/man1
	install -m 644 man/*.5 $(MAN)/man5
	install -m 644 man/*.8 $(MAN)/man8
	install -D -m 644 man/completions/pfctl.bash $(COMPLETIONS)/bash-completion/completions/pfctl
	install -D -m 644 man/completions/_pfctl $(COMPLETIONS)/zsh/site-functions/_pfctl
	install -D -m 644 man/completions/pfctl.fish $(COMPLETIONS)/fish/vendor_completions.d/pfctl.fish
	$(BIN)/fwlab completions bash >$(COMPLETIONS)/bash-completion/completions/fwlab
	$(BIN)/fwlab completions zsh >$(COMPLETIONS)/zsh/site-functions/_fwlab
	$(BIN)/fwlab completions fish >$(COMPLETIONS)/fish/vendor_completions.d/fwlab.fish
	for folder in syntax ftdetect indent; do \
		install -d $(VIM)/$$folder && install -m 644 editors/vim/$$folder/*.vim $(VIM)/$$folder || exit 1; \
	done
	install -m 644 packaging/boot.conf packaging/dev-pf.conf packaging/grafana/skipstep.json \
		packaging/prometheus/skipstep.rules.yml $(DATA)
	install -m 644 examples/*.conf $(EXAMPLES)
	install -D -m 644 packaging/sysusers.conf $(SYSUSERS)/skipstep.conf
ifeq ($(DESTDIR),)
	packaging/prepare user
endif
	for unit in $(notdir $(wildcard packaging/*.service)); do \
		sed 's|@sbin@|$(PREFIX)/sbin|g; s|@data@|$(PREFIX)/share/skipstep|g' packaging/$$unit >$(UNITS)/$$unit && \
		chmod 644 $(UNITS)/$$unit || exit 1; \
	done

uninstall: ## stop filtering, unpin everything and remove what install installed; /etc/pf.conf, logs and the user stay
ifeq ($(DESTDIR),)
	packaging/prepare unpin $(SBIN)/pfctl
endif
	rm -f $(SBIN)/pfctl $(SBIN)/skipstepd $(SBIN)/ftp-proxy $(SBIN)/ftpsesame $(SBIN)/ftp-gw $(SBIN)/skipstep-web $(SBIN)/skipstep-broker $(BINDIR)/fwlab
	rm -f $(SYSUSERS)/skipstep.conf
	rm -f $(addprefix $(UNITS)/,$(notdir $(wildcard packaging/*.service)))
	rm -f $(addprefix $(MAN)/man1/,$(notdir $(wildcard man/*.1)))
	rm -f $(addprefix $(MAN)/man5/,$(notdir $(wildcard man/*.5))) $(addprefix $(MAN)/man8/,$(notdir $(wildcard man/*.8)))
	rm -f $(addprefix $(COMPLETIONS)/bash-completion/completions/,pfctl fwlab) \
		$(addprefix $(COMPLETIONS)/zsh/site-functions/_,pfctl fwlab) \
		$(patsubst %,$(COMPLETIONS)/fish/vendor_completions.d/%.fish,pfctl fwlab)
	rm -f $(VIM)/*/skipstep.vim $(VIM)/*/skipstep-*.vim
	if cmp -s packaging/pf.os $(DESTDIR)/etc/pf.os; then rm -f $(DESTDIR)/etc/pf.os; fi
	rm -rf $(DATA) $(DESTDIR)$(PREFIX)/share/doc/skipstep

clean: ## remove what was built
	$(CARGO) clean

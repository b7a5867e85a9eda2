# Attaches a program to tcx of an interface, like another application's, until it is killed. The
# program passes all packets to the next program. With `accept` it is the first program and accepts
# all packets, so the next one does not see them.
#
#   another-program.py INTERFACE ingress|egress [accept]
import ctypes, platform, signal, socket, struct, sys

BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
PROG_LOAD, LINK_CREATE, SCHED_CLS = 5, 28, 3
ATTACH = {"ingress": 46, "egress": 47}  # BPF_TCX_INGRESS, BPF_TCX_EGRESS
libc = ctypes.CDLL(None, use_errno=True)


def bpf(command, attributes):
    attributes = ctypes.create_string_buffer(attributes, 128)
    fd = libc.syscall(BPF, command, attributes, len(attributes))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "bpf")
    return fd


accepts = sys.argv[3:] == ["accept"]
TCX_PASS, TCX_NEXT, BPF_F_BEFORE = 0, -1, 8
verdict = TCX_PASS if accepts else TCX_NEXT
# r0 = verdict; exit
code = ctypes.create_string_buffer(struct.pack("<BBhi BBhi", 0xB7, 0, 0, verdict, 0x95, 0, 0, 0))
license = ctypes.create_string_buffer(b"ISC")
program = bpf(PROG_LOAD, struct.pack("IIQQ", SCHED_CLS, 2, ctypes.addressof(code), ctypes.addressof(license)))
link = bpf(
    LINK_CREATE,
    struct.pack(
        "IIII",
        program,
        socket.if_nametoindex(sys.argv[1]),
        ATTACH[sys.argv[2]],
        BPF_F_BEFORE if accepts else 0,
    ),
)
print("ready", flush=True)
signal.pause()

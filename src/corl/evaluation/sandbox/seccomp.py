"""Build the system-call filter: a classic BPF program, as plain tuples.

A list of what is denied, not of what is allowed, so that a new libc or Python
does not break honest programs; calls newer than the table answer ENOSYS. The
candidate gets threads but no second process: without fork and exec nothing can
outlive it. The filter is built here and installed in the child, which puts its
own pid where `OWN_PID` stands.
"""

import errno
import platform

Instruction = tuple[int, int, int, int]

OWN_PID = -1

_ARCHES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_FIRST_UNKNOWN = 452
_X32_BIT = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER_AT, _ARCH_AT, _ARG0_AT, _ARG1_AT = 0, 4, 16, 24
_CLONE_THREAD = 0x00010000

# name: (x86_64, aarch64); 0 where the architecture has no such call.
_DENIED: dict[str, tuple[int, int]] = {
    # network, and local sockets
    "socket": (41, 198), "socketpair": (53, 199), "bind": (49, 200), "connect": (42, 203),
    "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
    # second processes, and leaving the group
    "fork": (57, 0), "vfork": (58, 0), "execve": (59, 221), "execveat": (322, 281),
    "setpgid": (109, 154), "setsid": (112, 157),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # mounts and namespaces
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "move_mount": (429, 429), "open_tree": (428, 428), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    # kernel surface that no answer needs; io_uring would walk around this filter
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "seccomp": (317, 277), "keyctl": (250, 219), "add_key": (248, 217),
    "request_key": (249, 218), "personality": (135, 92), "syslog": (103, 116),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "iopl": (172, 0), "ioperm": (173, 0), "modify_ldt": (154, 0),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262), "lookup_dcookie": (212, 18), "vhangup": (153, 58),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266),
    "adjtimex": (159, 171), "sethostname": (170, 161), "setdomainname": (171, 162),
    # attributes of files: Landlock does not cover them, and a user owns files outside
    "chmod": (90, 0), "fchmod": (91, 52), "fchmodat": (268, 53), "chown": (92, 0),
    "lchown": (94, 0), "fchown": (93, 55), "fchownat": (260, 54), "setxattr": (188, 5),
    "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "utime": (132, 0),
    "utimes": (235, 0), "futimesat": (261, 0), "utimensat": (280, 88),
    "mknod": (133, 0), "mknodat": (259, 33),
    # Landlock does not cover the reading of attributes either
    "getxattr": (191, 8), "lgetxattr": (192, 9), "fgetxattr": (193, 10),
    "listxattr": (194, 11), "llistxattr": (195, 12), "flistxattr": (196, 13),
    # names of files come and go in any readable directory: Landlock does not cover watches
    "inotify_init": (253, 0), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    # memory that no limit counts, or that outlives the process
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193),
    "semctl": (66, 191), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip

_CLONE, _CLONE3 = (56, 220), (435, 435)
_KILL, _TGKILL = (62, 129), (234, 131)
_PRCTL, _PRLIMIT, _FCNTL, _IOCTL = (157, 167), (302, 261), (72, 25), (16, 29)
_THREAD_NAMES = (15, 16)  # PR_SET_NAME, PR_GET_NAME
# F_SETOWN, F_SETSIG and F_SETOWN_EX make the kernel send any signal to any own process.
_SIGNAL_COMMANDS = (8, 10, 15)
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX


def build_filter(machine: str | None = None) -> list[Instruction] | None:
    """Return the BPF program for `machine` (this one by default), or None if it is unknown."""
    known = _ARCHES.get(machine or platform.machine())
    if known is None:
        return None
    arch, column = known
    deny = _return(_ERRNO | errno.EPERM)
    missing = _return(_ERRNO | errno.ENOSYS)
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH_AT), (_EQUAL, 1, 0, arch), _return(_KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32_BIT), deny,
        (_AT_LEAST, 0, 1, _FIRST_UNKNOWN), missing,
        # glibc falls back from clone3 to clone, whose flags a filter can see.
        (_EQUAL, 0, 1, _CLONE3[column]), missing,
    ]  # fmt: skip
    for numbers in _DENIED.values():
        if numbers[column]:
            program += [(_EQUAL, 0, 1, numbers[column]), deny]
    program += _when(_CLONE[column], _ARG0_AT, [(_ANY_BIT, 1, 0, _CLONE_THREAD), deny])
    for numbers in (_KILL, _TGKILL):
        program += _when(numbers[column], _ARG0_AT, [(_EQUAL, 1, 0, OWN_PID), deny])
    own = [(_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, OWN_PID), deny]
    program += _when(_PRLIMIT[column], _ARG0_AT, own)
    names = [(_EQUAL, 2, 0, _THREAD_NAMES[0]), (_EQUAL, 1, 0, _THREAD_NAMES[1]), deny]
    program += _when(_PRCTL[column], _ARG0_AT, names)
    for number, values in ((_FCNTL, _SIGNAL_COMMANDS), (_IOCTL, _TERMINAL_INPUT)):
        body = [step for value in values for step in ((_EQUAL, 0, 1, value), deny)]
        program += _when(number[column], _ARG1_AT, body)
    return [*program, _return(_ALLOW)]


def _when(number: int, argument_at: int, body: list[Instruction]) -> list[Instruction]:
    """For call `number`, load the low word of an argument and run `body`; then allow."""
    skip = len(body) + 2
    return [(_EQUAL, 0, skip, number), (_LOAD, 0, 0, argument_at), *body, _return(_ALLOW)]


def _return(value: int) -> Instruction:
    return (_RETURN, 0, 0, value)

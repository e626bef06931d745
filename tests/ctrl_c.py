"""Programs that can be interrupted, started by tests that cannot."""

import signal


def listen_to_ctrl_c():
    """Undo what a shell does to programs in the background; `preexec_fn` of a new one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)

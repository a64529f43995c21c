"""Tables of refusals: one test runs a whole table and reports every row that fails.

A fragment is a text, or a compiled pattern, that the message must contain; `...` in a text stands
for any text.
"""

import re

from trained import without_progress


def find_faults(message, fragments):
    """Returns the fragments that a message lacks, and the message if it has several lines."""
    faults = [message] if "\n" in message else []
    for fragment in fragments:
        if isinstance(fragment, str):
            fragment = re.compile(".*".join(map(re.escape, fragment.split("..."))))
        if not fragment.search(message):
            faults.append(fragment.pattern)
    return faults


def assert_refused(*rows, error=ValueError):
    """Checks that every call raises its sentence; rows are `(call, *fragments)`."""
    wrong = []
    for number, (call, *fragments) in enumerate(rows):
        try:
            wrong.append((number, fragments, "was not refused", call()))
        except error as raised:
            if faults := find_faults(str(raised), fragments):
                wrong.append((number, str(raised), "lacks", faults))
    assert not wrong, "\n".join(map(str, wrong))


def check_program(main, rows, capfd):
    """Checks that every command line is refused: exit status 2, one line on stderr, no output.

    Lines that end with an ellipsis, which say what goes on, do not count.
    Rows are `(arguments, *fragments)`; the arguments are a line or a list of words.
    """
    wrong = []
    for arguments, *fragments in rows:
        capfd.readouterr()
        status = main(arguments.split() if isinstance(arguments, str) else arguments)
        out, err = capfd.readouterr()
        message = without_progress(err).removesuffix("\n")
        faults = find_faults(message, [re.compile("^error: "), *fragments])
        if status != 2 or out or faults:
            wrong.append((arguments, status, out, err, "lacks", faults))
    assert not wrong, "\n".join(map(str, wrong))

"""What can go wrong, with the parts of its message."""

from __future__ import annotations


class _Diagnosed:
    """A message with its parts. The text of the exception is the message of the command line without the word `error`."""

    message: str
    key: str | None
    line: int | None
    hint: str | None

    def __init__(
        self,
        text: str,
        *,
        message: str | None = None,
        key: str | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(text)
        self.message = text if message is None else message
        self.key = key
        self.line = line
        self.hint = hint

    def __reduce__(self):  # an exception with keyword arguments pickles only if it says how
        parts = {"message": self.message, "key": self.key, "line": self.line, "hint": self.hint}
        return (_rebuilt, (type(self), self.args[0], parts))


def _rebuilt(kind, text, parts):
    return kind(text, **parts)


class DescriptionError(_Diagnosed, ValueError):
    """A description or an input that makes no sense.

    `message` says what is wrong, `hint` what to do, `key` the dotted path of the key and `line` its line in the text, each
    `None` where it is not known.
    """


class RunError(_Diagnosed, RuntimeError):
    """An experiment that could not be run to its end: all runs failed, or its folder cannot be written."""


class Interrupted(RunError):
    """A job that was cancelled. What was finished is kept; the same run goes on from there."""

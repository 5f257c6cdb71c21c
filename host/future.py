"""What becomes of a command that has been submitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from hotline.golden.descriptor import Completion, Descriptor

__all__ = ["Future"]

T = TypeVar("T")


class _Owner(Protocol):
    """Where futures come from: lets time pass for them."""

    def poll(self) -> None: ...

    def wait(self, future: Future, max_cycles: int | None) -> None: ...


class Future(Generic[T]):
    """Result of a submitted command, now or later.

    Like ``concurrent.futures.Future``, but time passes only inside the driver: asking for the
    result runs the device, in the caller's thread.

    Parameters
    ----------
    owner : object
        The ring that the command is in.
    descriptor : Descriptor
        The command as it was submitted.
    decode : callable
        Turns the completion record into the result, as soon as the record has been seen.
    needs : tuple of Future
        Commands without which this one makes no sense.

    Members
    -------
    descriptor : Descriptor
    completion : Completion or None
        The record of a command that has succeeded.
    """

    def __init__(
        self,
        owner: _Owner,
        descriptor: Descriptor,
        decode: Callable[[Completion], T],
        needs: tuple[Future, ...] = (),
    ) -> None:
        self.descriptor = descriptor
        self.needs = needs
        self.completion: Completion | None = None
        self._owner = owner
        self._decode = decode
        self._finished = False
        self._failure: Exception | None = None
        self._value: T

    @property
    def finished(self) -> bool:
        """Whether the outcome is known already; lets no time pass."""
        return self._finished

    @property
    def failure(self) -> Exception | None:
        """Why it failed, if that is known already; lets no time pass."""
        return self._failure

    def done(self) -> bool:
        """Whether the command has ended.

        On a simulated device some cycles pass during the call, so that a loop that waits for this
        ends, as it does with a board.
        """
        if not self._finished:
            self._owner.poll()
        return self._finished

    def exception(self, max_cycles: int | None = None) -> Exception | None:
        """Wait for the end; why the command failed, or None."""
        if not self._finished:
            self._owner.wait(self, max_cycles)
        return self._failure

    def result(self, max_cycles: int | None = None) -> T:
        """Wait for the end; the result.

        Parameters
        ----------
        max_cycles : int, optional
            Patience between two completions, instead of the device's own.

        Raises
        ------
        CommandError
            The command has failed.
        CommandSkippedError
            It was not run, because a command that it needs has failed.
        TimeoutError
            The device does not go on.
        """
        failure = self.exception(max_cycles)
        if failure is not None:
            raise failure
        return self._value

    # ---- for the ring -------------------------------------------------------------------------

    def succeed(self, record: Completion) -> None:
        """The ring has seen the record of a success."""
        self.completion = record
        try:
            self._value = self._decode(record)
        except Exception as error:  # of this command alone: the ring goes on with the others
            self._failure = error
        self._finished = True

    def fail(self, failure: Exception) -> None:
        """The ring has seen that it failed, or has not run it."""
        self._failure = failure
        self._finished = True

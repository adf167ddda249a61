"""Reading a server's log."""

import time
from pathlib import Path
from threading import Thread

from floe.execution.spark.logs import follow_lines, last_lines, telling_lines


def test_the_lines_that_tell_are_picked_out_of_a_stack() -> None:
    said = [
        "INFO starting",
        'Exception in thread "main" java.net.BindException: Address already in use',
        "\tat java.base/sun.nio.ch.Net.bind0(Native Method)",
        "\t... 12 more",
        "INFO shutting down",
    ]
    assert telling_lines(said) == [said[1]]


def test_without_a_telling_line_the_last_ones_are_shown() -> None:
    assert telling_lines(["a", "", "b"]) == ["a", "b"]
    assert telling_lines([]) == []


def test_the_end_of_a_log_is_read_and_nothing_before_a_place(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    assert last_lines(log, 5) == []
    log.write_text("old\nnew\nnewest\n")
    assert last_lines(log, 2) == ["new", "newest"]
    assert last_lines(log, 5, since=4) == ["new", "newest"]
    assert last_lines(log, 0) == []


def test_following_goes_on_in_the_file_that_took_its_place(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text("before\n")

    def write() -> None:
        time.sleep(0.2)
        with log.open("a") as file:
            file.write("first\n")
        time.sleep(0.2)
        log.replace(tmp_path / "spark.log.1")
        log.write_text("second\n")

    writer = Thread(target=write)
    writer.start()
    lines = follow_lines(log, pause=0.01)
    assert [next(lines), next(lines)] == ["first", "second"]
    lines.close()
    writer.join()

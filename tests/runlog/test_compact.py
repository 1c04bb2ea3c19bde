"""Compact run logs: small, equal for equal runs, and read like the log itself."""

import gzip
import socket
from contextlib import closing
from pathlib import Path

import pytest

from mesa_llm import ConfigError, RunLog
from mesa_llm.model.recording import Recording
from mesa_llm.runlog import compact
from mesa_llm.testing import honest
from mesa_llm_models.market.model import MarketModel
from tests.pot import PotModel


@pytest.fixture
def log(tmp_path) -> Path:
    path = tmp_path / "run.sqlite"
    with closing(MarketModel(n_agents=3, llm=honest(), rng=1, log=path)) as model:
        model.run_for(3)
    return path


def compacted(log: Path, name: str = "run.sqlite.gz") -> Path:
    with closing(RunLog(log, "read")) as source:
        source.compact_to(log.with_name(name))
    return log.with_name(name)


def test_a_compact_log_replays_bit_for_bit_and_is_read_like_the_log_itself(log) -> None:
    packed = compacted(log)
    recording = Recording.read(packed)
    with closing(recording.replayed()) as replay, closing(RunLog(log, "read")) as whole:
        assert replay.runlog.digest == Recording.read(log).digests[3]
        assert replay.usage.calls == 0
        with closing(RunLog(packed, "read")) as read:
            for table in ("calls", "decisions", "actions", "steps"):
                assert read.table(table).equals(whole.table(table))
    assert packed.stat().st_size < log.stat().st_size / 4


def test_equal_logs_give_equal_files_without_the_host_that_wrote_them(log) -> None:
    packed = compacted(log)
    assert packed.read_bytes() == compacted(log, "again.sqlite.gz").read_bytes()
    with closing(RunLog(packed, "read")) as read:
        assert read.manifest[compact.RECORDED_ON].count("-") == 2
    assert socket.gethostname().encode() not in gzip.decompress(packed.read_bytes())
    assert sorted(path.name for path in log.parent.iterdir()) == ["again.sqlite.gz", "run.sqlite", "run.sqlite.gz"]


def test_a_log_is_compacted_while_it_is_being_written(tmp_path) -> None:
    with closing(PotModel(4, honest(), rng=2, log=tmp_path / "run.sqlite")) as model:
        model.run_for(2)
        model.runlog.compact_to(tmp_path / "so_far.sqlite.gz")
        model.run_for(1)
    assert Recording.read(tmp_path / "so_far.sqlite.gz").last_step == 2


def test_a_compact_log_cannot_be_continued(log) -> None:
    with pytest.raises(ConfigError, match="can be replayed but not continued"):
        MarketModel(n_agents=3, llm=honest(), rng=1, log=compacted(log))


def test_a_damaged_or_foreign_compact_file_is_refused(log, monkeypatch) -> None:
    packed = compacted(log)
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(ConfigError, match="is damaged"):
        Recording.read(packed)
    packed.write_bytes(gzip.compress(b"no database at all"))
    with pytest.raises(ConfigError, match="cannot be used as a run log"):
        Recording.read(packed)
    monkeypatch.setattr(compact, "MAX_BYTES", 1000)
    with pytest.raises(ConfigError, match="holds more than 1,000 bytes"):
        Recording.read(compacted(log))


@pytest.mark.parametrize("content", [b"", b"no database"])
def test_a_compressed_file_that_holds_no_log_says_so(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "run.sqlite.gz").write_bytes(gzip.compress(content))
    with pytest.raises(ConfigError, match="unpacked, it holds no"):
        compact.unpacked(tmp_path / "run.sqlite.gz")

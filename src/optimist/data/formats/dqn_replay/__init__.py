"""Public DQN Replay logs: the folders `replay_logs` of the DQN Replay Dataset, whole or in part."""

from optimist.data.formats.dqn_replay.dumps import is_log as detect
from optimist.data.formats.dqn_replay.reading import ReadOptions, open, verify
from optimist.data.formats.dqn_replay.writing import WriteOptions, write

__all__ = ["ReadOptions", "WriteOptions", "detect", "open", "verify", "write"]
